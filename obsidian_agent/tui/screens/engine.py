"""Starts and stops the work of a turn: one thing at a time, planning gives way to planning, a run to nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Literal

from textual.worker import Worker

from obsidian_agent.tui.background import in_background
from obsidian_agent.tui.messages import WorkEnded

if TYPE_CHECKING:
    from obsidian_agent.agent.events import AgentEvent
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.tui.screens.desk import Desk

Phase = Literal["idle", "planning", "running"]


class Engine:
    """Knows what is going on. Whoever starts something is told of its end by a `WorkEnded` with the engine's token."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.phase: Phase = "idle"
        self.concluded = True
        """Whether an event came that a turn or run may end with."""
        self._token = 0
        self._worker: Worker[None] | None = None

    def plan(self, events: AsyncIterator[AgentEvent]) -> None:
        """Follow a turn or preview; an earlier one is cancelled."""
        self._begin("planning")
        self._worker = in_background(self._desk.screen, "turn", partial(self._follow, events, self._token), exclusive=True)

    def run(self, preview: Preview) -> None:
        """Apply a preview."""
        self._begin("running")
        self._worker = in_background(self._desk.screen, "run", partial(self._execute, preview, self._token))

    def cancel(self) -> bool:
        """Stop planning at once, a run after the current file. False when nothing is going on."""
        match self.phase:
            case "planning":
                self._desk.bridge.give_up()
                if self._worker is not None:
                    self._worker.cancel()
                # A worker that has not begun yet ends without a word.
                self._end(self._token, cancelled=True)
                return True
            case "running":
                self._desk.bridge.cancel_run()
                return True
            case "idle":
                return False

    def let_go(self) -> None:
        """Stop following a turn, which goes on by itself; its end is nobody's business here."""
        if self.phase == "planning":
            self._desk.bridge.drop()
            if self._worker is not None:
                self._worker.cancel()
            self._token += 1
            self.phase, self._worker = "idle", None

    def finish(self, message: WorkEnded) -> Phase:
        """What ended with this message: planning, a run, or nothing that still matters ("idle")."""
        if message.token != self._token:
            return "idle"
        ended, self.phase = self.phase, "idle"
        self._worker = None
        return ended

    def _begin(self, phase: Phase) -> None:
        self._token += 1
        self.phase = phase
        self.concluded = False

    def _end(self, token: int, *, cancelled: bool) -> None:
        self._desk.screen.post_message(WorkEnded(token, cancelled=cancelled))

    async def _follow(self, events: AsyncIterator[AgentEvent], token: int) -> None:
        cancelled = False
        try:
            await self._desk.bridge.follow(events)
        except asyncio.CancelledError:
            cancelled = True
            raise
        finally:
            self._end(token, cancelled=cancelled)

    async def _execute(self, preview: Preview, token: int) -> None:
        try:
            await self._desk.bridge.execute(preview)
        finally:
            self._end(token, cancelled=False)
