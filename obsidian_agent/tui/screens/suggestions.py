"""Suggestions while a message is typed: slash commands, names, likely actions."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from textual import work

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.commands import completions
from obsidian_agent.tui.screens.macros import MacroActions
from obsidian_agent.tui.widgets.prompt import MAX_SUGGESTIONS, Suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from obsidian_agent.agent.context import Mentionable, MentionCompletion
    from obsidian_agent.agent.events import Candidate
    from obsidian_agent.agent.mcp_resources import McpResources, PromptCall
    from obsidian_agent.vault.index.stored import StoredIndex

NAMES_MAX_AGE: Final = 30.0
"""Seconds after which the names of the vault are read again."""

TYPING_PAUSE: Final = 0.25
"""Seconds without a change after which actions are suggested for a message."""

MIN_LETTERS: Final = 3
"""Length of a message from which on actions are suggested."""

MIN_NAME_LETTERS: Final = 2
"""Length of a message from which on names that begin like it are suggested."""

MIN_RESOURCES: Final = 3
"""Resources of MCP servers that are suggested even if there are many notes."""


class MessageNames(Struct, frozen=True):
    """The names in a vault that a message may contain."""

    mentionable: Mentionable
    macros: tuple[str, ...]
    """The names of trusted macros."""
    verbs: tuple[str, ...]
    """The first words of the sentences that the recipes read, the most frequent first."""


class SuggestionActions(MacroActions):
    """Searches in a thread, one text at a time. Results for a text that has changed are dropped."""

    _names: MessageNames | None = None
    _servers: McpResources | None = None
    _names_read_at = 0.0
    _mentionable: tuple[StoredIndex, Mentionable] | None = None
    """The names of the notes, and the state of the index that they are from."""
    _is_searching = False
    _is_completing = False
    _unmatched = ""
    """The typed mention that no name matches, nor any that it begins."""
    _seen_text = ""

    def suggest_completions(self) -> None:
        """Suggest completions of the word before the cursor."""
        chat = self.panes.chat
        before = chat.prompt.before_cursor
        self._suggest_names(before)
        commands = (
            completions(before, self.commands()) if chat.prompt.cursor_location[0] == 0 else []
        )
        is_complete = len(commands) == 1 and before[1:] == commands[0].name
        suggestions: list[Suggestion] = []
        if commands and not is_complete:
            for command in commands:
                label = f"/{command.name}"
                insert = f"{label} " if command.hint else label
                suggestions.append(
                    Suggestion(
                        insert, len(before), command.title, label, not command.requires_argument
                    )
                )
        if chat.prompt.cursor_location[0] == 0 and before.startswith("/"):
            suggestions += self._prompts(before)
        if suggestions:
            chat.suggestions.offer(suggestions, before)
        elif "@" in before:
            self._suggest_mentions()
        else:
            chat.suggestions.offer([])

    @work(group="names", exclusive=True, exit_on_error=False)
    async def _suggest_names(self, before: str) -> None:
        """Show the names that the end of the text begins; Tab inserts the first one."""
        chat = self.panes.chat
        if chat.prompt.is_completed:
            return  # Tab is going through the names
        is_command = before.startswith("/") and not self._takes_note(before)
        if len(before) < MIN_NAME_LETTERS or is_command or "@" in before:
            chat.tab_hint.show_names(())
            return
        names = await self._read_names()
        if chat.prompt.before_cursor != before:
            return
        typed = before.casefold()
        openings = [
            Suggestion(opening, len(before), label=opening.rstrip())
            for opening in (*names.macros, *names.verbs)
            if opening.casefold().startswith(typed) and opening.strip().casefold() != typed
        ]
        matches = [
            Suggestion(f"{match.name} ", match.length, label=match.name)
            for match in names.mentionable.complete_end(before, MAX_SUGGESTIONS)
        ]
        chat.tab_hint.show_names([*openings, *matches][:MAX_SUGGESTIONS])

    def _takes_note(self, before: str) -> bool:
        """Return True behind a command that a note's name may follow: “/insert Ho”."""
        name, blank, _ = before[1:].partition(" ")
        hints = (command.hint for command in self.commands() if command.name == name)
        return bool(blank) and "[NOTE]" in hints

    def macro_named(self, message: str) -> str | None:
        """Return the name of the trusted macro that a message consists of, as far as known."""
        macros = () if self._names is None else self._names.macros
        return next((name for name in macros if name.casefold() == message.casefold()), None)

    async def _read_names(self) -> MessageNames:
        """Return the names of the vault, read again after some time."""
        if self._names is None or time.monotonic() - self._names_read_at > NAMES_MAX_AGE:
            self._names = await asyncio.to_thread(self._load_names)
            self._unmatched = ""
            self._names_read_at = time.monotonic()
        return self._names

    def vault_changed(self) -> None:
        super().vault_changed()
        self._names = None

    def _load_names(self) -> MessageNames:
        macros = tuple(macro.name for macro in self.session.saved.trusted())
        # At 100,000 notes their names take a second, in which keys would be late.
        index = self.session.vault.stored_index(followed=True)
        if self._mentionable is None or index is not self._mentionable[0]:
            self._mentionable = index, self.services.mentionable()
        examples = [example for recipe in self.session.recipes() for example in recipe.examples]
        verbs = Counter(example.partition(" ")[0].casefold() for example in examples)
        return MessageNames(
            self._mentionable[1],
            macros,
            tuple(f"{verb} " for verb, _ in verbs.most_common()),
        )

    def _suggest_mentions(self) -> None:
        if not self._is_completing:
            self._is_completing = True
            self._keep_completing()

    @work(group="mention", exit_on_error=False)
    async def _keep_completing(self) -> None:
        """Complete the mention before the cursor until the displayed names are those of the text.

        A search cannot be stopped: one for each key would slow down the keys.
        """
        completed = None
        try:
            while (before := self.panes.chat.prompt.before_cursor) != completed and "@" in before:
                await self._complete_mention(before)
                completed = before
        finally:
            self._is_completing = False

    async def _complete_mention(self, before: str) -> None:
        from obsidian_agent.agent.context import typed_mention

        typed = typed_mention(before)
        suggestions = self.panes.chat.suggestions
        if typed is None:
            suggestions.offer([])
            return
        resources = self._resources(before, typed)
        names = (await self._read_names()).mentionable
        matches: tuple[MentionCompletion, ...] = ()
        if not self._unmatched or not typed.startswith(self._unmatched):
            matches = await asyncio.to_thread(names.complete, typed, MAX_SUGGESTIONS)
            self._unmatched = "" if matches else typed
        matches = matches[: MAX_SUGGESTIONS - min(len(resources), MIN_RESOURCES)]
        matches = (*matches, *resources)[:MAX_SUGGESTIONS]
        if self.panes.chat.prompt.before_cursor != before:
            return
        length = len(before) - before.rfind("@")
        if any(match.insert == before[-length:] for match in matches):
            matches = ()
        suggestions.offer(
            [Suggestion(f"{match.insert} ", length, match.kind, match.label) for match in matches],
            before,
        )

    # --- MCP servers ------------------------------------------------------------------------------

    def _resources(self, before: str, typed: str) -> tuple[MentionCompletion, ...]:
        from obsidian_agent.agent.mcp_resources import complete_resources

        if not self.session.settings.current.mcp_servers:
            return ()
        self._ask_servers(before)
        offers = {} if self._servers is None else self._servers.known
        return complete_resources(offers, typed, MAX_SUGGESTIONS)

    def _prompts(self, before: str) -> list[Suggestion]:
        if not self.session.settings.current.mcp_servers:
            return []
        from obsidian_agent.agent.mcp_resources import complete_prompts, usage

        self._ask_servers(before)
        offers = {} if self._servers is None else self._servers.known
        suggestions: list[Suggestion] = []
        for server, prompt in complete_prompts(offers, before[1:], MAX_SUGGESTIONS):
            label = f"/{server}:{prompt.name}"
            if label == before:
                return []
            insert = f"{label} " if prompt.arguments else label
            note = f"{usage(prompt)}  {prompt.title}".strip()
            needs_argument = any(argument.required for argument in prompt.arguments)
            suggestions.append(Suggestion(insert, len(before), note, label, not needs_argument))
        return suggestions

    def _ask_servers(self, before: str) -> None:
        """Ask the MCP servers for their offers in the background, unless they are known."""
        is_asking = any(
            worker.group == "servers" and not worker.is_finished for worker in self.workers
        )
        if not is_asking and (self._servers is None or not self._servers.is_current):
            self._read_servers(before)

    @work(group="servers", exit_on_error=False)
    async def _read_servers(self, before: str) -> None:
        """Read the offers of the MCP servers. Show them if the text is still the same."""
        self._servers = await asyncio.to_thread(self.services.server_resources)

        def show() -> None:
            if self.panes.chat.prompt.before_cursor.startswith(before):
                self.suggest_completions()

        if self._servers is not None:
            await self._servers.refresh(show)

    def prompt_call(self, message: str) -> PromptCall | None:
        """Return the prompt of an MCP server that a message chooses, or None."""
        servers = self.session.settings.current.mcp_servers
        if not servers or ":" not in message or not message.startswith("/"):
            return None
        from obsidian_agent.agent.mcp_resources import prompt_call

        return prompt_call(message, servers)

    @work(group="prompt", exclusive=True, exit_on_error=False)
    async def insert_prompt(self, message: str, call: PromptCall) -> None:
        """Replace the message that chose a prompt by the prompt's text, for the user to read."""
        self.show_hint(f"Waiting for the MCP server {call.server}.")
        try:
            resources = await asyncio.to_thread(self.services.server_resources)
            if resources is None:
                self.show_hint("Prompts of MCP servers need a model. /model chooses one.")
                return
            text = await resources.prompt(call)
        except ObsidianAgentError as error:
            self.show_hint(str(error))
            return
        self.show_hint("Read it before you send it: the text comes from the server.")
        prompt = self.panes.chat.prompt
        if prompt.text.strip() == message:
            prompt.accept()
            prompt.text = text
            prompt.move_cursor(prompt.document.end)

    # --- likely actions ---------------------------------------------------------------------------

    @property
    def _text(self) -> str:
        """The message for which actions are suggested; "" if there is none."""
        text = self.panes.chat.prompt.text.strip()
        if len(text) < MIN_LETTERS or text.startswith("/") or self.turn.phase != "idle":
            return ""
        return text

    def suggest_actions(self) -> None:
        """Update the suggested actions after a change of the message or of the turn."""
        if not self._text:
            self._seen_text = ""
            self.panes.chat.show_likely(())
        elif not self._is_searching and self._text != self._seen_text:
            self._is_searching = True
            self._keep_suggesting()

    @work(group="likely", exit_on_error=False)
    async def _keep_suggesting(self) -> None:
        """Search until the displayed suggestions are those of the current text."""
        try:
            while (text := self._text) and text != self._seen_text:
                await asyncio.sleep(TYPING_PAUSE)
                if text != self._text:
                    continue
                try:
                    candidates = await self._likely_actions(text)
                except ObsidianAgentError:
                    candidates = ()  # the error is reported when the message is sent
                if text == self._text:
                    self.panes.chat.show_likely([candidate.title for candidate in candidates])
                    self._seen_text = text
        finally:
            self._is_searching = False

    async def _likely_actions(self, text: str) -> Sequence[Candidate]:
        self.freeze_focus()
        return await asyncio.to_thread(lambda: self.session.suggest(text, self.thread.chosen_model))

    @work(group="ask", exclusive=True, exit_on_error=False)
    async def open_form(self) -> None:
        """Open the form of the first suggested action."""
        text = self._text
        if text and (candidates := await self._likely_actions(text)):
            await self.fill_in(candidates[0], message=text)
