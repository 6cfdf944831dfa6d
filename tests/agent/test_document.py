from __future__ import annotations

from typing import Any

from obsidian_agent.agent.events import MOST_LINES, findings
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Instance, Preview
from obsidian_agent.tools.core.tool import Risk, RunContext
from tui.fakes import NOW


def told(outputs: dict[str, Any], risk: Risk = Risk.READ_ONLY) -> list[tuple[str, list[str]]]:
    steps = [{"id": name, "tool": "vault.query", "args": {}} for name in outputs]
    plan = ActionPlan.model_validate({"version": "1.0", "goal": "Look", "riskLevel": "read-only", "steps": steps})
    first = next(iter(outputs))
    instances = tuple(Instance(name, name, None, "vault.query", {}, "ready", depends_on=frozenset({first} - {name})) for name in outputs)
    return findings(Preview(plan, RunContext("V", NOW), risk, instances=instances), outputs)


def test_outputs_read_as_lists_and_fields() -> None:
    value = {"files": [{"path": "A.md", "tags": ["x", "y"]}, {"path": "B.md", "tags": []}], "total": 2, "more": False, "text": "one\ntwo"}
    lines = [
        "files:",
        "  - path: A.md",
        "    tags:",
        "      - x",
        "      - y",
        "  - path: B.md",
        "    tags: nothing",
        "total: 2",
        "more: no",
    ]
    assert told({"find": value}) == [("vault.query", [*lines, "text:", "  one", "  two"])]


def test_only_last_steps_of_plans_that_only_read_are_told_and_long_lists_counted() -> None:
    assert told({"first": ["a"], "last": []}) == [("vault.query", ["nothing"])]
    assert told({"find": ["a"]}, Risk.WRITES) == []
    (_, lines), *_ = told({"find": list(range(1000))})
    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == "… and 800 more lines."
