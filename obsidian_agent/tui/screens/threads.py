"""Conversations: list, search, switch, rename, delete and rewind them, or save one as a note."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, assert_never

from msgspec import Struct
from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from obsidian_agent import terminal_text
from obsidian_agent.services.fields import Field
from obsidian_agent.tui.bindings import binding, bindings
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.dialogs import ChoiceScreen, Confirm, Modal
from obsidian_agent.tui.screens.overview import OverviewActions
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.turn.controller import Pending
from obsidian_agent.tui.widgets.prompt import MAX_SENT_MESSAGES, LineEntry
from obsidian_agent.tui.widgets.row_list import Choice, VirtualList
from obsidian_agent.tui.widgets.transcript import transcript_entries

if TYPE_CHECKING:
    from textual.signal import Signal

    from obsidian_agent.threads.log_store import ThreadSummary
    from obsidian_agent.threads.manager import ActiveThread, ThreadManager
    from obsidian_agent.threads.state import Version
    from obsidian_agent.tui.turn.thread import OtherThreadEvent


TYPING_PAUSE = 0.15
"""Seconds without typing before a search starts."""

NO_THREADS = " No conversations yet."


class ThreadChoice(Struct, frozen=True):
    """A request to open or export a conversation, or to begin a new one."""

    action: Literal["open", "export", "new"]
    thread_id: str = ""


class ThreadRow(Struct, frozen=True):
    """A conversation in the list."""

    thread: ThreadSummary
    state: str = ""
    """The label of a conversation that is working or has a waiting plan, else empty."""
    match: str = ""
    """The line that matches the search."""


class ThreadList(VirtualList[ThreadRow]):
    """The conversations, one a line."""

    DEFAULT_CSS = "ThreadList { height: auto; min-height: 3; max-height: 50vh; }"
    BINDINGS = [binding("list.choose", "Open")]

    def draw_row(self, row: ThreadRow, width: int) -> Content:
        thread = row.thread
        right = f"  {thread.count:>4} · {format_age(thread.updated)}"
        state = f" {row.state} " if row.state else " "
        left = Content.assemble(
            (state, "$warning"),
            (terminal_text.shortened(thread.title, 120), "$foreground"),
            (f"  {terminal_text.shortened(row.match or thread.preview, 160)}", "$quiet"),
        ).truncate(max(width - len(right), 10), ellipsis=True)
        return Content.assemble(
            left, " " * max(0, width - len(right) - left.cell_length), (right, "$quiet")
        )


class Threads(Modal[ThreadChoice]):
    """The list of conversations. Dismisses with a request for the main screen."""

    BINDINGS = bindings("threads")

    def __init__(
        self, threads: ThreadManager, waiting: frozenset[str], deleted: Signal[str], query: str = ""
    ) -> None:
        super().__init__(
            "Conversations", "They are stored on this computer. Deleting one cannot be undone."
        )
        self._threads = threads
        self._deleted = deleted
        self._waiting = waiting
        self._query = query

    def body(self) -> ComposeResult:
        yield LineEntry(self._query, placeholder="Search titles and messages", compact=False)
        yield Static("", id="found", markup=False)
        yield ThreadList(empty=NO_THREADS)

    def on_mount(self) -> None:
        self.query_one(ThreadList).focus()
        self.run_flow("threads", partial(self._find, self._query), exclusive=True)

    # --- the list ---------------------------------------------------------------------------------

    async def _find(self, query: str, selected: str | None = None) -> None:
        if query.strip():
            await asyncio.sleep(TYPING_PAUSE)
            hits = await asyncio.to_thread(self._threads.store.search, query)
            rows = [self._row(hit.thread, hit.lines[0] if hit.lines else "") for hit in hits]
        else:
            summaries = await asyncio.to_thread(self._threads.store.summaries)
            rows = [self._row(thread) for thread in summaries]
        if not self.is_attached:
            return
        self._query = query
        cursor = next((index for index, row in enumerate(rows) if row.thread.id == selected), 0)
        listing = self.query_one(ThreadList)
        listing.empty = " No matching conversations." if query.strip() else NO_THREADS
        listing.set_rows(rows, cursor)
        summary = terminal_text.counted(len(rows), "conversation") if rows else ""
        self.query_one("#found", Static).update(Content(summary))

    def _row(self, thread: ThreadSummary, match: str = "") -> ThreadRow:
        state = ""
        if thread.id in self._threads.running:
            state = "⋯ working"
        elif thread.id in self._waiting:
            state = "● plan"
        return ThreadRow(thread, state, match)

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.value != self._query:
            self.run_flow("threads", partial(self._find, event.value), exclusive=True)

    def on_input_submitted(self) -> None:
        self.query_one(ThreadList).focus()

    def action_search(self) -> None:
        self.query_one(LineEntry).focus()

    def action_back(self) -> None:
        """Go from the search back to the list; close from there."""
        if isinstance(self.focused, LineEntry):
            self.query_one(ThreadList).focus()
        else:
            self.dismiss(None)

    # --- one conversation -------------------------------------------------------------------------

    def on_virtual_list_chosen(self, event: ThreadList.Chosen) -> None:
        self.dismiss(ThreadChoice("open", event.row.thread.id))

    def action_export(self) -> None:
        row = self.query_one(ThreadList).current
        if row is not None:
            self.dismiss(ThreadChoice("export", row.thread.id))

    def action_new(self) -> None:
        self.dismiss(ThreadChoice("new"))

    def action_rename(self) -> None:
        self._with_current(self._rename)

    def action_delete(self) -> None:
        self._with_current(self._delete)

    def _with_current(self, work: Callable[[ThreadSummary], Coroutine[Any, Any, None]]) -> None:
        row = self.query_one(ThreadList).current
        if row is not None:
            self.show_problem("")
            self.run_flow("thread", partial(work, row.thread))

    async def _rename(self, thread: ThreadSummary) -> None:
        values = await self.app.push_screen_wait(
            ValuesForm("Rename the conversation", [Field("title", value=thread.title)])
        )
        if values:
            await asyncio.to_thread(self._threads.rename, thread.id, values["title"])
            await self._find(self._query, thread.id)

    async def _delete(self, thread: ThreadSummary) -> None:
        title = terminal_text.shortened(thread.title, 200)
        messages = terminal_text.counted(thread.count, "message")
        text = (
            f"“{title}” ({messages}) will be deleted permanently. "
            "Changes that it made to notes are not affected."
        )
        if await self.app.push_screen_wait(Confirm("Delete this conversation?", text, "Delete")):
            # Shielded: leaving the list meanwhile must not skip the signal to the main screen.
            await asyncio.shield(self._delete_now(thread.id))
            await self._find(self._query)

    async def _delete_now(self, thread_id: str) -> None:
        await asyncio.to_thread(self._threads.delete, thread_id)
        self._deleted.publish(thread_id)


def format_age(time: str, now: datetime | None = None) -> str:
    """Return the age of a time in a few letters: `now`, `5 min`, `3 h`, `2 d`, else the date."""
    try:
        then = datetime.fromisoformat(time)
    except ValueError:
        return ""
    seconds = ((now or datetime.now(then.tzinfo)) - then).total_seconds()
    for limit, size, unit in (
        (60, 1, ""),
        (3600, 60, "min"),
        (86_400, 3600, "h"),
        (7 * 86_400, 86_400, "d"),
    ):
        if seconds < limit:
            return f"{int(seconds // size)} {unit}" if unit else "now"
    return f"{then:%Y-%m-%d}"


class Turns(ChoiceScreen):
    """The turns of a conversation, latest first. Dismisses with the number of the chosen one."""

    def __init__(self, versions: Sequence[Version], current: int | None) -> None:
        rows = [
            Choice(
                key=str(version.number),
                text=version.question,
                note=format_age(version.time),
                word="▸" if version.number == current else " ",
            )
            for version in reversed(versions)
        ]
        super().__init__(
            "Go back to which message?",
            rows,
            hint="The conversation continues after the answer to it. Notes are not changed.",
            empty=" This conversation has no answered message yet.",
        )


class ThreadActions(OverviewActions):
    """Actions on conversations."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command("new", "New conversation", "The current task keeps running", "new_thread"),
        Command(
            "threads",
            "Conversations",
            "Search, continue, rename, delete, export",
            "threads",
            "[WORDS]",
        ),
        Command(
            "rename",
            "Rename the conversation",
            "Change its title",
            "rename_thread",
            "TITLE",
            requires_argument=True,
        ),
        Command(
            "rewind",
            "Go back to an earlier message",
            "Continue the conversation from there; notes are not changed",
            "rewind",
        ),
        Command(
            "export",
            "Export the conversation as a note",
            "Previewed and approved like any plan",
            "export_thread",
        ),
    )

    waiting: dict[str, Pending]
    """The pending plans of threads that are not on the screen."""
    _drafts: dict[str, str]
    """The unsent messages of threads that are not on the screen."""

    # --- the list ---------------------------------------------------------------------------------

    def action_threads(self, query: str = "") -> None:
        """Show the list of conversations."""
        self.app.push_screen(
            Threads(self.threads, frozenset(self.waiting), self.signals.thread_deleted, query),
            self._thread_chosen,
        )

    def _thread_chosen(self, choice: ThreadChoice | None) -> None:
        if choice is None:
            return
        match choice.action:
            case "open":
                self.open_thread(choice.thread_id)
            case "export":
                self.action_export_thread(choice.thread_id)
            case "new":
                self.action_new_thread()
            case _:
                assert_never(choice.action)

    @work(group="sent", exit_on_error=False)
    async def load_sent_messages(self) -> None:
        """Make the messages of earlier conversations available in the message box."""
        store = self.threads.store
        self.panes.chat.prompt.add_earlier(
            await asyncio.to_thread(store.sent_messages, MAX_SENT_MESSAGES)
        )

    # --- switching --------------------------------------------------------------------------------

    def action_new_thread(self) -> None:
        """Show a new conversation, which begins with the next message."""
        if self._leave(None):
            self.panes.chat.transcript.clear()
            self.panes.chat.welcome()
            self.load_overview()
            self.turn.attach(None)
            self.panes.go("chat")

    @work(group="threads", exclusive=True, exit_on_error=False)
    async def open_thread(self, thread_id: str) -> None:
        """Show a conversation with its entries, its pending plan and its running turn."""
        if thread_id == self.thread.id:
            return
        chat = await asyncio.to_thread(self.threads.open, thread_id)
        if not self._leave(thread_id):
            return
        transcript = self.panes.chat.transcript
        self.panes.chat.end_welcome()
        transcript.load_entries(transcript_entries(chat.state.entries))
        pending = self.waiting.pop(thread_id, None)
        self.turn.attach(pending)
        if chat.running:
            if chat.partial:
                transcript.stream(chat.partial)
            self.turn.start(self.thread.follow(), "Thinking")
        elif pending is None:
            self._offer_plan(chat)
        if self.turn.pending is None:
            self.panes.go("chat")
        self.refresh_state()

    @work(group="threads", exclusive=True, exit_on_error=False)
    async def action_rewind(self) -> None:
        """Go back to the end of a turn that the user picks. Notes are not changed."""
        thread_id = self.thread.id
        if thread_id is None:
            self.show_hint("This conversation has no earlier message yet.")
            return
        state = (await asyncio.to_thread(self.threads.open, thread_id)).state
        turn = await self.app.push_screen_wait(Turns(state.versions, state.version))
        if turn is None or turn == str(state.version) or thread_id != self.thread.id:
            return
        if not self.ensure_not_applying():
            return
        chat = await asyncio.to_thread(self.threads.rewind, thread_id, int(turn))
        self.waiting.pop(thread_id, None)
        self.turn.detach()
        self.turn.attach(None)
        self.panes.chat.transcript.load_entries(transcript_entries(chat.state.entries))
        self._offer_plan(chat)
        if self.turn.pending is None:
            self.panes.go("chat")
        self.show_hint(
            "Went back to an earlier message. Notes are unchanged. "
            f"To undo runs, open the history ({self.key('main.history')})."
        )
        self.refresh_state()

    def _leave(self, thread_id: str | None) -> bool:
        """Detach the thread on the screen. Return False while a plan is being applied."""
        if not self.ensure_not_applying():
            return False
        left = self.thread.id
        if left is not None and self.turn.pending is not None:
            self.waiting[left] = self.turn.pending
        self.thread.id = thread_id
        self.turn.detach()
        self.panes.chat.take_back()
        self._exchange_draft(left, thread_id)
        self.show_hint("")
        return True

    def _exchange_draft(self, left: str | None, thread_id: str | None) -> None:
        """Leave the draft in its conversation, and show that of the conversation `thread_id`.

        The draft of a new conversation is recalled like a sent message.
        """
        prompt = self.panes.chat.prompt
        if left is not None:
            self._drafts[left] = prompt.text
        prompt.accept(prompt.text if left is None else "")
        prompt.text = self._drafts.pop(thread_id, "") if thread_id is not None else ""
        prompt.move_cursor(prompt.document.end)

    def _offer_plan(self, chat: ActiveThread) -> None:
        """Preview the plan of the last entry again, if there is one."""
        entries = chat.state.entries
        if not entries or entries[-1].role != "plan":
            return
        plan = entries[-1].data.get("plan")
        if isinstance(plan, dict):
            questions = (entry.text for entry in reversed(entries) if entry.role == "person")
            self.preview_plan(plan, message=next(questions, None))

    def forget_thread(self, thread_id: str) -> None:
        """Remove a deleted conversation from the screen."""
        self.waiting.pop(thread_id, None)
        self._drafts.pop(thread_id, None)
        if thread_id == self.thread.id:
            self.thread.id = None
            self.turn.pending = None
            self.action_new_thread()

    @work(group="threads", exit_on_error=False)
    async def action_rename_thread(self, title: str) -> None:
        """Rename the conversation on the screen."""
        if self.thread.id is None:
            self.show_hint("There is no conversation to rename yet.")
            return
        new_title = await asyncio.to_thread(self.threads.rename, self.thread.id, title)
        self.add_entry("note", f"Renamed the conversation to “{terminal_text.line(new_title)}”.")
        self.refresh_state()

    # --- as notes ---------------------------------------------------------------------------------

    @work(group="threads", exit_on_error=False)
    async def action_export_thread(self, thread_id: str | None = None) -> None:
        """Preview a plan that saves a conversation, by default the current one, as a note."""
        from obsidian_agent.threads.state import export_plan

        exported = thread_id or self.thread.id
        if exported is None:
            self.show_hint("There is no conversation to export yet.")
            return
        chat = await asyncio.to_thread(self.threads.open, exported)
        if self.ensure_idle():
            self.preview_plan(export_plan(chat.state))

    # --- other threads ----------------------------------------------------------------------------

    @work(group="elsewhere", exit_on_error=False)
    async def watch_threads(self) -> None:
        """Report plans and ended turns of threads that are not on the screen."""
        async for event in self.thread.other_events():
            self._report_other_thread(event)

    def _report_other_thread(self, event: OtherThreadEvent) -> None:
        if event.preview is not None:
            if event.preview.plan.steps:
                self.waiting[event.thread_id] = Pending(
                    preview=event.preview,
                    plan=event.plan or event.preview.plan,
                    disabled=frozenset(),
                )
            return
        if event.how is None:
            return
        title = f"“{terminal_text.shortened(event.title, 60)}”"
        has_plan = event.thread_id in self.waiting
        outcomes = {
            "completed": "has a plan waiting" if has_plan else "has an answer",
            "cancelled": "was cancelled",
            "failed": "failed",
        }
        key = self.key("main.threads")
        self.app.notify(f"{title} {outcomes[event.how]}. {key} opens it.", markup=False)
