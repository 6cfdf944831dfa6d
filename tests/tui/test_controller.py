"""The course of a turn without a screen: what waits, what may be approved, what ends how."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from obsidian_agent.agent.events import AgentEvent, PlanReady, PreviewReady, RunFinished, TurnFailed
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import ObsidianAgentError, Problem
from obsidian_agent.plan.policy import Verdict
from obsidian_agent.plan.result import Preview
from obsidian_agent.tui.event_stream import EventStream, WorkEnded
from obsidian_agent.tui.turn.controller import TurnController
from tui.fakes import FakeSession, change, plan_of, preview_of


class View:
    """Keeps what is said, and workers as tasks; everything else is only shown. Events come to the controller as `Router` sends them."""

    def __init__(self, session: FakeSession) -> None:
        self.said: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []
        thread: Any = SimpleNamespace(
            turn=session.turn, cancel=lambda: None, record_run=lambda *_: False
        )
        backend: Any = SimpleNamespace(
            parts=SimpleNamespace(session=session, settings=LiveSettings())
        )
        view: Any = self
        self.turn = TurnController(backend, EventStream(self._take), thread, view)

    def key(self, key_id: str) -> str:
        return key_id

    def add_entry(self, speaker: str, text: str) -> None:
        self.said.append(text)

    def post_message(self, message: WorkEnded) -> None:
        asyncio.get_running_loop().call_soon(self.turn.ended, message)

    def run_worker(
        self, work: Callable[[], Coroutine[Any, Any, None]], **_: object
    ) -> asyncio.Task[None]:
        self._tasks.append(asyncio.create_task(work()))
        return self._tasks[-1]

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None

    def _take(self, events: Sequence[AgentEvent]) -> None:
        turn = self.turn
        for event in events:
            turn.concluded = turn.concluded or isinstance(
                event, PreviewReady | TurnFailed | RunFinished
            )
            match event:
                case PlanReady():
                    turn.plan_ready(event)
                case PreviewReady():
                    turn.preview_ready(event.preview)
                case TurnFailed():
                    turn.failed(event.problem, event.problems)
                case RunFinished():
                    turn.run_finished(event.result)
                case _:
                    pass

    async def settle(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._tasks = [task for task in self._tasks if not task.done()]
            await asyncio.sleep(0)

    async def planned(self) -> Preview:
        self.turn.send("Make notes")
        await self.settle()
        assert self.turn.pending is not None
        return self.turn.pending.preview

    async def approved(self, preview: Preview) -> None:
        self.turn.approve(preview)
        await self.settle()


@pytest.fixture
def session() -> FakeSession:
    return FakeSession()


@pytest.fixture
def view(session: FakeSession) -> View:
    return View(session)


async def test_only_the_very_preview_that_waits_is_applied_and_once(
    session: FakeSession, view: View
) -> None:
    first = await view.planned()
    assert view.turn.pending is not None
    view.turn.toggle(view.turn.pending.plan, "notes")
    await view.approved(first)
    assert (session.called("execute"), view.turn.phase) == ([], "idle"), "it is computed anew"
    assert view.turn.pending is not None
    assert view.turn.pending.disabled == session.called("preview_plan")[-1][1] == {"notes"}
    await view.approved(first)
    assert session.called("execute") == []
    second = view.turn.pending.preview
    await view.approved(second)
    await view.approved(second)
    assert session.called("execute") == [(second,)]
    assert (view.turn.stage, view.turn.pending) == ("result", None)


async def test_nothing_is_applied_that_has_errors_or_does_nothing(
    session: FakeSession, view: View
) -> None:
    problem = Problem("FILE_EXISTS", "There is a note of this name.", path="A.md")
    for refused in ({"errors": (problem,)}, {"instances": ()}):
        preview = preview_of(plan_of(), [change("create", "A.md", content=b"x")], **refused)
        session.script = [[PlanReady(preview.plan), PreviewReady(preview)]]
        await view.approved(await view.planned())
        assert (session.called("execute"), view.turn.stage) == ([], "plan")


async def test_a_plan_that_waits_is_not_applied_while_something_else_is_planned(
    session: FakeSession, view: View
) -> None:
    waiting = await view.planned()
    session.gate = asyncio.Event()
    view.turn.send("Something else")
    view.turn.approve(waiting)
    view.turn.cancel()
    await view.settle()
    assert session.called("execute") == []
    assert view.said[-1] == "Cancelled. Nothing was changed."
    assert view.turn.pending is not None
    assert view.turn.pending.preview is waiting, "it waits again"


async def test_a_rejected_plan_can_be_brought_back(view: View) -> None:
    await view.planned()
    view.turn.reject()
    assert (view.said[-1], view.turn.stage, view.turn.pending) == (
        "Plan rejected. Nothing was changed.",
        "idle",
        None,
    )
    assert view.turn.last is not None
    view.turn.preview_again(view.turn.last)
    await view.settle()
    assert view.turn.pending is not None


async def test_a_run_that_cannot_begin_leaves_the_plan_to_try_again(
    session: FakeSession, view: View
) -> None:
    preview = await view.planned()
    session.error = ObsidianAgentError("Another program is writing to this vault.")
    await view.approved(preview)
    assert "Another program is writing to this vault." in view.said
    session.error = None
    await view.approved(preview)
    assert view.turn.stage == "result"


@pytest.mark.parametrize(
    ("events", "words"),
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
async def test_a_turn_without_a_plan_says_so(
    session: FakeSession, view: View, events: list[AgentEvent], words: str
) -> None:
    session.script = [events]
    view.turn.send("Hi")
    await view.settle()
    assert (view.said[-1], view.turn.stage, view.turn.phase) == (words, "idle", "idle")


async def test_a_macro_that_ran_is_counted(session: FakeSession, view: View) -> None:
    view.turn.forget_plan(macro="Sort")
    view.turn.start(session.preview_plan(plan_of().to_json()), "Computing the preview")
    await view.settle()
    assert view.turn.pending is not None
    assert session.called("count") == []
    await view.approved(view.turn.pending.preview)
    assert session.called("count") == [("Sort",)]


@pytest.mark.parametrize(
    ("more", "runs"),
    [
        ({"approval": Verdict("allow", "a rule")}, True),
        ({"approval": Verdict("ask", "a rule")}, False),
        ({}, False),
        ({"approval": Verdict("allow", "a rule"), "errors": (Problem("X", "No."),)}, False),
    ],
)
async def test_only_what_the_rules_allow_runs_without_a_question(
    session: FakeSession, view: View, more: Mapping[str, Any], runs: bool
) -> None:
    preview = preview_of(plan_of(), [change("create", "A.md", content=b"x")], **more)
    session.script = [[PlanReady(preview.plan), PreviewReady(preview)]]
    view.turn.send("Make notes")
    await view.settle()
    assert bool(session.called("execute")) is runs
