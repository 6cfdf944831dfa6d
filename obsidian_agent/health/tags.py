"""Findings about tags that are spelled in several ways."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from obsidian_agent.health.finding import (
    HealthFinding,
    Repair,
    RepairChoice,
    RepairStep,
    note_count,
)
from obsidian_agent.health.names import is_date, spelled_out, without_accents
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.index.digest import SPELLS_TAGS
from obsidian_agent.vault.markdown.note import names_in
from obsidian_agent.vault.paths.path import VaultPath

_SEPARATOR: Final = re.compile(r"[-_]+(?!\d)|(?<=[^\W\d_]{2})[-_]+")
"""Not between digits, and not between one letter and a digit: `v1-2` is not `v12`."""
_PLURALS: Final = (
    (re.compile(r"(?<=\w\w[^\Ws])s\Z"), ""),
    (re.compile(r"(?<=\w\w\w)es\Z"), ""),
    (re.compile(r"(?<=\w\w\w)ies\Z"), "y"),
    (re.compile(r"(?<=\w\w\w)es\Z"), "is"),
    (re.compile(r"(?<=\w{4})e\Z"), ""),
    (re.compile(r"(?<=\w{4})en\Z"), ""),
    (re.compile(r"(?<=\w\w\we)n\Z"), ""),
)
"""The usual endings of plurals, and those of their singulars."""
_CLEAR_MAJORITY: Final = 3
"""A spelling this many times as frequent as another counts as the intended one."""

_Notes = Mapping[str, Sequence[VaultPath]]


def tag_spellings(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield tags that are another spelling of a more frequent tag.

    They differ in case, hyphens and underscores only, or are the plural of each other, or differ in
    accents. As that is true of other words too (`#new` and `#news`), such tags also have to be rare
    beside the usual one, and used in the same context. Of nested tags, the parent that differs is
    reported, once.
    """
    notes: dict[str, list[VaultPath]] = defaultdict(list)
    for note in survey.notes:
        for tag in dict.fromkeys(chain.from_iterable(map(_with_parents, _tags_in(survey, note)))):
            notes[tag].append(note)
    siblings: dict[str, list[str]] = defaultdict(list)
    for tag in notes:
        siblings[tag.rpartition("/")[0]].append(tag)
    context = _Context(survey, notes)

    def rank(tag: str) -> tuple[int, bool, str]:
        """Of equally frequent tags, prefer lower case."""
        return (-len(notes[tag]), not tag.islower(), tag)

    for tags in siblings.values():
        words: dict[str, list[str]] = defaultdict(list)
        for tag in sorted(tags, key=rank):
            words[_key(tag)].append(tag)
        for spellings in words.values():
            if len(spellings) > 1:
                yield _finding(spellings, notes)
        for related in _related(words):
            usual, tag = sorted(related, key=rank)
            uses, slips = (
                sum(len(notes[spelling]) for spelling in words[_key(one)]) for one in (usual, tag)
            )
            # Two words that are both in use are two tags: #sale and #sales.
            is_slip = uses >= _CLEAR_MAJORITY * slips
            if is_slip and (shared := context.shared(tag, usual)):
                yield _finding((usual, tag), notes, context=shared)


def _tags_in(survey: VaultSurvey, note: VaultPath) -> Sequence[str]:
    """Return the tags in a note, each in every spelling."""
    facts = survey.facts[note]
    data = survey.index.text(note) if facts.digest.flags & SPELLS_TAGS else b""
    return names_in(data).tags if isinstance(data, bytes) and data else facts.tags


def _with_parents(tag: str) -> Iterator[str]:
    """Yield a nested tag and the tags it lies within."""
    while tag:
        yield tag
        tag = tag.rpartition("/")[0]


def _folded(tag: str) -> str:
    return unicodedata.normalize("NFC", tag).lower()


def _key(tag: str) -> str:
    """Return the last part of a tag without case, hyphens and underscores."""
    return _SEPARATOR.sub("", _folded(tag.rpartition("/")[2])).replace("_", "-")


def _related(words: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of tags that may be one word: without accents, or as its plural."""
    plain: dict[str, list[str]] = defaultdict(list)
    for key in words:
        for form in {without_accents(key), spelled_out(key)}:
            plain[form].append(key)
    seen: set[frozenset[str]] = set()
    for form, keys in plain.items():
        singulars = {plural.sub(ending, form) for plural, ending in _PLURALS if plural.search(form)}
        related = [key for singular in sorted(singulars) for key in plain.get(singular, ())]
        for position, key in enumerate(keys):
            for other in (*keys[position + 1 :], *related):
                if (pair := frozenset((key, other))) not in seen:
                    seen.add(pair)
                    yield words[key][0], words[other][0]


class _Context:
    """The notes of a vault by tag, compared by where the tags are used."""

    def __init__(self, survey: VaultSurvey, notes: _Notes) -> None:
        self._survey = survey
        self._notes = notes

    def shared(self, tag: str, other: str) -> str:
        """Return what notes with one tag and others with the other share, in words, or "".

        It is a tag above both, a folder, or a third tag. What most notes share says nothing, nor
        does the folder of periodic notes, or a note that has both tags.
        """
        if parent := tag.rpartition("/")[0]:
            return f"both are below #{parent}"
        both = set(self._notes[tag]) & set(self._notes[other])
        ones, others = (
            [note for note in self._notes[name] if note not in both] for name in (tag, other)
        )
        most = len(self._survey.notes) / 2
        folders = self._topics(ones) & self._topics(others)
        for folder in sorted(folders, key=lambda folder: folder.text):
            if self._survey.tags_by_folder[folder, ""] <= most:
                return f"both are used in {folder.text}"
        for third in sorted(self._tags(ones) & self._tags(others)):
            if len(self._notes[third]) <= most:
                return f"both are used with #{third}"
        return ""

    def _topics(self, notes: Sequence[VaultPath]) -> set[VaultPath]:
        return {note.parent for note in notes if not note.parent.is_root and not is_date(note.stem)}

    def _tags(self, notes: Sequence[VaultPath]) -> set[str]:
        return {tag for note in notes for tag in self._survey.facts[note].tags}


def _finding(tags: Sequence[str], notes: _Notes, *, context: str = "") -> HealthFinding:
    """Return the finding about spellings of one tag, the usual one first."""
    usual, *others = tags
    count, usual_count = sum(len(notes[tag]) for tag in others), len(notes[usual])
    same_word = len(set(map(_folded, tags))) == 1
    evidence = "they differ in hyphens, underscores or case only"
    if same_word:
        evidence = "they differ in case only, which Obsidian ignores"
    if len({unicodedata.normalize("NFC", tag) for tag in tags}) == 1:
        evidence = "they look the same, but their accented letters are stored differently"
    counted = [f"#{tag} ({note_count(len(notes[tag]))})" for tag in (*others, usual)]
    return HealthFinding(
        kind="tag-spelling",
        path=notes[others[0]][0].text,
        subject=" ".join((*others, usual)),
        text=f"{', '.join(counted[:-1])} and {counted[-1]}",
        evidence=f"they may be one word: {context}" if context else evidence,
        repair=Repair(
            tuple(_renaming(tags, tag, notes) for tag in tags),
            preselected=same_word and usual_count >= _CLEAR_MAJORITY * count,
        ),
    )


def _renaming(tags: Sequence[str], new: str, notes: _Notes) -> RepairChoice:
    """Return the choice of one spelling, and of one for each tag below, where it has several."""
    old = [tag for tag in tags if tag != new]
    renames = [(tag, new) for tag in old]
    below: dict[str, Counter[str]] = defaultdict(Counter)
    for tag in notes:
        if parent := next((one for one in tags if tag.startswith(f"{one}/")), ""):
            ending = tag[len(parent) :]
            below[_folded(ending)][ending] += len(notes[tag])
    for endings in map(below.__getitem__, sorted(below)):
        if len(endings) > 1:
            (usual, _), *_ = endings.most_common(1)
            renames.append((new + usual, new + usual))
    steps = tuple(RepairStep("vault.renameTag", {"from": tag, "to": to}) for tag, to in renames)
    return RepairChoice(f"{', '.join(f'#{tag}' for tag in old)} → #{new}", steps)
