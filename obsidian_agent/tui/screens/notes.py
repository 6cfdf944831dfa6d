"""Actions that open notes: by name, link, outline or backlink; and what becomes of answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work

from obsidian_agent import terminal_text
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.markdown_lines import is_web
from obsidian_agent.tui.screens.dialogs import Confirm
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.widgets.note import LinkRequested, NotePane, NoteRequested, OutsideRequested
from obsidian_agent.tui.widgets.transcript import AnswerText

if TYPE_CHECKING:
    from obsidian_agent.services.note_finder import NoteFinder
    from obsidian_agent.tui.screens.open_note import NoteRow

MAX_RECENT = 12

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n(.*?)^ {0,3}\1[ \t]*$", re.M | re.S)


class NoteActions(Workspace):
    """Actions with notes."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command("open", "Open note", "By name, alias, heading or text", "open_note", "[NOTE]"),
        Command("outline", "Outline of the note", "Its headings", "outline"),
        Command("backlinks", "Backlinks of the note", "Lines that link to it", "backlinks"),
        Command(
            "copy",
            "Copy the last answer",
            "/copy code copies its last block of code",
            "copy_answer",
            "[code]",
        ),
        Command(
            "insert",
            "Insert the last answer into a note",
            "The open note, or the one you name or choose; previewed and approved like any plan",
            "insert_answer",
            "[NOTE]",
        ),
    )

    # --- opening ----------------------------------------------------------------------------------

    @on(NoteRequested)
    def _note_requested(self, message: NoteRequested) -> None:
        self.show_note(message.path)

    @on(NotePane.Revisited)
    def _revisited(self, message: NotePane.Revisited) -> None:
        self.show_note(message.visit.path, message.visit.line, travels=True)

    def action_open_note(self, name: str = "") -> None:
        """Open the note with this name; without one, or if several match, let the user choose."""
        if name:
            self._open_named(name)
        else:
            self.choose_note()

    @work(group="note", exit_on_error=False)
    async def _open_named(self, name: str) -> None:
        matches = await self.notes_named(name)
        if len(matches) == 1:
            self.show_note(matches[0])
        else:
            self.choose_note(name)

    async def notes_named(self, name: str) -> Sequence[str]:
        """Return the paths of the notes with this name."""
        finder = await asyncio.to_thread(self._finder)
        return finder.named(name)

    def _finder(self) -> NoteFinder:
        from obsidian_agent.services.note_finder import NoteFinder

        return NoteFinder(self.session.vault)

    def choose_note(self, query: str = "") -> None:
        """Let the user search for a note to open."""
        self._search_note("Open note", query, self._chosen)

    def _search_note(
        self, title: str, query: str, chosen: Callable[[NoteRow | None], None]
    ) -> None:
        from obsidian_agent.tui.screens.open_note import OpenNote

        screen = OpenNote(title, self._finder, self.panes.note.visited(), query)
        self.app.push_screen(screen, chosen)

    def _chosen(self, row: NoteRow | None) -> None:
        if row is not None:
            self.show_note(row.path, row.line)

    # --- outline and backlinks --------------------------------------------------------------------

    def action_outline(self) -> None:
        """Show the headings of the open note."""
        self._show_overview("outline")

    def action_backlinks(self) -> None:
        """Show the lines that link to the open note."""
        self._show_overview("backlinks")

    @on(NotePane.OverviewRequested)
    def _overview_requested(self, message: NotePane.OverviewRequested) -> None:
        self._show_overview(message.what)

    def _show_overview(self, what: str) -> None:
        path = self.panes.note.path
        if path is None:
            self.show_hint(f"Open a note first ({self.key('main.open')}).")
        elif what == "outline":
            self._show_outline(path)
        else:
            self._show_backlinks(path)

    @work(group="places", exclusive=True, exit_on_error=False)
    async def _show_outline(self, path: str) -> None:
        from obsidian_agent.services import reading
        from obsidian_agent.tui.screens.open_note import outline_rows

        text = await asyncio.to_thread(self.session.vault.read_note, path)
        headings = await asyncio.to_thread(reading.outline, text)
        rows = list(outline_rows(path, headings))
        self._pick_line("Outline", path, rows, "This note has no headings.")

    @work(group="places", exclusive=True, exit_on_error=False)
    async def _show_backlinks(self, path: str) -> None:
        from obsidian_agent.services import reading
        from obsidian_agent.tui.screens.open_note import backlink_rows

        vault = self.session.vault
        mentions = await asyncio.to_thread(lambda: reading.mentions(vault.view(), path))
        rows = list(backlink_rows(mentions))
        self._pick_line("Backlinks", path, rows, "No other note links to this one.")

    def _pick_line(self, title: str, path: str, rows: Sequence[NoteRow], empty: str) -> None:
        from obsidian_agent.tui.screens.open_note import LinePicker

        name = terminal_text.shortened(_name(path), 60)
        self.app.push_screen(LinePicker(f"{title} of {name}", rows, empty), self._chosen)

    # --- links ------------------------------------------------------------------------------------

    @work(group="link", exclusive=True, exit_on_error=False)
    async def follow_link(self, link: LinkRequested) -> None:
        """Open what a link leads to: a note, a search for a tag, an address or another file."""
        target = link.target
        label = terminal_text.shortened(target, 300)
        if link.is_tag:
            self.choose_note(target)
        elif is_web(target):
            question = Confirm("Open this address in the browser?", label, "Open", danger=False)
            if await self.app.push_screen_wait(question):
                self.app.open_url(target)
        elif _SCHEME.match(target):
            self.app.notify(f"Only web addresses and notes are opened, not {label}", markup=False)
        else:
            await self._open_destination(target, link.source)

    async def _open_destination(self, target: str, source: str) -> None:
        from obsidian_agent.services import reading

        vault = self.session.vault
        goal = await asyncio.to_thread(lambda: reading.destination(vault.view(), target, source))
        if goal is None:
            name = terminal_text.shortened(target.partition("#")[0], 100)
            self.app.notify(
                f"“{name}” does not exist yet. To create it, write: Create a note “{name}”",
                markup=False,
            )
        elif reading.is_readable(goal.path):
            self.show_note(goal.path, goal.line)
        else:
            self.post_message(OutsideRequested(goal.path))

    # --- answers ----------------------------------------------------------------------------------

    def action_copy_answer(self, what: str = "") -> None:
        """Copy the last answer, or with `code` its last block of code."""
        answer = self.panes.chat.transcript.last_answer
        if answer:
            self._copy(answer, only_code=what == "code")
        else:
            self.show_hint("There is no answer to copy yet.")

    @on(AnswerText.CopyRequested)
    def _copy_requested(self, message: AnswerText.CopyRequested) -> None:
        self._copy(message.text, only_code=message.only_code)

    def _copy(self, answer: str, *, only_code: bool) -> None:
        copied = last_code(answer) if only_code else answer
        if not copied:
            self.show_hint("The answer has no block of code.")
            return
        self.app.copy_to_clipboard(copied)
        count = terminal_text.counted(len(copied.splitlines()), "line")
        self.app.notify(f"Copied {count}.", markup=False)

    def action_insert_answer(self, name: str = "") -> None:
        """Preview a plan that inserts the last answer into the named, the open or a chosen note."""
        answer = self.panes.chat.transcript.last_answer
        if not answer:
            self.show_hint("There is no answer to insert yet.")
        elif name:
            self._insert_into(name, answer)
        else:
            self._insert(answer)

    @on(AnswerText.InsertRequested)
    def _insert_requested(self, message: AnswerText.InsertRequested) -> None:
        self._insert(message.text)

    def _insert(self, answer: str) -> None:
        path = self.panes.note.path
        if path is None:
            self._choose_place(answer)
        else:
            self.show_hint(
                f"{terminal_text.shortened(_name(path), 60)} is open, so the answer goes there. "
                "/insert NAME names another note."
            )
            at_cursor = self.settings.current.insert_at_cursor
            self._preview_insertion(answer, path, at_cursor=at_cursor)

    @work(group="note", exit_on_error=False)
    async def _preview_insertion(self, answer: str, path: str, *, at_cursor: bool = False) -> None:
        from obsidian_agent.services.answer_markdown import answer_markdown

        text = await asyncio.to_thread(answer_markdown, answer, path, self.session.vault)
        self.preview_plan(insertion_plan(text, path, at_cursor=at_cursor))

    @work(group="note", exit_on_error=False)
    async def _insert_into(self, name: str, answer: str) -> None:
        matches = await self.notes_named(name)
        if len(matches) == 1:
            self._preview_insertion(answer, matches[0])
        else:
            self._choose_place(answer, name)

    def _choose_place(self, answer: str, query: str = "") -> None:
        def chosen(row: NoteRow | None) -> None:
            if row is not None:
                self._preview_insertion(answer, row.path)

        self._search_note("Insert the answer into", query, chosen)


def last_code(answer: str) -> str:
    """Return the text of the last block of code of an answer, or an empty string."""
    blocks = [match[2] for match in _FENCE.finditer(answer)]
    return blocks[-1] if blocks else ""


def _name(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def insertion_plan(answer: str, path: str, *, at_cursor: bool) -> dict[str, Any]:
    """Return a plan that inserts a text into a note, at the cursor or at the end."""
    text = answer.replace("${", "$${")
    name = _name(path).replace("${", "$${")
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
        "goal": f"Insert the answer into {name}",
        "riskLevel": "writes",
        "steps": [step],
    }
