"""Every screen as it looks, in both themes: `UPDATE_SNAPSHOTS=1 pytest tests/tui/test_snapshots.py` writes the files anew."""

from __future__ import annotations

import platform
import time
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from textual.containers import VerticalScroll
from textual.widgets import TextArea

from obsidian_agent.agent.events import (
    Answer,
    Candidate,
    PlanReady,
    PreviewReady,
    StepFinished,
    StepRetrying,
    StepSkipped,
    TextDelta,
)
from obsidian_agent.agent.privacy.consent import Level, ShareItem, ShareRequest
from obsidian_agent.errors import Problem
from obsidian_agent.journal.records import UndoPoint
from obsidian_agent.journal.undo import UndoConflict, UndoResult
from obsidian_agent.providers.local_models import USUAL, LocalService, Offer
from obsidian_agent.services.fields import Field
from obsidian_agent.threads.state import Version
from obsidian_agent.tui.screens.dialogs import Confirm, Pick, Report, Secret
from obsidian_agent.tui.screens.macros import Candidates
from obsidian_agent.tui.screens.models import FirstStart
from obsidian_agent.tui.screens.share import Share
from obsidian_agent.tui.screens.threads import Turns
from obsidian_agent.tui.screens.trust import Reading
from obsidian_agent.tui.screens.undo import Conflicts, RecoveryDialog, Reversal, Steps, UndoPreview
from obsidian_agent.tui.screens.unexpected import Unexpected
from obsidian_agent.tui.screens.values_form import ValuesForm
from tui.demo import demo_session
from tui.driving import Driver, driving
from tui.fakes import (
    change,
    interrupted,
    mixed_run,
    plan_of,
    preview_of,
    sample_answer,
    sample_preview,
    vault_path,
)
from tui.snapshots import looks

Show = Callable[[Driver], Awaitable[object]]
SCREENS: dict[str, Show] = {}

DIFF = "# Tuesday\n\n- Garden\n- [[Kitchen]]\n- Roof\n- Attic\n"


def screen(show: Show) -> Show:
    """A screen that is looked at, by the name of what shows it."""
    SCREENS[show.__name__] = show
    return show


@screen
async def welcome(app: Driver) -> None:
    await app.settle()


@screen
async def answer(app: Driver) -> None:
    app.session.script = [sample_answer()]
    await app.send("Which projects are open?")
    await app.press("ctrl+o", *"2025", "enter", "down", "down", "x", "x")


@screen
async def errors(app: Driver) -> None:
    problems = (
        Problem(
            "FILE_EXISTS",
            "There is a note of this name.",
            step_id="notes",
            path="Projects/Garden.md",
        ),
    )
    preview = preview_of(
        plan_of(), [change("create", "Projects/Garden.md", content=b"x")], errors=problems
    )
    app.session.script = [
        [TextDelta("Here it is."), PlanReady(preview.plan), PreviewReady(preview)]
    ]
    await app.planned()


@screen
async def plan(app: Driver) -> None:
    await app.planned()


@screen
async def step(app: Driver) -> None:
    await app.planned()
    await app.press("p", "down", "space")


@screen
async def diff(app: Driver) -> None:
    path = "Daily/2025-12-16.md"
    app.session.texts[path] = "# Tuesday\n\n- Garden\n- Kitchen\n- Roof\n"
    preview = preview_of(
        plan_of(), [change("modify", path, content=DIFF.encode()), change("delete", "Ideas.md")]
    )
    app.session.script = [[PlanReady(preview.plan), PreviewReady(preview)]]
    await app.planned()
    await app.press("n", "enter")


@screen
async def result(app: Driver) -> None:
    await app.planned()
    await app.press("a")


@screen
async def conflict(app: Driver) -> None:
    app.session.run_script = mixed_run()
    await app.planned()
    await app.press("a")


@screen
async def save(app: Driver) -> None:
    await result(app)
    await app.press("m")


@screen
async def editor(app: Driver) -> None:
    await app.planned()
    await app.press("e")
    app.app.screen.query_one(TextArea).text = '{"version": "1.0",'
    await app.press("ctrl+s")


def keys(*names: str) -> Show:
    """A screen that keys open."""

    async def show(app: Driver) -> None:
        await app.press(*names)

    return show


async def history_files(app: Driver) -> None:
    await app.press("f3")
    await app.settle()
    await app.press("enter", "space")


async def conversations(app: Driver) -> None:
    app.session.script = [sample_answer()]
    await app.send("Which projects are open?")
    await app.press("f4")


@screen
async def running(app: Driver) -> None:
    """A run in progress, after its first events; its clock stands still."""
    await app.planned()
    progress = app.panes.work.progress
    app.main.show_run(sample_preview(plan_of()))
    assert progress._timer is not None
    progress._timer.pause()
    progress.step_retrying(
        StepRetrying("notes", "notes_0", 1, 3, 250, Problem("IO_ERROR", "The disk is busy."))
    )
    progress.step_finished(StepFinished("notes", "notes_0", 1, 12, 1.5, ("Projects/Garden.md",)))
    progress.step_skipped(StepSkipped("links", "links", "depends on a failed step", 2, 12))
    progress._started = time.monotonic()
    progress._draw()


@screen
async def tasks(app: Driver) -> None:
    app.session.script = [[Answer("- [ ] Water the beans\n- [x] Buy seeds", ())]]
    await app.send("What is to do?")
    await app.press("f8")


@screen
async def help(app: Driver) -> None:
    """Without the bar, whose length says how many keys and commands there are."""
    await app.press("f1")
    app.app.screen.query_one(VerticalScroll).styles.scrollbar_size_vertical = 0


SCREENS |= {
    "actions": keys("f2"),
    "history": keys("f3"),
    "history-files": history_files,
    "conversations": conversations,
    "settings": keys("f5"),
    "open": keys("ctrl+o", *"idea"),
    "palette": keys("ctrl+p", *"hist"),
}

ITEMS = tuple(
    ShareItem(vault_path(path), Level.TEXT, 1200, 300, "", ("Water the beans.",))
    for path in ("Garden.md", "Diary.md")
)
REQUEST = ShareRequest(
    "c1",
    "files",
    "vault.readFiles",
    "Read notes",
    {},
    ITEMS,
    "some/model",
    "https://api.example",
    number=1,
    total=1,
)
MOVE = Candidate(
    "Move notes to a folder",
    plan_of(parameters={"folder": {"type": "path"}}),
    {"tag": "todo"},
    ("folder",),
    "move",
)
CONFLICTS = [UndoConflict("A.md", "changed since"), UndoConflict("B.md", "gone")]
UNDO = partial(UndoResult, run_id="r1", restored=("C.md", "D.md"), conflicts=tuple(CONFLICTS))
PUSHED: dict[str, Callable[[], object]] = {
    "candidates": lambda: Candidates(
        "“todo to task” can mean several things.",
        [Candidate("Rename a tag", plan_of(), {}, (), "rename-tag"), MOVE],
    ),
    "form": lambda: ValuesForm(
        "Move notes", [Field("folder", description="Where they go"), Field("count")]
    ),
    "share": lambda: Share(REQUEST),
    "confirm": lambda: Confirm("Quit now?", "A plan is being applied.", "Stop and quit", "Go on"),
    "conflicts": lambda: Conflicts(CONFLICTS, lambda path: ""),
    "undo-preview": lambda: UndoPreview(
        Reversal(
            verb="Undo",
            done="Undone",
            preview=UNDO,
            restore=lambda force, skip: UNDO(),
            diff=lambda path: "",
        ),
        UNDO(),
        plan_waits=True,
    ),
    "turns": lambda: Turns(
        [Version(n, "2025-12-16T09:30:00", 2, 2, f"Question {n}") for n in (1, 2, 3)], 2
    ),
    "recovery": lambda: RecoveryDialog(
        interrupted("r9", "2025-12-16T09:30:00", "Sort the inbox", "A.md", "B.md")
    ),
    "unexpected": lambda: Unexpected(ValueError("x")),
    "first-start": lambda: FirstStart(Offer(LocalService(USUAL[0], ("qwen3:4b",)), "qwen3:4b")),
    "trust": lambda: Reading(
        "Agents/Gardener.md", [("Answer like a gardener.", "$foreground")], trusted=False
    ),
    "report": lambda: Report(
        "Statistics",
        [("This conversation", "bold $primary"), ("  3 turns · 1,200 tokens", "$foreground")],
    ),
    "pick": lambda: Pick(
        "Choose a model",
        [("default", "the one of the settings"), ("ollama/qwen3", "")],
        hint="PROVIDER/NAME.",
        free=True,
    ),
    "secret": lambda: Secret("API key for openai", "Leave it empty to delete the stored key."),
    "step-back": lambda: Steps(
        plan_of(),
        [
            UndoPoint(step="bullets", actions=0, clean=True),
            UndoPoint(step="notes", actions=10, clean=True),
        ],
    ),
}


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
@pytest.mark.parametrize("name", [*SCREENS, *PUSHED])
async def test_the_screen_looks_as_before_and_can_be_read(
    name: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "python_version", lambda: "3.11.7")
    async with driving(demo_session(0.0), size=size) as app:
        if name in SCREENS:
            await SCREENS[name](app)
        else:
            app.app.push_screen(PUSHED[name]())  # type: ignore[call-overload]
        await looks(name, app)
