"""Going from one conversation to another: what is on the screen changes, what goes on elsewhere goes on.

Kept conversations: find one, go on with it, rename, delete or export it.

An answer into the open note: a plan like any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, assert_never

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Input, Static

from obsidian_agent import terminal_text
from obsidian_agent.agent.fields import Field
from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.messages import ThreadDeleted
from obsidian_agent.tui.screens.dialogs import Confirm, Modal
from obsidian_agent.tui.screens.history import HistoryRequest
from obsidian_agent.tui.screens.tasks import Tasks, TaskWish
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.transcript_entries import told
from obsidian_agent.tui.turn.controller import Pending
from obsidian_agent.tui.widgets.row_list import VirtualList
from obsidian_agent.tui.widgets.safe_input import LineEntry

if TYPE_CHECKING:
    from obsidian_agent.agent.threads.log_store import ThreadSummary
    from obsidian_agent.agent.threads.manager import Chat, Chats
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.tui.event_stream import Bridge
    from obsidian_agent.tui.screens.main import Deciding
    from obsidian_agent.tui.screens.workspace import Desk
    from obsidian_agent.tui.turn.controller import Turns
    from obsidian_agent.tui.turn.thread import Elsewhere, Talk


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

    def __init__(self, bridge: Bridge, chats: Chats, waiting: frozenset[str], query: str = "") -> None:
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


NO_THREADS = "Conversations are not kept here."


class Conversing:
    """Holds the plans that wait in conversations which are not on the screen."""

    def __init__(self, desk: Desk, turns: Turns, talk: Talk, changed: Callable[[], None]) -> None:
        self._desk = desk
        self._turns = turns
        self._talk = talk
        self._changed = changed
        self._waiting: dict[str, Pending] = {}

    # --- the list -------------------------------------------------------------------------------------------------------------

    def show(self, query: str = "") -> None:
        """The list of conversations."""
        chats = self._talk.chats
        if chats is None:
            self._desk.panes.chat.hint(NO_THREADS)
            return
        self._desk.app.push_screen(Threads(self._desk.bridge, chats, frozenset(self._waiting), query), self._wished)

    def _wished(self, wish: ThreadWish | None) -> None:
        if wish is None:
            return
        match wish.what:
            case "open":
                self._desk.run(partial(self.open, wish.thread_id), "threads", exclusive=True)
            case "export":
                self._desk.run(partial(self.export, wish.thread_id), "threads", exclusive=True)
            case "new":
                self.new()
            case _:
                assert_never(wish.what)

    # --- going there ----------------------------------------------------------------------------------------------------------

    def new(self) -> None:
        """A conversation that begins with the next message."""
        if self._leave(None):
            self._desk.panes.chat.transcript.clear()
            self._desk.panes.chat.welcome()
            self._turns.take_up(None)
            self._desk.panes.go("chat")
            self._changed()

    async def open(self, thread_id: str) -> None:
        """Go on with a conversation: as it was, with its plan if one waits, with its stream if it still comes."""
        chats = self._talk.chats
        if chats is None or thread_id == self._talk.current:
            return
        chat = await self._desk.bridge.call(chats.open, thread_id)
        if not self._leave(thread_id):
            return
        transcript = self._desk.panes.chat.transcript
        transcript.retell(told(chat.state.said))
        pending = self._waiting.pop(thread_id, None)
        self._turns.take_up(pending)
        if chat.running:
            if chat.partial:
                transcript.stream(chat.partial)
            self._turns.start(self._talk.follow(), "Thinking")
        elif pending is None:
            self._offer_plan(chat)
        if self._turns.pending is None:
            self._desk.panes.go("chat")
        self._changed()

    def _leave(self, thread_id: str | None) -> bool:
        """Put away what is on the screen; False while a plan is being applied."""
        turns = self._turns
        if turns.engine.phase == "running":
            self._desk.panes.chat.hint("A plan is being applied. Try again when it is done.")
            return False
        if self._talk.current is not None and turns.pending is not None:
            self._waiting[self._talk.current] = turns.pending
        self._talk.current = thread_id
        turns.let_go()
        self._desk.panes.chat.hint("")
        return True

    def _offer_plan(self, chat: Chat) -> None:
        """A plan that was made in this conversation, and neither applied nor talked about since, is previewed again."""
        last = chat.state.said[-1] if chat.state.said else None
        plan = last.data.get("plan") if last is not None and last.role == "plan" else None
        if isinstance(plan, dict):
            message = next((said.text for said in reversed(chat.state.said) if said.role == "person"), None)
            self._desk.freeze_focus()
            self._turns.preview(plan, frozenset(), {}, message=message)

    def deleted(self, thread_id: str) -> None:
        """A conversation is gone for good."""
        self._waiting.pop(thread_id, None)
        if thread_id == self._talk.current:
            self._turns.pending = None
            self.new()

    # --- tasks ----------------------------------------------------------------------------------------------------------------

    def show_tasks(self, deciding: Deciding) -> None:
        """The tasks and plans of the current conversation."""
        chats, current = self._talk.chats, self._talk.current
        if chats is None or current is None:
            self._desk.panes.chat.hint("This conversation has no tasks yet.")
            return

        def wished(wish: TaskWish | None) -> None:
            if wish is None:
                return
            if self._turns.engine.phase != "idle":
                self._desk.panes.chat.hint("Still working on the last message. Esc cancels it.")
            elif wish.what == "preview":
                self._desk.freeze_focus()
                self._turns.preview(dict(wish.plan.plan), frozenset(), {})
            else:
                deciding.history(HistoryRequest(wish.what, wish.plan.run_id))

        self._desk.app.push_screen(Tasks(self._desk.bridge, chats, current), wished)

    # --- as notes -------------------------------------------------------------------------------------------------------------

    def make_note(self) -> None:
        """The current conversation as a note."""
        self._desk.run(self.export, "threads")

    def call(self, title: str) -> None:
        """Give the current conversation a title."""
        self._desk.run(partial(self.rename, title), "threads")

    async def export(self, thread_id: str | None = None) -> None:
        """A conversation (the current one) as a note: a plan like any other."""
        from obsidian_agent.agent.threads.export import export_plan

        chats = self._talk.chats
        wanted = thread_id or self._talk.current
        if chats is None or wanted is None:
            self._desk.panes.chat.hint("There is nothing to export yet.")
            return
        chat = await self._desk.bridge.call(chats.open, wanted)
        if self._turns.engine.phase != "idle":
            self._desk.panes.chat.hint("Still working on the last message. Esc cancels it.")
            return
        self._desk.freeze_focus()
        self._turns.preview(export_plan(chat.state), frozenset(), {})

    async def rename(self, title: str) -> None:
        """Give the current conversation a title."""
        chats, current = self._talk.chats, self._talk.current
        if chats is None or current is None:
            self._desk.panes.chat.hint("There is no conversation to rename yet.")
            return
        kept = await self._desk.bridge.call(chats.rename, current, title)
        self._desk.say("note", f"This conversation is called “{terminal_text.line(kept)}” now.")
        self._changed()

    # --- elsewhere ------------------------------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Tell of what happens in the conversations that are not on the screen."""
        async for event in self._talk.elsewhere():
            self._tell(event)

    def _tell(self, event: Elsewhere) -> None:
        title = f"“{terminal_text.shortened(event.title, 60)}”"
        if event.preview is not None:
            if event.preview.plan.steps:
                self._waiting[event.thread_id] = Pending(event.preview, event.plan or event.preview.plan, frozenset())
            return
        plan = event.thread_id in self._waiting
        words = {"completed": "has a plan for you" if plan else "is answered", "cancelled": "was cancelled", "failed": "failed"}
        if event.how is not None:
            self._desk.app.notify(f"{title} {words[event.how]}. F4 shows it.", markup=False)


Preview = Callable[[Mapping[str, Any], frozenset[str], Mapping[str, Any]], None]


class Inserting:
    """`preview` shows a plan; the settings say where an answer goes."""

    def __init__(self, desk: Desk, preview: Preview, settings: LiveSettings | None) -> None:
        self._desk = desk
        self._preview = preview
        self._settings = settings

    def insert(self) -> None:
        """The last answer into the open note: a plan like any other."""
        answer, path = self._desk.panes.chat.transcript.last_answer, self._desk.panes.note.path
        if not answer or path is None:
            self._desk.panes.chat.hint("Open the note first (Ctrl+O)." if answer else "There is no answer to insert yet.")
            return
        at_cursor = self._settings is not None and self._settings.current.insert_at_cursor
        self._desk.freeze_focus()
        self._preview(insertion(answer, path, at_cursor=at_cursor), frozenset(), {})


def insertion(answer: str, path: str, *, at_cursor: bool) -> dict[str, Any]:
    """A plan that puts a text into a note: at the cursor, or at its end."""
    text = answer.replace("${", "$${")
    if at_cursor:
        step = {"id": "insert", "tool": "editor.insertAtCursor", "args": {"text": text}, "preview": "Insert the answer at the cursor"}
    else:
        args = {"path": path.replace("${", "$${"), "mode": "append", "content": f"\n{text}\n"}
        step = {"id": "insert", "tool": "vault.updateFile", "args": args, "preview": "Add the answer at the end of the note"}
    return {"version": "1.0", "goal": "Insert the answer into the open note", "riskLevel": "writes", "steps": [step]}
