"""Suggestions while a message is written: commands behind a slash, and what can be mentioned behind an @."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

from obsidian_agent.tui.command_table import completing
from obsidian_agent.tui.widgets.suggestions import MOST, Suggestion

if TYPE_CHECKING:
    from obsidian_agent.agent.app_services import AppServices
    from obsidian_agent.agent.context.mentions import Mentionable
    from obsidian_agent.tui.screens.desk import Desk

FRESH_SECONDS = 30.0
"""So long the names of a vault are taken for what they are."""


class Completing:
    """Looks at what stands before the cursor."""

    def __init__(self, desk: Desk, insight: AppServices | None) -> None:
        self._desk = desk
        self._insight = insight
        self._names: Mentionable | None = None
        self._read_at = 0.0

    def look(self) -> None:
        """Offer what fits, or nothing."""
        chat = self._desk.panes.chat
        before = chat.prompt.before_cursor
        commands = completing(before) if chat.prompt.cursor_location[0] == 0 else []
        if commands and not (len(commands) == 1 and before[1:] == commands[0].name):
            chat.suggestions.offer(
                [
                    Suggestion(f"/{each.name} " if each.hint else f"/{each.name}", len(before), each.title, f"/{each.name}", not each.needs)
                    for each in commands
                ],
                before,
            )
        elif "@" in before and self._insight is not None:
            self._desk.run(partial(self._mention, self._insight, before), "mention", exclusive=True)
        else:
            chat.suggestions.offer([])

    async def _mention(self, insight: AppServices, before: str) -> None:
        from obsidian_agent.agent.context.mentions import being_typed

        typed = being_typed(before)
        suggestions = self._desk.panes.chat.suggestions
        if typed is None:
            suggestions.offer([])
            return
        if self._names is None or time.monotonic() - self._read_at > FRESH_SECONDS:
            self._names = await self._desk.bridge.call(insight.mentionable)
            self._read_at = time.monotonic()
        found = await asyncio.to_thread(self._names.complete, typed, MOST)
        if self._desk.panes.chat.prompt.before_cursor != before:
            return
        length = len(before) - before.rfind("@")
        if any(each.insert == before[-length:] for each in found):
            found = ()
        suggestions.offer([Suggestion(f"{each.insert} ", length, each.kind, each.label) for each in found], before)
