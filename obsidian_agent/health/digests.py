"""One pass over the texts of all notes, for the checks that depend on them."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import combinations, repeat
from typing import Any, Final
from zlib import crc32

from msgspec import Struct

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.health.conflict_marks import has_conflicts
from obsidian_agent.health.names import has_placeholder, is_date, is_day
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.health.texts import (
    MIN_PROSE,
    SIMILAR,
    body_of,
    body_start,
    is_empty,
    words_of,
)
from obsidian_agent.vault.frontmatter.properties import find_frontmatter, read_block
from obsidian_agent.vault.markdown.lines import scan, tasks_of, without_block_id
from obsidian_agent.vault.markdown.model import NoteTask
from obsidian_agent.vault.paths.path import ROOT, VaultPath

_WORD: Final = re.compile(r"\w+")
_STRUCTURE: Final = re.compile(r"(?m)^[ \t]*(?:#{1,6}[ \t].*|[-*+][ \t]*(?:\[.\])?[ \t]*|---+|>)$")
_DUE_MARKS: Final = tuple(mark.encode() for mark in ("📅", "📆", "🗓", "due::", "@due("))
_TASK_LINE: Final = re.compile(
    r"^[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[(?P<status>[^\]\r\n])\][ \t]+(?P<text>.*)$", re.MULTILINE
)
_HIDING: Final = re.compile(r"```|~~~|%%|<!--|\$\$|<(?:script|pre|style|textarea)", re.IGNORECASE)
"""Starts of code, comments, formulas and HTML, which may hide a task."""
_DUE: Final = re.compile(
    r"(?:📅|📆|🗓)\ufe0f?\s*(\d{4}-\d{2}-\d{2})|[\[(]due::\s*(\d{4}-\d{2}-\d{2})\s*[\])]"
    r"|@due\((\d{4}-\d{2}-\d{2})\)"
)
_NUMBERS: Final = re.compile(r"\d+")
_CONFLICT_MARKS: Final = (b"<<<<<<<", b"\n=======", b"\n>>>>>>>")
_NAME: Final = re.compile(rb"^([^\s#:-][^:\n]*):", re.MULTILINE)

_MIN_PIECE: Final = 20
"""Bytes of a sentence that counts."""
_MIN_PIECES: Final = 4
_MIN_WORDS: Final = 30
_SKETCH: Final = 8
"""Pieces of a text that are indexed: those with the smallest hashes."""
_BAGS: Final = 1_000
"""Bags of words that are kept."""
_COMMON: Final = 10
"""A piece that more notes share is boilerplate."""
_SAME: Final = 0.98
"""The same for notes with quite different names, which may be filled forms."""


class OverdueTask(Struct, frozen=True):
    """An open task whose due date is over. `line` counts from 1, `due` is YYYY-MM-DD."""

    line: int
    text: str
    due: str


class NoteDigest(Struct, frozen=True, kw_only=True):
    """The facts about a note's text that checks use.

    `body_hash` is None for a text of a few words. `broken` says why the properties cannot be read.
    `may_repeat_properties`: two lines of the properties begin with the same name.
    """

    is_empty: bool = False
    has_conflict_marks: bool = False
    broken: str = ""
    may_repeat_properties: bool = False
    body_hash: int | None = None
    sketch: Sequence[int] = ()
    overdue: tuple[OverdueTask, ...] = ()


class Digests:
    """The digests of all notes of a vault, without templates and conflict copies."""

    def __init__(self, survey: VaultSurvey) -> None:
        today = survey.settings.now.date().isoformat()
        self.of: dict[VaultPath, NoteDigest] = {}
        self._survey = survey
        for note, data in survey.index.texts(ROOT):
            if isinstance(data, Problem) or not survey.is_examined(note):
                continue
            self.of[note] = _digest(note, data, today, survey.facts[note].properties)

    @cached_property
    def identical(self) -> list[list[VaultPath]]:
        """The groups of notes with the same text, apart from their properties."""
        notes_of: dict[int, list[VaultPath]] = {}
        for note, digest in self.of.items():
            if digest.body_hash is not None:
                notes_of.setdefault(digest.body_hash, []).append(note)
        groups: dict[str, list[VaultPath]] = {}
        for notes in notes_of.values():
            for note in notes if len(notes) > 1 else ():
                groups.setdefault(self._body(note), []).append(note)
        return [
            group
            for body, group in groups.items()
            # Periodic notes with the same text were never filled in.
            if len(group) > 1 and _has_prose(body) and not all(is_date(note.stem) for note in group)
        ]

    @cached_property
    def similar(self) -> list[tuple[VaultPath, VaultPath, float]]:
        """The pairs of notes with nearly the same text, and the share of words in common.

        Pairs with the same text and those of a series of notes are left out.
        """
        seen: set[int] = set()
        notes_of: dict[int, list[VaultPath]] = {}
        for digest in self.of.values():
            for piece in digest.sketch:
                if piece in seen:
                    notes_of[piece] = []
                seen.add(piece)
        del seen
        for note, digest in self.of.items():
            for piece in digest.sketch:
                if piece in notes_of:
                    notes_of[piece].append(note)
        bag = lru_cache(_BAGS)(self._words)
        similar: list[tuple[VaultPath, VaultPath, float]] = []
        notes_of = {piece: notes for piece, notes in notes_of.items() if len(notes) <= _COMMON}
        for piece, notes in notes_of.items():
            for first, second in combinations(notes, 2):
                one, other = self.of[first], self.of[second]
                # A pair is compared once, at the first piece that both have.
                shared = filter(other.sketch.__contains__, one.sketch)
                if (
                    piece != next(filter(notes_of.__contains__, shared))
                    or one.body_hash == other.body_hash
                ):
                    continue
                share = _overlap(bag(first), bag(second))
                enough = SIMILAR if _share_a_word(first, second) else _SAME
                if share >= enough and not _have_own_subjects(first, second, bag):
                    similar.append((first, second, share))
        return similar

    def _words(self, note: VaultPath) -> Counter[str]:
        return words_of(body_of(self._survey.index.text(note)))

    def _body(self, note: VaultPath) -> str:
        return body_of(self._survey.index.text(note)).decode("utf-8", "replace")


def _digest(note: VaultPath, data: bytes, today: str, properties: Mapping[str, Any]) -> NoteDigest:
    body = body_of(data)
    # Properties that the index has read are valid.
    has_properties = bool(properties)
    return NoteDigest(
        is_empty=is_empty(data, body, note.stem, properties),
        has_conflict_marks=(
            all(mark in data for mark in _CONFLICT_MARKS)
            and has_conflicts(data.decode("utf-8", "replace"))
        ),
        broken="" if has_properties else _broken_properties(data),
        may_repeat_properties=has_properties and _may_repeat_properties(data),
        body_hash=hash(body) if len(body) >= MIN_PROSE else None,
        sketch=_sketch(body),
        overdue=_overdue(data, today),
    )


def _has_prose(body: str) -> bool:
    return len(_STRUCTURE.sub("", body).strip()) >= MIN_PROSE


def _sketch(body: bytes) -> Sequence[int]:
    if body.count(b" ") < _MIN_WORDS:
        return ()
    sentences = body.replace(b". ", b"\n").split(b"\n")
    pieces = {crc32(sentence) for sentence in sentences if len(sentence) >= _MIN_PIECE}
    if len(pieces) < _MIN_PIECES:
        return ()
    return array("I", sorted(pieces)[:_SKETCH])


def _overlap(first: Mapping[str, int], second: Mapping[str, int]) -> float:
    """Return the size of the intersection of two bags of words over that of their union."""
    total = sum(first.values()) + sum(second.values())
    shared = sum(min(count, second.get(word, 0)) for word, count in first.items())
    return shared / (total - shared) if total else 0.0


def _share_a_word(first: VaultPath, second: VaultPath) -> bool:
    """Return whether the names of two notes have a word in common."""
    return not set(_WORD.findall(first.stem.casefold())).isdisjoint(
        _WORD.findall(second.stem.casefold())
    )


def _have_own_subjects(
    first: VaultPath, second: VaultPath, bag: Callable[[VaultPath], Mapping[str, int]]
) -> bool:
    """Return whether two notes are about different things, in the same words.

    Their names differ in numbers only, or each has words of its own name that the other has not.
    """
    if first.stem != second.stem and _NUMBERS.sub("", first.stem) == _NUMBERS.sub("", second.stem):
        return bool(_NUMBERS.search(first.stem) and _NUMBERS.search(second.stem))
    names = [set(_WORD.findall(note.stem.casefold())) for note in (first, second)]
    one, other = bag(first), bag(second)
    return any(word in one and word not in other for word in names[0] - names[1]) and any(
        word in other and word not in one for word in names[1] - names[0]
    )


def _broken_properties(data: bytes) -> str:
    if not body_start(data):
        return ""
    text = data.decode("utf-8", "replace")
    front = find_frontmatter(text)
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


def _may_repeat_properties(data: bytes) -> bool:
    names = _NAME.findall(data, 0, body_start(data))
    return len(names) != len(set(names))


def _overdue(data: bytes, today: str) -> tuple[OverdueTask, ...]:
    starts = {start for mark in _DUE_MARKS for start in _lines_with(mark, data)}
    if not starts:
        return ()
    text = data.decode("utf-8", "replace")
    if len(text) != len(data):
        starts = {len(data[:start].decode("utf-8", "replace")) for start in starts}
    matches = filter(None, map(_TASK_LINE.match, repeat(text), sorted(starts)))
    lines = [match for match in matches if _due_before(match["text"], today)]
    if not lines:
        return ()
    is_hidden = _HIDING.search(text, 0, lines[-1].start()) is not None
    if is_hidden:
        listed: Iterable[NoteTask] = tasks_of(scan(text, stop=lines[-1].end()))
    else:
        listed = map(_task_at, repeat(text), lines)
    return tuple(
        OverdueTask(task.line, task.text, due)
        for task in listed
        if task.status in " /" and (due := _due_before(task.text, today))
    )


def _lines_with(mark: bytes, data: bytes) -> Iterator[int]:
    """Yield where each line with a mark begins."""
    at = data.find(mark)
    while at >= 0:
        yield data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        at = data.find(mark, end) if end >= 0 else -1


def _due_before(text: str, today: str) -> str:
    """Return the due date in the text of a task if it is a day before today, else ""."""
    match = _DUE.search(text)
    due = next(filter(None, match.groups())) if match is not None else ""
    return due if due < today and is_day(due) else ""


def _task_at(text: str, match: re.Match[str]) -> NoteTask:
    line = text.count("\n", 0, match.start()) + 1
    return NoteTask(match["status"], without_block_id(match["text"].rstrip()), line)
