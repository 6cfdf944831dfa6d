"""Conversations: the list of those that are kept, going from one to another, and making a note of one or of its last answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, assert_never

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass
from obsidian_agent.services.fields import Field
from obsidian_agent.tui.bindings import binding, bindings
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.dialogs import Confirm, Modal
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.turn.controller import Pending
from obsidian_agent.tui.widgets.prompt import LineEntry
from obsidian_agent.tui.widgets.row_list import Choice, ChoiceList, VirtualList
from obsidian_agent.tui.widgets.transcript import transcript_entries

if TYPE_CHECKING:
    from textual.signal import Signal

    from obsidian_agent.threads.log_store import ThreadSummary
    from obsidian_agent.threads.manager import ActiveThread, ThreadManager
    from obsidian_agent.threads.state import Version
    from obsidian_agent.tui.turn.thread import Elsewhere


TYPING_PAUSE = 0.15


@dataclass(frozen=True, slots=True)
class ThreadChoice:
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
    BINDINGS = [binding("list.choose", "Open")]

    def draw_row(self, row: ThreadRow, width: int) -> Content:
        thread = row.thread
        right = f"  {thread.count:>4} · {format_age(thread.updated)}"
        state = f" {row.state} " if row.state else " "
        left = Content.assemble(
            (state, "$warning"),
            (terminal_text.shortened(thread.title, 120), "$foreground"),
            (f"  {terminal_text.shortened(row.found or thread.preview, 160)}", "$quiet"),
        ).truncate(max(width - len(right), 10), ellipsis=True)
        return Content.assemble(
            left, " " * max(0, width - len(right) - left.cell_length), (right, "$quiet")
        )


class Threads(Modal[ThreadChoice]):
    """Dismisses with what is to be done by the screen below."""

    BINDINGS = bindings("threads")

    def __init__(
        self, threads: ThreadManager, waiting: frozenset[str], deleted: Signal[str], query: str = ""
    ) -> None:
        super().__init__(
            "Conversations", "They are kept on this machine. Deleting one is for good."
        )
        self._threads = threads
        self._deleted = deleted
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
            hits = await asyncio.to_thread(self._threads.store.search, query)
            rows = [self._row(hit.thread, hit.lines[0] if hit.lines else "") for hit in hits]
        else:
            rows = [
                self._row(thread)
                for thread in await asyncio.to_thread(self._threads.store.summaries)
            ]
        if not self.is_attached:
            return
        self._query = query
        cursor = next((index for index, row in enumerate(rows) if row.thread.id == keep), 0)
        self.query_one(ThreadList).set_rows(rows, cursor)
        words = f"{len(rows):,} conversation{'s' if len(rows) != 1 else ''}"
        self.query_one("#found", Static).update(
            Content(
                words if rows else "No conversation holds these words." if query.strip() else ""
            )
        )

    def _row(self, thread: ThreadSummary, found: str = "") -> ThreadRow:
        state = (
            "⋯ working"
            if thread.id in self._threads.running
            else "● plan"
            if thread.id in self._waiting
            else ""
        )
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

    # --- what to do with one ---------------------------------------------------------------------------------------------------------------

    def on_virtual_list_chosen(self, event: ThreadList.Chosen) -> None:
        self.dismiss(ThreadChoice("open", event.list.rows[event.index].thread.id))

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
        text = f"“{terminal_text.shortened(thread.title, 200)}” with {thread.count:,} messages is deleted for good. What it did to notes stays."
        if await self.app.push_screen_wait(Confirm("Delete this conversation?", text, "Delete")):
            await asyncio.shield(self._delete_now(thread.id))
            await self._find(self._query)

    async def _delete_now(self, thread_id: str) -> None:
        """Whoever leaves the list meanwhile does not keep the others from being told."""
        await asyncio.to_thread(self._threads.delete, thread_id)
        self._deleted.publish(thread_id)


def format_age(time: str, now: datetime | None = None) -> str:
    """How long ago, in a few letters: `now`, `5 min`, `3 h`, `2 d`, else the date."""
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


class Turns(Modal[int]):
    """The turns of a conversation, the latest first. Dismisses with the number of the chosen one."""

    def __init__(self, versions: Sequence[Version], current: int | None) -> None:
        super().__init__(
            "Back to which turn?",
            "The conversation goes on from the end of that turn. No note changes.",
        )
        self._versions = [*reversed(versions)]
        self._current = current

    def body(self) -> ComposeResult:
        listing = ChoiceList([], empty=" No turn of this conversation is complete yet.")
        rows = [
            Choice(
                key=str(version.number),
                text=version.question,
                note=format_age(version.time),
                word="▸" if version.number == self._current else " ",
            )
            for version in self._versions
        ]
        listing.set_choices(rows, 0 if rows else None)
        yield listing

    def on_mount(self) -> None:
        self.query_one(ChoiceList).focus()

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        self.dismiss(self._versions[event.index].number)


class ThreadActions(Workspace):
    """Holds the plans that wait in threads which are not on the screen."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command("new", "New conversation", "What goes on in this one goes on", "new_thread"),
        Command(
            "threads",
            "Conversations",
            "Search, go on, rename, delete, export",
            "threads",
            "[WORDS]",
        ),
        Command(
            "rename",
            "Rename the conversation",
            "Give it a title",
            "rename_thread",
            "TITLE",
            requires_argument=True,
        ),
        Command(
            "rewind",
            "Go back to an earlier turn",
            "Lists the turns of this conversation; no note changes",
            "rewind",
        ),
        Command(
            "export", "Export the conversation as a note", "A plan like any other", "export_thread"
        ),
        Command(
            "insert",
            "Insert the answer into the open note",
            "A plan like any other",
            "insert_answer",
        ),
    )

    waiting: dict[str, Pending]

    # --- the list -------------------------------------------------------------------------------------------------------------

    def action_threads(self, query: str = "") -> None:
        """The list of conversations."""
        self.app.push_screen(
            Threads(self.threads, frozenset(self.waiting), self.signals.thread_deleted, query),
            self._thread_chosen,
        )

    def _thread_chosen(self, choice: ThreadChoice | None) -> None:
        if choice is None:
            return
        match choice.what:
            case "open":
                self.open_thread(choice.thread_id)
            case "export":
                self.action_export_thread(choice.thread_id)
            case "new":
                self.action_new_thread()
            case _:
                assert_never(choice.what)

    # --- going there ----------------------------------------------------------------------------------------------------------

    def action_new_thread(self) -> None:
        """A conversation that begins with the next message."""
        if self._leave(None):
            self.panes.chat.transcript.clear()
            self.panes.chat.welcome()
            self.turn.attach(None)
            self.panes.go("chat")

    @work(group="threads", exclusive=True, exit_on_error=False)
    async def open_thread(self, thread_id: str) -> None:
        """Go on with a conversation: as it was, with its plan if one waits, with its stream if it still comes."""
        if thread_id == self.thread.id:
            return
        chat = await asyncio.to_thread(self.threads.open, thread_id)
        if not self._leave(thread_id):
            return
        transcript = self.panes.chat.transcript
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
        """Go back to the end of a turn that the user picks. Notes stay as they are."""
        thread_id = self.thread.id
        if thread_id is None:
            self.show_hint("There is no earlier turn yet.")
            return
        state = (await asyncio.to_thread(self.threads.open, thread_id)).state
        number = await self.app.push_screen_wait(Turns(state.versions, state.version))
        if number is None or number == state.version or thread_id != self.thread.id:
            return
        if not self.ensure_not_applying():
            return
        chat = await asyncio.to_thread(self.threads.rewind, thread_id, number)
        self.waiting.pop(thread_id, None)
        self.turn.detach()
        self.turn.attach(None)
        self.panes.chat.transcript.load_entries(transcript_entries(chat.state.entries))
        self._offer_plan(chat)
        if self.turn.pending is None:
            self.panes.go("chat")
        self.show_hint(
            "Back at an earlier turn. Notes are unchanged; earlier runs are undone in the history."
        )
        self.refresh_state()

    def _leave(self, thread_id: str | None) -> bool:
        """Put away what is on the screen; False while a plan is being applied."""
        if not self.ensure_not_applying():
            return False
        if self.thread.id is not None and self.turn.pending is not None:
            self.waiting[self.thread.id] = self.turn.pending
        self.thread.id = thread_id
        self.turn.detach()
        self.show_hint("")
        return True

    def _offer_plan(self, chat: ActiveThread) -> None:
        """A plan that was made in this conversation, and neither applied nor talked about since, is previewed again."""
        last = chat.state.entries[-1] if chat.state.entries else None
        plan = last.data.get("plan") if last is not None and last.role == "plan" else None
        if isinstance(plan, dict):
            message = next(
                (said.text for said in reversed(chat.state.entries) if said.role == "person"), None
            )
            self.preview_plan(plan, message=message)

    def forget_thread(self, thread_id: str) -> None:
        """A conversation is gone for good."""
        self.waiting.pop(thread_id, None)
        if thread_id == self.thread.id:
            self.turn.pending = None
            self.action_new_thread()

    @work(group="threads", exit_on_error=False)
    async def action_rename_thread(self, title: str) -> None:
        """Give the conversation on the screen a title."""
        if self.thread.id is None:
            self.show_hint("There is no conversation to rename yet.")
            return
        kept = await asyncio.to_thread(self.threads.rename, self.thread.id, title)
        self.add_entry("note", f"This conversation is called “{terminal_text.line(kept)}” now.")
        self.refresh_state()

    # --- as notes -------------------------------------------------------------------------------------------------------------

    @work(group="threads", exit_on_error=False)
    async def action_export_thread(self, thread_id: str | None = None) -> None:
        """A conversation (the one on the screen) as a note: a plan like any other."""
        from obsidian_agent.threads.state import export_plan

        wanted = thread_id or self.thread.id
        if wanted is None:
            self.show_hint("There is nothing to export yet.")
            return
        chat = await asyncio.to_thread(self.threads.open, wanted)
        if self.ensure_idle():
            self.preview_plan(export_plan(chat.state))

    def action_insert_answer(self) -> None:
        """The last answer into the open note: a plan like any other."""
        answer, path = self.panes.chat.transcript.last_answer, self.panes.note.path
        if not answer or path is None:
            self.show_hint(
                f"Open the note first ({self.key('main.open')})."
                if answer
                else "There is no answer to insert yet."
            )
        else:
            self.preview_plan(
                insertion_plan(answer, path, at_cursor=self.settings.current.insert_at_cursor)
            )

    # --- elsewhere ------------------------------------------------------------------------------------------------------------

    @work(group="elsewhere", exit_on_error=False)
    async def watch_threads(self) -> None:
        """Tell of what happens in the conversations that are not on the screen."""
        async for event in self.thread.elsewhere():
            self._tell(event)

    def _tell(self, event: Elsewhere) -> None:
        title = f"“{terminal_text.shortened(event.title, 60)}”"
        if event.preview is not None:
            if event.preview.plan.steps:
                self.waiting[event.thread_id] = Pending(
                    event.preview, event.plan or event.preview.plan, frozenset()
                )
            return
        plan = event.thread_id in self.waiting
        words = {
            "completed": "has a plan for you" if plan else "is answered",
            "cancelled": "was cancelled",
            "failed": "failed",
        }
        if event.how is not None:
            self.app.notify(
                f"{title} {words[event.how]}. {self.key('main.threads')} shows it.", markup=False
            )


def insertion_plan(answer: str, path: str, *, at_cursor: bool) -> dict[str, Any]:
    """A plan that puts a text into a note: at the cursor, or at its end."""
    text = answer.replace("${", "$${")
    if at_cursor:
        step = {
            "id": "insert",
            "tool": "editor.insertAtCursor",
            "args": {"text": text},
            "preview": "Insert the answer at the cursor",
        }
    else:
        args = {"path": path.replace("${", "$${"), "mode": "append", "content": f"\n{text}\n"}
        step = {
            "id": "insert",
            "tool": "vault.updateFile",
            "args": args,
            "preview": "Add the answer at the end of the note",
        }
    return {
        "version": "1.0",
        "goal": "Insert the answer into the open note",
        "riskLevel": "writes",
        "steps": [step],
    }
