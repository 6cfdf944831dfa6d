"""Typed text never answers a question, in any dialog or pane, at a user's pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual import events
from textual.screen import Screen

from agents import propose
from obsidian_agent.agent.events import Candidate
from obsidian_agent.agent.privacy.consent import Level, ShareDecision, ShareItem, ShareRequest
from obsidian_agent.journal.undo import UndoConflict
from obsidian_agent.services.fields import Field
from obsidian_agent.tui.screens.candidates import Candidates
from obsidian_agent.tui.screens.conflicts import Conflicts, UndoPreview
from obsidian_agent.tui.screens.dialogs import Confirm, Modal, Secret
from obsidian_agent.tui.screens.macros import SaveMacro
from obsidian_agent.tui.screens.main import MainScreen
from obsidian_agent.tui.screens.recovery import RecoveryDialog
from obsidian_agent.tui.screens.share import Share
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.widgets.prompt import LineEntry
from support import settings_with
from tui.driving import LATE, Driver, driving
from tui.samples import create, interrupted, plan_document, plan_of, vault_path


def request() -> ShareRequest:
    item = ShareItem(
        path=vault_path("Garden.md"),
        level=Level.TEXT,
        size=1200,
        tokens=300,
        why="",
        previews=("line",),
    )
    return ShareRequest(
        call_id="c1",
        kind="files",
        tool="vault.readFiles",
        purpose="Read notes",
        args={},
        items=(item,),
        provider="model",
        address="here",
        number=1,
        total=1,
    )


def dialogs() -> list[Modal[Any]]:
    run = interrupted("r1", "2025-12-16T09:30", "Tidy")
    return [
        Share(request()),
        Confirm("Undo", "Really?", "Undo"),
        RecoveryDialog(run),
        Conflicts([UndoConflict("A.md", "changed")], lambda path: ""),
        Candidates(
            "What?", [Candidate(title="One", plan=plan_of(), values={}, missing=(), recipe="one")]
        ),
        ValuesForm("More", [Field("name")]),
    ]


@asynccontextmanager
async def over_a_message(screen: Modal[object]) -> AsyncIterator[tuple[Driver, list[object]]]:
    """Open a dialog by itself while the user is typing."""
    answers: list[object] = []
    async with driving() as app:
        await app.pilot.press(*"Dear")
        app.app.push_screen(screen, answers.append)
        await app.until(lambda: app.app.screen is screen)
        yield app, answers


@pytest.mark.parametrize("number", range(6))
async def test_no_dialog_takes_what_is_typed_on(number: int) -> None:
    text = " atf bfy ns1 ok"
    async with over_a_message(dialogs()[number]) as (app, answers):
        for letter in text:
            app.now += 0.4
            await app.pilot.press(letter)
        app.now += 0.4
        await app.pilot.press("enter", "backspace", "backspace")
        assert answers == []
        assert app.prompt.text == "Dear" + text[:-2], (
            "every letter is in the message, and only there"
        )
        assert all(entry.value == "" for entry in app.app.screen.query(LineEntry))
        await app.pilot.press("escape")
        await app.settle()
        assert isinstance(app.app.screen, MainScreen), (
            "leaving without an answer is possible at any time"
        )


async def test_a_key_answers_after_a_pause() -> None:
    async with over_a_message(Share(request())) as (app, answers):  # type: ignore[arg-type]
        app.now += 0.6
        await app.pilot.press("a")
        app.now += 0.6
        await app.pilot.press("a")
        assert answers == [], "each ignored key begins the pause again"
        await app.until(lambda: "Pause a moment" in app.screen())
        app.now += 0.71
        await app.pilot.press("a")
        await app.settle()
        assert answers == [ShareDecision("once", frozenset({"Garden.md"}))]
        assert app.prompt.text == "Dearaa"


async def test_a_key_that_was_pressed_before_the_dialog_came_answers_nothing_however_late_it_is_handled() -> (
    None
):
    async with over_a_message(Share(request())) as (app, answers):  # type: ignore[arg-type]
        app.now += LATE
        late = events.Key("a", "a")
        late.time -= 2 * LATE
        app.app.post_message(late)
        await app.settle()
        assert answers == []
        assert app.prompt.text == "Deara"


async def test_what_is_pasted_over_a_dialog_reaches_the_message() -> None:
    async with over_a_message(Share(request())) as (app, answers):  # type: ignore[arg-type]
        app.app.post_message(events.Paste(" a friend"))
        await app.settle()
        assert answers == []
        assert app.prompt.text == "Dear a friend"


async def test_what_is_pasted_as_a_dialog_with_a_field_comes_is_of_the_message_and_later_of_the_field() -> (
    None
):
    async with over_a_message(Secret("The key", "")) as (app, _):  # type: ignore[arg-type]
        app.app.post_message(events.Paste(" a friend"))
        await app.settle()
        field = app.app.screen.query_one(LineEntry)
        assert (app.prompt.text, field.value) == ("Dear a friend", "")
        app.wait_out_grace()
        app.app.post_message(events.Paste("k3y"))
        await app.settle()
        assert (app.prompt.text, field.value) == ("Dear a friend", "k3y")


async def test_letters_go_back_into_the_field_they_were_typed_into() -> None:
    async with driving() as app:
        app.app.push_screen(ValuesForm("More", [Field("name")]))
        await app.pilot.pause()
        app.wait_out_grace()
        await app.pilot.press(*"na")
        form = app.app.screen
        app.app.push_screen(Share(request()))
        await app.pilot.pause()
        await app.pilot.press(*"tf")
        await app.settle()
        assert form.query_one(LineEntry).value == "natf"
        assert app.prompt.text == ""


@pytest.mark.parametrize("dialog", [ValuesForm("More", [Field("name")]), Secret("The key", "")])
async def test_a_form_that_is_slow_to_open_gets_what_is_typed(dialog: Modal[Any]) -> None:
    async with driving() as app:
        await app.press("f1", "escape")
        app.now += 0.5
        app.app.push_screen(dialog)
        await app.until(lambda: isinstance(app.app.focused, LineEntry))
        await app.pilot.press(*"Log", "enter")
        await app.settle()
        assert (app.prompt.text, dialog.query_one(LineEntry).value) == ("", "Log")
        assert app.app.screen is dialog, "it is not answered yet"


async def test_no_question_comes_while_keys_are_coming() -> None:
    async with driving() as app:
        task = asyncio.create_task(app.app.approve_share(request()))
        await app.on_top(Share)
        await app.pilot.press("escape")
        await task
        app.wait_out_grace()
        for letter in "to the garden":
            await app.pilot.press(letter)
            if letter == "o":
                task = asyncio.create_task(app.app.approve_share(request()))
            await app.settle()
            assert isinstance(app.app.screen, MainScreen)
            app.now += 0.4
        assert app.prompt.text == "to the garden"
        app.now += 0.4
        await app.on_top(Share)  # after a pause it comes, over the message too
        task.cancel()
        await app.settle()
        assert isinstance(app.app.screen, MainScreen)


async def test_what_a_flow_asks_waits_for_a_pause_too() -> None:
    parameters = {"folder": {"type": "path"}}
    plan = plan_document([create("new", "${folder}/A.md")], parameters=parameters)
    async with driving(propose(plan)) as app:
        app.model.gate.clear()
        app.prompt.text = "Make notes"
        await app.pilot.press("enter", *"1 or 1")
        app.model.gate.set()
        await app.settle()
        assert isinstance(app.app.screen, MainScreen)
        assert app.prompt.text == "1 or 1"
        app.now += 0.8
        await app.until(lambda: isinstance(app.app.screen, ValuesForm))
        await app.pilot.press("1")
        assert app.app.screen.query_one(LineEntry).value == ""
        assert app.prompt.text == "1 or 11"


async def test_a_result_that_comes_while_keys_are_pressed_is_neither_undone_nor_saved() -> None:
    async with driving() as app:
        await app.preview(create("new", "A.md"))
        await app.press("a")
        assert app.stage == "result"
        await app.pilot.press("u", "m")
        await app.settle()
        assert "A.md" in app.files
        assert isinstance(app.app.screen, MainScreen)
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.press("y")
        assert "A.md" not in app.files


@pytest.mark.parametrize(
    ("wait", "key", "seconds", "runs"),
    [
        (0.5, "", 0.31, 1),
        (0.5, "", 0.29, 0),
        (5.0, "", 0.31, 0),
        (5.0, "", 0.71, 1),
        (0.5, "down", 0.31, 0),
        (0.5, "b", 0.31, 0),
    ],
)
async def test_a_plan_is_approved_sooner_if_the_last_key_asked_for_it(
    wait: float, key: str, seconds: float, runs: int
) -> None:
    async with driving() as app:
        app.model.gate.clear()
        await app.pilot.press(*"Make notes")
        app.now += 1.0
        await app.pilot.press("enter")
        await app.until(lambda: app.messages == ["Make notes"])
        app.now += wait
        if key:
            await app.pilot.press(key)
        app.model.gate.set()
        await app.until(lambda: app.stage == "plan" and not app.plan.is_growing)
        await app.settle()
        app.now += seconds
        await app.pilot.press("a")
        await app.settle()
        assert len(app.runs) == runs


async def test_a_plan_under_a_dialog_that_went_away_by_itself_is_not_approved() -> None:
    async with driving() as app:
        await app.planned()
        app.wait_out_grace()
        task = asyncio.create_task(app.app.approve_share(request()))
        await app.on_top(Share)
        task.cancel()
        await app.settle()
        assert isinstance(app.app.screen, MainScreen)
        await app.pilot.press("a")
        await app.settle()
        assert app.runs == []
        assert app.stage == "plan"


async def test_what_a_key_opened_answers_at_once() -> None:
    async with driving() as app:
        await app.press("f1", "escape", "ctrl+o", *"ideas", "enter")
        assert app.panes.note.path == "Ideas.md"
        assert app.prompt.text == ""
        app.prompt.focus()
        await app.settle()
        app.prompt.text = "/open"
        await app.press("escape", "enter", *"daily", "enter")
        assert app.panes.note.path == "Daily/2025-12-16.md"


async def test_a_message_is_typed_on_though_the_focus_was_taken_away() -> None:
    async with driving() as app:
        await app.planned()
        app.panes.go("chat")
        await app.settle()
        await app.press(*"Le")
        app.panes.go("work")
        await app.settle()
        await app.pilot.press(*"ar")
        await app.settle()
        assert app.prompt.text == "Lear"
        assert app.runs == []
        assert app.app.focused is app.prompt


async def test_enter_right_after_letters_beside_a_result_sends_them() -> None:
    async with driving({"text": "Hello."}) as app:
        await app.preview(create("new", "A.md"))
        await app.press("a")
        await app.finished()
        app.now += 1.0
        for key in (*"hello", "enter"):
            # As a terminal sends a burst: the focus has no time to move to the message.
            character = "\r" if key == "enter" else key
            app.app.post_message(events.Key(key, character))
        await app.until(lambda: "Hello." in app.transcript())
        assert app.messages == ["hello"]
        assert not app.runs[0].undone


@pytest.mark.parametrize("sentence", ["actually, no", "up to date?", "aardvark"])
async def test_the_first_letters_of_a_message_approve_and_undo_nothing(sentence: str) -> None:
    async with driving() as app:
        await app.preview(create("new", "A.md"))
        await app.press("a")
        await app.finished()
        await app.preview(create("new", "B.md"))
        app.now += 1.0
        app.app.keyboard.hold = LATE
        await app.pilot.press(*sentence)
        await app.settle()
        assert app.prompt.text == sentence
        assert [run.undone for run in app.runs] == [False]
        assert isinstance(app.app.screen, MainScreen)


async def test_a_letter_alone_acts_after_a_moment_or_before_the_next_other_key() -> None:
    async with driving() as app:
        await app.preview(create("new", "A.md"))
        app.now += 1.0
        app.app.keyboard.hold = 0.01
        await app.pilot.press("a")
        await app.until(lambda: len(app.runs) == 1)
        await app.finished()
        app.now += 1.0
        app.app.keyboard.hold = LATE
        await app.pilot.press("u", "f1")
        await app.until(lambda: len(app.app.screen_stack) > 1)
        assert app.prompt.text == ""


@pytest.mark.parametrize("sentence", ["move it to", "update my inbox"])
async def test_a_sentence_closes_what_its_first_letter_has_opened(sentence: str) -> None:
    async with driving() as app:
        await app.preview(create("new", "A.md"))
        await app.press("a")
        await app.finished()
        app.now += 1.0
        app.app.keyboard.hold = 0.01
        await app.pilot.press(sentence[0])
        await app.until(lambda: isinstance(app.app.screen, Modal))
        await app.settle()
        app.app.keyboard.hold = LATE
        for letter in sentence[1:]:
            app.now += 0.4
            await app.pilot.press(letter)
        await app.settle()
        assert isinstance(app.app.screen, MainScreen)
        assert app.prompt.text == sentence
        assert not app.runs[0].undone


async def test_a_name_is_typed_into_the_dialog_that_a_letter_has_opened() -> None:
    async with driving() as app:
        await app.preview(create("new", "A.md"))
        await app.press("a")
        await app.finished()
        app.now += 1.0
        app.app.keyboard.hold = 0.01
        await app.pilot.press("m")
        await app.on_top(SaveMacro)
        await app.pilot.press(*"tidy")
        assert app.app.screen.query_one("#name", LineEntry).value == "tidy"


@pytest.mark.parametrize(("key", "top"), [("enter", MainScreen), ("c", Candidates)])
async def test_keys_that_are_no_letters_preview_a_reading_at_once(
    key: str, top: type[Screen[Any]]
) -> None:
    async with driving(settings=settings_with(model=None)) as app:
        await app.pilot.press(*"add milk to ideas")
        app.now += 1.0
        await app.pilot.press("enter")
        await app.until(lambda: isinstance(app.app.screen, Candidates))
        await app.settle()
        await app.pilot.press(key)
        await app.settle()
        assert type(app.app.screen) is top
        assert app.stage == ("plan" if top is MainScreen else "idle")


async def test_the_key_that_agreed_to_an_undo_does_not_start_a_redo() -> None:
    async with driving() as app:
        await app.preview(create("new", "A.md"))
        await app.press("a")
        await app.finished()
        await app.press("u")
        await app.on_top(UndoPreview)
        await app.press("y")
        await app.pilot.press("y")
        await app.settle()
        assert isinstance(app.app.screen, MainScreen)
        await app.press("y")
        await app.on_top(UndoPreview)
