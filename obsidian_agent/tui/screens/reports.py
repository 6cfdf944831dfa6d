"""What the program can tell of itself: what was sent, what would be sent, what it cost, how full the model's window is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import work

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui import report_lines
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.dialogs import Pick, Report
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.widgets.panes import TopBar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from obsidian_agent.tui.report_lines import Line


class ReportActions(Workspace):
    """Each gets its data in the background and shows it."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command(
            "context",
            "What would be sent",
            "Exactly, with its size and price",
            "show_context",
            "[MESSAGE]",
        ),
        Command("compact", "Make room now", "Older turns are summarised for the model", "compact"),
        Command("sent", "What was sent", "To which model, of which notes", "show_sent"),
        Command(
            "record",
            "The record",
            "What was done, sent, approved, refused and denied",
            "show_record",
        ),
        Command("files", "Notes read in this conversation", "Enter opens one", "show_files"),
        Command("log", "The log", "What went wrong in the program itself", "show_log"),
        Command("stats", "Statistics", "Tokens, cost and times", "show_stats"),
        Command(
            "cache",
            "What is kept ready",
            "/cache clear puts away what nobody uses",
            "show_cache",
            "[clear]",
        ),
        Command(
            "plugins",
            "Search community plugins",
            "Nothing is installed",
            "search_plugins",
            "WORDS",
            requires_argument=True,
        ),
    )

    def _report(self, title: str, lines: Sequence[Line]) -> None:
        self.app.push_screen(Report(title, lines))

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_sent(self) -> None:
        """What was sent to which model, of which notes."""
        self._report(
            "What was sent",
            report_lines.sent_lines(
                await asyncio.to_thread(self.services.ledger.entries), self.thread.id
            ),
        )

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_record(self) -> None:
        """Every entry of the record, newest first; letters find the ones that hold them."""
        entries = await asyncio.to_thread(self.services.ledger.record.entries)
        rows = report_lines.audit_rows(entries)
        self.app.push_screen(
            Pick("The record of this vault", rows, empty=" Nothing was done and nothing was sent.")
        )

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_log(self) -> None:
        """The end of the log file."""
        from obsidian_agent import log

        file = log.current()
        found = await asyncio.to_thread(log.lines, file) if file is not None else []
        lines = [
            (terminal_text.line(each), "$foreground") for each in found[-report_lines.MAX_ENTRIES :]
        ]
        self._report(f"The log: {file}", lines or [("Nothing went wrong.", "$quiet")])

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_stats(self) -> None:
        """Tokens, cost and times."""
        self._report(
            "Statistics",
            report_lines.usage_lines(*await asyncio.to_thread(self.services.usage, self.thread.id)),
        )

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_cache(self, what: str = "") -> None:
        """What is kept ready; `clear` puts away what nobody uses."""
        if what == "clear":
            await asyncio.to_thread(self.threads.evict_idle)
        self._report(
            "What is kept ready",
            report_lines.cache_lines(await asyncio.to_thread(self.services.caches)),
        )

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_context(self, draft: str = "") -> None:
        """What a message would send."""
        self.freeze_focus()
        found = await self.services.preview_request(
            self.thread.id, draft or self.panes.chat.prompt.text
        )
        self._report("What would be sent", report_lines.request_lines(found))

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_search_plugins(self, query: str) -> None:
        """Community plugins that fit some words."""
        self.show_hint("Looking in Obsidian's list of community plugins…")
        try:
            found = await self.services.plugins(query)
        finally:
            self.show_hint("")
        self._report(
            f"Community plugins: {terminal_text.shortened(query, 60)}",
            report_lines.plugin_lines(found),
        )

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_files(self) -> None:
        """The notes of which something went to a model in this conversation; one can be opened."""
        found = await asyncio.to_thread(self.services.ledger.files_read, self.thread.id or "")
        rows = [
            (each.path, f"{report_lines.LEVELS[each.shared]} · {each.times}×") for each in found
        ]
        empty = " No model was shown anything in this conversation."
        path = await self.app.push_screen_wait(
            Pick("Notes read in this conversation", rows, empty=empty)
        )
        if path is not None:
            self.show_note(path)

    @work(group="usage", exclusive=True, exit_on_error=False)
    async def show_usage(self) -> None:
        """Say anew which model is asked, what the conversation used and how full the model's window is."""
        thread_id, line = self.thread.id, self.panes.chat.usage
        model = await asyncio.to_thread(self.services.model_of, thread_id)
        # Textual loses the change of a width while it lays the screen out for another one.
        self.call_after_refresh(self.query_one(TopBar).show_planner, model or "offline planner")
        turns, _ = await asyncio.to_thread(self.services.usage, thread_id)
        if not turns or not model:
            line.show("", "")
            return
        try:
            outlook = await self.services.preview_request(thread_id, "")
        except ObsidianAgentError:
            outlook = None
        if thread_id == self.thread.id:
            gauge = f"ctx {report_lines.gauge(outlook.use, 8)}" if outlook is not None else ""
            line.show(
                report_lines.usage_summary(turns),
                gauge,
                full=outlook is not None and outlook.use.full,
            )

    def action_compact(self) -> None:
        """Summarise the older turns of the conversation for the model, and say what that did."""
        if self.thread.id is None:
            self.show_hint("There is nothing to summarise yet.")
        elif self.ensure_idle():
            self._compact(self.thread.id)

    @work(group="threads", exit_on_error=False)
    async def _compact(self, thread_id: str) -> None:
        self.busy("Summarising")
        try:
            done = await self.threads.compact(thread_id)
        finally:
            self.busy("")
        self.add_entry("note", done.words)
        self.show_usage()
