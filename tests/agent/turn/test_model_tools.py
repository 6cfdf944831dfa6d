from __future__ import annotations

from typing import Literal

from pydantic import Field

from obsidian_agent.agent.turn.model_tools import clause, describe, envelope, signature, usage_of
from obsidian_agent.errors import Problem
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.validate import validate
from obsidian_agent.tools.core.models import ToolModel
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, Tool
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


TOOL = Tool(
    name="x.do",
    summary="Does it.",
    risk=Risk.WRITES,
    input=Input,
    output=Output,
    propose=lambda args, ctx: Proposal(args),
)


def test_a_tool_on_one_line() -> None:
    assert signature(TOOL) == (
        'x.do*(notePath, mode?: a|b="a", morePaths?[], value?=3, anything?{}) -> parts[name], best{name}. Does it'
    )


def test_a_description_says_everything() -> None:
    assert describe([TOOL]).split("\n") == [
        'x.do*(notePath, mode?: a|b="a", morePaths?[], value?=3, anything?{}) -> parts[name, size], best{name, size}. Does it.',
        "- value: What to set.",
    ]


def test_every_tool_and_argument_is_described() -> None:
    for tool in TOOLS.values():
        described = describe([tool])
        for name, field in (*tool.input.model_fields.items(), *tool.output.model_fields.items()):
            assert (field.alias or name) in described, f"{tool.name}: {name}"


def test_what_must_be_given_is_on_the_line() -> None:
    for tool in TOOLS.values():
        for detail in ("full", "short"):
            line = signature(tool, detail)
            assert "\n" not in line
            assert line.startswith((f"{tool.name}(", f"{tool.name}*("))
            for name, field in tool.input.model_fields.items():
                assert not field.is_required() or (field.alias or name) in line, line


def test_a_summary_ends_where_it_has_said_enough() -> None:
    assert (
        clause("Make a new file. Never overwrites: an existing file is left alone.")
        == "Make a new file"
    )
    assert clause(
        "Turn inline fields (key:: value on a line of its own) into properties; one that is there stays."
    ) == ("Turn inline fields (key:: value on a line of its own) into properties")
    assert (
        clause("Set and remove properties of a note, add and remove its tags.")
        == "Set and remove properties of a note"
    )


def test_the_envelope_is_written_as_json_is() -> None:
    written = envelope(ActionPlan, frozenset({"defaults", "parameters", "retry"}))
    assert written.startswith(
        '{"version": "1.0", "goal": text, "assumptions"?: [text], "riskLevel": "read-only"|"writes"|"commands", "steps": [{'
    )
    assert '"foreach"?: {"from": text|list, "itemName": NAME, "indexName"?: NAME}' in written


def test_who_uses_a_tool_wrongly_is_told_how_it_is_used() -> None:
    plan = {
        "version": "1.0",
        "goal": "g",
        "riskLevel": "writes",
        "steps": [
            {"id": "find", "tool": "vault.query", "args": {"tag": "a"}},
            {"id": "new", "tool": "vault.createFile", "args": {"name": "A.md"}},
            {"id": "all", "tool": "vault.renam", "args": {}},
            {
                "id": "more",
                "tool": "vault.readFile",
                "args": {"path": "${steps.find.items.0.path}"},
            },
        ],
    }
    usage = usage_of(validate(plan, TOOLS).problems, plan, TOOLS)
    assert [line.partition("(")[0].rstrip("*") for line in usage] == [
        "vault.createFile",
        "vault.rename",
    ]
    misread = Problem(
        "REFERENCE_ERROR", "${steps.find.items.0.path}: the output has no items.", "more"
    )
    assert usage_of([misread], plan, TOOLS)[0].startswith("vault.query(")
    assert usage_of([misread], {"steps": 7}, TOOLS) == ()
