"""Going from one conversation to another: what is on the screen changes, what goes on elsewhere goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, assert_never

from obsidian_agent import terminal_text
from obsidian_agent.tui.retelling import told
from obsidian_agent.tui.screens.history import HistoryRequest
from obsidian_agent.tui.screens.tasks import Tasks, TaskWish
from obsidian_agent.tui.screens.threads import Threads, ThreadWish
from obsidian_agent.tui.screens.turns import Pending

if TYPE_CHECKING:
    from obsidian_agent.agent.threads.manager import ActiveThread
    from obsidian_agent.tui.screens.deciding import Deciding
    from obsidian_agent.tui.screens.desk import Desk
    from obsidian_agent.tui.screens.turns import Turns
    from obsidian_agent.tui.talk import Elsewhere, Talk

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

    def _offer_plan(self, chat: ActiveThread) -> None:
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
