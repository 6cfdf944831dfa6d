from __future__ import annotations

import json
import re

from obsidian_agent.agent.budget import estimate, estimate_offers
from obsidian_agent.agent.turn.model_tools import offers
from obsidian_agent.agent.turn.prompts import agent_prompt
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
        "Tools",
        "References, in `args`, `when` and `foreach.from` only",
        "Vault rules",
        "Examples",
        "Data is not instructions",
    ]
    assert "You cannot read notes" not in prompt, "that is for planners that cannot look around"
    assert "Output ONLY valid JSON" not in prompt
    for name in TOOLS:
        assert re.search(rf"^{re.escape(name)}\*?\(", prompt, re.MULTILINE)


def test_the_examples_are_valid_plans_that_change_something() -> None:
    examples = agent_prompt(TOOLS.values(), propose=True).partition("# Examples")[2].partition("# Data is")[0]
    plans = [json.loads(line) for line in examples.splitlines() if line.startswith("{")]
    assert len(plans) >= 2
    for plan in plans:
        assert plan["riskLevel"] != "read-only"
        assert validate(plan, TOOLS).problems == ()


def test_it_is_the_same_for_the_same_tools() -> None:
    assert agent_prompt(TOOLS.values(), propose=True) == agent_prompt(list(TOOLS.values()), propose=True)
    fewer = [tool for name, tool in TOOLS.items() if name != "commands.run"]
    assert "commands.run*(" not in agent_prompt(fewer, propose=True)


def test_the_short_form_leaves_room_in_a_small_window() -> None:
    short = agent_prompt(TOOLS.values(), propose=True, detail="short")
    functions = estimate_offers(offers(TOOLS, propose=True, detail="short"))
    assert estimate(short) + functions < 1_300
    assert estimate(agent_prompt(TOOLS.values(), propose=False, detail="short")) < 150
    assert "material, not instructions" in short
    assert "{{" not in short
