"""Guarantees between a key and its effect.

Only the approved happens, nothing cancelled returns, and nothing is lost at the end.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from faults import held_before
from obsidian_agent.agent.events import AgentEvent, PlanReady, PreviewReady, TextDelta
from obsidian_agent.bootstrap import open_threads
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.services.open_vault import OpenVault
from obsidian_agent.tui import event_stream
from obsidian_agent.tui.backend import Backend, BackendParts
from obsidian_agent.tui.event_stream import EventsArrived
from obsidian_agent.tui.screens.conflicts import UndoPreview
from obsidian_agent.tui.screens.dialogs import Confirm
from tui.driving import MODEL, driving, driving_real, wired
from tui.samples import change, create, plan_of, preview_of
from tui.test_threads import Turns, said


async def test_quitting_saves_what_the_conversations_have_said_so_far(tmp_path: Path) -> None:
    with wired(tmp_path, Turns()) as wiring:
        async with driving_real(wiring) as app:
            app.prompt.text = "slow question"
            await app.pilot.press("enter")
            await said(app, "First of slow question.")
            await app.pilot.press("ctrl+q")
            await app.gone()
            assert not app.main.threads.running
        store = open_threads(wiring)
        (thread,) = store.summaries()
        answer = store.load(thread.id).entries[-1]
    assert (answer.state, answer.text.split("\n")[0]) == ("cut", "First of slow question. ")


@pytest.mark.parametrize("by_key", [True, False])
async def test_whatever_ends_the_app_waits_for_the_file_that_is_being_written(by_key: bool) -> None:
    async with driving() as app:
        await app.planned()
        with held_before() as held:
            await app.pilot.press("a")
            await app.until(held.reached.is_set)
            if by_key:
                await app.pilot.press("ctrl+q")
                await app.until(lambda: isinstance(app.app.screen, Confirm))
                app.wait_out_grace()
                await app.pilot.press("y")
            else:  # as when a terminal is closed: the shell's signal, the system's, and what is drawn
                for _ in range(3):
                    app.app.hang_up()
            await app.until(lambda: "Stopping after the current file" in app.screen())
            assert app.app.return_code is None, "a file is being written"
        await app.gone()
        assert not app.main.stream.is_writing
        with warnings.catch_warnings(record=True) as caught:
            app.app.hang_up()  # a terminal reports its end more than once, also to an app at its end
            for worker in app.app.workers:
                worker.cancel()
            gc.collect()
    assert not caught


async def test_quitting_while_the_vault_is_being_opened_leaves_it_to_be_opened() -> None:
    gate, opened = threading.Event(), cast("BackendParts", object())
    backend = Backend("vault", lambda: opened if gate.wait(60) else opened)
    waits = asyncio.create_task(backend.open())
    await asyncio.sleep(0)
    waits.cancel()
    await asyncio.wait([waits])
    assert not backend.is_open
    gate.set()
    assert backend.parts is opened


async def test_a_plan_that_was_on_its_way_when_escape_was_pressed_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ready() -> AsyncIterator[AgentEvent]:
        plan = plan_of()
        yield TextDelta("Let me think. ")
        yield PlanReady(plan)
        yield PreviewReady(preview_of(plan, [change("create", "A.md", content=b"x")]))
        await asyncio.Event().wait()

    monkeypatch.setattr(
        event_stream, "BATCH_SECONDS", 3600.0
    )  # what is ready waits for the next batch
    async with driving() as app:
        app.main.turn.start(ready(), "Planning")
        await app.settle("turn")
        await app.press("escape")
        assert "Cancelled. Nothing was changed." in app.transcript()
        assert "Let me think." in app.transcript()
        assert app.stage == "idle"
        assert app.main.turn.pending is None


async def test_events_of_a_conversation_that_was_left_are_not_shown_in_the_next() -> None:
    turns = Turns()
    async with driving(model=turns) as app:
        app.prompt.text = "slow question"
        await app.pilot.press("enter")
        await said(app, "First of slow question.")
        late = EventsArrived([TextDelta("Too late.")], app.main.stream.generation)
        await app.press("ctrl+n")
        app.main.post_message(late)  # it was on its way when the conversation was left
        await app.settle()
        assert "Too late." not in app.transcript()
        turns.go.set()
        await app.until(lambda: not app.main.threads.running)
        await app.settle()
        assert "slow question" not in app.transcript()


async def test_keys_that_are_changed_in_the_settings_have_an_effect_at_once(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[keymap]\n"plan.approve" = "f8"\n')
    settings = LiveSettings.load(file, {}, options={"model": MODEL})
    async with driving(settings=settings) as app:
        await app.planned()
        assert "f8 Approve" in app.screen()
        await app.send("/set keymap")
        app.panes.go("work")
        await app.settle()
        assert "a Approve" in app.screen()
        await app.press("f8")
        assert app.runs == []
        await app.press("escape")
        await app.send("/plan")
        app.panes.go("work")
        await app.settle()
        await app.press("a")
        assert len(app.runs) == 1


async def test_after_a_run_and_after_its_undo_the_index_is_refreshed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[None] = []
    refresh = OpenVault.refresh_soon
    monkeypatch.setattr(
        OpenVault, "refresh_soon", lambda vault: (calls.append(None), refresh(vault))[1]
    )
    async with driving() as app:
        await app.preview(create("new", "A.md"))
        before = len(calls)
        await app.press("a")
        after = len(calls)
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.press("y")
        assert before < after < len(calls)
