"""The course of a turn, by keys."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Literal

import pytest
from textual import events
from textual.widgets import Input, Static, TextArea

from obsidian_agent import log
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    ExecutionResult,
    NeedsInput,
    Notice,
    PlanningRetry,
    PlanReady,
    PreviewReady,
    PreviewStarted,
    RoundsUsedUp,
    RunFinished,
    ShareDecided,
    ShareRequested,
    TextDelta,
    TokensUsed,
    ToolCallFinished,
    ToolCallStarted,
    TurnFailed,
)
from obsidian_agent.agent.privacy.consent import Level, ShareDecision, ShareItem, ShareRequest
from obsidian_agent.errors import Problem
from obsidian_agent.journal.records import Effects
from obsidian_agent.journal.undo import UndoConflict
from obsidian_agent.services.macro import Imported
from obsidian_agent.tools.core.tool import EditorPosition, Selection
from obsidian_agent.tui.markdown_text import render
from obsidian_agent.tui.screens.actions import Actions
from obsidian_agent.tui.screens.dialogs import Confirm, DiffScreen
from obsidian_agent.tui.screens.history import History
from obsidian_agent.tui.screens.json_editor import PlanEditor
from obsidian_agent.tui.screens.macros import Candidates, SaveMacro
from obsidian_agent.tui.screens.main import MainScreen
from obsidian_agent.tui.screens.undo import Conflicts, RecoveryDialog, Steps, UndoPreview
from obsidian_agent.tui.screens.unexpected import Unexpected
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.widgets.plan import PlanList
from obsidian_agent.tui.widgets.row_list import ChoiceList
from obsidian_agent.tui.widgets.run import ResultList, RunLog
from obsidian_agent.tui.widgets.transcript import Streaming, Thinking
from tui.driving import driving
from tui.fakes import (
    FakeSession,
    Report,
    change,
    entry,
    history_entries,
    interrupted,
    mixed_run,
    plan_of,
    preview_of,
    sample_answer,
    sample_candidates,
    sample_preview,
    saved,
    vault_path,
)


async def test_message_plan_approve_result_undo() -> None:
    async with driving(size=(80, 24)) as app:
        await app.planned("Make a note for each bullet")
        assert app.session.called("turn") == [("Make a note for each bullet",)]
        assert app.stage == "plan"
        assert isinstance(app.app.focused, PlanList)
        assert "10 new" in app.screen()
        await app.press("a")
        assert app.stage == "result"
        assert "Created 10 files, modified 1 file, created 1 folder." in app.screen()
        await app.press("u")
        assert app.session.called("undo") == [("r1", frozenset(), frozenset())]
        assert "Undone" in app.screen()


async def test_no_key_approves_but_a_in_the_plan_after_its_grace() -> None:
    async with driving() as app:
        await app.send("Make notes")
        for _ in range(4):
            await app.pilot.press("a")
            app.now += 0.3
        await app.pilot.press("r")
        await app.settle()
        assert app.session.called("execute") == []
        assert app.stage == "plan", "a key that came too early prolongs the wait"
        assert app.prompt.text == "", "nothing is being typed"
        app.prompt.text = ""
        app.panes.go("work")
        await app.settle()
        await app.press("enter")
        assert isinstance(app.app.screen, DiffScreen)
        assert "[[Garden]]" in app.screen()
        await app.press("escape", "enter", "escape")
        assert isinstance(app.app.screen, MainScreen)
        app.prompt.focus()
        await app.press("a", "r", "e", "y", "space", "u")
        assert app.prompt.text == "arey u"
        assert app.stage == "plan"
        assert app.session.called("execute") == []
        app.panes.go("work")
        await app.settle()
        await app.press("a")
        assert len(app.session.called("execute")) == 1


async def test_focus_stays_in_the_prompt_while_the_person_is_typing() -> None:
    session = FakeSession()
    async with driving(session) as app:
        session.gate = asyncio.Event()
        app.prompt.text = "Make notes"
        await app.pilot.press("enter", "a", "n", "d")
        session.gate.set()
        await app.settle()
        assert app.prompt.text == "and"
        assert app.app.focused is app.prompt
        assert session.called("execute") == []


async def test_approving_is_locked_until_the_preview_is_complete() -> None:
    plan = plan_of()
    session = FakeSession(script=[[PlanReady(plan), PreviewStarted(sample_preview(plan))]])
    async with driving(session) as app:
        app.main.turn.plan_ready(PlanReady(plan))
        app.main.turn.preview_started(sample_preview(plan))
        app.panes.go("work")
        await app.settle()
        app.wait_out_grace()
        assert "Computing the preview" in app.screen()
        await app.press("a")
        assert session.called("execute") == []


async def test_an_invalid_plan_cannot_be_approved_and_lists_every_problem() -> None:
    plan = plan_of()
    problems = tuple(
        Problem("FILE_EXISTS", f"Problem number {number}.", step_id="notes", path=f"P/{number}.md")
        for number in range(3)
    )
    session = FakeSession(
        script=[
            [
                PlanReady(plan),
                PreviewReady(
                    preview_of(plan, [change("create", "A.md", content=b"x")], errors=problems)
                ),
            ]
        ]
    )
    async with driving(session) as app:
        await app.planned()
        text = app.screen()
        assert all(f"Problem number {number}." in text for number in range(3))
        assert "Cannot be approved: 3 errors." in text
        await app.press("a")
        assert session.called("execute") == []


async def test_a_message_sent_twice_runs_once() -> None:
    session = FakeSession()
    async with driving(session) as app:
        session.gate = asyncio.Event()
        app.prompt.text = "Make notes"
        await app.pilot.press("enter")
        app.prompt.text = "Make notes"
        await app.pilot.press("enter", "enter")
        await app.until(lambda: "Still working" in app.hint())
        session.gate.set()
        await app.settle()
        assert len(session.called("turn")) == 1
        assert app.hint() == "", "nothing is being worked on any more"


async def test_messages_that_need_a_selection_ask_for_one() -> None:
    session = FakeSession(
        script=[sample_answer(), [TurnFailed(Problem("NO_SELECTION", "Nothing is selected."))]]
    )
    async with driving(session) as app:
        await app.send("Make a note for each bullet in the selection")
        assert session.called("turn") == []
        assert "Selection is empty. Please select text first." in app.hint()
        assert "Select bullet points to create notes from" in app.hint()
        await app.press("enter")
        assert len(session.called("turn")) == 1, "held back once"
        app.panes.chat.hint("")
        await app.send("Do it")
        assert "Selection is empty. Please select text first." in app.hint(), "reported by the plan"


async def test_lines_and_earlier_messages() -> None:
    async with driving(FakeSession(script=[sample_answer(), sample_answer()])) as app:
        app.prompt.focus()
        await app.press("o", "n", "e", "ctrl+j", "t", "w", "o", "enter")
        await app.send("second")
        assert app.session.called("turn") == [("one\ntwo",), ("second",)]
        app.prompt.focus()
        await app.press("alt+up", "alt+up")
        assert app.prompt.text == "one\ntwo"
        await app.press("alt+down")
        assert app.prompt.text == "second"


async def test_a_rejected_plan_leaves_a_note_and_can_be_brought_back() -> None:
    async with driving() as app:
        for key in ("r", "escape"):
            await app.planned()
            await app.press(key)
            assert app.stage == "idle"
            assert app.main.turn.pending is None
        assert app.transcript().count("Plan rejected. Nothing was changed.") == 2
        app.main.action_bring_back_plan()
        await app.settle()
        assert app.stage == "plan"
        assert app.main.turn.pending is not None


async def test_a_step_is_switched_off_with_a_fresh_preview() -> None:
    async with driving() as app:
        await app.planned()
        listing = app.main.query_one(PlanList)
        await app.press("p", "down")
        assert listing.current is not None
        before = app.plan.preview
        app.session.script = [[TurnFailed(Problem("IO_ERROR", "The disk is gone."))]]
        await app.press("space")
        assert app.plan.preview is before, "a preview that failed brings the earlier one back"
        assert app.plan.complete
        assert "The disk is gone." in app.transcript()
        app.wait_out_grace()
        await app.press("space")
        assert app.session.called("preview_plan")[-1][1] == frozenset({"notes"})
        assert "10 new" not in app.plan_head()
        assert "○ off" in app.screen()
        app.wait_out_grace()
        await app.press("space")
        assert app.session.called("preview_plan")[-1][1] == frozenset()
        assert "10 new" in app.plan_head()
        app.wait_out_grace()
        shown = app.plan.preview
        await app.press("a")
        assert app.session.called("execute")[0][0] is shown


async def test_an_edited_plan_is_previewed_again_and_bad_json_is_not() -> None:
    async with driving() as app:
        await app.planned()
        before = app.plan.preview
        await app.press("e")
        assert isinstance(app.app.screen, PlanEditor)
        app.app.screen.query_one(TextArea).text = '{"version": "1.0",'
        await app.press("ctrl+s")
        assert "Invalid JSON" in app.screen()
        await app.press("escape")
        await app.press("y")
        assert app.plan.preview is before
        assert app.session.called("preview_plan") == []
        await app.press("e")
        editor = app.app.screen.query_one(TextArea)
        document = json.loads(editor.text)
        document["goal"] = "Another goal"
        editor.text = json.dumps(document)
        await app.press("ctrl+s")
        assert app.session.called("preview_plan")[0][0]["goal"] == "Another goal"
        assert "Another goal" in app.screen()


async def test_the_log_names_what_happened_in_words() -> None:
    session = FakeSession(run_script=mixed_run()[:-1], pace=0.001)
    async with driving(session) as app:
        await app.planned()
        await app.press("a")
        log = app.main.query_one(RunLog)
        words = [log.draw_row(row, 80).plain.split()[1] for row in log.rows]
        assert words == ["applied", "retry", "applied", "skipped", "failed"]


async def test_cancelling_a_run_stops_after_the_current_file_and_shows_a_result() -> None:
    session = FakeSession()
    async with driving(session) as app:
        await app.planned()
        session.gate = asyncio.Event()
        await app.pilot.press("a")
        await app.pilot.pause()
        await app.pilot.press("escape")
        await app.until(lambda: "Stopping after the current file" in app.screen())
        session.gate.set()
        await app.settle()
        assert "Cancelled" in app.screen()
        assert app.stage == "result"


async def test_a_conflict_is_shown_with_its_errors() -> None:
    session = FakeSession(run_script=mixed_run())
    async with driving(session) as app:
        await app.planned()
        await app.press("a")
        text = app.screen()
        assert "Conflict" in text
        assert "Projects/D.md: The file changed since the preview." in text
        assert "It was there already, unchanged." in text


async def test_a_file_of_the_result_opens_in_the_note_pane() -> None:
    session = FakeSession()
    session.texts["Projects/Attic.md"] = "# Attic\n"
    async with driving(session) as app:
        await app.planned()
        await app.press("a")
        await app.press("down", "v")
        assert app.panes.note.path == "Projects/Attic.md"
        assert "# Attic" in app.screen()


async def test_a_plan_that_waits_is_computed_again_when_the_last_run_was_undone() -> None:
    async with driving() as app:
        await app.planned()
        before = app.plan.preview
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.press("y")
        assert app.session.called("undo") == [(None, frozenset(), frozenset())]
        assert len(app.session.called("preview_plan")) == 1
        assert app.plan.complete
        assert app.plan.preview is not before


CHANGED = (UndoConflict("B.md", "changed since"), UndoConflict("C.md", "changed since"))


async def test_the_preview_of_an_undo_asks_about_its_conflicts() -> None:
    session = FakeSession()
    session.runs.previewed = Report(restored=("A.md",), conflicts=CHANGED)
    session.runs.reports = [Report(restored=("A.md", "C.md"), skipped=("B.md",))]
    async with driving(session) as app:
        await app.planned()
        await app.press("a")
        await app.press("u")
        await app.on_top(UndoPreview)
        text = "2 files changed since"
        await app.until(lambda: text in app.screen())
        assert session.called("undo") == []
        await app.press("enter")
        assert isinstance(app.app.screen, DiffScreen)
        await app.press("escape", "s", "f")
        assert app.screen().count("keep mine") == 1
        await app.press("y")
        assert session.called("undo") == [("r1", frozenset({"C.md"}), frozenset({"B.md"}))]
        assert "Skipped: B.md" in app.transcript()


async def test_one_key_restores_all_conflicts_and_one_keeps_all() -> None:
    session = FakeSession()
    session.runs.previewed = Report(restored=("A.md",), conflicts=CHANGED)
    async with driving(session) as app:
        await app.planned()
        await app.press("a")
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.press("F")
        assert app.screen().count("restore anyway") == 2
        await app.press("S")
        assert app.screen().count("keep mine") == 2
        await app.press("F", "y")
        assert session.called("undo") == [("r1", frozenset({"B.md", "C.md"}), frozenset())]


async def test_conflicts_that_appear_after_the_preview_are_asked_about() -> None:
    session = FakeSession()
    session.runs.previewed = Report(restored=("A.md", "B.md"))
    session.runs.reports = [
        Report(restored=("A.md",), conflicts=CHANGED),
        Report(restored=("C.md",), skipped=("B.md",)),
    ]
    async with driving(session) as app:
        await app.planned()
        await app.press("a")
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.press("y")
        await app.on_top(Conflicts)
        await app.press("enter")
        assert isinstance(app.app.screen, DiffScreen)
        await app.press("escape", "s", "f", "ctrl+s")
        assert session.called("undo")[-1] == ("r1", frozenset({"C.md"}), frozenset({"B.md"}))


async def test_what_is_no_longer_kept_cannot_be_restored_anyway() -> None:
    session = FakeSession()
    gone = UndoConflict("B.md", "its old content is no longer stored", forcible=False)
    session.runs.previewed = Report(restored=("A.md",), conflicts=(gone, CHANGED[1]))
    async with driving(session) as app:
        await app.planned()
        await app.press("a")
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.press("f", "f")
        assert app.screen().count("restore anyway") == 1
        assert "cannot restore" in app.screen()
        await app.press("y")
        assert session.called("undo")[-1] == ("r1", frozenset({"C.md"}), frozenset({"B.md"}))


async def test_redo_tells_what_it_left_out_and_asks_about_it() -> None:
    session = FakeSession()
    session.runs.entries = history_entries()
    session.runs.previewed = Report(restored=("A.md",), conflicts=CHANGED)
    async with driving(session) as app:
        await app.press("f3", "y")
        await app.on_top(UndoPreview)
        assert session.called("redo") == []
        await app.press("s", "f", "y")
        assert session.called("redo") == [(frozenset({"C.md"}), frozenset({"B.md"}))]
        assert "Skipped: B.md" in app.screen()


async def test_a_run_that_was_undone_is_redone_from_its_result() -> None:
    session = FakeSession()
    async with driving(session) as app:
        await app.planned()
        await app.press("a")
        await app.press("u")
        assert "Redo" in app.screen()
        await app.press("y")
        assert session.called("redo") == [()]


async def test_saving_a_run_with_a_parameter() -> None:
    session = FakeSession()
    async with driving(session) as app:
        await app.planned()
        await app.press("a")
        await app.press("m")
        await app.settle()
        screen = app.app.screen
        assert isinstance(screen, SaveMacro)
        screen.query_one("#name", Input).value = "My action"
        screen.query_one("ChoiceList").focus()
        await app.press("enter")
        await app.settle()
        assert isinstance(app.app.screen, ValuesForm)
        await app.press(*"folderName", "enter")
        await app.settle()
        await app.press("ctrl+s")
        await app.settle()
        assert session.called("save") == [("r1", "My action", None, {"folderName": "Projects"})]


async def test_a_name_that_is_taken_is_asked_again() -> None:
    session = FakeSession()
    session.saved.macros = [saved("Taken")]
    async with driving(session) as app:
        await app.planned()
        await app.press("a")
        await app.press("m")
        app.app.screen.query_one("#name", Input).value = "Taken"
        await app.press("ctrl+s")
        assert isinstance(app.app.screen, SaveMacro)
        assert "already" in app.screen()


async def test_running_a_saved_action_asks_for_its_values_and_previews() -> None:
    session = FakeSession()
    session.saved.macros = [
        saved("Sort", plan_of(parameters={"folder": {"type": "path"}, "count": {"type": "number"}}))
    ]
    async with driving(session) as app:
        await app.press("f2", "enter")
        assert isinstance(app.app.screen, ValuesForm)
        await app.press(*"Inbox", "enter", *"no", "enter")
        assert "it must be a number" in app.screen()
        await app.press("backspace", "backspace", "3", "enter")
        assert session.called("run_macro") == [("Sort", {"folder": "Inbox", "count": "3"})]
        assert app.stage == "plan"
        assert session.called("execute") == []


async def test_saved_actions_are_renamed_deleted_after_a_question_and_exported() -> None:
    session = FakeSession()
    session.saved.macros = [saved("One"), saved("Two")]
    async with driving(session) as app:
        await app.press("f2")
        assert isinstance(app.app.screen, Actions)
        await app.press("tab", "e")
        app.app.screen.query_one(Input).value = "Uno"
        await app.press("enter")
        assert session.called("rename") == [("One", "Uno")]
        await app.press("delete")
        assert isinstance(app.app.screen, Confirm)
        await app.press("enter")
        assert session.called("delete") == []
        await app.press("delete")
        await app.press("y")
        assert session.called("delete") == [("Uno",)]
        await app.press("x")
        await app.press(*"out", "enter")
        assert session.called("export") == [("Two", "out")]


async def test_an_imported_action_is_shown_before_it_is_kept() -> None:
    session = FakeSession()
    session.saved.to_import = Imported(
        saved("Foreign"), (Problem("FIELD_IGNORED", "autoRun was left out."),)
    )
    async with driving(session) as app:
        await app.press("f2", "tab", "i")
        await app.press(*"file", "enter")
        text = app.screen()
        assert "autoRun was left out." in text
        assert "vault.createFile" in text
        assert session.called("keep") == []
        await app.press("y")
        assert session.called("keep") == [("Foreign", False)]


async def test_history_undoes_a_run_and_redoes() -> None:
    session = FakeSession()
    session.runs.entries = history_entries()
    async with driving(session) as app:
        await app.press("f3")
        assert isinstance(app.app.screen, History)
        assert "Rename #todo to #task" in app.screen()
        await app.press("down", "enter")
        await app.settle()
        assert "edit    a" in app.screen()
        assert session.called("undo") == [], "Enter only looks"
        await app.press("u")
        assert session.called("undo") == [("r2", frozenset(), frozenset())]
        assert isinstance(app.app.screen, History)
        assert "Undone: 1 file." in app.screen()
        await app.press("y")
        assert session.called("redo") == [()]


async def test_history_undoes_the_marked_files() -> None:
    session = FakeSession()
    session.runs.entries = history_entries()
    async with driving(session) as app:
        await app.press("f3")
        await app.settle()
        await app.press("space", "enter", "space", "down", "space")
        assert "2 files marked for undo" in app.screen()
        await app.press("u")
        assert session.called("undo") == [("r3", frozenset(), frozenset(), frozenset({"a", "c"}))]


async def test_back_to_a_step_lists_only_what_is_possible() -> None:
    session = FakeSession()
    session.runs.entries = history_entries()
    async with driving(session) as app:
        await app.press("f3", "b")
        await app.on_top(Steps)
        assert [row.key for row in app.app.screen.query_one(ChoiceList).rows] == [
            "bullets",
            "notes",
        ]
        await app.press("down", "enter")
        await app.settle()
        assert session.called("undo") == [("r3", frozenset(), frozenset(), "notes")]


async def test_a_run_without_such_a_step_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    session = FakeSession()
    session.runs.entries = history_entries()
    session.runs.undo_points = lambda run_id: []  # type: ignore[method-assign]
    async with driving(session) as app:
        await app.press("f3", "b")
        assert "no step to go back to" in app.screen()


async def test_the_history_is_filtered_and_leaves_out_runs_without_changes() -> None:
    session = FakeSession()
    session.runs.entries = [*history_entries(), entry("r0", "2025-12-01T10:00:00+01:00", "Empty")]
    async with driving(session) as app:
        await app.press("f3")
        assert "Empty" not in app.screen()
        await app.press("slash", *"TODO")
        assert "Rename #todo to #task" in app.screen()
        assert "Sort the inbox" not in app.screen()
        await app.press(*"x")
        assert "No run matches" in app.screen()
        await app.press("escape")
        assert "Sort the inbox" in app.screen()
        await app.press("escape")
        assert app.app.screen is app.main


async def test_a_run_that_is_undone_already_is_not_undone_again() -> None:
    session = FakeSession()
    session.runs.entries = history_entries()[2:]
    async with driving(session) as app:
        await app.press("f3", "u")
        assert "This run is already undone" in app.screen()
        assert session.called("undo") == []


async def test_a_command_cannot_be_undone_and_the_history_says_so() -> None:
    session = FakeSession()
    only, both = Effects(commands=("app:reload",)), Effects(modified=("a",), commands=("x:y",))
    time = "2025-12-01T10:00:00+01:00"
    session.runs.entries = [
        entry("r2", time, "Both", effects=both),
        entry("r1", time, "Reload", effects=only),
    ]
    async with driving(session) as app:
        await app.press("f3")
        await app.settle()
        assert "command x:y" in app.screen()
        await app.press("u")
        await app.on_top(UndoPreview)
        assert "1 command of Obsidian, which cannot be undone" in app.screen()
        await app.press("escape", "down", "u")
        assert "Commands cannot be undone." in app.screen()
        assert session.called("undo") == []


@pytest.mark.parametrize(("key", "finish"), [("b", False), ("f", True)])
async def test_an_interrupted_run_is_offered_at_the_start(key: str, finish: bool) -> None:
    session = FakeSession()
    session.runs.broken = [
        interrupted("r9", "2025-12-16T09:30:00", "Sort the inbox", "A.md", "B.md")
    ]
    async with driving(session) as app:
        assert isinstance(app.app.screen, RecoveryDialog)
        assert "Sort the inbox" in app.screen()
        assert "r9" in app.screen()
        await app.press(key)
        assert session.called("recover") == [("r9", finish)]


async def test_candidates_with_a_missing_value() -> None:
    session = FakeSession(script=[sample_candidates()])
    async with driving(session) as app:
        await app.send("todo to task")
        assert isinstance(app.app.screen, Candidates)
        assert "Rename a tag everywhere" in app.screen()
        await app.press("2")
        assert isinstance(app.app.screen, ValuesForm)
        await app.press(*"Done", "enter")
        assert session.called("fill") == [("Move notes to a folder", {"folder": "Done"})]
        assert app.stage == "plan"


async def test_missing_values_without_candidates() -> None:
    session = FakeSession(script=[[NeedsInput("Values are missing: folder.", missing=("folder",))]])
    async with driving(session) as app:
        await app.send("Move it")
        await app.press("escape")
        assert session.called("fill") == []
        assert "Nothing was changed." in app.transcript()


async def test_an_answer_is_streamed_and_then_left_alone() -> None:
    long = "".join(f"Paragraph {number} of a long answer.\n\n" * 3 for number in range(60))
    pieces: list[AgentEvent] = [TextDelta(long[at : at + 50]) for at in range(0, len(long), 50)]
    session = FakeSession(
        script=[sample_answer(), [*pieces, Answer(long)], [*pieces, Answer("Other words.")]]
    )
    async with driving(session) as app:
        await app.send("Which projects?")
        transcript = app.transcript()
        assert transcript.count("You have three open projects:") == 1
        assert "Sources\nProjects/Garden.md\nProjects/Roof.md" in transcript
        assert len(app.main.query(Streaming)) == 1
        await app.send("And in full?")
        assert app.transcript().count("Paragraph 59 of") == 3
        before = app.main.query(Streaming).last()
        parts = [*before.children]
        assert 5 < len(parts) < 30, "a long answer is drawn in parts"
        await app.send("What now?")
        assert [*before.children] == parts
        assert "Other words." in app.transcript(), "the answer counts, not what was streamed"
        assert app.transcript().count("Paragraph 59 of") == 3


async def test_the_json_of_a_plan_is_never_shown_in_the_conversation() -> None:
    async with driving() as app:
        await app.planned()
        assert '"version"' not in app.transcript()


async def test_thinking_is_apart_and_folds() -> None:
    async with driving() as app:
        await app.planned()
        thinking = app.main.query_one(Thinking)
        assert "One note each" not in str(thinking.render())
        thinking.focus()
        await app.press("enter")
        assert "One note each, then links." in str(thinking.render())


async def test_a_retry_of_planning_is_said() -> None:
    problem = Problem("SCHEMA_INVALID", "steps is missing.")
    session = FakeSession(
        script=[[TextDelta("{}"), PlanningRetry(2, 3, (problem,)), *sample_answer()]]
    )
    async with driving(session) as app:
        await app.send("Hi")
        assert (
            "in the form that this program can run. Asking the model again (2 of 3)."
            in app.transcript()
        )


async def test_an_error_of_the_core_is_said_calmly() -> None:
    from obsidian_agent.errors import ProviderError

    session = FakeSession(error=ProviderError("The model does not answer.", hint="Is it running?"))
    async with driving(session) as app:
        await app.send("Hi")
        assert "The model does not answer. Is it running?" in app.transcript()
        assert isinstance(app.app.screen, MainScreen)
        assert app.main.turn.phase == "idle"


async def test_an_unexpected_error_shows_a_calm_modal_whose_report_is_redacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = FakeSession()
    monkeypatch.setattr(logging.getLogger("obsidian_agent"), "handlers", [])
    log.start(tmp_path)
    async with driving(session) as app:
        await app.planned()
        session.error = ValueError("broken '/home/me/Vault/Secret note.md' key sk-abcdefghijkl")
        await app.pilot.press("a")
        await app.on_top(Unexpected)
        assert "An unexpected error occurred. Please try again." in app.screen()
        assert "Details are in" in app.screen()
        assert any("ValueError: broken <text>" in line for line in log.lines(log.file_in(tmp_path)))
        await app.press("c")
        copied = app.app.clipboard
        assert "ValueError" in copied
        assert "Secret" not in copied
        assert "sk-abc" not in copied
        await app.press("escape")
        assert app.main.turn.phase == "idle"


async def test_quitting_while_writing_asks_first() -> None:
    session = FakeSession()
    async with driving(session) as app:
        await app.planned()
        session.gate = asyncio.Event()
        await app.pilot.press("a")
        await app.pilot.pause()
        await app.pilot.press("ctrl+q")
        await app.until(lambda: isinstance(app.app.screen, Confirm))
        await app.pilot.press("n")
        await app.pilot.pause()
        assert app.app.is_running
        session.gate.set()
        await app.settle()
        assert app.stage == "result"


async def test_a_long_conversation_is_pruned() -> None:
    async with driving() as app:
        for number in range(230):
            app.panes.chat.transcript.add_entry("note", f"Entry {number}")
        await app.settle()
        assert len(app.panes.chat.transcript.children) <= 200
        assert "Entry 229" in app.screen()


async def test_the_palette_runs_a_saved_action() -> None:
    session = FakeSession()
    session.saved.macros = [saved("Sort inbox")]
    async with driving(session) as app:
        await app.press("ctrl+p")
        await app.press(*"run saved")
        await app.press("enter")
        assert session.called("run_macro") == [("Sort inbox", {})]


@pytest.mark.parametrize(
    ("standing", "why"), [("new", "came with the vault"), ("changed", "has changed since")]
)
@pytest.mark.parametrize("palette", [False, True])
async def test_a_saved_action_that_is_not_trusted_is_shown_and_asked_about_first(
    standing: Literal["new", "changed"], why: str, palette: bool
) -> None:
    session = FakeSession()
    session.saved.macros = [saved("Sort inbox", plan_of(), standing=standing)]

    async def choose() -> None:
        if palette:
            await app.press("ctrl+p")
            await app.press(*"run saved")
            assert "not trusted" in app.screen()
            await app.press("enter")
        else:
            await app.press("f2")
            assert ("not trusted" if standing == "new" else "changed") in app.screen()
            await app.press("enter")

    async with driving(session) as app:
        await choose()
        assert why in app.screen()
        assert '"goal"' in app.screen()
        await app.press("escape")
        assert session.called("run_macro") == session.called("accept") == []
        await choose()
        await app.press("t")
        assert session.saved.calls.count(("accept", "Sort inbox", "5a" * 32)) == 1
        assert session.called("run_macro") == [("Sort inbox", {})]
        assert session.called("execute") == []


async def test_a_saved_action_that_ran_is_counted() -> None:
    session = FakeSession()
    session.saved.macros = [saved("Sort")]
    async with driving(session) as app:
        await app.press("f2", "enter")
        app.wait_out_grace()
        assert session.called("count") == []
        await app.press("a")
        assert session.called("count") == [("Sort",)]


async def test_the_palette_stays_closed_over_a_modal() -> None:
    async with driving() as app:
        await app.press("f2", "ctrl+p")
        assert isinstance(app.app.screen, Actions)


async def test_the_selection_goes_along_until_it_is_switched_off() -> None:
    async with driving() as app:
        await app.press("ctrl+o", *"2025", "enter", "down", "down", "x", "x")
        chip = str(app.panes.chat.chip.render())
        assert "sel 2 lines" in chip
        assert "Daily/2025-12-16.md" in chip
        await app.send("Make notes")
        path, selection, cursor = app.session.vault.focus
        assert path == "Daily/2025-12-16.md"
        assert selection == Selection(
            "- Garden\n- Kitchen", EditorPosition(2, 0), EditorPosition(3, 9)
        )
        assert cursor == EditorPosition(3, 9)
        await app.press("ctrl+t")
        assert "not sent" in str(app.panes.chat.chip.render())
        await app.send("Again")
        assert app.session.vault.focus[1] is None


async def test_the_open_note_follows_what_a_run_changed() -> None:
    session = FakeSession()
    async with driving(session) as app:
        await app.press("ctrl+o", *"2025", "enter")
        await app.planned()
        session.texts["Daily/2025-12-16.md"] = "# Changed\n"
        await app.press("a")
        assert app.panes.note.area.text == "# Changed\n"


async def test_pasted_control_characters_become_visible() -> None:
    async with driving() as app:
        app.prompt.focus()
        await app.pilot.pause()
        app.app.post_message(events.Paste("one\ntwo\x1b[2J\u202e"))
        await app.settle()
        assert app.prompt.text == "one\ntwo␛[2J‹U+202E›"


async def test_escape_in_the_note_keeps_the_selection_and_letters_go_to_the_message() -> None:
    async with driving() as app:
        await app.press("ctrl+o", *"2025", "enter", "down", "down", "x", "escape")
        assert app.app.focused is app.prompt
        assert app.panes.note.selected_lines() == 1
        app.panes.go("note")
        await app.settle()
        await app.press("h", "i", "space", "y")
        assert app.prompt.text == "hi y"
        assert app.panes.note.selected_lines() == 1


async def test_a_plan_that_waits_cannot_be_approved_while_another_message_is_worked_on() -> None:
    session = FakeSession()
    async with driving(session) as app:
        await app.planned()
        first = app.plan.preview
        session.gate = asyncio.Event()
        app.prompt.text = "Something else"
        app.prompt.focus()
        await app.pilot.press("enter")
        await app.pilot.pause()
        app.wait_out_grace()
        assert "Computing the preview" in app.screen()
        app.main.query_one(PlanList).focus()
        await app.pilot.press("a")
        await app.pilot.pause()
        assert session.called("execute") == []
        await app.pilot.press("escape")
        session.gate.set()
        await app.settle()
        assert app.plan.preview is first
        app.wait_out_grace()
        app.main.query_one(PlanList).focus()
        await app.press("a")
        assert session.called("execute") == [(first,)]


async def test_an_empty_list_of_saved_actions_says_how_to_fill_it() -> None:
    async with driving() as app:
        await app.press("f2")
        assert "No saved actions yet" in app.screen()
        await app.press("escape", "f3")
        assert "No run has changed this vault yet." in app.screen()


async def test_a_plan_without_literal_texts_can_be_saved() -> None:
    steps = [{"id": "a", "tool": "t", "args": {"path": "${where}"}}]
    plan = plan_of(steps, parameters={"where": {"type": "path", "default": "A.md"}})
    session = FakeSession(
        script=[
            [
                PlanReady(plan),
                PreviewReady(preview_of(plan, [change("create", "A.md", content=b"x")])),
            ]
        ]
    )
    async with driving(session) as app:
        await app.planned()
        await app.press("a")
        await app.press("m")
        assert "Asks for: where" in app.screen()
        await app.press("enter")
        assert len(session.called("save")) == 1


async def test_the_list_of_an_undone_run_offers_nothing_to_open() -> None:
    async with driving() as app:
        await app.planned()
        await app.press("a")
        await app.press("u")
        rows = app.main.query_one(ResultList).rows
        assert rows
        assert all(row.word == "step" and row.path is None for row in rows)


async def test_a_saved_action_runs_with_its_displayed_values_changed_or_not() -> None:
    session = FakeSession()
    parameters = {
        "folder": {"type": "path", "default": "Ideas"},
        "tags": {"type": "list", "default": ["a", "b"]},
    }
    session.saved.macros = [saved("Sort", plan_of(parameters=parameters))]
    async with driving(session) as app:
        await app.press("f2", "enter")
        assert "Ideas" in app.screen()
        assert "a, b" in app.screen()
        await app.press("end", "2", "enter")
        assert session.called("run_macro") == [("Sort", {"folder": "Ideas2", "tags": "a, b"})]


async def test_looking_around_is_told_and_what_was_sent_is_counted() -> None:
    items = (
        ShareItem(vault_path("A.md"), Level.TEXT, 10, 3),
        ShareItem(vault_path("B.md"), Level.TEXT, 10, 3),
    )
    request = ShareRequest(
        "c", "files", "vault.readFile", "Read notes", {}, items, "some/model", "https://x"
    )
    events: list[AgentEvent] = [
        ToolCallStarted("c", "vault.readFile", "Read notes", {}, "it is about A"),
        ShareRequested(request),
        ShareDecided(request, ShareDecision("once", frozenset({"A.md"}))),
        ToolCallFinished(
            "c", "vault.readFile", problem=Problem("FILE_NOT_FOUND", "There is no B.md.")
        ),
        TokensUsed("", 1000, 200, 2),
        Notice(Problem("X", "The context was shortened.")),
        RoundsUsedUp(8),
    ]
    async with driving(FakeSession(script=[events])) as app:
        await app.send("Hi")
        told = app.transcript()
        for words in (
            "Read notes – it is about A",
            "Sent 1 of 2 to some/model.",
            "There is no B.md.",
            "The context was shortened.",
            "used tools 8 times without an answer",
        ):
            assert words in told
        assert "no end" not in told


async def test_retry_says_the_last_message_again_when_it_is_typed() -> None:
    async with driving() as app:
        await app.send("Make notes")
        await app.send("/history")
        await app.press("escape")
        await app.send("/retry")
        assert app.session.called("turn") == [("Make notes",), ("Make notes",)]
        assert app.hint() == ""


async def test_an_earlier_plan_never_replaces_one_that_waits() -> None:
    async with driving() as app:
        await app.planned("Make notes")
        await app.press("r")
        await app.planned("Make other notes")
        waiting = app.main.turn.pending
        assert waiting is not None
        await app.send("/plan")
        assert app.main.turn.pending is waiting
        assert app.session.called("preview_plan") == []
        assert "Another plan is pending" in app.hint()
        app.panes.go("work")
        await app.settle()
        await app.press("r")
        await app.send("/plan")
        assert len(app.session.called("preview_plan")) == 1


async def test_an_edit_of_the_plan_is_thrown_away_only_after_a_question() -> None:
    async with driving() as app:
        await app.planned()
        await app.press("e")
        await app.press("escape")
        assert isinstance(app.app.screen, MainScreen), "nothing was edited, nothing is asked"
        await app.press("e")
        editor = app.app.screen.query_one(TextArea)
        await app.press("x")
        edited = editor.text
        await app.press("escape")
        assert isinstance(app.app.screen, Confirm)
        await app.press("n")
        assert isinstance(app.app.screen, PlanEditor)
        assert editor.text == edited
        await app.press("escape")
        await app.press("y")
        assert isinstance(app.app.screen, MainScreen)
        assert app.session.called("preview_plan") == []


async def test_an_error_of_a_run_can_be_read_whole() -> None:
    words = "Something long that does not fit into a line. " * 12 + "THE END"
    problem = Problem(
        "VAULT_ERROR", words + "[/x]\x1b[2J", step_id="notes", path="Projects/Garden.md"
    )
    session = FakeSession(
        run_script=[
            RunFinished(ExecutionResult("r1", "stopped", False, "error", 0, 3, errors=(problem,)))
        ]
    )
    async with driving(session, size=(80, 24)) as app:
        await app.planned()
        await app.press("a")
        assert "THE END" not in app.screen().replace("\n", " ")
        assert "shows the full text" in app.screen()
        await app.press("enter")
        assert isinstance(app.app.screen, DiffScreen)
        shown = " ".join(app.screen().split())
        assert "THE END" in shown
        assert "VAULT_ERROR" not in shown
        assert "Projects/Garden.md" in shown
        assert "\x1b" not in app.screen()


async def test_carriage_returns_of_a_pasted_text_are_ends_of_lines() -> None:
    async with driving() as app:
        for text in ("one\rtwo\rthree", "one\r\ntwo\r\nthree", "one\ntwo\rthree"):
            app.app.post_message(events.Paste(text))
            await app.settle()
            assert app.prompt.text == "one\ntwo\nthree"
            app.prompt.text = ""
        await app.planned()
        await app.press("e")
        editor = app.app.screen.query_one(TextArea)
        editor.text = ""
        app.app.post_message(events.Paste('{\r "goal": "x"\r}'))
        await app.settle()
        assert editor.text == '{\n "goal": "x"\n}'


async def test_a_long_streamed_answer_is_whole_in_the_transcript() -> None:
    sentence = "This sentence goes on and on without any end of a line and is told among very many of its kind. "
    text = (
        "Before.\n\n"
        + sentence * 80
        + "\n\n"
        + "A paragraph that was broken\ninto lines by the model. " * 200
        + "\n\nAfter."
    )
    pieces: list[AgentEvent] = [TextDelta(text[at : at + 700]) for at in range(0, len(text), 700)]
    session = FakeSession(script=[[*pieces, Answer(text)]], pace=0.005)
    async with driving(session) as app:
        await app.send("Tell me")
        streaming = app.main.query_one(Streaming)
        shown = [str(piece.render()).strip() for piece in streaming.query(Static)]
        paragraphs = [str(render(part)).strip() for part in text.split("\n\n")]
        assert all(any(paragraph in piece for piece in shown) for paragraph in paragraphs), (
            "each paragraph is in one piece"
        )
        assert "".join("".join(shown).split()).endswith("".join("".join(paragraphs).split()))


async def test_what_is_typed_right_behind_enter_is_of_the_next_message() -> None:
    async with driving() as app:
        app.prompt.focus()
        app.prompt.text = "Make notes"
        app.prompt.move_cursor(app.prompt.document.end)
        for key, character in (("enter", "\r"), ("a", "a"), ("n", "n"), ("d", "d")):
            app.app.post_message(events.Key(key, character))
        await app.settle()
        assert app.session.called("turn") == [("Make notes",)]
        assert app.prompt.text == "and"
