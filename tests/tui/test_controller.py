"""The course of a turn below the keys: what waits, what may be approved, what ends how."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from obsidian_agent.agent.events import AgentEvent, PlanReady, PreviewReady, TurnFailed
from obsidian_agent.bootstrap import Wiring
from obsidian_agent.errors import Problem
from obsidian_agent.journal import state_folder
from obsidian_agent.tui.turn.controller import Pending
from support import settings_with
from tui.driving import MODEL, Driver, driving
from tui.samples import append, create, plan_of, preview_of


def waiting(app: Driver) -> Pending:
    pending = app.main.turn.pending
    assert pending is not None
    return pending


async def test_only_the_very_preview_that_waits_is_applied_and_once() -> None:
    async with driving() as app:
        await app.planned()
        turn, first = app.main.turn, waiting(app).preview
        turn.toggle(waiting(app).plan, "notes")
        turn.approve(first)
        await app.settle()
        assert (app.runs, turn.phase) == ([], "idle"), "the preview is computed again"
        assert waiting(app).disabled == {"notes"}
        turn.approve(first)
        await app.settle()
        assert app.runs == []
        second = waiting(app).preview
        turn.approve(second)
        turn.approve(second)
        await app.settle()
        assert len(app.runs) == 1
        assert (turn.stage, turn.pending) == ("result", None)


async def test_nothing_is_applied_that_has_errors_or_does_nothing() -> None:
    async with driving() as app:
        await app.preview(append("a", "Missing.md", "x"))
        app.main.turn.approve(waiting(app).preview)
        await app.settle()
        assert (app.runs, app.stage) == ([], "plan")
        preview = preview_of(plan_of(), [], instances=())
        await app.play(PlanReady(preview.plan), PreviewReady(preview))
        app.main.turn.approve(waiting(app).preview)
        await app.settle()
        assert (app.runs, app.stage) == ([], "plan")


async def test_a_run_that_cannot_begin_can_be_tried_again() -> None:
    wirings: list[Wiring] = []
    async with driving(before=wirings.append) as app:
        await app.preview(create("new", "A.md"))
        state = state_folder.find(wirings[0].state, wirings[0].store)
        journal = state / state_folder.JOURNAL_FILE
        journal.unlink(missing_ok=True)
        journal.mkdir()
        await app.press("a")
        assert "The journal" in app.screen()
        assert "No file was changed." in app.screen()
        assert "A.md" not in app.files
        journal.rmdir()
        await app.send("/plan")
        app.panes.go("work")
        await app.settle()
        await app.press("a")
        assert "A.md" in app.files


@pytest.mark.parametrize(
    ("turn_events", "words"),
    [
        ([], "Planning stopped without a result. Nothing was changed."),
        ([TurnFailed(Problem("IO_ERROR", "The disk is gone."))], "The disk is gone."),
        (
            [
                PreviewReady(
                    preview_of(plan_of([], goal="There is nothing to do.", assumptions=[]), [])
                )
            ],
            "There is nothing to do.",
        ),
    ],
)
async def test_a_turn_without_a_plan_says_so(turn_events: Sequence[AgentEvent], words: str) -> None:
    async with driving() as app:
        await app.play(*turn_events)
        assert app.transcript().rstrip().endswith(words)
        assert (app.stage, app.main.turn.phase) == ("idle", "idle")


@pytest.mark.parametrize("confirms", [True, False])
async def test_only_what_the_rules_allow_runs_without_a_question(confirms: bool) -> None:
    settings = settings_with(model=MODEL, confirm_writes=confirms)
    async with driving(settings=settings) as app:
        await app.preview(append("a", "Missing.md", "x"))
        assert app.runs == [], "it has an error"
        await app.preview(create("new", "A.md"))
        assert ("A.md" in app.files) is not confirms
