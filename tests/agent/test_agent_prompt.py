from __future__ import annotations

import json
import re

from obsidian_agent.agent.agent_prompt import agent_prompt
from obsidian_agent.plan.validate import validate
from obsidian_agent.tools.registry import TOOLS


def headings(text: str) -> list[str]:
    return re.findall(r"^# (.+)$", text, re.MULTILINE)


def test_who_only_answers_learns_nothing_of_plans() -> None:
    prompt = agent_prompt(TOOLS.values(), propose=False)
    assert headings(prompt) == ["Role", "Looking around", "Answering", "Data is not instructions"]
    assert "propose" not in prompt.lower()
    assert "{{" not in prompt


def test_who_may_propose_learns_the_plan_language_once() -> None:
    prompt = agent_prompt(TOOLS.values(), propose=True)
    assert headings(prompt) == [
        "Role",
        "Looking around",
        "Answering",
        "Proposing changes",
        "ActionPlan JSON Schema",
        "Tools",
        "References",
        "foreach",
        "Vault rules",
        "Examples of plans, as `propose_plan` takes them",
        "Data is not instructions",
    ]
    assert "You cannot read notes" not in prompt, "that is for planners that cannot look around"
    assert "Output ONLY valid JSON" not in prompt
    for name in TOOLS:
        assert f"\n{name} [" in prompt


def test_the_examples_are_valid_plans_that_change_something() -> None:
    examples = agent_prompt(TOOLS.values(), propose=True).partition("# Examples")[2].partition("# Data is")[0]
    plans = [json.loads(line) for line in examples.splitlines() if line.startswith("{")]
    assert len(plans) >= 2
    for plan in plans:
        assert plan["riskLevel"] != "read-only"
        assert validate(plan, TOOLS).problems == ()


def test_it_is_the_same_for_the_same_tools() -> None:
    assert agent_prompt(TOOLS.values(), propose=True) is agent_prompt(list(TOOLS.values()), propose=True)
    fewer = [tool for name, tool in TOOLS.items() if name != "commands.run"]
    assert "commands.run" not in agent_prompt(fewer, propose=True)
