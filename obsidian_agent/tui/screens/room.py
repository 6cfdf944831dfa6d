"""How much a conversation takes of its model's window, what it used, and making room in it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui import tellings
from obsidian_agent.tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from obsidian_agent.agent.app_services import AppServices
    from obsidian_agent.agent.threads.manager import ThreadManager
    from obsidian_agent.tui.screens.desk import Desk
    from obsidian_agent.tui.screens.turns import Turns
    from obsidian_agent.tui.talk import Talk


class Room:
    """Shown below the conversation and in the first line."""

    def __init__(self, desk: Desk, talk: Talk, turns: Turns, insight: AppServices | None) -> None:
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
            outlook = await insight.preview_request(thread_id, "")
        except ObsidianAgentError:
            outlook = None
        if thread_id == self._talk.current:
            gauge = f"ctx {tellings.gauge(outlook.use, 8)}" if outlook is not None else ""
            panes.chat.usage.show(tellings.usage_in_a_line(here), gauge, full=outlook is not None and outlook.use.full)

    def compact(self) -> None:
        """Summarise the older turns of the conversation for the model, and say what that did."""
        chats, current = self._talk.chats, self._talk.current
        if chats is None or current is None:
            self._desk.panes.chat.hint("There is nothing to summarise yet.")
        elif self._turns.engine.phase != "idle":
            self._desk.panes.chat.hint("Still working on the last message. Esc cancels it.")
        else:
            self._desk.run(partial(self._compact, chats, current), "threads")

    async def _compact(self, chats: ThreadManager, thread_id: str) -> None:
        activity = self._desk.panes.chat.activity
        activity.start("Summarising")
        try:
            done = await chats.compact(thread_id)
        finally:
            activity.stop()
        self._desk.say("note", done.words)
        await self.refresh()
