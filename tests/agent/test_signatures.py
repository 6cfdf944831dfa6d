from __future__ import annotations

from typing import Literal

from pydantic import Field

from obsidian_agent.agent.signatures import compact_schema, describe_tools
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolModel
from obsidian_agent.tools.registry import TOOLS


class Part(ToolModel):
    name: str
    size: int | None = None


class Input(ToolModel):
    note_path: PathText
    mode: Literal["a", "b"] = "a"
    more_paths: list[PathText] | None = None
    value: str | int = Field(default=3, description="What to set.")
    anything: dict[str, object] = Field(default_factory=dict)


class Output(ToolModel):
    parts: list[Part]
    best: Part | None = None


TOOL = Tool("x.do", "Does it.", Risk.WRITES, Input, Output, lambda args, ctx: Proposal(args))


def test_a_tool_in_three_lines() -> None:
    assert describe_tools([TOOL]).split("\n") == [
        "x.do [writes] Does it.",
        '  in: {notePath: path, mode?: "a" | "b" = "a", morePaths?: path[], value?: string | integer = 3, anything?: object}',
        "  out: {parts: {name: string, size?: integer}[], best?: {name: string, size?: integer}}",
        "  - value: What to set.",
    ]


def test_every_tool_and_argument_is_named() -> None:
    described = describe_tools(TOOLS.values())
    for tool in TOOLS.values():
        assert f"\n{tool.name} [" in f"\n{described}"
        block = next(block for block in described.split("\n\n") if block.startswith(f"{tool.name} "))
        for name, field in (*tool.input.model_fields.items(), *tool.output.model_fields.items()):
            assert (field.alias or name) in block, f"{tool.name}: {name}"


def test_the_compact_schema_keeps_fields_and_loses_titles() -> None:
    full = ActionPlan.model_json_schema(by_alias=True)
    compact = compact_schema(full)
    assert set(compact["properties"]) == set(full["properties"])
    assert set(compact["$defs"]["Step"]["properties"]) == set(full["$defs"]["Step"]["properties"])
    assert compact["$defs"]["Step"]["required"] == ["id", "tool", "args"]
    assert not [schema for schema in (compact, *compact["$defs"].values()) if "title" in schema]
    assert compact["$defs"]["Step"]["properties"]["onError"] == {"enum": ["stop", "skip", "retry"], "type": "string"}
    assert compact["$defs"]["Step"]["properties"]["foreach"] == {"$ref": "#/$defs/Foreach"}
