from __future__ import annotations

import json
from pathlib import Path

import pytest

from obsidian_agent.agent.plan_language import CORE
from obsidian_agent.agent.tool_choice import MOST, SMALL_WINDOW, detail_for, hint, suggested
from obsidian_agent.providers.offline.recipe import packaged
from obsidian_agent.providers.scripted import ScriptedProvider
from obsidian_agent.tools.registry import TOOLS

PARAPHRASES = Path(__file__).parent.parent / "providers" / "offline" / "paraphrases.json"


@pytest.mark.parametrize(
    ("message", "tool"),
    [
        ("Tick all open tasks in Today", "vault.markTasks"),
        ("Rename the tag #work to #job", "vault.renameTag"),
        ("Make a note from the template Meeting", "template.render"),
        ("Which links lead nowhere?", "vault.listUnresolved"),
        ("Move the section Ideas into a note of its own", "vault.takeSection"),
    ],
)
def test_the_words_say_which_tools_are_needed(message: str, tool: str) -> None:
    assert tool in {each.name for each in suggested(message, TOOLS.values(), CORE)}


def test_most_plans_can_be_made_with_what_a_small_model_is_told() -> None:
    recipes = {recipe.name: recipe for recipe in packaged() if recipe.refusal is None}
    asked = [each for each in json.loads(PARAPHRASES.read_text(encoding="utf-8")) if each["recipe"] in recipes]
    enough = 0
    for each in asked:
        recipe = recipes[each["recipe"]]
        told = {tool.name for tool in suggested(each["instruction"], TOOLS.values(), CORE)} | set(CORE)
        plans = [recipe.plan] if recipe.plan is not None else [variant.plan for variant in recipe.variants]
        enough += any({step["tool"] for step in plan["steps"]} <= told for plan in plans)
    assert enough / len(asked) > 0.9


def test_no_more_than_asked_for_and_nothing_twice() -> None:
    found = suggested("Tick the open tasks and move them to Today", TOOLS.values(), CORE)
    assert len(found) <= MOST
    assert not {tool.name for tool in found} & set(CORE)
    assert suggested("Tick the open tasks", [TOOLS["vault.query"]], ()) in ((), (TOOLS["vault.query"],))
    assert suggested("", TOOLS.values(), ()) == ()
    assert hint("Räum die Wiese auf", TOOLS.values(), "short") in ("", hint("Räum die Wiese auf", TOOLS.values(), "short"))


def test_who_knows_all_tools_needs_no_hint() -> None:
    assert hint("Tick the open tasks", TOOLS.values(), "full") == ""
    assert "vault.markTasks*(" in hint("Tick the open tasks", TOOLS.values(), "short")


def test_small_windows_and_models_on_this_machine_are_told_less() -> None:
    far, near = ScriptedProvider("scripted/a", ()), ScriptedProvider("scripted/b", (), local=True)
    assert detail_for(None, far, None) == "full"
    assert detail_for(None, far, SMALL_WINDOW) == "short"
    assert detail_for(None, far, SMALL_WINDOW + 1) == "full"
    assert detail_for(None, near, 200_000) == "short"
    assert detail_for("full", near, 4_096) == "full"
    assert detail_for("short", far, None) == "short"
