"""Pictures of every screen at four sizes, and in every theme; `UPDATE_SNAPSHOTS=1` writes them."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import TextArea

from agents import call, calls
from faults import disk_failing_at
from obsidian_agent.agent.events import Candidate, Phrase, StepFinished, StepRetrying, StepSkipped
from obsidian_agent.agent.privacy.consent import Level, ShareItem, ShareRequest
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import Problem
from obsidian_agent.journal import writer
from obsidian_agent.journal.records import UndoPoint
from obsidian_agent.journal.undo import UndoConflict, UndoResult, undo
from obsidian_agent.providers.local_models import USUAL, LocalService, Offer
from obsidian_agent.services.fields import Field
from obsidian_agent.services.macro import Macro
from obsidian_agent.threads.state import Version
from obsidian_agent.tui.plan_rows import StepRow
from obsidian_agent.tui.screens.candidates import Candidates
from obsidian_agent.tui.screens.conflicts import Conflicts, Reversal, UndoPreview
from obsidian_agent.tui.screens.dialogs import Confirm, Pick, Report, Secret
from obsidian_agent.tui.screens.models import FirstStart
from obsidian_agent.tui.screens.recovery import RecoveryDialog
from obsidian_agent.tui.screens.share import Share
from obsidian_agent.tui.screens.threads import Turns
from obsidian_agent.tui.screens.trust import Reading
from obsidian_agent.tui.screens.undo import Steps
from obsidian_agent.tui.screens.unexpected import Unexpected
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.widgets.plan_list import PlanList
from obsidian_agent.tui.widgets.row_list import ChoiceList
from previews import create as new_file
from previews import modify, move, previewed, run
from support import settings_with
from tui.driving import MODEL, Driver, driving
from tui.samples import PROJECTS, append, create, interrupted, plan_of, vault_path
from tui.snapshots import SIZES, Show, looks

SCREENS: dict[str, Show] = {}
"""The contents of the main screen, and the screens that take its place."""

DIFF = "# Tuesday\n\n- Garden\n- [[Kitchen]]\n- Roof\n- Attic\n"


def screen(show: Show) -> Show:
    """Open a screen by its name."""
    SCREENS[show.__name__] = show
    return show


@screen
async def welcome(app: Driver) -> None:
    await app.settle()


@screen
async def answer(app: Driver) -> None:
    await app.send("Which projects are open?")
    await app.press("ctrl+o", *"2025", "enter", "down", "down", "x", "x")


@screen
async def errors(app: Driver) -> None:
    await app.preview(append("notes", "Projects/Garden.md", "x"))


@screen
async def plan(app: Driver) -> None:
    await app.preview(*PROJECTS["steps"], goal=PROJECTS["goal"])


@screen
async def step(app: Driver) -> None:
    await plan(app)
    listing = app.main.query_one(PlanList)
    listing.cursor = next(
        index
        for index, row in enumerate(listing.rows)
        if isinstance(row, StepRow) and row.step.id == "notes"
    )
    await app.press("space")


@screen
async def diff(app: Driver) -> None:
    args = {"path": "Ideas.md", "mode": "replace", "content": DIFF}
    replace = {"id": "replace", "tool": "vault.updateFile", "args": args}
    await app.preview(create("new", "Attic.md"), replace)
    await app.press("n", "enter")


@screen
async def result(app: Driver) -> None:
    await plan(app)
    await app.press("a")


@screen
async def conflict(app: Driver) -> None:
    await app.preview(append("ideas", "Ideas.md", "Two\n"), create("new", "Attic.md"))
    (app.vault / "Ideas.md").write_text("Mine\n")
    await app.press("a")


@screen
async def editor(app: Driver) -> None:
    await plan(app)
    await app.press("e")
    app.app.screen.query_one(TextArea).text = '{"version": "1.0",'
    await app.press("ctrl+s")


def keys(*names: str) -> Show:
    """Open a screen by its keys."""

    async def show(app: Driver) -> None:
        await app.press(*names)

    return show


async def history_files(app: Driver) -> None:
    await app.press("f3")
    await app.settle()
    await app.press("enter", "space")


@screen
async def running(app: Driver) -> None:
    """Start a run, and stop its clock after the first events."""
    await plan(app)
    progress = app.panes.work.progress
    assert app.plan.preview is not None
    app.main.show_run(app.plan.preview)
    assert progress._timer is not None
    progress._timer.pause()
    progress.step_retrying(
        StepRetrying(
            step_id="notes",
            instance="notes_0",
            attempt=1,
            attempts=3,
            delay_ms=250,
            problem=Problem("IO_ERROR", "The disk is busy."),
        )
    )
    progress.step_finished(
        StepFinished(
            step_id="notes",
            instance="notes_0",
            completed=1,
            total=12,
            elapsed_ms=1.5,
            paths=("Projects/Garden.md",),
        )
    )
    progress.step_skipped(
        StepSkipped(
            step_id="links",
            instance="links",
            reason="depends on a failed step",
            completed=2,
            total=12,
        )
    )
    progress._started = time.monotonic()
    progress._draw()


async def actions(app: Driver) -> None:
    """Without the bar, whose length says how many actions there are."""
    await app.press("f2")
    app.app.screen.query_one(ChoiceList).styles.scrollbar_size_vertical = 0


async def help(app: Driver) -> None:
    """Without the bar, whose length says how many keys and commands there are."""
    await app.press("f1")
    app.app.screen.query_one(VerticalScroll).styles.scrollbar_size_vertical = 0


ITEMS = tuple(
    ShareItem(
        path=vault_path(path),
        level=Level.TEXT,
        size=1200,
        tokens=300,
        why="",
        previews=("Water the beans.",),
    )
    for path in ("Garden.md", "Diary.md")
)
REQUEST = ShareRequest(
    call_id="c1",
    kind="files",
    tool="vault.readFiles",
    purpose="Read notes",
    args={},
    items=ITEMS,
    provider="some/model",
    address="https://api.example",
    number=1,
    total=1,
)
MOVE = Candidate(
    title="Move 2 notes tagged #todo to …",
    plan=plan_of(parameters={"folder": {"type": "path"}}),
    values={"notes": "tag:#todo"},
    missing=("folder",),
    recipe="move",
    sentence=(
        Phrase("Move "),
        Phrase("2 notes tagged #todo", "notes"),
        Phrase(" to "),
        Phrase("", "folder"),
    ),
)
DELETE = Candidate(
    title="Delete 2 notes tagged #todo",
    plan=plan_of(),
    values={"notes": "tag:#todo"},
    missing=(),
    recipe="delete",
    sentence=(Phrase("Delete "), Phrase("2 notes tagged #todo", "notes")),
    unused=("that nothing links to",),
    deletes=True,
)
CONFLICTS = [UndoConflict("A.md", "changed since"), UndoConflict("B.md", "gone")]
UNDO = partial(UndoResult, run_id="r1", restored=("C.md", "D.md"), conflicts=tuple(CONFLICTS))
PUSHED: dict[str, Callable[[], Screen[Any]]] = {
    "candidates": lambda: Candidates(
        "the todo notes that nothing links to away",
        [MOVE, DELETE],
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
        [
            Version(
                number=n,
                time="2025-12-16T09:30:00",
                entries=2,
                messages=2,
                question=f"Question {n}",
            )
            for n in (1, 2, 3)
        ],
        2,
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


def pushed(build: Callable[[], Screen[Any]]) -> Show:
    """Open a screen that no vault comes to at will."""

    async def show(app: Driver) -> None:
        app.app.push_screen(build())

    return show


DIALOGS: dict[str, Show] = {
    "actions": actions,
    "help": help,
    "history": keys("f3"),
    "history_files": history_files,
    "open": keys("ctrl+o", *"idea"),
    "palette": keys("ctrl+p", *"hist"),
    "plans": keys(*"/plans", "enter"),
    "rules": keys(*"/rules", "enter"),
    "settings": keys("f5"),
    **{name.replace("-", "_"): pushed(build) for name, build in PUSHED.items()},
}
"""The dialogs over the first screen."""
OVER: dict[str, dict[str, Show]] = {
    "answer": {"conversations": keys("f4")},
    "plan": {"comment": keys("c")},
    "result": {"save": keys("m")},
}
"""The dialogs over others."""
APPS = 6
"""The apps that open the dialogs, a few each."""

WORDS = (
    "You have **three** open projects:\n\n1. Garden\n2. Kitchen\n3. Roof\n\n"
    "> The roof is the oldest one.\n\nSee `Projects/` for all of them."
)
LOOK = calls(call("vault__readFiles", filePaths=["Ideas.md"], why="they may say it"))
SCRIPTS: dict[str, tuple[Mapping[str, Any], ...]] = {
    "answer": (LOOK, {"text": WORDS}),
}
"""Answers of the model; the other screens need none."""

NOTE = """---
tags: [daily, planning]
mood: calm
---
# Tuesday, 16 December

Long talk with [[Anna]] about the **house**. Things that should become projects:

- Garden
- Kitchen
- Roof
- Taxes 2025
- Holiday in Norway

## Tasks

- [ ] Call the roofer #house
- [x] Buy paint for `Kitchen/wall`

> The best time to plant a tree was twenty years ago.
"""
IDEAS = {f"Projects/Old/Idea {number}.md": f"# Idea {number}\n" for number in range(60)}
NOTES = {"Daily/2025-12-16.md": NOTE, "Ideas.md": "One\n"} | IDEAS


def past(wiring: Wiring) -> None:
    """Save three actions, and three runs: one undone, one stopped by the disk, one done."""
    folder = {"folder": {"type": "path"}}
    steps = [create("new", "${folder}/A.md")]
    for macro in (
        Macro(
            "Bullets to projects",
            plan_of(steps, parameters=folder),
            "A note for each selected bullet",
        ),
        Macro("Weekly review", plan_of(), "Collects open tasks of the week"),
        Macro("Sort inbox", plan_of()),
    ):
        build_session(wiring).saved.put(macro)
    sorted_inbox = move("Ideas.md", "Sorted.md", b"One\n")
    tagged = [modify(path, text.encode(), b"#task\n") for path, text in list(IDEAS.items())[:12]]
    made = [new_file(f"Projects/{name}.md", b"one\n") for name in ("Bike", "Choir")]
    made.append(modify("Ideas.md", b"One\n", b"One\nTwo\n"))

    def on(day: int, hour: int) -> AbstractContextManager[object]:
        class Frozen(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Frozen:
                return cls(2025, 12, day, hour, tzinfo=UTC)

        return patch.object(writer, "datetime", Frozen)

    with writer.Journal.open(wiring.state, wiring.store) as journal:
        with on(14, 12):
            run(previewed(sorted_inbox, goal="Sort the inbox"), wiring.store, journal)
            undo(journal, wiring.store)
        with on(16, 10), disk_failing_at(tagged[7].path.text):
            run(previewed(*tagged, goal="Rename #todo to #task"), wiring.store, journal)
        with on(16, 12):
            goal = "Make a project note for each selected bullet"
            run(previewed(*made, goal=goal), wiring.store, journal)
    notes = sorted(Path(wiring.store.real_path).rglob("*.md"))
    for number, note in enumerate(notes):
        os.utime(note, (1_700_000_000, 1_700_000_000 + number))


@asynccontextmanager
async def at_screen(name: str) -> AsyncIterator[Driver]:
    """Open the app at a screen."""
    script = SCRIPTS.get(name, ())
    settings = settings_with(model=MODEL, share_allow=("**",)) if script else LiveSettings()
    async with driving(
        *script, files=NOTES, size=SIZES[0], settings=settings, before=past, name="Notebook"
    ) as app:
        await SCREENS[name](app)
        yield app


@pytest.fixture(autouse=True)
def same_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "python_version", lambda: "3.11.7")


@pytest.mark.parametrize("name", SCREENS)
async def test_the_screen_looks_as_before_and_can_be_read(name: str) -> None:
    async with at_screen(name) as app:
        await looks(app, name, **OVER.get(name, {}))


@pytest.mark.parametrize("part", range(APPS))
async def test_the_dialogs_look_as_before_and_can_be_read(part: int) -> None:
    async with at_screen("welcome") as app:
        await looks(app, **{name: DIALOGS[name] for name in [*DIALOGS][part::APPS]})


async def test_the_tasks_of_a_conversation_look_as_before_and_can_be_read() -> None:
    answer = {"text": "- [ ] Water the beans\n- [x] Buy seeds"}
    settings = settings_with(model=MODEL)
    async with driving(
        answer, files=NOTES, size=SIZES[0], settings=settings, name="Notebook"
    ) as app:
        await app.send("What is to do?")
        await looks(app, tasks=keys("f8"))
