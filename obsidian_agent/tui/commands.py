"""The command palette: everything the keys do, by name, and every saved action."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from obsidian_agent.tui import sanitize
from obsidian_agent.tui.themes import DARK, LIGHT

if TYPE_CHECKING:
    from obsidian_agent.tui.screens.main import MainScreen


@dataclass(frozen=True, slots=True)
class Command:
    """A name, a word of explanation, and what it does."""

    name: str
    help: str
    run: Callable[[], object]


class Commands(Provider):
    """Commands of the main screen. Names of saved actions are foreign text: shown as they are, never as markup."""

    async def startup(self) -> None:
        self._commands = list(self._own())
        screen = cast("MainScreen", self.screen)
        for macro in await screen.bridge.call(screen.bridge.session.saved.list):
            self._commands.append(
                Command(f"Run Saved Action: {sanitize.shortened(macro.name, 200)}", "Saved action", _runner(screen, macro.name))
            )

    def _own(self) -> Iterator[Command]:
        screen = cast("MainScreen", self.screen)
        app = self.app
        yield Command("Open note", "Find a note by a few letters", screen.action_open_note)
        yield Command("Show saved actions", "Run, rename, delete, export, import", screen.action_saved_actions)
        yield Command("Show history", "Undo and redo earlier runs", screen.action_history)
        yield Command("Bring back the last plan", "Preview it again", screen.deciding.bring_back)
        yield Command("Use the selection, or don't", "Ctrl+T", screen.action_toggle_selection)
        yield Command("Clear conversation", "On the screen only", screen.action_clear)
        yield Command("Theme: dark", "", lambda: setattr(app, "theme", DARK))
        yield Command("Theme: light", "", lambda: setattr(app, "theme", LIGHT))
        yield Command("Theme: choose…", "All themes", app.action_change_theme)
        yield Command("Help", "All keys", lambda: app.run_action("help"))
        yield Command("Quit", "Ctrl+Q", lambda: app.run_action("quit"))

    async def discover(self) -> Hits:
        for command in self._commands:
            yield DiscoveryHit(_shown(Content(command.name), command.help), command.run, command.name)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self._commands:
            score = matcher.match(command.name)
            if score > 0:
                yield Hit(score, _shown(matcher.highlight(command.name), command.help), command.run, command.name)


def _runner(screen: MainScreen, name: str) -> Callable[[], None]:
    return lambda: screen.deciding.run_saved(name)


def _shown(name: Content, help_text: str) -> Content:
    return Content.assemble(name, (f"  {help_text}" if help_text else "", "$quiet"))
