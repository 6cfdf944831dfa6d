"""The command palette: every command by its title, and every saved action."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.fuzzy import Matcher

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass
from obsidian_agent.tui.themes import DARK, LIGHT

if TYPE_CHECKING:
    from obsidian_agent.tui.screens.main import MainScreen


@dataclass(frozen=True, slots=True)
class Entry:
    """A name, a word of explanation, and what it does."""

    name: str
    help: str
    run: Callable[[], object]


class Commands(Provider):
    """Commands of the main screen. Names of saved actions are foreign text: shown as they are, never as markup."""

    async def startup(self) -> None:
        self._commands = list(self._own())
        screen = cast("MainScreen", self.screen)
        for macro in await asyncio.to_thread(screen.session.saved.list):
            what = "Saved action" if macro.standing == "trusted" else "Saved action, not trusted: shown first"
            self._commands.append(
                Entry(f"Run Saved Action: {terminal_text.shortened(macro.name, 200)}", what, partial(screen.run_macro, macro.name))
            )

    def _own(self) -> Iterator[Entry]:
        screen = cast("MainScreen", self.screen)
        app = self.app
        for command in screen.commands():
            if not command.needs:
                yield Entry(command.title, f"{command.help} · /{command.name}", partial(screen.run_command, command))
        yield Entry("Theme: dark", "", lambda: setattr(app, "theme", DARK))
        yield Entry("Theme: light", "", lambda: setattr(app, "theme", LIGHT))
        yield Entry("Theme: choose…", "All themes", app.action_change_theme)

    async def discover(self) -> Hits:
        for command in self._commands:
            yield DiscoveryHit(_shown(Content(command.name), command.help), command.run, command.name)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self._commands:
            score = matcher.match(command.name)
            if score > 0:
                yield Hit(score, _shown(_highlighted(matcher, command.name), command.help), command.run, command.name)


def _highlighted(matcher: Matcher, name: str) -> Content:
    """The name with what matched in it. `Matcher.highlight` would read the name as markup."""
    content = Content(name)
    for offset in matcher.fuzzy_search.match(matcher.query, name)[1]:
        content = content.stylize(matcher.match_style, offset, offset + 1)
    return content


def _shown(name: Content, help_text: str) -> Content:
    return Content.assemble(name, (f"  {help_text}" if help_text else "", "$quiet"))
