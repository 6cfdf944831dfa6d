"""`tools` and `schema`: the registry for users and programs."""

from __future__ import annotations

import jsonschema

from cli.conftest import MakeCommands
from obsidian_agent.offline.recipe import packaged
from obsidian_agent.tools.registry import TOOLS


def test_tools_and_recipes_are_listed(commands: MakeCommands) -> None:
    run = commands({})
    code, document = run.json("tools")
    assert (code, [tool["name"] for tool in document["tools"]]) == (0, list(TOOLS))
    assert [recipe["name"] for recipe in document["recipes"]] == [
        recipe.name for recipe in packaged()
    ]
    text = run.say("tools").out
    assert "vault.createFile" in text
    assert "(path, content" in text
    assert "For example: " in text


def test_the_schemas_are_valid_and_complete(commands: MakeCommands) -> None:
    run = commands({})
    plan, tools = run.json("schema", "plan")[1], run.json("schema", "tools")[1]
    jsonschema.Draft202012Validator.check_schema(plan)
    assert [tool["name"] for tool in tools["tools"]] == list(TOOLS)
    for tool in tools["tools"]:
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])
