"""The message box: earlier messages, queued ones, the editor, and scrolling from it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from agents import propose
from obsidian_agent.bootstrap import Wiring
from obsidian_agent.errors import ConfigError
from obsidian_agent.tui.external_editor import edit, editor_command
from support import MakeVault
from tui.driving import driving, driving_real
from tui.samples import PROJECTS

UPPER = "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text().upper())"


async def test_up_recalls_messages_and_down_returns_to_the_draft() -> None:
    async with driving({"text": "Yes."}, {"text": "No."}) as app:
        app.prompt.focus()
        await app.press("o", "n", "e", "ctrl+j", "t", "w", "o", "enter")
        await app.send("second")
        assert app.messages == ["one\ntwo", "second"]
        app.prompt.focus()
        await app.press("d", "up")
        assert app.prompt.text == "second"
        await app.press("up")
        assert app.prompt.text == "one\ntwo"
        await app.press("up")
        assert app.prompt.cursor_location[0] == 0, "Up moves within a text of several lines"
        await app.press("up")
        assert app.prompt.text == "one\ntwo", "there is no earlier one"
        await app.press("alt+down", "down")
        assert app.prompt.text == "d"


async def test_messages_of_earlier_conversations_are_recalled_after_a_restart(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    wiring = Wiring(make_vault({"Inbox.md": "#idea\n"}), tmp_path / "state")
    for text in ("Which notes are tagged #idea?", "Which notes are in Projects?"):
        async with driving_real(wiring) as app:
            await app.send(text)
            await app.until(lambda: app.main.turn.phase == "idle")
    async with driving_real(wiring) as app:
        await app.until(lambda: app.prompt.sent_messages)
        await app.press("x", "alt+up", "alt+up")
        assert app.prompt.text == "Which notes are tagged #idea?"


async def test_a_message_sent_during_work_waits_and_can_be_taken_back() -> None:
    async with driving({"text": "One."}, {"text": "Two."}) as app:
        app.model.gate.clear()
        app.prompt.focus()
        for text in ("first", "second", "third"):
            app.prompt.text = text
            await app.pilot.press("enter", "enter")
        await app.until(lambda: "Next: second" in app.screen())
        assert "Then: third   Up takes it back" in app.screen()
        await app.pilot.press("up")
        await app.until(lambda: app.prompt.text == "third")
        await app.pilot.press(*" one" * 40)  # the line is wrapped
        await app.pilot.press("ctrl+u")
        await app.until(lambda: app.prompt.text == "")
        app.model.gate.set()
        await app.until(lambda: "Two." in app.transcript())
        assert app.messages == ["first", "second"]
        assert "Next" not in app.screen()


async def test_a_queued_message_waits_for_the_decision_and_returns_after_a_rejection() -> None:
    async with driving(propose(PROJECTS), propose(PROJECTS), {"text": "Answer."}) as app:
        for decision, outcome in (("r", "box"), ("a", "sent")):
            app.model.gate.clear()
            app.prompt.focus()
            app.prompt.text = "Make notes"
            await app.pilot.press("enter")
            app.prompt.text = "then answer"
            await app.pilot.press("enter")
            app.model.gate.set()
            await app.until(lambda: "Next, after your decision: then answer" in app.screen())
            await app.settle()
            await app.press(decision)
            if outcome == "box":
                await app.until(lambda: app.prompt.text == "then answer")
                assert "then answer" not in app.messages
                app.prompt.text = ""
        await app.until(lambda: "Answer." in app.transcript())
        assert app.messages[-1] == "then answer"


async def test_a_cancelled_turn_gives_the_queued_message_back() -> None:
    async with driving() as app:
        app.model.gate.clear()
        app.prompt.focus()
        for text in ("first", "second"):
            app.prompt.text = text
            await app.pilot.press("enter")
        await app.until(lambda: "Next: second" in app.screen())
        await app.pilot.press("escape")
        await app.until(lambda: app.prompt.text == "second")


async def test_keys_of_the_message_scroll_the_conversation() -> None:
    text = "\n\n".join(f"Paragraph {number}" for number in range(60))
    async with driving({"text": text}) as app:
        await app.send("tell")
        app.panes.go("chat")
        transcript = app.panes.chat.transcript
        await app.until(lambda: transcript.scroll_y == transcript.max_scroll_y > 40)
        end = transcript.scroll_y
        await app.press("pageup")
        await app.until(lambda: transcript.scroll_y < end)
        await app.press("home")
        await app.until(lambda: transcript.scroll_y == 0)
        await app.press("pagedown")
        await app.until(lambda: transcript.scroll_y > 0)
        await app.press("end")
        await app.until(lambda: transcript.scroll_y == end)
        await app.press("a", "home", "b", "end", "c")
        assert app.prompt.text == "bac"


async def test_the_editor_gets_and_returns_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    command = shlex.join([sys.executable, "-c", UPPER])
    assert edit(editor_command({"EDITOR": "nano", "VISUAL": command}), "a\nb") == "A\nB"
    with pytest.raises(ConfigError, match="No editor is set"):
        editor_command({})
    with pytest.raises(ConfigError, match="did not save the message"):
        edit(editor_command({"EDITOR": shlex.join([sys.executable, "-c", "exit(1)"])}), "a")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    async with driving() as app:
        await app.press("ctrl+g")
        assert "No editor is set" in app.hint()


NOTES = {
    "Shopping list.md": "# Shopping\n",
    "Sheds/Shelf.md": "#sheds\n",
    "Ubuntu Server.md": "x\n",
    "Links.md": "[[Ubuntu Server]]\n",
}


async def test_tab_completes_names_in_a_sentence_and_goes_through_them(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with driving_real(Wiring(make_vault(NOTES), tmp_path / "state")) as app:
        await app.press(*"re")
        await app.until(lambda: "rename" in app.screen())
        await app.press("n")
        await app.until(lambda: "Tab rename" in app.screen())
        await app.press("tab", *"ub")
        await app.until(lambda: "Tab Ubuntu Server" in app.screen())
        await app.press("tab", *" to Home")  # the blank is there already
        assert app.prompt.text == "rename Ubuntu Server to Home"
        app.prompt.text = ""
        await app.press(*"move she")
        await app.until(lambda: "Tab Sheds  ·  Shelf" in app.screen())
        await app.press("tab")
        assert app.prompt.text == "move Sheds "
        await app.press("tab")
        assert app.prompt.text == "move Shelf "
        await app.press("tab", *"to #s")
        await app.until(lambda: "Tab #sheds" in app.screen())
        await app.press("tab")
        assert app.prompt.text == "move Sheds to #sheds "
        app.prompt.text = ""
        await app.press(*"/open ubu")
        await app.until(lambda: "Tab Ubuntu Server" in app.screen())
        await app.press("tab", "enter")
        await app.until(lambda: app.panes.note.path == "Ubuntu Server.md")


async def test_enter_sends_what_is_typed_and_completes_nothing(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with driving_real(Wiring(make_vault(NOTES), tmp_path / "state")) as app:
        await app.press(*"Which notes are in sh")
        await app.until(lambda: "Tab Sheds" in app.screen())
        await app.press("enter")
        await app.until(lambda: app.prompt.text == "" or len(app.app.screen_stack) > 1)
        assert "Which notes are in sh" in app.transcript()


@pytest.mark.parametrize("message", ["open shopping list", "Open Shopping list.md"])
async def test_open_and_a_name_open_the_note_whatever_the_model(message: str) -> None:
    async with driving({"text": "No such note."}, files=NOTES) as app:
        await app.send(message)
        await app.until(lambda: app.panes.note.path == "Shopping list.md")
        assert app.messages == []
        assert app.prompt.text == ""
        await app.send("open the door")
        await app.until(lambda: "No such note." in app.transcript())
        assert app.messages == ["open the door"]
