"""Kept conversations: find one, go on with it, rename, delete or export it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Input, Static

from obsidian_agent import terminal_text
from obsidian_agent.agent.fields import Field
from obsidian_agent.tui.keys import bindings
from obsidian_agent.tui.messages import ThreadDeleted
from obsidian_agent.tui.screens.confirm import Confirm
from obsidian_agent.tui.screens.modal import Modal
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.widgets.entry import LineEntry
from obsidian_agent.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from obsidian_agent.agent.threads.log_store import ThreadSummary
    from obsidian_agent.agent.threads.manager import ThreadManager
    from obsidian_agent.tui.bridge import Bridge

TYPING_PAUSE = 0.15


@dataclass(frozen=True, slots=True)
class ThreadWish:
    """What is to happen with a conversation; `new` needs none."""

    what: Literal["open", "export", "new"]
    thread_id: str = ""


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A conversation in the list. `state` is a word for one that is working or waits; `found` the line that a search found."""

    thread: ThreadSummary
    state: str = ""
    found: str = ""


class ThreadList(VirtualList[ThreadRow]):
    """One line a conversation."""

    DEFAULT_CSS = "ThreadList { height: auto; min-height: 3; max-height: 50vh; }"
    BINDINGS = [Binding("enter", "choose", "Open", key_display="⏎")]

    def draw_row(self, row: ThreadRow, width: int) -> Content:
        thread = row.thread
        right = f"  {thread.count:>4} · {age(thread.updated)}"
        state = f" {row.state} " if row.state else " "
        left = Content.assemble(
            (state, "$warning"),
            (terminal_text.shortened(thread.title, 120), "$foreground"),
            (f"  {terminal_text.shortened(row.found or thread.preview, 160)}", "$quiet"),
        ).truncate(max(width - len(right), 10), ellipsis=True)
        return Content.assemble(left, " " * max(0, width - len(right) - left.cell_length), (right, "$quiet"))


class Threads(Modal[ThreadWish]):
    """Dismisses with what is to be done by the screen below."""

    BINDINGS = bindings("threads")

    def __init__(self, bridge: Bridge, chats: ThreadManager, waiting: frozenset[str], query: str = "") -> None:
        super().__init__("Conversations", "They are kept on this machine. Deleting one is for good.")
        self._bridge = bridge
        self._chats = chats
        self._waiting = waiting
        self._query = query

    def body(self) -> ComposeResult:
        yield LineEntry(self._query, placeholder="Search in titles and words", compact=False)
        yield Static("", id="found", markup=False)
        yield ThreadList(empty=" No conversations yet.")

    def on_mount(self) -> None:
        self.query_one(ThreadList).focus()
        self.run_flow("threads", partial(self._find, self._query), exclusive=True)

    # --- the list -------------------------------------------------------------------------------------------------------------

    async def _find(self, query: str, keep: str | None = None) -> None:
        if query.strip():
            await asyncio.sleep(TYPING_PAUSE)
            hits = await self._bridge.call(self._chats.search, query)
            rows = [self._row(hit.thread, hit.lines[0] if hit.lines else "") for hit in hits]
        else:
            rows = [self._row(thread) for thread in await self._bridge.call(self._chats.summaries)]
        if not self.is_attached:
            return
        self._query = query
        cursor = next((index for index, row in enumerate(rows) if row.thread.id == keep), 0)
        self.query_one(ThreadList).set_rows(rows, cursor)
        words = f"{len(rows):,} conversation{'s' if len(rows) != 1 else ''}"
        self.query_one("#found", Static).update(Content(words if rows else "No conversation holds these words." if query.strip() else ""))

    def _row(self, thread: ThreadSummary, found: str = "") -> ThreadRow:
        state = "⋯ working" if thread.id in self._chats.running else "● plan" if thread.id in self._waiting else ""
        return ThreadRow(thread, state, found)

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.value != self._query:
            self.run_flow("threads", partial(self._find, event.value), exclusive=True)

    def on_input_submitted(self) -> None:
        self.query_one(ThreadList).focus()

    def action_search(self) -> None:
        self.query_one(LineEntry).focus()

    def action_back(self) -> None:
        """From the search back to the list, from there away."""
        if isinstance(self.focused, LineEntry):
            self.query_one(ThreadList).focus()
        else:
            self.dismiss(None)

    # --- wishes ---------------------------------------------------------------------------------------------------------------

    def on_virtual_list_chosen(self, event: ThreadList.Chosen) -> None:
        self.dismiss(ThreadWish("open", event.list.rows[event.index].thread.id))

    def action_export(self) -> None:
        row = self.query_one(ThreadList).current
        if row is not None:
            self.dismiss(ThreadWish("export", row.thread.id))

    def action_new(self) -> None:
        self.dismiss(ThreadWish("new"))

    def action_rename(self) -> None:
        self._with_current(self._rename)

    def action_delete(self) -> None:
        self._with_current(self._delete)

    def _with_current(self, work: Callable[[ThreadSummary], Coroutine[Any, Any, None]]) -> None:
        row = self.query_one(ThreadList).current
        if row is not None:
            self.problem("")
            self.run_flow("thread", partial(work, row.thread))

    async def _rename(self, thread: ThreadSummary) -> None:
        values = await self.app.push_screen_wait(ValuesForm("Rename the conversation", [Field("title", value=thread.title)]))
        if values:
            await self._bridge.call(self._chats.rename, thread.id, values["title"])
            await self._find(self._query, thread.id)

    async def _delete(self, thread: ThreadSummary) -> None:
        text = f"“{terminal_text.shortened(thread.title, 200)}” with {thread.count:,} messages is deleted for good. What it did to notes stays."
        if await self.app.push_screen_wait(Confirm("Delete this conversation?", text, "Delete")):
            await self._bridge.call(self._chats.delete, thread.id)
            self.app.screen_stack[0].post_message(ThreadDeleted(thread.id))
            await self._find(self._query)


def age(time: str, now: datetime | None = None) -> str:
    """How long ago, in a few letters: `now`, `5 min`, `3 h`, `2 d`, else the date."""
    try:
        then = datetime.fromisoformat(time)
    except ValueError:
        return ""
    seconds = ((now or datetime.now(then.tzinfo)) - then).total_seconds()
    for limit, size, unit in ((60, 1, ""), (3600, 60, "min"), (86_400, 3600, "h"), (7 * 86_400, 86_400, "d")):
        if seconds < limit:
            return f"{int(seconds // size)} {unit}" if unit else "now"
    return f"{then:%Y-%m-%d}"
