"""Users read sentences; models and `--json` get the words of the plan language."""

from __future__ import annotations

import re
from typing import Any

import pytest

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.plan.policy import UNRESTRICTED
from obsidian_agent.plan.validate import validate
from obsidian_agent.tools.registry import TOOLS

INTERNAL = re.compile(r"\$|/steps|[A-Z]{3,}_|\b[a-z]+[A-Z]|foreach|[a-z]+\.[a-z]+[A-Z]|_\d")


def step(**fields: Any) -> dict[str, Any]:
    return {"id": "find", "tool": "vault.find", "args": {}} | fields


BROKEN: list[list[dict[str, Any]]] = [
    [step(args={"folder": "$steps.nothing.files"})],
    [step(args={"folder": "${nothing}"})],
    [step(args={"folder": "${"})],
    [step(args={"newPane": 1})],
    [step(tool="vault.createFiles")],
    [step(dependsOn=["nothing"])],
    [step(), step()],
    [step(dependsOn=["two"]), step(id="two", dependsOn=["find"])],
    [step(foreach={"from": "$steps.find.files", "itemName": "i", "indexName": "i"})],
    [step(retry={"maxAttempts": 99})],
    [step(onError="never")],
    [{"tool": 3}],
]


@pytest.mark.parametrize("steps", BROKEN)
def test_no_problem_of_a_plan_shows_the_plan_language(steps: list[dict[str, Any]]) -> None:
    document = {"version": "1.0", "goal": "Find", "riskLevel": "read-only", "steps": steps}
    checked = validate(document, TOOLS, UNRESTRICTED)
    problems = (*checked.problems, *(checked.warnings if checked.plan is not None else ()))
    assert problems
    for problem in problems:
        assert not INTERNAL.search(problem.sentence), problem.sentence
        assert problem.file is None


def test_advice_for_the_author_of_a_plan_is_in_the_document_and_not_in_the_sentence() -> None:
    error = ToolError("It exists.", hint="Choose another name.", advice="Or use vault.updateFile.")
    problem = error.problem().at("make", "make_3")
    assert (
        problem.to_json()["message"] == "It exists. Choose another name. Or use vault.updateFile."
    )
    assert problem.sentence == "It exists. Choose another name."
    assert Problem("IO_ERROR", "The disk is full.").sentence == "The disk is full."
    assert Problem("X", "", path="A.md").file == "A.md"
