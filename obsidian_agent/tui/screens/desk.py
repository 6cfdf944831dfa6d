"""What the flows of the main screen share: the panes, the bridge, and a few things that all of them do."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.background import in_background

if TYPE_CHECKING:
    from textual.app import App

    from obsidian_agent.tui.bridge import Bridge
    from obsidian_agent.tui.retelling import Speaker
    from obsidian_agent.tui.widgets.panes import Panes


class Desk:
    """Made by the main screen, handed to its flows."""

    def __init__(self, screen: Screen[None], bridge: Bridge, panes: Panes) -> None:
        self.screen = screen
        self.bridge = bridge
        self.panes = panes

    @property
    def app(self) -> App[object]:
        """The running app."""
        return self.screen.app

    def say(self, speaker: Speaker, text: str) -> None:
        """An entry in the conversation."""
        self.panes.chat.transcript.say(speaker, text)

    def run(self, work: Callable[[], Coroutine[Any, Any, None]], group: str, *, exclusive: bool = False) -> None:
        """Run a flow in a worker of the app; an error of the core is said, any other reaches the app's one error handler."""
        in_background(self.screen, group, partial(self._guarded, work), exclusive=exclusive)

    async def _guarded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except ObsidianAgentError as error:
            self.say("bad", error.problem().message)

    def freeze_focus(self) -> None:
        """Tell the session what the person looks at, right before a turn."""
        self.bridge.session.vault.set_focus(*self.panes.attention())

    def vault_changed(self) -> None:
        """Files changed: show the open note as it is now."""
        self.bridge.session.vault.look_again()
        path = self.panes.note.path
        if path is not None:
            self.run(partial(self.show_note, path, quiet=True), "note", exclusive=True)

    async def open_outside(self, path: str) -> None:
        """Show a note in Obsidian, where there is a desktop."""
        from obsidian_agent.tui.outside import in_obsidian

        place = await self.bridge.call(self.bridge.session.vault.place_of, path)
        if not await self.bridge.call(in_obsidian, place):
            self.panes.chat.hint("There is no desktop here that could open Obsidian. Enter shows the note in this app.")

    async def show_note(self, path: str, line: int | None = None, *, quiet: bool = False) -> None:
        """Read a note in a thread and show it, at a line (from 1). With `quiet` a note that is gone is closed without a word."""
        try:
            text = await self.bridge.call(self.bridge.session.vault.read_note, path)
        except ObsidianAgentError:
            if not quiet:
                raise
            self.panes.note.close()
            return
        self.panes.note.open(path, text, line)
        if not quiet:
            self.panes.go("note")
