"""The course of a turn, by keys."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.widgets import Input, Static, TextArea

from agents import call, calls, propose
from faults import disk_failing_at, held_before, power_cut
from obsidian_agent import log
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    Notice,
    PlanReady,
    PreviewStarted,
    RoundsUsedUp,
    ShareDecided,
    ShareRequested,
    TextDelta,
    TokensUsed,
    ToolCallFinished,
    ToolCallStarted,
)
from obsidian_agent.agent.privacy.consent import Level, ShareDecision, ShareItem, ShareRequest
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.journal.writer import Journal
from obsidian_agent.services.macro import Macro
from obsidian_agent.services.plans import Plans
from obsidian_agent.tools.core.tool import EditorPosition, Selection
from obsidian_agent.tui.markdown_text import render
from obsidian_agent.tui.plan_rows import StepRow
from obsidian_agent.tui.screens.actions import Actions
from obsidian_agent.tui.screens.conflicts import Conflicts, UndoPreview
from obsidian_agent.tui.screens.dialogs import Confirm, DiffScreen
from obsidian_agent.tui.screens.json_editor import PlanEditor
from obsidian_agent.tui.screens.macros import SaveMacro
from obsidian_agent.tui.screens.main import MainScreen
from obsidian_agent.tui.screens.recovery import RecoveryDialog
from obsidian_agent.tui.screens.unexpected import Unexpected
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.widgets.plan_list import PlanList
from obsidian_agent.tui.widgets.row_list import ChoiceList
from obsidian_agent.tui.widgets.run import ResultList, RunLog
from obsidian_agent.tui.widgets.transcript import Streaming, Thinking
from previews import modify, previewed, run
from support import settings_with
from tui.driving import MODEL, Driver, driving
from tui.samples import append, change, create, plan_document, plan_of, preview_of, vault_path

DAILY = "Daily/2025-12-16.md"
FRUIT = {"A.md": "a\n", "B.md": "b\n", "C.md": "c\n"}
READS_ALL = settings_with(model=MODEL, share_allow=("**",))


def saved(*macros: Macro) -> Any:
    """Save actions before the app opens."""

    def save(wiring: Wiring) -> None:
        for macro in macros:
            build_session(wiring).saved.put(macro)

    return save


def sorting(name: str, **fields: Any) -> Macro:
    """Return a macro that writes a note."""
    return Macro(name, plan_of([create("new", "Sorted.md")], goal="Sort", **fields))


async def signed(app: Driver) -> None:
    """Three notes are signed by an approved plan."""
    await app.preview(*(append(name[0].lower(), name, "signed\n") for name in FRUIT))
    await app.press("a")
    assert app.files["B.md"] == "b\nsigned\n"


async def test_message_plan_approve_result_undo() -> None:
    async with driving(size=(80, 24)) as app:
        before = app.files
        await app.planned("Make a note for each bullet")
        assert app.messages == ["Make a note for each bullet"]
        assert app.stage == "plan"
        assert isinstance(app.app.focused, PlanList)
        assert "10 new" in app.screen()
        assert app.files == before
        await app.press("a")
        assert app.stage == "result"
        assert "Created 10 files, modified 1 file, created 1 folder." in app.screen()
        assert "# Garden" in app.files["Projects/Garden.md"]
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.press("y")
        assert app.files == before
        assert "Undone" in app.screen()


async def test_no_key_approves_but_a_in_the_plan_after_its_grace() -> None:
    async with driving() as app:
        await app.send("Make notes")
        for _ in range(4):
            await app.pilot.press("a")
            app.now += 0.3
        await app.pilot.press("r")
        await app.settle()
        assert app.runs == []
        assert app.stage == "plan", "a key that came too early prolongs the wait"
        assert app.prompt.text == "", "nothing is being typed"
        app.prompt.text = ""
        app.panes.go("work")
        await app.settle()
        await app.press("end", "enter")
        assert isinstance(app.app.screen, DiffScreen)
        assert "[[Garden]]" in app.screen()
        await app.press("escape", "enter", "escape")
        assert isinstance(app.app.screen, MainScreen)
        app.prompt.focus()
        await app.press("a", "r", "e", "y", "space", "u")
        assert app.prompt.text == "arey u"
        assert app.stage == "plan"
        assert app.runs == []
        app.panes.go("work")
        await app.settle()
        await app.press("a")
        assert len(app.runs) == 1


async def test_focus_stays_in_the_prompt_while_the_user_is_typing() -> None:
    async with driving() as app:
        app.model.gate.clear()
        app.prompt.text = "Make notes"
        await app.pilot.press("enter", "a", "n", "d")
        app.model.gate.set()
        await app.settle()
        assert app.stage == "plan"
        assert app.prompt.text == "and"
        assert app.app.focused is app.prompt
        assert app.runs == []


async def test_approving_is_locked_until_the_preview_is_complete() -> None:
    plan = plan_of()
    partial = preview_of(plan, [change("create", "A.md", content=b"x")])
    async with driving() as app:
        app.main.turn.plan_ready(PlanReady(plan))
        app.main.turn.preview_started(partial)
        app.panes.go("work")
        await app.settle()
        app.wait_out_grace()
        assert "Computing the preview" in app.screen()
        await app.press("a")
        assert app.runs == []
        await app.play(PlanReady(plan), PreviewStarted(partial))
        await app.press("a")
        assert "Planning stopped without a result. Nothing was changed." in app.transcript()
        assert app.runs == []


async def test_an_invalid_plan_cannot_be_approved_and_lists_every_problem() -> None:
    async with driving() as app:
        before = app.files
        await app.preview(*(append(name[0].lower(), name, "new\n") for name in FRUIT))
        text = app.screen()
        assert all(name in text for name in FRUIT)
        assert "Cannot be approved: 3 errors." in text
        await app.press("a")
        assert app.runs == []
        assert app.files == before


async def test_messages_that_need_a_selection_ask_for_one() -> None:
    async with driving({"text": "Which bullets?"}) as app:
        await app.send("Make a note for each bullet in the selection")
        assert app.messages == []
        assert "Selection is empty. Please select text first." in app.hint()
        assert "Select bullet points to create notes from" in app.hint()
        await app.press("enter")
        assert len(app.messages) == 1, "held back once"
        app.panes.chat.hint("")
        await app.preview(create("new", "A.md", "${selection}"))
        assert "Selection is empty. Please select text first." in app.hint(), "reported by the plan"


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


async def test_a_step_is_switched_off_with_a_fresh_preview(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise VaultError("The disk is gone.")

    async with driving() as app:
        await app.planned()
        listing = app.main.query_one(PlanList)
        listing.cursor = next(
            index
            for index, row in enumerate(listing.rows)
            if isinstance(row, StepRow) and row.step.id == "notes"
        )
        await app.settle()
        before = app.plan.preview
        with monkeypatch.context() as patch:
            patch.setattr(Plans, "dry_run", fail)
            await app.press("space")
        assert app.plan.preview is before, "a preview that failed brings the earlier one back"
        assert app.plan.complete
        assert "The disk is gone." in app.transcript()
        app.wait_out_grace()
        await app.press("space")
        assert app.main.turn.pending is not None
        assert app.main.turn.pending.disabled == {"notes"}
        assert "10 new" not in app.plan_head()
        assert "○ off" in app.screen()
        app.wait_out_grace()
        await app.press("space")
        assert app.main.turn.pending.disabled == frozenset()
        assert "10 new" in app.plan_head()
        app.wait_out_grace()
        await app.press("a")
        assert len(app.files) == 12


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
        await app.press("e")
        editor = app.app.screen.query_one(TextArea)
        document = json.loads(editor.text)
        document["goal"] = "Another goal"
        editor.text = json.dumps(document)
        await app.press("ctrl+s")
        assert app.plan.preview is not before
        assert "Another goal" in app.screen()


async def test_a_pasted_plan_is_previewed_and_may_lose_its_parameter_in_the_editor() -> None:
    async with driving() as app:
        step = create("new", "${name}.md")
        plan = {"version": "1.0", "goal": "Plant", "riskLevel": "writes", "steps": [step]}
        named = {"type": "text", "description": "Name", "default": "Garden"}
        await app.send(json.dumps(plan | {"parameters": {"name": named | {"type": "string"}}}))
        assert "'type' must be 'text'" in app.screen()
        await app.send(json.dumps(plan | {"parameters": {"name": named}}))
        await app.until(lambda: "Garden.md" in app.screen())
        await app.press("e")
        editor = app.app.screen.query_one(TextArea)
        editor.text = json.dumps(plan | {"steps": [{"id": "new"}]})
        await app.press("ctrl+s")
        assert "'tool' is missing" in app.screen()
        assert isinstance(app.app.screen, PlanEditor), "the edited text is kept"
        editor.text = json.dumps(plan | {"steps": [create("new", "Shed.md")]})
        await app.press("ctrl+s")
        await app.until(lambda: "Shed.md" in app.screen())
        app.wait_out_grace()
        await app.press("a")
        await app.finished()
        assert "Shed.md" in app.files


async def test_the_log_names_what_happened_in_words() -> None:
    async with driving() as app:
        await app.preview(
            create("one", "One.md"),
            create("two", "Two.md", retry={"maxAttempts": 2, "backoffMs": 0}),
            create("three", "Three.md", onError="skip"),
            create("four", "Four.md", dependsOn=["three"]),
        )
        with (
            disk_failing_at("Two.md", times=1),
            disk_failing_at("Three.md", message="The disk is busy."),
        ):
            await app.press("a")
        log = app.main.query_one(RunLog)
        words = [log.draw_row(row, 80).plain.split()[1] for row in log.entries]
        assert words == ["new", "retry", "new", "failed", "skipped"]
        assert "The disk is busy." in app.screen()


async def test_the_log_of_a_run_follows_the_newest_file() -> None:
    files = {f"{number:03}.md": "Old\n" for number in range(90)}
    async with driving(files=files, size=(80, 24)) as app:
        await app.preview(*(append(f"s{path[:3]}", path, "New\n") for path in files))
        with held_before("080.md") as held:
            await app.pilot.press("a")
            await app.until(held.reached.is_set)
            await app.until(lambda: " edit    079.md" in app.screen())
        await app.finished()


async def test_cancelling_a_run_stops_after_the_current_file_and_shows_a_result() -> None:
    async with driving() as app:
        await app.planned()
        with held_before("Projects/Kitchen.md") as held:
            await app.pilot.press("a")
            await app.until(held.reached.is_set)
            app.wait_out_grace()
            await app.pilot.press("escape")
            await app.until(lambda: "Stopping after the current file" in app.screen())
            held.go.set()
            await app.settle()
        assert "Cancelled" in app.screen()
        assert app.stage == "result"
        assert "Projects/Kitchen.md" in app.files
        assert "Projects/Sourdough.md" not in app.files


async def test_a_conflict_is_shown_with_its_errors() -> None:
    async with driving(files=FRUIT) as app:
        await app.preview(append("a", "A.md", "signed\n"))
        (app.vault / "A.md").write_text("mine\n")
        await app.press("a")
        text = app.screen()
        assert "Conflict" in text
        assert "A.md" in text
        assert "changed" in text
        assert app.files == FRUIT | {"A.md": "mine\n"}


async def test_a_file_of_the_result_opens_in_the_note_pane() -> None:
    async with driving() as app:
        await app.planned()
        await app.press("a")
        await app.press("end", "right", "down", "v")
        assert app.panes.note.path == "Projects/Attic.md"
        assert "Status: open" in app.screen()


async def test_a_plan_that_waits_is_computed_again_when_the_last_run_was_undone() -> None:
    async with driving(files=FRUIT) as app:
        await signed(app)
        await app.preview(append("again", "A.md", "twice\n"))
        before = app.plan.preview
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.press("y")
        assert app.files == FRUIT
        assert app.plan.complete
        assert app.plan.preview is not before
        await app.press("a")
        assert app.files["A.md"] == "a\ntwice\n"


async def test_the_preview_of_an_undo_asks_about_its_conflicts() -> None:
    async with driving(files=FRUIT) as app:
        await signed(app)
        for name in ("B.md", "C.md"):
            (app.vault / name).write_text("mine\n")
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.until(lambda: "2 files changed since" in app.screen())
        await app.press("enter")
        assert isinstance(app.app.screen, DiffScreen)
        await app.press("escape", "s", "f")
        assert app.screen().count("keep mine") == 1
        assert app.files["A.md"] == "a\nsigned\n"
        await app.press("y")
        assert app.files == {"A.md": "a\n", "B.md": "mine\n", "C.md": "c\n"}
        assert "Skipped: B.md" in app.transcript()


async def test_one_key_restores_all_conflicts_and_one_keeps_all() -> None:
    async with driving(files=FRUIT) as app:
        await signed(app)
        for name in ("B.md", "C.md"):
            (app.vault / name).write_text("mine\n")
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.press("F")
        assert app.screen().count("restore anyway") == 2
        await app.press("S")
        assert app.screen().count("keep mine") == 2
        await app.press("F", "y")
        assert app.files == FRUIT


async def test_conflicts_that_appear_after_the_preview_are_asked_about() -> None:
    async with driving(files=FRUIT) as app:
        await signed(app)
        await app.press("u")
        await app.on_top(UndoPreview)
        for name in ("B.md", "C.md"):
            (app.vault / name).write_text("mine\n")
        await app.press("y")
        await app.on_top(Conflicts)
        await app.press("enter")
        assert isinstance(app.app.screen, DiffScreen)
        await app.press("escape", "s", "f", "ctrl+s")
        assert app.files == {"A.md": "a\n", "B.md": "mine\n", "C.md": "c\n"}


async def test_a_file_with_a_folder_in_its_place_cannot_be_restored() -> None:
    async with driving(files=FRUIT) as app:
        await signed(app)
        (app.vault / "B.md").unlink()
        (app.vault / "B.md").mkdir()
        (app.vault / "C.md").write_text("mine\n")
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.press("f", "f")
        assert app.screen().count("restore anyway") == 1
        assert "cannot restore" in app.screen()
        await app.press("y")
        assert app.files == {"A.md": "a\n", "C.md": "c\n"}


async def test_redo_reports_what_it_skipped_and_asks_about_it() -> None:
    async with driving(files=FRUIT) as app:
        await signed(app)
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.press("y")
        for name in ("B.md", "C.md"):
            (app.vault / name).write_text("mine\n")
        await app.press("f3", "y")
        await app.on_top(UndoPreview)
        assert app.files["A.md"] == "a\n"
        await app.press("s", "f", "y")
        assert app.files == {"A.md": "a\nsigned\n", "B.md": "mine\n", "C.md": "c\nsigned\n"}
        assert "Skipped: B.md" in app.screen()


async def test_a_run_that_was_undone_is_redone_from_its_result() -> None:
    async with driving(files=FRUIT) as app:
        await app.preview(append("a", "A.md", "signed\n"))
        await app.press("a")
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.press("y")
        rows = app.main.query_one(ResultList).entries
        assert rows, "nothing to open"
        assert all(row.word == "step" and not row.files for row in rows)
        assert app.files == FRUIT
        assert "Redo" in app.screen()
        await app.press("y")
        await app.on_top(UndoPreview)
        await app.press("y")
        assert app.files["A.md"] == "a\nsigned\n"


async def test_saving_a_run_with_a_parameter() -> None:
    async with driving() as app:
        await app.preview(create("new", "Projects/A.md"))
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
        (macro,) = app.session.saved.list()
        assert (macro.name, list(macro.plan.parameters)) == ("My action", ["folderName"])


async def test_a_name_that_is_taken_is_asked_again() -> None:
    async with driving(before=saved(sorting("Taken"))) as app:
        await app.preview(create("new", "A.md"))
        await app.press("a")
        await app.press("m")
        app.app.screen.query_one("#name", Input).value = "Taken"
        await app.press("ctrl+s")
        assert isinstance(app.app.screen, SaveMacro)
        assert "already" in app.screen()


async def test_running_a_saved_action_asks_for_its_values_and_previews() -> None:
    steps = [create("new", "${folder}/Number ${count}.md")]
    parameters = {"folder": {"type": "path"}, "count": {"type": "number"}}
    async with driving(before=saved(Macro("Sort", plan_of(steps, parameters=parameters)))) as app:
        await app.press("f2", "enter")
        assert isinstance(app.app.screen, ValuesForm)
        await app.press(*"Inbox", "enter", *"no", "enter")
        assert "it must be a number" in app.screen()
        await app.press("backspace", "backspace", "3", "enter")
        assert app.stage == "plan"
        assert "Inbox/Number 3.md" in app.screen()
        app.wait_out_grace()
        assert app.session.saved.use_count("Sort") == 0
        await app.press("a")
        assert "Inbox/Number 3.md" in app.files
        assert app.session.saved.use_count("Sort") == 1


async def test_saved_actions_are_renamed_deleted_after_a_question_and_exported(
    tmp_path: Path,
) -> None:
    def names() -> list[str]:
        return [macro.name for macro in app.session.saved.list()]

    async with driving(before=saved(sorting("One"), sorting("Two"))) as app:
        await app.press("f2")
        assert isinstance(app.app.screen, Actions)
        await app.press("tab", "r")
        app.app.screen.query_one(Input).value = "Uno"
        await app.press("enter")
        assert names() == ["Two", "Uno"]
        await app.press("delete")
        assert isinstance(app.app.screen, Confirm)
        await app.press("enter")
        assert names() == ["Two", "Uno"]
        await app.press("delete")
        await app.press("y")
        assert len(names()) == 1
        await app.press("x")
        app.app.screen.query_one(Input).value = str(tmp_path / "out")
        await app.press("enter")
        assert json.loads((tmp_path / "out").read_text())["name"] == names()[0]


async def test_an_imported_action_is_shown_before_it_is_stored(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(json.dumps(sorting("Foreign").to_json() | {"autoRun": True}))
    async with driving() as app:
        await app.press("f2", "tab", "i")
        app.app.screen.query_one(Input).value = str(file)
        await app.press("enter")
        text = app.screen()
        assert "autoRun" in text
        assert "vault.createFile" in text
        assert app.session.saved.list() == []
        await app.press("y")
        assert [macro.name for macro in app.session.saved.list()] == ["Foreign"]


@pytest.mark.parametrize(("key", "finish"), [("b", False), ("f", True)])
async def test_an_interrupted_run_is_offered_at_the_start(key: str, finish: bool) -> None:
    def interrupt(wiring: Wiring) -> None:
        operations = [modify(name, text.encode(), b"new\n") for name, text in FRUIT.items()]
        with Journal.open(wiring.state, wiring.store) as journal, power_cut(2):
            run(previewed(*operations, goal="Sort the inbox"), wiring.store, journal)

    async with driving(files=FRUIT, before=interrupt) as app:
        assert isinstance(app.app.screen, RecoveryDialog)
        assert "Sort the inbox" in app.screen()
        assert app.runs[0].run_id in app.screen()
        await app.press(key)
        assert app.files == (dict.fromkeys(FRUIT, "new\n") if finish else FRUIT)


async def test_missing_values_of_a_plan_are_asked_for() -> None:
    steps = [create("new", "${folder}/A.md")]
    plan = plan_document(steps, parameters={"folder": {"type": "path"}})
    async with driving(propose(plan), propose(plan)) as app:
        await app.send("Move it")
        await app.on_top(ValuesForm)
        await app.press("escape")
        assert "Nothing was changed." in app.transcript()
        await app.send("Move it")
        await app.on_top(ValuesForm)
        await app.press(*"Attic", "enter")
        assert app.stage == "plan"
        assert "Attic/A.md" in app.screen()


async def test_an_answer_is_streamed_and_then_unchanged() -> None:
    long = "".join(f"Paragraph {number} of a long answer.\n\n" * 3 for number in range(60))
    pieces: list[AgentEvent] = [TextDelta(long[at : at + 50]) for at in range(0, len(long), 50)]
    text = "You have **three** open projects:\n\n1. Garden\n2. Kitchen\n3. Roof\n"
    look = calls(call("vault__readFiles", filePaths=["Ideas.md", DAILY], why="to see"))
    async with driving(look, {"text": text}, {"text": long}, settings=READS_ALL) as app:
        await app.send("Which projects?")
        transcript = app.transcript()
        assert transcript.count("You have three open projects:") == 1
        assert f"Sources\nIdeas.md\n{DAILY}" in transcript
        assert len(app.main.query(Streaming)) == 1
        await app.send("And in full?")
        assert app.transcript().count("Paragraph 59 of") == 3
        before = app.main.query(Streaming).last()
        parts = [*before.children]
        assert 5 < len(parts) < 30, "a long answer is drawn in parts"
        await app.play(*pieces, Answer("Other words."))
        assert [*before.children] == parts
        assert "Other words." in app.transcript(), "the answer counts, not what was streamed"
        assert app.transcript().count("Paragraph 59 of") == 3


async def test_the_json_of_a_plan_is_never_shown_in_the_conversation() -> None:
    plain = settings_with(model=MODEL, tool_calling=False)
    plan = plan_document([create("new", "A.md")])
    async with driving({"plan": plan}, settings=plain) as app:
        await app.planned()
        assert app.stage == "plan"
        assert '"version"' not in app.transcript()


async def test_thinking_is_apart_and_folds() -> None:
    thoughts = "The bullets are projects. One note each, then links."
    async with driving({"text": "Yes.", "thinking": thoughts}) as app:
        await app.send("Hi")
        thinking = app.main.query_one(Thinking)
        assert "One note each" not in str(thinking.render())
        thinking.focus()
        await app.press("enter")
        assert "One note each, then links." in str(thinking.render())


async def test_a_retry_of_planning_is_reported() -> None:
    plain = settings_with(model=MODEL, tool_calling=False)
    invalid = {"text": '{"version": "1.0", "goal": "Test"}'}
    async with driving(invalid, {"text": "I cannot."}, settings=plain) as app:
        await app.send("Hi")
        assert "in the form that this program can run. Asking the model again" in app.transcript()


async def test_an_error_of_the_core_is_reported_calmly() -> None:
    error = {"code": "API_ERROR", "message": "The model does not answer."}
    async with driving({"error": error}) as app:
        await app.send("Hi")
        assert "The model does not answer." in app.transcript()
        assert isinstance(app.app.screen, MainScreen)
        assert app.main.turn.phase == "idle"


async def test_an_unexpected_error_shows_a_calm_modal_whose_report_is_redacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("broken '/home/me/Vault/Secret note.md' key sk-abcdefghijkl")

    monkeypatch.setattr(logging.getLogger("obsidian_agent"), "handlers", [])
    log.start(tmp_path)
    async with driving() as app:
        await app.planned()
        monkeypatch.setattr(Plans, "apply", broken)
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
    async with driving() as app:
        await app.planned()
        with held_before() as held:
            await app.pilot.press("a")
            await app.until(held.reached.is_set)
            await app.pilot.press("ctrl+q")
            await app.until(lambda: isinstance(app.app.screen, Confirm))
            await app.pilot.press("n")
            await app.pilot.pause()
            assert app.app.is_running
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
    async with driving(before=saved(sorting("Sort inbox"))) as app:
        await app.press("ctrl+p")
        await app.press(*"run macro")
        await app.press("enter")
        assert app.stage == "plan"
        assert "Sorted.md" in app.screen()


@pytest.mark.parametrize(
    ("standing", "why"), [("new", "came with the vault"), ("changed", "has changed since")]
)
@pytest.mark.parametrize("palette", [False, True])
async def test_a_saved_action_that_is_not_trusted_is_shown_and_asked_about_first(
    standing: str, why: str, palette: bool
) -> None:
    async def choose() -> None:
        if palette:
            await app.press("ctrl+p")
            await app.press(*"run macro")
            assert "not trusted" in app.screen()
            await app.press("enter")
        else:
            await app.press("f2")
            assert ("not trusted" if standing == "new" else "changed") in app.screen()
            await app.press("enter")

    def sync(wiring: Wiring) -> None:
        """Another computer writes the file of the action."""
        macros = Path(wiring.store.real_path) / ".obsidian-agent" / "macros"
        macros.mkdir(parents=True)
        if standing == "changed":
            build_session(wiring).saved.put(sorting("Sort inbox", assumptions=["Once"]))
        document = json.dumps(sorting("Sort inbox").to_json())
        (macros / "Sort inbox.json").write_text(document)

    async with driving(before=sync) as app:
        await choose()
        assert why in app.screen()
        assert '"goal"' in app.screen()
        await app.press("escape")
        assert app.stage == "idle"
        assert not app.session.saved.get("Sort inbox").trusted
        await choose()
        await app.press("t")
        assert app.session.saved.get("Sort inbox").trusted
        assert app.stage == "plan"
        assert app.runs == []


async def test_the_palette_stays_closed_over_a_modal() -> None:
    async with driving() as app:
        await app.press("f2", "ctrl+p")
        assert isinstance(app.app.screen, Actions)


async def test_the_selection_goes_along_until_it_is_switched_off() -> None:
    async with driving({"text": "Yes."}, {"text": "No."}, settings=READS_ALL) as app:
        await app.press("ctrl+o", *"2025", "enter", "down", "down", "x", "x")
        chip = str(app.panes.chat.chip.render())
        assert "sel 2 lines" in chip
        assert DAILY in chip
        await app.send("Make notes")
        focus = app.session.vault.focus
        assert focus.active_file == DAILY
        assert focus.selection == Selection(
            "- Garden\n- Kitchen", EditorPosition(2, 0), EditorPosition(3, 9)
        )
        assert focus.cursor == EditorPosition(3, 9)
        await app.press("ctrl+t")
        assert "not sent" in str(app.panes.chat.chip.render())
        await app.send("Again")
        assert app.session.vault.focus.selection is None


async def test_the_open_note_follows_what_a_run_changed() -> None:
    async with driving() as app:
        await app.press("ctrl+o", *"ideas", "enter")
        await app.preview(append("more", "Ideas.md", "Two\n"))
        await app.press("a")
        assert app.panes.note.area.text == "One\nTwo\n"


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
    async with driving() as app:
        await app.planned()
        first = app.plan.preview
        app.model.gate.clear()
        app.prompt.text = "Something else"
        app.prompt.focus()
        await app.pilot.press("enter")
        await app.pilot.pause()
        app.wait_out_grace()
        assert "Computing the preview" in app.screen()
        app.main.query_one(PlanList).focus()
        await app.pilot.press("a")
        await app.pilot.pause()
        assert app.runs == []
        await app.pilot.press("escape")
        app.model.gate.set()
        await app.settle()
        assert "Cancelled. Nothing was changed." in app.transcript()
        assert app.plan.preview is first
        app.wait_out_grace()
        app.main.query_one(PlanList).focus()
        await app.press("a")
        assert len(app.runs) == 1


async def test_an_empty_list_of_saved_actions_says_how_to_fill_it() -> None:
    async with driving() as app:
        await app.press("f2")
        assert "No macros yet" in str(app.app.screen.query_one(ChoiceList).rows[-1])
        await app.press("escape", "f3")
        assert "No run has changed this vault yet." in app.screen()


async def test_a_plan_without_literal_texts_can_be_saved() -> None:
    parameters = {"where": {"type": "path", "default": "A.md"}}
    async with driving() as app:
        await app.preview(create("a", "${where}", ""), parameters=parameters)
        await app.press("a")
        await app.press("m")
        assert "Asks for: where" in app.screen()
        await app.press("enter")
        assert len(app.session.saved.list()) == 1


async def test_a_saved_action_runs_with_its_displayed_values_changed_or_not() -> None:
    parameters = {
        "folder": {"type": "path", "default": "Ideas"},
        "tags": {"type": "list", "default": ["a", "b"]},
    }
    steps = [create("new", "${folder}/A.md", "${tags}\n")]
    async with driving(before=saved(Macro("Sort", plan_of(steps, parameters=parameters)))) as app:
        await app.press("f2", "enter")
        assert "Ideas" in app.screen()
        assert "a, b" in app.screen()
        await app.press("end", "2", "enter")
        app.wait_out_grace()
        await app.press("a")
        assert app.files["Ideas2/A.md"].count("a") == 1


async def test_reads_are_reported_and_sent_files_are_counted() -> None:
    items = (
        ShareItem(path=vault_path("A.md"), level=Level.TEXT, size=10, tokens=3),
        ShareItem(path=vault_path("B.md"), level=Level.TEXT, size=10, tokens=3),
    )
    request = ShareRequest(
        call_id="c",
        kind="files",
        tool="vault.readFile",
        purpose="Read notes",
        args={},
        items=items,
        provider="some/model",
        address="https://x",
    )
    missing = Problem("FILE_NOT_FOUND", "There is no B.md.")
    async with driving() as app:
        await app.play(
            ToolCallStarted(
                call_id="c",
                tool="vault.readFile",
                purpose="Read notes",
                args={},
                why="it is about A",
            ),
            ShareRequested(request),
            ShareDecided(request, ShareDecision("once", frozenset({"A.md"}))),
            ToolCallFinished(call_id="c", tool="vault.readFile", problem=missing),
            TokensUsed("", 1000, 200, 2),
            Notice(Problem("X", "The context was shortened.")),
            RoundsUsedUp(8),
        )
        transcript = app.transcript()
        for words in (
            "Read notes – it is about A",
            "Sent 1 of 2 to some/model.",
            "There is no B.md.",
            "The context was shortened.",
            "used tools 8 times without an answer",
        ):
            assert words in transcript
        assert "without a result" not in transcript


async def test_retry_sends_the_last_message_again_when_it_is_typed() -> None:
    async with driving({"text": "Yes."}, {"text": "Yes."}) as app:
        await app.send("Make notes")
        await app.send("/history")
        await app.press("escape")
        await app.send("/retry")
        assert app.messages == ["Make notes", "Make notes"]
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
        assert "Another plan is pending" in app.hint()
        app.panes.go("work")
        await app.settle()
        await app.press("r")
        await app.send("/plan")
        assert app.main.turn.pending not in (None, waiting)


async def test_an_edit_of_the_plan_is_discarded_only_after_a_question() -> None:
    async with driving() as app:
        await app.planned()
        before = app.plan.preview
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
        assert app.plan.preview is before


async def test_an_error_of_a_run_can_be_read_whole() -> None:
    words = "Something long that does not fit into a line. " * 12 + "THE END"
    async with driving(size=(80, 24)) as app:
        await app.preview(create("new", "Garden.md"))
        with disk_failing_at("Garden.md", message=f"{words}[/x]\x1b[2J"):
            await app.press("a")
        assert "THE END" not in app.screen().replace("\n", " ")
        assert "shows the full text" in app.screen()
        await app.press("enter")
        assert isinstance(app.app.screen, DiffScreen)
        text = " ".join(app.screen().split())
        assert "THE END" in text
        assert "IO_ERROR" not in text
        assert "Garden.md" in text
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
    sentence = "This sentence goes on and on without any end of a line, one among very many. "
    text = (
        "Before.\n\n"
        + sentence * 80
        + "\n\n"
        + "A paragraph that was broken\ninto lines by the model. " * 200
        + "\n\nAfter."
    )
    chunks = [text[at : at + 700] for at in range(0, len(text), 700)]
    async with driving({"chunks": chunks, "delayMs": 5}) as app:
        await app.send("Tell me")
        streaming = app.main.query_one(Streaming)
        pieces = [str(piece.render()).strip() for piece in streaming.query(Static)]
        paragraphs = [str(render(part)).strip() for part in text.split("\n\n")]
        assert all(any(paragraph in piece for piece in pieces) for paragraph in paragraphs), (
            "each paragraph is in one piece"
        )
        assert "".join("".join(pieces).split()).endswith("".join("".join(paragraphs).split()))


async def test_what_is_typed_right_after_enter_is_of_the_next_message() -> None:
    async with driving({"text": "Yes."}) as app:
        app.prompt.focus()
        app.prompt.text = "Make notes"
        app.prompt.move_cursor(app.prompt.document.end)
        for key, character in (("enter", "\r"), ("a", "a"), ("n", "n"), ("d", "d")):
            app.app.post_message(events.Key(key, character))
        await app.settle()
        assert app.messages == ["Make notes"]
        assert app.prompt.text == "and"


async def test_the_cursor_stops_blinking_after_some_time_without_a_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("obsidian_agent.tui.app.CURSOR_SECONDS", 0.05)
    async with driving() as app:
        await app.until(lambda: not app.prompt.cursor_blink)
        seen: list[bool] = []
        app.main.watch(app.prompt, "cursor_blink", lambda blink: seen.append(blink), init=False)
        await app.press("a")
        await app.until(lambda: seen[:2] == [True, False])
        assert app.prompt.text == "a"
        assert app.prompt._cursor_visible
