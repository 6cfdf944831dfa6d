r"""The selection and the cursor in the active note.

The tools act on the selection or cursor at the start of the run, wherever earlier steps have moved
it. Positions are counted as in Obsidian's editor: 0-based line, UTF-16 column; a byte order mark
does not count, and `\r\n` is one line ending.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct
from pydantic import Field

from obsidian_agent.errors import Conflict, Problem, ToolError
from obsidian_agent.tools.core.lookup import find_file, read_text
from obsidian_agent.tools.core.models import SparseOutput, ToolModel
from obsidian_agent.tools.core.ranges import shift_range
from obsidian_agent.tools.core.tool import (
    EditorPosition,
    LongText,
    Output,
    PathText,
    Proposal,
    Risk,
    Selection,
    ToolContext,
    tool,
    utf16_length,
)
from obsidian_agent.vault.links.link_text import LinkStyle, link_target, markdown_encoded
from obsidian_agent.vault.links.resolve import LinkResolver
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath
from obsidian_agent.vault.text import encode, newline_of, with_newlines
from obsidian_agent.vault.views.changes import CursorMark, ModifyFile
from obsidian_agent.vault.views.overlay import OverlayVault
from obsidian_agent.vault.views.view import VaultView

_UNSAFE: Final = re.compile(r"[\[\]\n\r|]")

_LEAD: Final = re.compile(
    r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[^\]\r\n]\][ \t]+)?|#{1,6}[ \t]+)?"
)
"""The marks at the beginning of a line: list marker and checkbox, or heading."""
_ROW: Final = re.compile(r"[ \t>]*\|.*\|")


class Position(ToolModel):
    line: int = Field(description="From 0.")
    ch: int = Field(description="In UTF-16 code units, from 0.")


class Range(ToolModel):
    from_: Position = Field(alias="from")
    to: Position


class NoInput(ToolModel):
    pass


class GetSelectionOutput(SparseOutput):
    text: str
    is_empty: bool
    file_path: str | None = None
    range: Range | None = None


@tool("editor.getSelection", Risk.READ_ONLY)
def get_selection(args: NoInput, ctx: ToolContext) -> Proposal[GetSelectionOutput]:
    """Return the text that was selected when the run started, with its file and range."""
    selection, file = ctx.run.selection, ctx.run.active_file
    text = selection.text if selection else ""
    selected_range = None
    if selection is not None and selection.start is not None and selection.end is not None:
        selected_range = Range(
            from_=output_position(selection.start), to=output_position(selection.end)
        )
    return Proposal(
        GetSelectionOutput(
            text=text,
            is_empty=not text,
            file_path=file.text if file else None,
            range=selected_range,
        )
    )


class ActiveFileOutput(SparseOutput):
    path: str | None


@tool("editor.getActiveFilePath", Risk.READ_ONLY)
def get_active_file_path(args: NoInput, ctx: ToolContext) -> Proposal[ActiveFileOutput]:
    """Return the path of the note that was open when the run started, or null."""
    file = ctx.run.active_file
    return Proposal(ActiveFileOutput(path=file.text if file else None))


class Target(Struct, frozen=True):
    """The active note in its current state, and the part of its text to replace."""

    path: VaultPath
    text: str
    start: int
    end: int
    unknown: bool = False
    """True if the cursor is unknown, so that text goes to the end of the note, on a new line."""


class ActiveNote:
    """The active note at the start of the run and after the earlier steps."""

    def __init__(self, ctx: ToolContext) -> None:
        """Raise NO_SELECTION without an active note, CONFLICT if an earlier step removed it."""
        file = ctx.run.active_file
        if file is None:
            raise ToolError(
                "No note is active, so there is no target for the text.",
                code="NO_SELECTION",
                hint="Open a note first, or name a file.",
            )
        path = ctx.view.current(file)
        if path is None:
            raise Conflict(f"An earlier step removed {file}, the active note.", path=file.text)
        self.run = ctx.run
        self.path = paths.parse(path.text, PathUse.UPDATE)
        self.first_text = read_text(ctx.base, file)
        self.text = read_text(ctx.view, path)
        self.mark = _cursor_mark(ctx.view, file)

    def selection(self, selection: Selection) -> Target:
        """Return the selected text. Raise CONFLICT if it is gone or an earlier step replaced it."""
        if selection.start is None or selection.end is None:
            raise ToolError(
                f"The position of the selected text in {self.path} is unknown, "
                "so it cannot be replaced.",
                code="NO_SELECTION",
                path=self.path.text,
                hint="Select the text in the note.",
                advice="Or use vault.replaceText.",
            )
        start, end = sorted((self._offset(selection.start), self._offset(selection.end)))
        if with_newlines(self.first_text[start:end], "\n") != with_newlines(selection.text, "\n"):
            raise Conflict(
                f"{self.path} no longer has the selected text at that position.",
                path=self.path.text,
                hint="Select it again.",
            )
        shifted = shift_range(self.first_text, self.text, start, end)
        if shifted is None or (self.mark is not None and self.mark[1].replaced):
            raise Conflict(
                f"An earlier step already changed the selected text in {self.path}.",
                path=self.path.text,
                hint="Replace it in one step.",
            )
        return Target(self.path, self.text, *shifted)

    def cursor(self) -> Target:
        """Return the cursor position.

        It is after the text that an earlier editor step wrote, else at the start position of the
        run, else at the note's end.
        """
        if self.mark is not None:
            return self._moved(self.mark[0], self.mark[1].offset)
        selection = self.run.selection
        position = self.run.cursor or (selection.end if selection is not None else None)
        if position is not None:
            return self._moved(self.first_text, self._offset(position))
        return Target(self.path, self.text, len(self.text), len(self.text), unknown=True)

    def _moved(self, before: str, offset: int) -> Target:
        shifted = shift_range(before, self.text, offset, offset)
        if shifted is None:
            raise Conflict(
                f"An earlier step changed the text around the cursor in {self.path}.",
                path=self.path.text,
            )
        return Target(self.path, self.text, *shifted)

    def _offset(self, position: EditorPosition) -> int:
        offset = position.offset_in(self.first_text)
        if offset is None:
            where = f"line {position.line}, column {position.ch}"
            raise Conflict(
                f"{self.path} no longer has {where} (counted from 0).",
                path=self.path.text,
                hint="Select again.",
            )
        return offset


def _cursor_mark(view: VaultView, file: VaultPath) -> tuple[str, CursorMark] | None:
    """Return the text after the last editor step and the cursor in it, which an overlay records."""
    mark = view.cursor_mark(file) if isinstance(view, OverlayVault) else None
    return None if mark is None else (mark[0].decode(), mark[1])


def output_position(position: EditorPosition) -> Position:
    """Return a position as outputs report it."""
    return Position(line=position.line, ch=position.ch)


class EditorInput(ToolModel):
    text: LongText


class ReplaceSelectionOutput(ToolModel):
    file_path: str
    range: Range = Field(description="The range of the new text.")
    inserted_chars: int = Field(description="In UTF-16 code units.")


class InsertAtCursorOutput(ToolModel):
    file_path: str
    position: Position = Field(description="The start of the new text.")
    inserted_chars: int = Field(description="In UTF-16 code units.")


@tool("editor.replaceSelection", Risk.WRITES)
def replace_selection(args: EditorInput, ctx: ToolContext) -> Proposal[ReplaceSelectionOutput]:
    """Replace the selected text of the active note; without a selection, insert at the cursor."""
    note = ActiveNote(ctx)
    selection = ctx.run.selection
    selected = selection is not None and bool(selection.text or selection.start != selection.end)
    target = note.selection(selection) if selection is not None and selected else note.cursor()
    edit = edit_at(target, args.text)
    written_range = Range(from_=output_position(edit.start), to=output_position(edit.end))
    output = ReplaceSelectionOutput(
        file_path=target.path.text, range=written_range, inserted_chars=edit.length
    )
    return edit.proposal(output, target, replaced=selected)


@tool("editor.insertAtCursor", Risk.WRITES)
def insert_at_cursor(args: EditorInput, ctx: ToolContext) -> Proposal[InsertAtCursorOutput]:
    """Insert text at the cursor of the active note, or at its end if the cursor is unknown."""
    target = ActiveNote(ctx).cursor()
    edit = edit_at(target, args.text)
    output = InsertAtCursorOutput(
        file_path=target.path.text, position=output_position(edit.start), inserted_chars=edit.length
    )
    return edit.proposal(output, target, replaced=False)


class EditorEdit(Struct, frozen=True, kw_only=True):
    """The note with the new text, its range, and its length in UTF-16 code units."""

    text: str
    start: EditorPosition
    end: EditorPosition
    length: int
    cursor: int

    def proposal(self, output: Output, target: Target, *, replaced: bool) -> Proposal[Output]:
        """Return the proposal, which also passes a known cursor on to later steps."""
        path = target.path
        mark = None if target.unknown else CursorMark(self.cursor, replaced)
        changes = (ModifyFile(path, encode(self.text), mark),) if self.text != target.text else ()
        warning = Problem(
            "NO_SELECTION",
            f"The cursor is unknown, so the text goes to the end of {path}.",
            path=path.text,
        )
        return Proposal(output, changes, (warning,) if target.unknown else ())


def edit_at(target: Target, text: str) -> EditorEdit:
    """Return the edit that replaces the target's text."""
    newline = newline_of(target.text)
    inserted = with_newlines(text, newline)
    before = target.text[: target.start]
    if target.unknown and before and not before.endswith("\n"):
        before += newline
    changed = before + inserted + target.text[target.end :]
    end = len(before) + len(inserted)
    return EditorEdit(
        text=changed,
        start=EditorPosition.at(changed, len(before)),
        end=EditorPosition.at(changed, end),
        length=utf16_length(inserted),
        cursor=end,
    )


class LinkSelectionInput(ToolModel):
    path: PathText = Field(min_length=1, description="The file that the link leads to.")
    heading: str | None = Field(
        default=None, min_length=1, description="A heading in it (its text, without #)."
    )


@tool("editor.linkSelection", Risk.WRITES)
def link_selection(args: LinkSelectionInput, ctx: ToolContext) -> Proposal[ReplaceSelectionOutput]:
    """Turn the selected words into a link to a file; the words become its display text."""
    target = find_file(ctx.view, args.path)
    note, selection = ActiveNote(ctx), ctx.run.selection
    if selection is None or not selection.text.strip():
        raise ToolError(
            "No text is selected, so there is nothing to link.",
            code="NO_SELECTION",
            hint="Select the words first.",
        )
    lead = _LEAD.match(selection.text)
    words = selection.text[lead.end() if lead is not None else 0 :].strip()
    if not words or _UNSAFE.search(words):
        raise ToolError(
            "The selected text cannot become a link: "
            "it contains a link, a bracket, a | or a line break.",
            path=note.path.text,
        )
    selected = note.selection(selection)
    style = ctx.run.link_style
    resolver = LinkResolver(entry.path for entry in ctx.view.walk(ROOT) if entry.kind == "file")
    name = link_target(resolver, target, note.path, style)
    subpath = f"#{args.heading}" if args.heading else ""
    line = selected.text[selected.text.rfind("\n", 0, selected.start) + 1 :].partition("\n")[0]
    link = _link_text(
        name, subpath, words, style, in_table=_ROW.fullmatch(line.rstrip()) is not None
    )
    before, _, after = selection.text.rpartition(words)
    edit = edit_at(selected, before + link + after)
    output = ReplaceSelectionOutput(
        file_path=note.path.text,
        range=Range(from_=output_position(edit.start), to=output_position(edit.end)),
        inserted_chars=edit.length,
    )
    return edit.proposal(output, selected, replaced=True)


def _link_text(name: str, subpath: str, words: str, style: LinkStyle, *, in_table: bool) -> str:
    """Return a wikilink, or a Markdown link if the vault's settings ask for it.

    The words are omitted if the link displays them anyway.
    """
    if style.markdown:
        return f"[{words}]({name}{markdown_encoded(subpath)})"
    if name == words and not subpath:
        return f"[[{words}]]"
    pipe = r"\|" if in_table else "|"
    return f"[[{name}{subpath}{pipe}{words}]]"
