"""What becomes of a message that was sent: a command, a turn, or a remark on why it is neither."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from obsidian_agent.tui.command_table import Called, called
from obsidian_agent.tui.screens.turns import NO_SELECTION

if TYPE_CHECKING:
    from obsidian_agent.tui.command_table import Command
    from obsidian_agent.tui.keyboard import Keyboard
    from obsidian_agent.tui.screens.desk import Desk
    from obsidian_agent.tui.screens.turns import Turns

_ABOUT_SELECTION: Final = re.compile(r"\b(?:the|my|this|these|each|from|of|in)\s+(?:selection|selected)\b", re.I)


class Sending:
    """`run` carries out a command with what followed its name."""

    def __init__(self, desk: Desk, turns: Turns, keyboard: Keyboard, run: Callable[[Command, str], object]) -> None:
        self._desk = desk
        self._turns = turns
        self._run = run
        self._keyboard = keyboard
        self._warned_about: str | None = None

    def take(self, text: str) -> None:
        """A message of the person's."""
        chat, selection = self._desk.panes.chat, self._desk.panes.attention()[1]
        if (call := called(text)) is not None:
            self._call(call)
        elif self._turns.engine.phase != "idle":
            chat.hint("Still working on the last message. Esc cancels it.")
        elif not text:
            chat.hint("Type what should happen with the selection." if selection else NO_SELECTION)
        elif selection is None and _ABOUT_SELECTION.search(text) and self._warned_about != text:
            self._warned_about = text
            chat.hint(f"{NO_SELECTION}\nEnter once more sends the message without a selection.")
        else:
            self._warned_about = None
            chat.hint("")
            chat.prompt.accept()
            self._say(text)

    def say_again(self) -> None:
        """The last message once more."""
        last = next((text for text in reversed(self._desk.panes.chat.prompt.said) if called(text) is None), None)
        if last is not None:
            self.take(last)
        else:
            self._desk.panes.chat.hint("There is no earlier message.")

    def repair(self) -> None:
        """Ask for a plan that repairs what a run left unlike its preview."""
        if self._turns.repair and self._turns.engine.phase == "idle":
            self._say(self._turns.repair)
        else:
            self._desk.panes.chat.hint("There is nothing to repair.")

    def _say(self, text: str) -> None:
        self._keyboard.sent()
        self._desk.panes.chat.transcript.say("you", text)
        self._desk.freeze_focus()
        self._turns.send(text)

    def _call(self, call: Called) -> None:
        """A command that was written instead of a message."""
        chat, command = self._desk.panes.chat, call.command
        if command is None:
            chat.hint(f"There is no command /{call.name}. /help lists all.")
        elif command.needs and not call.rest:
            chat.hint(f"Write it as /{command.name} {command.hint}.")
        else:
            chat.hint("")
            chat.prompt.accept()
            self._keyboard.used()
            self._run(command, call.rest)
