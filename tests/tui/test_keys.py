from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen

import obsidian_agent.tui
from obsidian_agent.tui.bindings import BY_ID, CONTEXTS, KEYS, bindings, format_keys
from obsidian_agent.tui.screens.actions import Actions
from obsidian_agent.tui.screens.dialogs import DiffScreen
from obsidian_agent.tui.screens.help import Help, keys_page
from obsidian_agent.tui.screens.json_editor import PlanEditor
from obsidian_agent.tui.screens.unexpected import Unexpected
from obsidian_agent.tui.widgets.row_list import ChoiceList
from support import settings_with
from tui.driving import MODEL, Driver, driving

DOCS = Path(__file__).parents[2] / "docs" / "keys.md"


def test_the_documentation_is_what_the_table_says() -> None:
    assert DOCS.read_text(encoding="utf-8") == keys_page(), "run: make docs"


def test_ids_are_unique() -> None:
    assert len({key.id for key in KEYS}) == len(KEYS)


def test_no_key_means_two_things_in_one_place() -> None:
    for context in CONTEXTS:
        keys = [single for key in KEYS if key.context == context for single in key.keys.split(",")]
        assert len(keys) == len(set(keys)), context


def test_keys_that_terminals_cannot_tell_apart_are_not_used() -> None:
    used = {single for key in KEYS for single in key.keys.split(",")}
    assert not used & {"ctrl+i", "ctrl+m", "ctrl+h", "ctrl+left_square_bracket"}


def test_every_binding_can_be_rebound_and_explains_itself() -> None:
    for context in CONTEXTS:
        for binding in bindings(context):
            assert isinstance(binding, Binding)
            assert binding.id
            assert binding.tooltip


def test_keys_read_as_people_write_them() -> None:
    assert format_keys("ctrl+j,shift+enter") == "Ctrl+J or Shift+Enter"
    assert format_keys("a") == "a"


def test_every_binding_of_the_program_comes_from_the_table() -> None:
    package = Path(obsidian_agent.tui.__path__[0])
    for module in pkgutil.walk_packages([str(package)], "obsidian_agent.tui."):
        for name, each in vars(importlib.import_module(module.name)).items():
            if (
                isinstance(each, type)
                and issubclass(each, DOMNode)
                and each.__module__ == module.name
            ):
                for found in vars(each).get("BINDINGS", ()):
                    assert isinstance(found, Binding), (module.name, name, found)
                    assert found.id in BY_ID, (module.name, name, found)


def words_of(app: Driver) -> str:
    """Return the screen with plain spaces: a key and its words are not torn apart at its edge."""
    return app.screen().replace("\N{NO-BREAK SPACE}", " ")


async def test_welcome_help_and_status_lines_name_the_keys_that_are_in_force() -> None:
    keys = {"main.saved": "f9", "plan.approve": "f8", "app.help": "f12", "main.selection": "ctrl+y"}
    async with driving(settings=settings_with(model=MODEL, keymap=keys)) as app:
        assert "F12 keys   F9 actions" in words_of(app)
        await app.press("f6", "f6")
        assert "F8  approves and applies it" in app.screen()
        await app.pilot.press("f12")
        await app.settle()
        assert isinstance(app.app.screen, Help)
        assert "F12 " in app.screen()
        assert "F1  " not in app.screen()
        await app.press("escape")
        await app.planned()
        assert "✓ Ready. F8 approve" in app.screen()


async def test_sentences_name_the_keys_that_are_in_force() -> None:
    keys = {
        "main.saved": "f9",
        "main.history": "f7",
        "main.open": "ctrl+g",
        "main.threads": "f10",
        "result.save": "w",
        "error.copy": "y",
    }
    async with driving(size=(200, 50), settings=settings_with(model=MODEL, keymap=keys)) as app:
        assert "Ctrl+G open a note" in words_of(app)
        await app.send("tidy the selection")
        assert "Ctrl+G opens a note" in app.hint()
        await app.press("f9")
        await app.on_top(Actions)
        rows = app.app.screen.query_one(ChoiceList).rows
        assert "After a run, w saves its plan" in str(rows[-1])
        await app.press("escape")
        await app.app.push_screen(Unexpected(ValueError("x")))
        await app.settle()
        assert "The report (y copies it) contains no note text" in app.screen()


@pytest.mark.parametrize(
    "make", [Unexpected, lambda error: DiffScreen("A", "text"), lambda error: PlanEditor({})]
)
async def test_the_help_opens_over_every_screen_by_the_key_that_is_in_force(
    make: Callable[[Exception], Screen[Any]],
) -> None:
    async with driving(settings=settings_with(model=MODEL, keymap={"app.help": "f12"})) as app:
        await app.app.push_screen(make(ValueError("x")))
        await app.settle()
        await app.press("f12")
        await app.on_top(Help)
        await app.press("f12")
        assert len(app.app.screen_stack) == 3, "once"


async def test_an_entry_of_the_keymap_that_names_no_key_is_told() -> None:
    async with driving(settings=settings_with(model=MODEL, keymap={"plan.aprove": "f8"})) as app:
        assert "The keymap setting has unknown key ids" in app.transcript()
        assert "plan.approve" in app.transcript(), "the nearest one"


async def test_keys_that_are_changed_while_the_program_runs_are_in_force_and_shown_at_once() -> (
    None
):
    async with driving() as app:
        await app.send('/set keymap {"main.saved": "f9", "no.key": "f7"}')
        await app.until(lambda: "F9 actions" in words_of(app))
        assert "The keymap setting has unknown key ids: “no.key”" in app.transcript()
        await app.press("f9")
        assert isinstance(app.app.screen, Actions)


async def test_changed_keys_are_shown_whichever_listener_hears_of_the_change_first() -> None:
    async with driving() as app:
        app.main.settings.set("keymap", {"main.saved": "f9"})
        app.main._setting_changed("keymap")
        await app.settle()
        app.app._setting_changed("keymap")
        await app.settle()
        assert "F9 actions" in words_of(app)
