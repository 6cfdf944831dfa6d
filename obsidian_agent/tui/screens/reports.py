"""Commands that tell something: each gets its data in the background and shows it.

Flows that need what the program knows of itself, which is not there in every app.

How much a conversation takes of its model's window, what it used, and making room in it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui import report_lines
from obsidian_agent.tui.report_lines import Line
from obsidian_agent.tui.screens.dialogs import Report
from obsidian_agent.tui.widgets.panes import TopBar

if TYPE_CHECKING:
    from obsidian_agent.agent.app_services import Insight
    from obsidian_agent.agent.threads.manager import Chats
    from obsidian_agent.tui.screens.workspace import Desk
    from obsidian_agent.tui.turn.controller import Turns
    from obsidian_agent.tui.turn.thread import Talk


class Telling:
    """Over what the program knows of itself."""

    def __init__(self, desk: Desk, talk: Talk, informed: Informed) -> None:
        self._desk = desk
        self._talk = talk
        self._informed = informed

    def sent(self) -> None:
        """What was sent to which model, of which notes."""
        self._report("What was sent", lambda insight: report_lines.sent_lines(insight.sent(), self._talk.current))

    def stats(self) -> None:
        """Tokens, cost and times."""
        self._report("Statistics", lambda insight: report_lines.usage_lines(*insight.usage(self._talk.current)))

    def cache(self, rest: str) -> None:
        """What is kept ready; `clear` puts away what nobody uses."""

        def kept(insight: Insight) -> Sequence[Line]:
            if rest == "clear":
                insight.forget_kept()
            return report_lines.kept_lines(insight.kept())

        self._report("What is kept ready", kept)

    def context(self, draft: str) -> None:
        """What a message would send."""
        self._informed.run(partial(self._context, draft))

    async def _context(self, draft: str, insight: Insight) -> None:
        self._desk.freeze_focus()
        found = await insight.outlook(self._talk.current, draft or self._desk.panes.chat.prompt.text)
        self._desk.app.push_screen(Report("What would be sent", report_lines.outlook_lines(found)))

    def plugins(self, query: str) -> None:
        """Community plugins that fit some words."""
        self._informed.run(partial(self._plugins, query))

    async def _plugins(self, query: str, insight: Insight) -> None:
        self._desk.panes.chat.hint("Looking in Obsidian's list of community plugins…")
        try:
            found = await insight.plugins(query)
        finally:
            self._desk.panes.chat.hint("")
        self._desk.app.push_screen(Report(f"Community plugins: {terminal_text.shortened(query, 60)}", report_lines.plugin_lines(found)))

    def files(self) -> None:
        """The notes of which something went to a model in this conversation; one can be opened."""
        self._informed.run(self._files)

    async def _files(self, insight: Insight) -> None:
        from obsidian_agent.tui.screens.dialogs import Pick

        found = await self._desk.bridge.call(insight.read_files, self._talk.current)
        rows = [(each.path, f"{report_lines.LEVELS[each.shared]} · {each.times}×") for each in found]
        empty = " No model was shown anything in this conversation."
        path = await self._desk.app.push_screen_wait(Pick("Notes read in this conversation", rows, empty=empty))
        if path is not None:
            await self._desk.show_note(path)

    def _report(self, title: str, lines: Callable[[Insight], Sequence[Line]]) -> None:
        async def report(insight: Insight) -> None:
            self._desk.app.push_screen(Report(title, await self._desk.bridge.call(lines, insight)))

        self._informed.run(report)


NOT_HERE = "This is not known here."


class Informed:
    """Runs flows with the `insight`, one at a time; where there is none it says so."""

    def __init__(self, desk: Desk, insight: Insight | None) -> None:
        self._desk = desk
        self.insight = insight

    def run(self, work: Callable[[Insight], Coroutine[Any, Any, None]]) -> None:
        """Run a flow in the background."""
        if self.insight is None:
            self._desk.panes.chat.hint(NOT_HERE)
        else:
            self._desk.run(partial(work, self.insight), "telling", exclusive=True)


class Room:
    """Shown below the conversation and in the first line."""

    def __init__(self, desk: Desk, talk: Talk, turns: Turns, insight: Insight | None) -> None:
        self._desk = desk
        self._talk = talk
        self._turns = turns
        self._insight = insight

    def look(self) -> None:
        """Say anew, in the background, what `refresh` says."""
        self._desk.run(self.refresh, "usage", exclusive=True)

    async def refresh(self) -> None:
        """Say anew which model is asked, what it used and how full its window is."""
        insight, panes = self._insight, self._desk.panes
        if insight is None:
            return
        call, thread_id = self._desk.bridge.call, self._talk.current
        model = await call(insight.model_of, thread_id)
        self._desk.screen.query_one(TopBar).name_planner(model or "offline planner")
        here, _ = await call(insight.usage, thread_id)
        if not here or not model:
            panes.chat.usage.show("", "")
            return
        try:
            outlook = await insight.outlook(thread_id, "")
        except ObsidianAgentError:
            outlook = None
        if thread_id == self._talk.current:
            gauge = f"ctx {report_lines.gauge(outlook.use, 8)}" if outlook is not None else ""
            panes.chat.usage.show(report_lines.usage_in_a_line(here), gauge, full=outlook is not None and outlook.use.full)

    def compact(self) -> None:
        """Summarise the older turns of the conversation for the model, and say what that did."""
        chats, current = self._talk.chats, self._talk.current
        if chats is None or current is None:
            self._desk.panes.chat.hint("There is nothing to summarise yet.")
        elif self._turns.engine.phase != "idle":
            self._desk.panes.chat.hint("Still working on the last message. Esc cancels it.")
        else:
            self._desk.run(partial(self._compact, chats, current), "threads")

    async def _compact(self, chats: Chats, thread_id: str) -> None:
        activity = self._desk.panes.chat.activity
        activity.start("Summarising")
        try:
            done = await chats.compact(thread_id)
        finally:
            activity.stop()
        self._desk.say("note", done.words)
        await self.refresh()
