"""One pass over the texts of all notes, for the checks that depend on them."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from itertools import repeat
from typing import Final

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.health.names import has_placeholder
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.frontmatter.properties import find_frontmatter, read_block
from obsidian_agent.vault.markdown.lines import tasks, without_block_id
from obsidian_agent.vault.markdown.model import NoteTask
from obsidian_agent.vault.paths.path import ROOT, VaultPath

_WORD: Final = re.compile(r"\w+")
_STRUCTURE: Final = re.compile(r"(?m)^[ \t]*(?:#{1,6}[ \t].*|[-*+][ \t]*(?:\[.\])?[ \t]*|---+|>)$")
_OPEN_TASK: Final = re.compile(r"\[[ /]\]")
_TASK_LINE: Final = re.compile(
    r"^[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<status>[^\]\r\n])\][ \t]+(?P<text>.*)$", re.MULTILINE
)
_HIDING: Final = re.compile(r"```|~~~|%%|<!--|\$\$|<(?:script|pre|style|textarea)", re.IGNORECASE)
"""Where code, comments, formulas or HTML may hide a task."""
_DUE: Final = re.compile(
    r"(?:📅|📆|🗓)\ufe0f?\s*(\d{4}-\d{2}-\d{2})|[\[(]due::\s*(\d{4}-\d{2}-\d{2})\s*[\])]"
    r"|@due\((\d{4}-\d{2}-\d{2})\)"
)
_CONFLICT_MARKS: Final = ("<<<<<<< ", "\n=======\n", "\n>>>>>>> ")

MIN_PROSE: Final = 20
"""Characters without headings and empty list items below which equal texts mean nothing."""
_MIN_PIECES: Final = 4
_MIN_WORDS: Final = 30
_SKETCH: Final = 8
"""Pieces of a text that are indexed: those with the smallest hashes."""
_COMMON: Final = 10
"""A piece that more notes share is boilerplate."""
SIMILAR: Final = 0.9
"""Share of words that near-identical texts have in common."""


@dataclass(frozen=True, slots=True)
class OverdueTask:
    """An open task whose due date is over. `line` counts from 1, `due` is YYYY-MM-DD."""

    line: int
    text: str
    due: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDigest:
    """The facts about a note's text that checks use.

    `body_hash` is None for a text of a few words. `broken` says why the properties cannot be read.
    """

    is_empty: bool = False
    has_conflict_marks: bool = False
    broken: str = ""
    body_hash: bytes | None = None
    sketch: tuple[int, ...] = ()
    overdue: tuple[OverdueTask, ...] = ()


class Digests:
    """The digests of all notes of a vault."""

    def __init__(self, survey: VaultSurvey) -> None:
        today = survey.settings.now.date().isoformat()
        self.of: dict[VaultPath, NoteDigest] = {}
        self._survey = survey
        for note, data in survey.index.texts(ROOT):
            if isinstance(data, Problem) or survey.is_template(note):
                continue
            # Properties that the index has read are valid.
            has_properties = bool(survey.facts[note].properties)
            self.of[note] = _digest(
                data.decode("utf-8", "replace"), today, has_properties=has_properties
            )

    @cached_property
    def identical(self) -> list[list[VaultPath]]:
        """The groups of notes with the same text, apart from their properties."""
        groups: dict[bytes, list[VaultPath]] = {}
        for note, digest in self.of.items():
            if digest.body_hash is not None:
                groups.setdefault(digest.body_hash, []).append(note)
        return [
            group
            for group in groups.values()
            if len(group) > 1 and _has_prose(self._body(group[0]))
        ]

    @cached_property
    def similar(self) -> list[tuple[VaultPath, VaultPath, float]]:
        """The pairs of notes with nearly the same text, and the share of words in common.

        Pairs with the same text are left out.
        """
        notes_of: dict[int, list[VaultPath]] = {}
        for note, digest in self.of.items():
            for piece in digest.sketch:
                notes_of.setdefault(piece, []).append(note)
        pairs = {
            (first, second): None
            for notes in notes_of.values()
            if 1 < len(notes) <= _COMMON
            for position, first in enumerate(notes)
            for second in notes[position + 1 :]
        }
        words: dict[VaultPath, Counter[str]] = {}
        similar: list[tuple[VaultPath, VaultPath, float]] = []
        for first, second in pairs:
            if self.of[first].body_hash == self.of[second].body_hash:
                continue
            for note in (first, second):
                if note not in words:
                    words[note] = Counter(_WORD.findall(self._body(note).casefold()))
            share = _overlap(words[first], words[second])
            if share >= SIMILAR:
                similar.append((first, second, share))
        return similar

    def _body(self, note: VaultPath) -> str:
        data = self._survey.index.text(note)
        return _body_of(data.decode("utf-8", "replace")) if isinstance(data, bytes) else ""


def _digest(text: str, today: str, *, has_properties: bool) -> NoteDigest:
    body = _body_of(text)
    overdue = _overdue(text, today) if _OPEN_TASK.search(text) and _DUE.search(text) else ()
    return NoteDigest(
        is_empty=not body and (body is text or not text.strip("\ufeff \t\r\n")),
        has_conflict_marks=all(mark in text for mark in _CONFLICT_MARKS),
        broken="" if has_properties else _broken_properties(text),
        body_hash=_hash_of(body),
        sketch=_sketch(body),
        overdue=overdue,
    )


def _body_of(text: str) -> str:
    front = find_frontmatter(text) if text.startswith(("---", "\ufeff---")) else None
    body = text if front is None else text[front.body_start :]
    if "\r" in body:
        body = body.replace("\r\n", "\n")
    return body.strip("\ufeff \t\n")


def _has_prose(body: str) -> bool:
    return len(_STRUCTURE.sub("", body).strip()) >= MIN_PROSE


def _hash_of(body: str) -> bytes | None:
    if len(body) < MIN_PROSE:
        return None
    return hashlib.blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _sketch(body: str) -> tuple[int, ...]:
    sentences = body.replace(". ", "\n").split("\n")
    pieces = {hash(sentence) for sentence in sentences if len(sentence) >= MIN_PROSE}
    if len(pieces) < _MIN_PIECES or body.count(" ") < _MIN_WORDS:
        return ()
    return tuple(sorted(pieces)[:_SKETCH])


def _overlap(first: Mapping[str, int], second: Mapping[str, int]) -> float:
    """Return the size of the intersection of two bags of words over that of their union."""
    total = sum(first.values()) + sum(second.values())
    shared = sum(min(count, second.get(word, 0)) for word, count in first.items())
    return shared / (total - shared) if total else 0.0


def _broken_properties(text: str) -> str:
    front = find_frontmatter(text) if text.startswith(("---", "\ufeff---")) else None
    if front is None:
        return ""
    block = text[front.content_start : front.content_end]
    if has_placeholder(block):
        return ""
    try:
        read_block(block)
    except VaultError as error:
        return error.message
    return ""


def _overdue(text: str, today: str) -> tuple[OverdueTask, ...]:
    lines = [match for match in _TASK_LINE.finditer(text) if _due_before(match["text"], today)]
    if not lines:
        return ()
    is_hidden = _HIDING.search(text, 0, lines[-1].start()) is not None
    listed = tasks(text) if is_hidden else map(_task_at, repeat(text), lines)
    return tuple(
        OverdueTask(task.line, task.text, due)
        for task in listed
        if task.status in " /" and (due := _due_before(task.text, today))
    )


def _due_before(text: str, today: str) -> str:
    """Return the due date in the text of a task if it is before today, else ""."""
    match = _DUE.search(text)
    due = next(filter(None, match.groups())) if match is not None else ""
    return due if due < today else ""


def _task_at(text: str, match: re.Match[str]) -> NoteTask:
    line = text.count("\n", 0, match.start()) + 1
    return NoteTask(match["status"], without_block_id(match["text"].rstrip()), line)
