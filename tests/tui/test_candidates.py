"""The choice among the readings of a message: its rows, gaps, names and keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsidian_agent.tui.screens.actions import Actions
from obsidian_agent.tui.screens.candidates import Candidates, Gap
from obsidian_agent.tui.screens.values_form import ValuesForm
from tui.driving import Driver
from tui.test_actions import real


async def choosing(app: Driver, sentence: str) -> Candidates:
    """Send a message, and return the choice that it leads to once its readings were tried."""
    await app.send(sentence)
    await app.on_top(Candidates)
    screen = app.app.screen
    assert isinstance(screen, Candidates)
    return screen


@pytest.mark.parametrize("size", [(120, 40), (60, 20)])
async def test_a_gap_is_filled_in_its_sentence(tmp_path: Path, size: tuple[int, int]) -> None:
    async with real(tmp_path, size) as app:
        screen = await choosing(app, "please rename Soup")
        assert screen.titles[0] == "Rename Soup to …"
        assert isinstance(app.app.focused, Gap)
        await app.press(*"Stew 2")
        assert "Rename Soup to Stew 2" in app.screen()
        await app.press("enter")
        await app.settle()
        assert "Rename Recipes/Soup.md to Recipes/Stew 2.md" in app.plan_head()


async def test_a_reading_shows_what_it_would_change_and_what_is_new(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await choosing(app, "please move the winter notes to Recipes")
        assert "Move 2 notes tagged #winter to Recipes" in app.screen()
        assert "changes nothing" in app.screen()
        await app.press("escape")
        await choosing(app, "please move the winter notes to Attic")
        assert "folder Attic is new" in app.screen()


async def test_a_name_that_the_vault_does_not_have_is_chosen_from_similar_ones(
    tmp_path: Path,
) -> None:
    async with real(tmp_path) as app:
        await choosing(app, "please move Idees to Cellar")
        assert "no note is called “Idees”" in app.screen()
        await app.press("enter")
        assert isinstance(app.app.screen, Candidates)
        await app.press("backspace", "s")
        await app.press("escape", "escape")
        await choosing(app, "please move Idees to Cellar")
        await app.press("down")
        await app.press("enter")
        await app.press("enter")
        await app.settle()
        assert "Move Ideas to Cellar" in app.plan_head()


async def test_all_actions_keep_the_sentence(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await choosing(app, "please move Soup over to Cellar")
        await app.press("f2")
        await app.on_top(Actions)
        await app.press("escape")
        await app.on_top(Candidates)
        await app.press("f2")
        await app.on_top(Actions)
        await app.press(*"rename a note", "enter")
        await app.on_top(ValuesForm)
        assert "Recipes/Soup.md" in app.screen()


async def test_letters_and_digits_choose_only_outside_a_gap(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        screen = await choosing(app, "please move Soup over to Cellar")
        await app.press("1")
        await app.settle()
        assert "Move Soup to Cellar" in app.plan_head()
        await app.press("r")
        screen = await choosing(app, "please rename Soup")
        await app.press("1", "e")
        assert [gap.value for gap in screen.row.gaps] == ["1e"]
