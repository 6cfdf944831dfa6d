from __future__ import annotations

import pytest

from obsidian_agent.agent.turn.prompts import CORE, MOST, SMALL_WINDOW, detail_for, hint, suggested
from obsidian_agent.offline.recipe import SLOT, packaged
from obsidian_agent.providers.scripted import ScriptedProvider
from obsidian_agent.tools.registry import TOOLS


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
    enough = 0
    for recipe in packaged():
        told = {tool.name for tool in suggested(SLOT.sub("it", recipe.examples[0]), TOOLS.values(), CORE)} | set(CORE)
        enough += set(recipe.tools) <= told
    assert enough / len(packaged()) > 0.85


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
