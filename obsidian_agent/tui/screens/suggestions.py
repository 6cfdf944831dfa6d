"""What is offered while a message is written: commands behind a slash, what can be mentioned behind an @, and the likeliest actions."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from textual import work

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.commands import completions
from obsidian_agent.tui.screens.macros import MacroActions
from obsidian_agent.tui.widgets.prompt import MOST, Suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from obsidian_agent.agent.context import Mentionable
    from obsidian_agent.agent.events import Candidate

FRESH_SECONDS: Final = 30.0
"""So long the names of a vault are taken for what they are."""

TYPING_PAUSE: Final = 0.25
"""Seconds without a change after which a message is looked at."""

FEWEST: Final = 3
"""Letters of a message that is worth a look."""


class SuggestionActions(MacroActions):
    """Looks in a thread, at one text at a time; what was found for a text that has changed since is not shown."""

    _names: Mentionable | None = None
    _names_read_at = 0.0
    _looking = False
    _seen_text = ""

    def suggest_completions(self) -> None:
        """Offer what the word before the cursor may become, or nothing."""
        chat = self.panes.chat
        before = chat.prompt.before_cursor
        commands = (
            completions(before, self.commands()) if chat.prompt.cursor_location[0] == 0 else []
        )
        if commands and not (len(commands) == 1 and before[1:] == commands[0].name):
            chat.suggestions.offer(
                [
                    Suggestion(
                        f"/{each.name} " if each.hint else f"/{each.name}",
                        len(before),
                        each.title,
                        f"/{each.name}",
                        not each.requires_argument,
                    )
                    for each in commands
                ],
                before,
            )
        elif "@" in before:
            self._suggest_mentions(before)
        else:
            chat.suggestions.offer([])

    @work(group="mention", exclusive=True, exit_on_error=False)
    async def _suggest_mentions(self, before: str) -> None:
        from obsidian_agent.agent.context import typed_mention

        typed = typed_mention(before)
        suggestions = self.panes.chat.suggestions
        if typed is None:
            suggestions.offer([])
            return
        if self._names is None or time.monotonic() - self._names_read_at > FRESH_SECONDS:
            self._names = await asyncio.to_thread(self.services.mentionable)
            self._names_read_at = time.monotonic()
        found = await asyncio.to_thread(self._names.complete, typed, MOST)
        if self.panes.chat.prompt.before_cursor != before:
            return
        length = len(before) - before.rfind("@")
        if any(each.insert == before[-length:] for each in found):
            found = ()
        suggestions.offer(
            [Suggestion(f"{each.insert} ", length, each.kind, each.label) for each in found], before
        )

    # --- the likeliest actions --------------------------------------------------------------------------------------------------

    @property
    def _text(self) -> str:
        """The message that is looked at; "" for none."""
        text = self.panes.chat.prompt.text.strip()
        wanted = len(text) >= FEWEST and not text.startswith("/") and self.turn.phase == "idle"
        return text if wanted else ""

    def suggest_actions(self) -> None:
        """The message has changed, or what is going on."""
        if not self._text:
            self._seen_text = ""
            self.panes.chat.show_likely(())
        elif not self._looking and self._text != self._seen_text:
            self._looking = True
            self._keep_suggesting()

    @work(group="likely", exit_on_error=False)
    async def _keep_suggesting(self) -> None:
        """Until what is shown is for what is written."""
        try:
            while (text := self._text) and text != self._seen_text:
                await asyncio.sleep(TYPING_PAUSE)
                if text != self._text:
                    continue
                try:
                    found = await self._likeliest(text)
                except ObsidianAgentError:
                    found = ()  # what is wrong is said when the message is sent
                if text == self._text:
                    self.panes.chat.show_likely([each.title for each in found])
                    self._seen_text = text
        finally:
            self._looking = False

    async def _likeliest(self, text: str) -> Sequence[Candidate]:
        """What the text may mean, in the conversation on the screen."""
        self.freeze_focus()
        return await asyncio.to_thread(lambda: self.session.suggest(text, self.thread.chosen_model))

    @work(group="ask", exclusive=True, exit_on_error=False)
    async def open_form(self) -> None:
        """The form of the first action."""
        if (text := self._text) and (found := await self._likeliest(text)):
            await self.fill_in(found[0], said=text)
