"""Commands that tell something: each gets its data in the background and shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from obsidian_agent import terminal_text
from obsidian_agent.tui import tellings
from obsidian_agent.tui.screens.report import Report
from obsidian_agent.tui.tellings import Line

if TYPE_CHECKING:
    from obsidian_agent.agent.app_services import AppServices
    from obsidian_agent.tui.screens.desk import Desk
    from obsidian_agent.tui.screens.informed import Informed
    from obsidian_agent.tui.talk import Talk


class Telling:
    """Over what the program knows of itself."""

    def __init__(self, desk: Desk, talk: Talk, informed: Informed) -> None:
        self._desk = desk
        self._talk = talk
        self._informed = informed

    def sent(self) -> None:
        """What was sent to which model, of which notes."""
        self._report("What was sent", lambda insight: tellings.sent_lines(insight.sent(), self._talk.current))

    def stats(self) -> None:
        """Tokens, cost and times."""
        self._report("Statistics", lambda insight: tellings.usage_lines(*insight.usage(self._talk.current)))

    def cache(self, rest: str) -> None:
        """What is kept ready; `clear` puts away what nobody uses."""

        def kept(insight: AppServices) -> Sequence[Line]:
            if rest == "clear":
                insight.forget_kept()
            return tellings.kept_lines(insight.kept())

        self._report("What is kept ready", kept)

    def context(self, draft: str) -> None:
        """What a message would send."""
        self._informed.run(partial(self._context, draft))

    async def _context(self, draft: str, insight: AppServices) -> None:
        self._desk.freeze_focus()
        found = await insight.preview_request(self._talk.current, draft or self._desk.panes.chat.prompt.text)
        self._desk.app.push_screen(Report("What would be sent", tellings.outlook_lines(found)))

    def plugins(self, query: str) -> None:
        """Community plugins that fit some words."""
        self._informed.run(partial(self._plugins, query))

    async def _plugins(self, query: str, insight: AppServices) -> None:
        self._desk.panes.chat.hint("Looking in Obsidian's list of community plugins…")
        try:
            found = await insight.plugins(query)
        finally:
            self._desk.panes.chat.hint("")
        self._desk.app.push_screen(Report(f"Community plugins: {terminal_text.shortened(query, 60)}", tellings.plugin_lines(found)))

    def files(self) -> None:
        """The notes of which something went to a model in this conversation; one can be opened."""
        self._informed.run(self._files)

    async def _files(self, insight: AppServices) -> None:
        from obsidian_agent.tui.screens.pick import Pick

        found = await self._desk.bridge.call(insight.read_files, self._talk.current)
        rows = [(each.path, f"{tellings.LEVELS[each.shared]} · {each.times}×") for each in found]
        empty = " No model was shown anything in this conversation."
        path = await self._desk.app.push_screen_wait(Pick("Notes read in this conversation", rows, empty=empty))
        if path is not None:
            await self._desk.show_note(path)

    def _report(self, title: str, lines: Callable[[AppServices], Sequence[Line]]) -> None:
        async def report(insight: AppServices) -> None:
            self._desk.app.push_screen(Report(title, await self._desk.bridge.call(lines, insight)))

        self._informed.run(report)
