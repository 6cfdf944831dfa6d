"""The facts about the texts of all notes, for the checks that depend on them."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Final

from msgspec import Struct

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.health.conflict_marks import has_conflicts
from obsidian_agent.health.names import is_date, is_day, period, without_id
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.health.texts import SIMILAR, is_empty, words_of
from obsidian_agent.vault.frontmatter.properties import find_frontmatter, read_block
from obsidian_agent.vault.index.digest import (
    HAS_FENCES,
    HAS_MARKS,
    IS_SHORT,
    MAY_BE_EMPTY,
    MAY_LACK_FENCE,
    MIN_PROSE,
    REPEATS_NAMES,
    DueTask,
    body_of,
)
from obsidian_agent.vault.paths.path import VaultPath

_WORD: Final = re.compile(r"\w+")
_STRUCTURE: Final = re.compile(r"(?m)^[ \t]*(?:#{1,6}[ \t].*|[-*+][ \t]*(?:\[.\])?[ \t]*|---+|>)$")
_NUMBERS: Final = re.compile(r"\d+")
_IN_BRACKETS: Final = re.compile(r"[ \t]*\([^()]*\)\Z")
_NAMED_AS_COPY: Final = re.compile(
    r"\)\Z|\b(?:copy|copie|copia|cópia|kopi[ea]?|копия)\b", re.IGNORECASE
)
_MIN_WORDS: Final = 15
"""Words of a short text that can be compared."""
_COPY: Final = 0.8
"""The share of words that a short text has in common with one that is named as a copy of it."""
_MIN_COPY: Final = 8
_BAGS: Final = 1_000
"""Bags of words that are kept."""
_COMMON: Final = 10
"""A piece that more notes share is boilerplate."""
_MISSPELLED: Final = 75
"""The likeness, of at most 100, of a word and another spelling of it."""
_SHARED: Final = 4
"""Of so many pieces of a text, its versions have at least one."""
_MIN_SHARED: Final = 4
"""Pieces in common from which on notes of any names may be versions of one text."""
_FEW: Final = 1 / 3
"""Lines that one of two versions has, for each line that both have."""
_SAME: Final = 0.98
"""The same for notes with quite different names, which may be filled forms."""


class NoteDigest(Struct, frozen=True, kw_only=True):
    """The facts about a note's text that checks use.

    `body` is None for a text of a few words. `broken` says why the properties cannot be read.
    `may_repeat_properties`: two lines of the properties begin with the same name.
    `may_lack_fence`: a note without properties begins with hyphens.
    """

    is_empty: bool = False
    has_conflict_marks: bool = False
    broken: str = ""
    may_repeat_properties: bool = False
    may_lack_fence: bool = False
    body: int | None = None
    sketch: Sequence[int] = ()
    overdue: tuple[DueTask, ...] = ()


class Digests:
    """The digests of all notes of a vault, without templates and conflict copies."""

    def __init__(self, survey: VaultSurvey) -> None:
        self._survey = survey
        readable = (note for note in survey.notes if note.text not in survey.index.problems)
        self.of = {note: _digest(survey, note) for note in readable}

    @cached_property
    def identical(self) -> list[list[VaultPath]]:
        """The groups of notes with the same text, apart from their properties."""
        notes_of: dict[int, list[VaultPath]] = {}
        for note, digest in self.of.items():
            if digest.body is not None:
                notes_of.setdefault(digest.body, []).append(note)
        groups: dict[str, list[VaultPath]] = {}
        for notes in notes_of.values():
            for note in notes if len(notes) > 1 else ():
                groups.setdefault(self._body(note), []).append(note)
        return [
            group
            for body, group in groups.items()
            if len(group) > 1 and _has_prose(body) and not _are_periods(group)
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
                both = set(one.sketch).intersection(other.sketch)
                if piece != min(both & notes_of.keys()) or one.body == other.body:
                    continue
                if len(both) * _SHARED < min(len(one.sketch), len(other.sketch)):
                    continue
                share = _overlap(bag(first), bag(second))
                has_lines = len(both) >= _MIN_SHARED and self._differ_in_few_lines(first, second)
                least, enough = (_COPY, SIMILAR) if has_lines else (SIMILAR, _SAME)
                enough = least if _may_be_versions(first, second) else enough
                if share >= enough and not self._have_own_subjects(
                    first, second, bag, has_lines=has_lines
                ):
                    similar.append((first, second, share))
        known = {frozenset(pair[:2]) for pair in similar}
        for first, second in self._named_alike():
            words, own_words = bag(first), bag(second)
            share = _overlap(words, own_words)
            is_copy = _NAMED_AS_COPY.search(second.stem) is not None
            enough, least = (_COPY, _MIN_COPY) if is_copy else (SIMILAR, _MIN_WORDS)
            is_text = min(words.total(), own_words.total()) >= least
            is_new = frozenset((first, second)) not in known
            if not (is_new and is_text and enough <= share < 1):
                continue
            if not self._have_own_subjects(first, second, bag):
                similar.append((first, second, share))
        return similar

    def _differ_in_few_lines(self, first: VaultPath, second: VaultPath) -> bool:
        """Return whether two texts have nearly all their lines in common, unlike filled forms."""
        one, other = (
            set(self._body(note).replace(". ", "\n").split("\n")) for note in (first, second)
        )
        return len(one ^ other) <= _FEW * len(one & other)

    def _have_own_subjects(
        self,
        first: VaultPath,
        second: VaultPath,
        bag: Callable[[VaultPath], Mapping[str, int]],
        *,
        has_lines: bool = False,
    ) -> bool:
        """Return whether two notes are about different things, in the same words.

        Their names differ in one word or in numbers only, as those of a series; or what a name has
        more is a kind of notes, or also in its text, and not in that of the other. If nearly all
        lines are the same, a longer name says nothing more.
        """
        names = [_name_words(note) for note in (first, second)]
        if names[0] == names[1]:
            return self._are_one_of_each_folder(first, second)
        if _are_of_series(*names):
            return True
        one, other = (set(name) for name in names)
        words, own_words = bag(first), bag(second)
        if not (one <= other or other <= one):
            return any(word in words and word not in own_words for word in one - other) and any(
                word in own_words and word not in words for word in other - one
            )
        added = one ^ other
        if not self._kinds.isdisjoint(added):
            return True
        return not has_lines and any((word in words) != (word in own_words) for word in added)

    def _are_one_of_each_folder(self, first: VaultPath, second: VaultPath) -> bool:
        """Return whether notes have a name that folders beside each other have, such as README."""
        folder, other = first.parent, second.parent
        are_beside = folder != other and folder.parent == other.parent
        return are_beside and (not folder.parent.is_root or self._names[first.stem] > 2)

    @cached_property
    def _names(self) -> Counter[str]:
        return Counter(note.stem for note in self.of)

    @cached_property
    def _kinds(self) -> set[str]:
        """The words by which the vault tells notes apart: its tags and values of properties."""
        kinds: set[str] = set()
        for note in self.of:
            facts = self._survey.facts[note]
            for tag in facts.tags:
                kinds.update(tag.casefold().split("/"))
            for value in facts.properties.values():
                items = value if isinstance(value, list) else [value]
                kinds.update(item.casefold() for item in items if isinstance(item, str))
        return kinds

    def _named_alike(self) -> Iterator[tuple[VaultPath, VaultPath]]:
        """Yield notes of a folder and those named as copies of them: "X" and "X (old)"."""
        names = {note: (note.parent.text, _name_words(note)) for note in self.of}
        notes = {name: note for note, name in names.items()}
        spelled: dict[tuple[str, str], VaultPath] = {}
        for note, (folder, words) in names.items():
            shorter = {words[:-1], words[:-2], words[1:], words[2:]}
            if ")" in note.stem:
                without_brackets = _IN_BRACKETS.sub("", note.stem).casefold()
                shorter.add(tuple(_WORD.findall(without_brackets)))
            for name in sorted(shorter - {(), words}, key=len, reverse=True):
                original = notes.get((folder, name))
                if original is not None and any(map(str.isalpha, set(words) - set(name))):
                    yield original, note
                    break
            other = spelled.setdefault((folder, "".join(words)), note)
            if other != note:
                yield other, note

    def _words(self, note: VaultPath) -> Counter[str]:
        return words_of(body_of(self._survey.index.text(note)))

    def _body(self, note: VaultPath) -> str:
        return body_of(self._survey.index.text(note)).decode("utf-8", "replace")


def _digest(survey: VaultSurvey, note: VaultPath) -> NoteDigest:
    facts = survey.facts[note]
    flags, body, _, due_tasks = facts.digest
    today = survey.settings.now.date().isoformat()
    # Properties that the index has read are valid.
    has_properties = bool(facts.properties)
    data: bytes | Problem = b""
    may_be_broken = bool(flags & HAS_FENCES) and not has_properties
    if flags & (MAY_BE_EMPTY | HAS_MARKS) or may_be_broken:
        data = survey.index.text(note)
    if isinstance(data, Problem):
        return NoteDigest()
    return NoteDigest(
        is_empty=bool(flags & MAY_BE_EMPTY) and is_empty(data, note.stem, facts.properties),
        has_conflict_marks=(
            bool(flags & HAS_MARKS) and has_conflicts(data.decode("utf-8", "replace"))
        ),
        broken=_broken_properties(data) if may_be_broken else "",
        may_repeat_properties=has_properties and bool(flags & REPEATS_NAMES),
        may_lack_fence=bool(flags & MAY_LACK_FENCE),
        body=None if flags & IS_SHORT else body,
        sketch=array("I", facts.digest.pieces),
        overdue=tuple(DueTask(*task) for task in due_tasks if task[2] < today and is_day(task[2])),
    )


def _has_prose(body: str) -> bool:
    return len(_STRUCTURE.sub("", body).strip()) >= MIN_PROSE


def _overlap(first: Mapping[str, int], second: Mapping[str, int]) -> float:
    """Return the size of the intersection of two bags of words over that of their union."""
    total = sum(first.values()) + sum(second.values())
    shared = sum(min(count, second.get(word, 0)) for word, count in first.items())
    return shared / (total - shared) if total else 0.0


def _are_periods(notes: Sequence[VaultPath]) -> bool:
    """Return whether each note is one of another day, week or month: they were not filled in."""
    periods = [note.stem if is_date(note.stem) else period(note.stem) for note in notes]
    return all(periods) and len(set(periods)) == len(periods)


def _name_words(note: VaultPath) -> tuple[str, ...]:
    return tuple(_WORD.findall(without_id(note.stem).casefold()))


def _may_be_versions(first: VaultPath, second: VaultPath) -> bool:
    """Return whether the names of two notes have a word in common, and may be those of one note.

    Two notes of a folder of which each has a word of its own are meant to be two.
    """
    one, other = set(_name_words(first)), set(_name_words(second))
    is_longer = one <= other or other <= one or first.parent != second.parent
    return is_longer and not one.isdisjoint(other)


def _are_of_series(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two names differ in one word, as "Faust I" and "Faust II", or in numbers.

    A word that is only spelled differently is none of its own.
    """
    from rapidfuzz import fuzz

    if len(one) != len(other):
        return False
    changed = [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
    if all(word.isdigit() and own.isdigit() for word, own in changed):
        return True
    if len(changed) > 1:
        return False
    ((word, own),) = changed
    has_number = _NUMBERS.search(word + own) is not None
    return has_number or fuzz.ratio(word, own) < _MISSPELLED


def _broken_properties(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    front = find_frontmatter(text)
    if front is None:
        return ""
    try:
        read_block(text[front.content_start : front.content_end])
    except VaultError as error:
        return error.message
    return ""
