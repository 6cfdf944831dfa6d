"""The exported JSON Schemas: camelCase, closed, and one for each tool."""

from __future__ import annotations

import json
from collections.abc import Mapping

from obsidian_agent.plan.model import plan_schema, tools_schema
from obsidian_agent.tools.core.tool import Tool


def test_the_plan_schema_names_every_field_as_on_the_wire() -> None:
    schema = plan_schema()
    assert schema["$schema"].endswith("2020-12/schema")
    assert schema["required"] == ["version", "goal", "riskLevel", "steps"]
    assert schema["additionalProperties"] is False
    step = schema["$defs"]["Step"]
    assert set(step["required"]) == {"id", "tool", "args"}
    assert {"foreach", "when", "dependsOn", "onError", "retry", "captureAs", "preview"} < set(
        step["properties"]
    )
    assert set(schema["$defs"]["Foreach"]["properties"]) == {"from", "itemName", "indexName"}
    assert set(schema["$defs"]["Retry"]["properties"]) == {"maxAttempts", "backoffMs"}
    json.dumps(schema)


def test_every_tool_has_its_schemas(tools: Mapping[str, Tool]) -> None:
    listed = {each["name"]: each for each in tools_schema(tools.values())["tools"]}
    assert listed.keys() == tools.keys()
    created = listed["vault.createFile"]
    assert created["riskLevel"] == "writes"
    assert set(created["inputSchema"]["properties"]) == {
        "path",
        "content",
        "ifNotExists",
        "frontmatter",
        "onConflict",
    }
    assert created["inputSchema"]["additionalProperties"] is False
    assert listed["vault.delete"]["deletes"] is True


def test_the_tools_can_be_exported(tools: Mapping[str, Tool]) -> None:
    text = json.dumps(tools_schema(tools.values()))
    assert "if_not_exists" not in text
