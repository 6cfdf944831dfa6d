"""The likeliest actions for the message that is being written, and the form of the first.

Suggestions while a message is written: commands behind a slash, and what can be mentioned behind an @.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.commands import completing
from obsidian_agent.tui.widgets.prompt import MOST, Suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from obsidian_agent.agent.app_services import Insight
    from obsidian_agent.agent.context.mentions import Mentionable
    from obsidian_agent.agent.events import Candidate
    from obsidian_agent.tui.screens.macros import Saving
    from obsidian_agent.tui.screens.workspace import Desk
    from obsidian_agent.tui.turn.controller import Turns
    from obsidian_agent.tui.turn.thread import Talk


FRESH_SECONDS = 30.0
"""So long the names of a vault are taken for what they are."""


class Completing:
    """Looks at what stands before the cursor."""

    def __init__(self, desk: Desk, insight: Insight | None) -> None:
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

    async def _mention(self, insight: Insight, before: str) -> None:
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


TYPING_PAUSE: Final = 0.25
"""Seconds without a change after which a message is looked at."""

FEWEST: Final = 3
"""Letters of a message that is worth a look."""


class Suggesting:
    """Looks in a thread, at one text at a time; what was found for a text that has changed since is not shown."""

    def __init__(self, desk: Desk, talk: Talk, turns: Turns, saving: Saving) -> None:
        self._desk = desk
        self._talk = talk
        self._turns = turns
        self._saving = saving
        self._looking = False
        self._seen = ""

    @property
    def _text(self) -> str:
        """The message that is looked at; "" for none."""
        text = self._desk.panes.chat.prompt.text.strip()
        wanted = len(text) >= FEWEST and not text.startswith("/") and self._turns.engine.phase == "idle"
        return text if wanted else ""

    def look(self) -> None:
        """The message has changed, or what is going on."""
        if not self._text:
            self._seen = ""
            self._desk.panes.chat.offer(())
        elif not self._looking and self._text != self._seen:
            self._looking = True
            self._desk.run(self._follow, "likely")

    async def _follow(self) -> None:
        """Until what is shown is for what is written."""
        try:
            while (text := self._text) and text != self._seen:
                await asyncio.sleep(TYPING_PAUSE)
                if text != self._text:
                    continue
                try:
                    found = await self._found(text)
                except ObsidianAgentError:
                    found = ()  # what is wrong is said when the message is sent
                if text == self._text:
                    self._desk.panes.chat.offer([each.title for each in found])
                    self._seen = text
        finally:
            self._looking = False

    async def _found(self, text: str) -> Sequence[Candidate]:
        """What the text may mean, in the conversation on the screen."""
        self._desk.freeze_focus()
        return await self._desk.bridge.call(lambda: self._desk.bridge.session.suggest(text, self._talk.model_here))

    def open(self) -> None:
        """The form of the first action."""
        if text := self._text:
            self._desk.run(partial(self._open, text), "ask", exclusive=True)

    async def _open(self, text: str) -> None:
        if found := await self._found(text):
            await self._saving.fill_in(found[0], said=text)
