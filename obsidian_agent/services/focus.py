"""The note, selection and cursor that the user has in view, in this program or in Obsidian."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from msgspec import Struct

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.tool import EditorPosition, RunContext, Selection
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.text import decode, with_newlines
from obsidian_agent.vault.views.view import VaultView

if TYPE_CHECKING:
    from obsidian_agent.obsidian.companion_client import LiveContext


class Focus(Struct, frozen=True):
    """The active note (its path in the vault), the selection and the cursor."""

    active_file: str | None = None
    selection: Selection | None = None
    cursor: EditorPosition | None = None
    has_screen: bool = False
    """True if the app is on screen and can open notes."""
    file_hash: str | None = None
    """SHA-256 of the active note's text if it is open in Obsidian."""
    open_files: tuple[str, ...] = ()
    """Other open notes."""


def live_focus(context: LiveContext) -> Focus:
    """Return the focus in a running Obsidian.

    Several selections become one text, which has no position.
    """
    cursor = selection = None
    if context.mode == "source" and context.selections:
        anchor, head = (
            EditorPosition(end.line, end.ch)
            for end in (context.selections[0].anchor, context.selections[0].head)
        )
        cursor = head
        if context.selected and len(context.selections) == 1:
            start, end = sorted((anchor, head), key=lambda position: (position.line, position.ch))
            selection = Selection(context.selected, start, end)
        elif context.selected:
            selection = Selection(context.selected)
    return Focus(context.active, selection, cursor, file_hash=context.hash, open_files=context.open)


def selection_in(
    view: VaultView, active_file: str, start: EditorPosition, end: EditorPosition
) -> Selection:
    """Return the text between two positions of a note.

    Raise `ToolError` for a position outside the note, `VaultError` for a note that cannot be read.
    """
    path = parse(active_file, PathUse.UPDATE)
    entry = view.locate(path)
    if entry is None:
        raise VaultError(
            f"The active file {path} does not exist in the vault.",
            code="FILE_NOT_FOUND",
            path=path.text,
        )
    text = decode(view.read(entry.path), path.text)
    first, last = start.offset_in(text), end.offset_in(text)
    if first is None or last is None:
        raise ToolError(
            "The selection is outside the note.", code="ARGUMENT_INVALID", path=path.text
        )
    if last < first:
        raise ToolError(
            "The selection ends before it starts.", code="ARGUMENT_INVALID", path=path.text
        )
    return Selection(text[first:last], start, end)


def moved_selection(view: VaultView, context: RunContext) -> Problem | None:
    """Return a conflict if the text selected in Obsidian has moved since the context was frozen."""
    file, selection = context.active_file, context.selection
    if (
        context.active_hash is None
        or file is None
        or selection is None
        or selection.start is None
        or selection.end is None
    ):
        return None
    try:
        if hashlib.sha256(view.read(file)).hexdigest() == context.active_hash:
            return None
        current = selection_in(view, file.text, selection.start, selection.end).text
    except (VaultError, ToolError):
        current = ""
    if with_newlines(current, "\n") == selection.text:
        return None
    return Problem(
        "CONFLICT",
        f"{file} has changed in Obsidian, and the selected text has moved. Select it again.",
        path=file.text,
    )
