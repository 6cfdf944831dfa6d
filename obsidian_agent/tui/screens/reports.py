"""Reports: data sent to models, tokens and cost, the audit record, the log and the caches."""

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
    """Actions that show reports. Each loads its data in the background."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command(
            "context",
            "Preview the request",
            "Exactly what would be sent, with its size and price",
            "show_context",
            "[MESSAGE]",
        ),
        Command(
            "compact",
            "Compact the conversation",
            "Summarize older messages to make room in the model's context",
            "compact",
        ),
        Command("sent", "Show sent data", "To which model, from which notes", "show_sent"),
        Command(
            "record",
            "Show the audit record",
            "Everything done, sent, approved, refused and denied",
            "show_record",
        ),
        Command("files", "Notes read in this conversation", "Enter opens one", "show_files"),
        Command("log", "Show the log", "Errors of the program itself", "show_log"),
        Command("stats", "Statistics", "Tokens, cost and times", "show_stats"),
        Command(
            "cache",
            "Cache",
            "/cache clear removes unused entries from memory",
            "show_cache",
            "[clear]",
        ),
        Command(
            "plugins",
            "Search community plugins",
            "Only lists them, installs nothing",
            "search_plugins",
            "WORDS",
            requires_argument=True,
        ),
    )

    def _report(self, title: str, lines: Sequence[Line]) -> None:
        self.app.push_screen(Report(title, lines))

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_sent(self) -> None:
        """Show what was sent to which model, from which notes."""
        entries = await asyncio.to_thread(self.services.ledger.entries)
        self._report("Sent data", report_lines.sent_lines(entries, self.thread.id))

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_record(self) -> None:
        """Show the entries of the audit record, newest first, with a search."""
        entries = await asyncio.to_thread(self.services.ledger.record.entries)
        rows = report_lines.audit_rows(entries)
        self.app.push_screen(Pick("Audit record of this vault", rows, empty=" No entries."))

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_log(self) -> None:
        """Show the end of the log file."""
        from obsidian_agent import log

        file = log.current()
        entries = await asyncio.to_thread(log.lines, file) if file is not None else []
        lines = [
            (terminal_text.line(entry), "$foreground")
            for entry in entries[-report_lines.MAX_ENTRIES :]
        ]
        self._report(f"Log: {file}", lines or [("No errors.", "$quiet")])

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_stats(self) -> None:
        """Show tokens, cost and times."""
        here, everywhere = await asyncio.to_thread(self.services.usage, self.thread.id)
        self._report("Statistics", report_lines.usage_lines(here, everywhere))

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_cache(self, what: str = "") -> None:
        """Show the caches; with "clear" evict unused conversations first."""
        if what == "clear":
            await asyncio.to_thread(self.threads.evict_idle)
        caches = await asyncio.to_thread(self.services.caches)
        self._report("Cache", report_lines.cache_lines(caches))

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_context(self, draft: str = "") -> None:
        """Show exactly what a message would send."""
        self.freeze_focus()
        message = draft or self.panes.chat.prompt.text
        request = await self.services.preview_request(self.thread.id, message)
        self._report("Preview of the request", report_lines.request_lines(request))

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_search_plugins(self, query: str) -> None:
        """Search Obsidian's list of community plugins."""
        self.show_hint("Searching Obsidian's list of community plugins…")
        try:
            plugins = await self.services.plugins(query)
        finally:
            self.show_hint("")
        title = f"Community plugins: {terminal_text.shortened(query, 60)}"
        self._report(title, report_lines.plugin_lines(plugins))

    @work(group="report", exclusive=True, exit_on_error=False)
    async def action_show_files(self) -> None:
        """Show the notes that a model has read in this conversation; one can be opened."""
        files = await asyncio.to_thread(self.services.ledger.files_read, self.thread.id or "")
        rows = [
            (file.path, f"{report_lines.LEVELS[file.shared]} · {file.times}×") for file in files
        ]
        empty = " No note was sent to a model in this conversation."
        path = await self.app.push_screen_wait(
            Pick("Notes read in this conversation", rows, empty=empty)
        )
        if path is not None:
            self.show_note(path)

    @work(group="usage", exclusive=True, exit_on_error=False)
    async def show_usage(self) -> None:
        """Update the model, the usage of the conversation and the fill of the model's context."""
        thread_id, line = self.thread.id, self.panes.chat.usage
        model = await asyncio.to_thread(self.services.model_of, thread_id)
        self.query_one(TopBar).show_planner(model or "offline planner")
        turns, _ = await asyncio.to_thread(self.services.usage, thread_id)
        if not turns or not model:
            line.show("", "")
            return
        try:
            request = await self.services.preview_request(thread_id, "")
        except ObsidianAgentError:
            request = None
        if thread_id != self.thread.id:
            return
        summary = report_lines.usage_summary(turns)
        if request is None:
            line.show(summary, "", full=False)
        else:
            gauge = f"ctx {report_lines.gauge(request.use, 8)}"
            line.show(summary, gauge, full=request.use.full)

    def action_compact(self) -> None:
        """Summarize the older turns of the conversation for the model."""
        if self.thread.id is None:
            self.show_hint("This conversation has nothing to summarize yet.")
        elif self.ensure_idle():
            self._compact(self.thread.id)

    @work(group="threads", exit_on_error=False)
    async def _compact(self, thread_id: str) -> None:
        self.busy("Summarizing")
        try:
            compacted = await self.threads.compact(thread_id)
        finally:
            self.busy("")
        self.add_entry("note", compacted.text)
        self.show_usage()
