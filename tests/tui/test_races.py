"""Keys and plans at the same moment: a key acts only on what the screen displays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from obsidian_agent.bootstrap import Wiring
from obsidian_agent.tui.diff_lines import Diff
from obsidian_agent.tui.screens.help import Help
from obsidian_agent.tui.screens.history import History
from obsidian_agent.tui.screens.open_note import OpenNote
from obsidian_agent.tui.screens.settings import SettingsScreen
from obsidian_agent.tui.widgets.diff import Detail
from obsidian_agent.tui.widgets.plan import PlanPane
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.views.changes import NetChange
from tui.driving import Driver, driving_real

NOTES = {"Soup.md": "# Soup\n", "Bread.md": "# Bread\n"}
FIRST, SECOND = "Append 'with leeks' to Soup", "Append 'with rye' to Bread"


@asynccontextmanager
async def kitchen(tmp_path: Path, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Driver]:
    """Open the app over a vault on disk with two notes."""
    vault = tmp_path / "Vault"
    vault.mkdir()
    for name, text in NOTES.items():
        (vault / name).write_text(text)
    with VaultStore.open(vault) as store:
        async with driving_real(Wiring(store, tmp_path / "state"), size) as app:
            yield app


def is_unchanged(tmp_path: Path) -> bool:
    return all((tmp_path / "Vault" / name).read_text() == text for name, text in NOTES.items())


def hold_diffs(app: Driver) -> asyncio.Event:
    """Hold every diff from now on until the event is set."""
    gate, load = asyncio.Event(), app.plan._content_of

    async def held(change: NetChange) -> Diff | str:
        await gate.wait()
        return await load(change)

    app.plan._content_of = held  # type: ignore[method-assign]
    return gate


async def enter(app: Driver, text: str) -> None:
    """Send a message whose diff is held."""
    app.prompt.focus()
    await app.pilot.pause()
    app.prompt.text = text
    await app.pilot.press("enter")
    await app.settle("diff")


async def test_nothing_of_a_plan_stays_when_another_is_shown_and_it_is_ready_when_it_is_drawn(
    tmp_path: Path,
) -> None:
    async with kitchen(tmp_path) as app:
        await app.planned(FIRST)
        assert "with leeks" in app.screen()
        assert "✓ Ready" in app.screen()
        gate = hold_diffs(app)
        await enter(app, SECOND)
        assert "Bread" in app.plan_head()
        assert app.plan.query_one(Detail).content is None
        assert "✓ Ready" not in app.screen()
        assert "Computing the preview…" in app.screen()
        app.wait_out_grace()
        await app.pilot.press("a")
        await app.settle("diff")
        assert is_unchanged(tmp_path)
        gate.set()
        await app.settle()
        assert "with rye" in app.screen()
        assert "✓ Ready" in app.screen()
        await app.press("a")
        assert (tmp_path / "Vault/Bread.md").read_text() == "# Bread\nwith rye\n"
        assert (tmp_path / "Vault/Soup.md").read_text() == NOTES["Soup.md"]


async def test_a_key_for_a_plan_that_another_one_replaced_does_nothing(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as app:
        await app.planned(FIRST)
        old, plan = app.plan.preview, app.main.turn.pending
        assert old is not None
        assert plan is not None
        await app.planned(SECOND)
        for decision in ("approve", "reject", "edit", "cancel"):
            app.plan.post_message(PlanPane.Decided(decision, old))
        app.plan.post_message(PlanPane.StepToggled(plan.plan, plan.plan.steps[0].id))
        await app.settle()
        assert app.app.screen is app.main
        assert app.main.turn.pending is not None
        assert app.main.turn.pending.preview is app.plan.preview
        assert app.plan.preview is not old
        assert is_unchanged(tmp_path)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_key_that_comes_before_the_plan_was_looked_at_is_ignored_and_a_notice_says_so(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with kitchen(tmp_path, size) as app:
        await app.send(FIRST)
        assert app.stage == "plan"
        for seconds in (0.2, 0.6):
            app.now += seconds
            await app.pilot.press("a")
            await app.settle()
            assert (app.prompt.text, app.stage) == ("", "plan")
            assert is_unchanged(tmp_path)
        await app.until(lambda: "“a” came too soon" in app.screen())
        await app.press("a")
        assert (tmp_path / "Vault/Soup.md").read_text() == "# Soup\nwith leeks\n"


async def test_an_empty_message_takes_no_key_of_a_plan_that_has_just_appeared(
    tmp_path: Path,
) -> None:
    async with kitchen(tmp_path) as app:
        await app.send(FIRST)
        app.prompt.focus()
        await app.settle()
        await app.pilot.press("a", "e", "r")
        await app.settle()
        assert (app.prompt.text, app.stage) == ("", "plan")
        app.wait_out_grace()
        await app.pilot.press(*"are there leeks")
        await app.settle()
        assert app.prompt.text == "are there leeks", "after a pause it is a message"


async def test_a_message_that_is_being_typed_keeps_its_letters_when_a_plan_appears(
    tmp_path: Path,
) -> None:
    async with kitchen(tmp_path) as app:
        await app.send(FIRST)
        await app.pilot.press(*"The area")
        await app.settle()
        assert app.prompt.text == "The area"
        assert is_unchanged(tmp_path)


async def test_esc_that_was_meant_for_the_run_leaves_its_result_on_the_screen(
    tmp_path: Path,
) -> None:
    async with kitchen(tmp_path) as app:
        await app.planned(FIRST)
        await app.press("a")
        assert app.stage == "result"
        app.now += 0.4
        await app.pilot.press("escape")
        await app.settle()
        assert app.stage == "result"
        await app.press("escape")
        assert app.stage == "idle"


async def test_esc_rejects_no_plan_that_has_just_appeared(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as app:
        await app.send(FIRST)
        await app.pilot.press("escape")
        await app.settle()
        assert app.main.turn.pending is not None
        await app.press("escape")
        assert app.main.turn.pending is None


async def test_enter_on_an_empty_message_does_nothing(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as app:
        before = app.screen()
        await app.press("enter", "space", "enter")
        assert app.hint() == ""
        assert app.screen().count("\n") == before.count("\n")
        assert app.main.thread.id is None


async def test_a_request_to_open_a_note_opens_it_and_leaves_the_plan_that_waits(
    tmp_path: Path,
) -> None:
    async with kitchen(tmp_path) as app:
        await app.send("open Soup")
        assert (app.panes.note.path, app.panes.front, app.stage) == ("Soup.md", "note", "idle")
        await app.planned(FIRST)
        waiting = app.main.turn.pending
        assert waiting is not None
        for message in ("Open Bread.md", "/open bread"):
            await app.send(message)
            assert (app.panes.note.path, app.panes.front) == ("Bread.md", "note")
            assert app.main.turn.pending is waiting
            await app.send("/open Soup")
        app.panes.go("work")
        await app.settle()
        assert "✓ Ready" in app.screen()


async def test_a_name_that_several_or_no_notes_have_is_looked_for_by_its_letters(
    tmp_path: Path,
) -> None:
    async with kitchen(tmp_path) as app:
        await app.send("/open brea")
        await app.on_top(OpenNote)
        await app.press("enter")
        assert app.panes.note.path == "Bread.md"


async def test_the_name_of_a_command_acts_with_and_without_a_slash(tmp_path: Path) -> None:
    screens: list[type[Screen[Any]]] = [Help, SettingsScreen, History]
    async with kitchen(tmp_path) as app:
        for word, screen in zip(("help", "settings", "history"), screens, strict=True):
            for message in (word, word.capitalize(), f"/{word}", f"/{word.upper()}"):
                await app.send(message)
                await app.on_top(screen)
                await app.press("escape")
                assert app.app.screen is app.main
        assert app.main.thread.id is None, "none of them is a message"
