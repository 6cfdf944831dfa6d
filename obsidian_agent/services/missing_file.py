"""A file that a plan names and the vault does not have, and the plan with another one instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from obsidian_agent.vault.links.spelling import spelling_key
from obsidian_agent.vault.paths.rules import display_name

if TYPE_CHECKING:
    from obsidian_agent.plan.result import Preview

MAX_NAMES: Final = 5
_SIMILARITY: Final = 60
"""The least similarity of a name that is offered, of 100."""


def missing_file(preview: Preview) -> str | None:
    """Return the first path that a step names and that does not exist, if any."""
    missing = (error.file for error in preview.errors if error.code == "FILE_NOT_FOUND")
    return next((path for path in missing if path is not None), None)


def nearest_notes(path: str, notes: Iterable[str]) -> list[str]:
    """Return the paths of the notes with the names that are most similar, best first."""
    from rapidfuzz import fuzz, process

    matches = process.extract(
        spelling_key(display_name(path)),
        {note: spelling_key(display_name(note)) for note in notes},
        scorer=fuzz.WRatio,
        score_cutoff=_SIMILARITY,
        limit=MAX_NAMES,
    )
    return [note for _, _, note in matches]


def with_file(document: Any, missing: str, file: str) -> Any:
    """Return a document of a plan, or values, with `file` in place of the missing path."""
    match document:
        case str() if document.removesuffix(".md") == missing.removesuffix(".md"):
            return file
        case Mapping():
            return {name: with_file(value, missing, file) for name, value in document.items()}
        case list():
            return [with_file(item, missing, file) for item in document]
        case _:
            return document
