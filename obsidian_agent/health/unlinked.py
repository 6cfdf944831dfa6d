"""Findings about notes without links, with links proposed where a name is mentioned."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple

from obsidian_agent.errors import Problem
from obsidian_agent.health.finding import HealthFinding, Repair, RepairChoice, RepairStep
from obsidian_agent.health.names import has_date, is_date, names_also, without_id
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.health.texts import TITLE, is_empty
from obsidian_agent.vault.links.mentions import mention_pattern, with_links
from obsidian_agent.vault.markdown.canvas import CANVAS
from obsidian_agent.vault.paths.path import VaultPath

_WORD: Final = re.compile(r"\w+")
_BLANKS: Final = bytes(
    byte if byte >= 128 or chr(byte).isalnum() or byte == ord("_") else ord(" ")
    for byte in range(256)
)
_PUNCTUATION: Final = re.compile(
    rb"\xe2\x80[\x80-\xbf]|\xc2[\xa0-\xbf]|\xe3\x80[\x80-\x9f]|\xef\xbc[\x80-\x9f]"
)
"""Turn ASCII and other punctuation into blanks."""
_BEFORE: Final = r"(?<![\w/#.@\[{-])"
_AFTER: Final = r"(?![\w/\]}-]|\.\w)"
"""No parts of longer words, addresses, tags and names of files are mentions."""
_WITHIN: Final = r"(?<=[\w,;)] )"
"""In the middle of a sentence."""
_NO_LONGER_NAME: Final = r"(?! ?[:(]| [^\W\d_a-zß-öø-ÿ])"
"""Not "Ada Lovelace" for "Ada", and no label."""
_MIN_FIRST: Final = 7
"""Letters of a word that is a name at the beginning of a sentence, too."""
_MIN_LETTERS: Final = 4
_MAX_CHOICES: Final = 5
_SAMPLE: Final = 200
"""Notes in which words are counted."""
_TOO_COMMON: Final = 20
"""A name that more notes mention is an everyday word."""


class _Name(NamedTuple):
    """A name of a note, as it is written and in lower case."""

    note: VaultPath
    text: str
    lowered: str


class _Mention(NamedTuple):
    """A text in one note that is a name of another."""

    source: VaultPath
    note: VaultPath
    text: str


def _is_periodic(note: VaultPath, daily_folder: str) -> bool:
    is_daily = bool(daily_folder) and note.text.startswith(f"{daily_folder}/")
    return has_date(note.stem) and (is_daily or is_date(note.stem))


def unlinked_notes(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield the notes without links to or from other notes.

    Empty notes, conflict copies, templates, and periodic notes that mention nothing are left out.
    """
    unlinked = {
        note: _text(data)
        for note in survey.notes
        if not survey.backlinks[note]
        and not any(
            file.suffix == CANVAS or (file.is_note and file != note)
            for file in survey.linked_files[note]
        )
        and isinstance(data := survey.index.text(note), bytes)
        and not is_empty(data, note.stem, survey.facts[note].properties)
    }
    mentions = _Mentions(survey, unlinked)
    by_note = mentions.by_note() if unlinked else {}
    for note in unlinked:
        own = by_note.get(note, [])
        if not own and _is_periodic(note, survey.settings.daily_folder):
            continue
        sources = ", ".join(mention.source.text for mention in own if mention.note == note)
        others = ", ".join(mention.note.text for mention in own if mention.source == note)
        more = mentions.left_out[note]
        sources += f" and {more} more" if more else ""
        evidence = [f"mentioned in {sources}"] if sources else []
        evidence += [f"mentions {others}"] if others else []
        yield HealthFinding(
            kind="unlinked-note",
            path=note.text,
            subject="",
            text="No note links here, and the note links to no other.",
            evidence="; ".join(evidence),
            repair=Repair(tuple(map(_link, own))) if own else None,
        )


def _link(mention: _Mention) -> RepairChoice:
    args = {
        "files": [mention.source.text],
        "to": mention.note.text,
        "text": mention.text,
        "occurrences": "first",
    }
    step = RepairStep("vault.linkMentions", args)
    title = f"Link “{mention.text}” in {mention.source.text} to {mention.note.text}"
    return RepairChoice(title, (step,))


def _text(data: bytes | Problem) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else ""


class _Mentions:
    """The mentions of notes without links in other notes, and of other notes in them.

    A name of several words is found in any case. One of a single word is found as it is written,
    a short one within a sentence only, unless the vault has the word in lower case too. A name of
    several notes, such as "README", means none of them.
    """

    def __init__(self, survey: VaultSurvey, unlinked: dict[VaultPath, str]) -> None:
        self._survey = survey
        self._unlinked = unlinked
        self._everyday: set[str] = set()
        """Single words that are no names, because they are also written in lower case."""
        self._sources: Counter[VaultPath] = Counter()
        """The number of mentions of a note that can connect it or another one."""
        self.left_out: Counter[VaultPath] = Counter()
        """The number of notes that mention a note and are not listed."""

    def by_note(self) -> dict[VaultPath, list[_Mention]]:
        """Return the mentions that can become links, by the note that they would connect."""
        mentions = sorted(self._search(), key=attrgetter("source"))
        by_note: dict[VaultPath, list[_Mention]] = defaultdict(list)
        for mention in mentions:
            if self._sources[mention.note] > _TOO_COMMON or mention.text.lower() in self._everyday:
                continue
            for note in (mention.note, mention.source):
                listed = by_note[note]
                if note not in self._unlinked:
                    continue
                if len(listed) == _MAX_CHOICES:
                    self.left_out[note] += note == mention.note
                elif self._can_link(mention):
                    listed.append(mention)
        return by_note

    def _search(self) -> Iterator[_Mention]:
        names = self._names()
        frequency = self._frequency()
        by_word = _NamesByWord(names, frequency)
        single_words: set[_Name] = set()
        for source in self._unlinked:
            for name, text in self._names_in(source, by_word):
                yield _Mention(source, name.note, text)
                if not _has_several_words(name.text):
                    single_words.add(name)
        # The other notes can mention notes without links only. Names of other notes that are a
        # single word are looked up there, too, because that may be an everyday word.
        names = [name for name in names if name.note in self._unlinked or name in single_words]
        by_word = _NamesByWord(names, frequency)
        for source in self._survey.notes:
            if source not in self._unlinked:
                for name, text in self._names_in(source, by_word):
                    if name.note in self._unlinked:
                        yield _Mention(source, name.note, text)

    def _frequency(self) -> Counter[bytes]:
        """Return how many of some notes have a word."""
        notes = self._survey.notes
        texts = map(self._survey.index.text, notes[:: len(notes) // _SAMPLE + 1])
        lowered = (_lowered(data) for data in texts if isinstance(data, bytes))
        return Counter(chain.from_iterable(set(_words(text)) for text in lowered))

    def _names(self) -> list[_Name]:
        """Return the specific names of all notes, and the titles of those without links."""
        names = []
        for note in self._survey.notes:
            title = TITLE.search(self._unlinked[note]) if note in self._unlinked else None
            stem = note.stem
            texts = [stem, without_id(stem), *self._survey.facts[note].aliases]
            texts += [title[1]] if title else []
            for text in dict.fromkeys(text.strip() for text in texts):
                if _is_specific(text):
                    names.append(_Name(note, text, text.lower()))
        owners = Counter(lowered for _, lowered in {(name.note, name.lowered) for name in names})
        return [name for name in names if owners[name.lowered] == 1]

    def _names_in(self, source: VaultPath, names: _NamesByWord) -> Iterator[tuple[_Name, str]]:
        """Yield the names in a note, one for each note that they name, and the text there."""
        data = self._survey.index.text(source)
        candidates = names.among(_lowered(data)) if isinstance(data, bytes) else []
        if not candidates:
            return
        text = _text(data)
        notes = {source}
        for name in sorted(candidates, key=_by_length):
            # In "Invalid dates in rules", "invalid dates" is a part of its own subject.
            if name.note in notes or names_also(source.stem, name.text):
                continue
            if mentioned := self._mentioned(name, text):
                notes.add(name.note)
                if source in self._unlinked or name.note in self._unlinked:
                    self._sources[name.note] += 1
                yield name, mentioned
            if name.lowered in self._everyday or self._sources[name.note] > _TOO_COMMON:
                names.remove(name)

    def _mentioned(self, name: _Name, text: str) -> str:
        """Return a name as a text has it, as whole words, or "" if it has not."""
        if _has_several_words(name.text):
            pattern = r"[ \t]+".join(map(re.escape, name.text.split()))
            match = re.search(f"{_BEFORE}{pattern}{_AFTER}", text, re.IGNORECASE)
            return match[0] if match is not None else ""
        word = re.escape(name.text)
        # Most names need no pattern.
        is_everyday = name.text != name.lowered and name.lowered in text
        if is_everyday and re.search(f"{_BEFORE}{word.lower()}{_AFTER}", text):
            self._everyday.add(name.lowered)
            return ""
        if name.text not in text:
            return ""
        if _is_distinctive(name.text):
            match = re.search(f"{_BEFORE}{word}{_AFTER}", text)
        else:
            before = _WITHIN if len(name.text) < _MIN_FIRST else ""
            match = re.search(f"{_BEFORE}{before}{word}{_AFTER}{_NO_LONGER_NAME}", text)
        return match[0] if match is not None else ""

    def _can_link(self, mention: _Mention) -> bool:
        """Return whether `vault.linkMentions` can put a link in the place of a mention."""
        text = _text(self._survey.index.text(mention.source))
        pattern = mention_pattern([mention.text], ignore_case=False)
        return with_links(text, pattern, mention.note.stem, first=True)[1] > 0


class _NamesByWord:
    """Names in lower case by the rarest word of each.

    `frequency` counts words in notes. A word is rare if it leads to few names in few notes.
    """

    def __init__(self, names: Iterable[_Name], frequency: Mapping[bytes, int]) -> None:
        encoded = [(name.lowered.encode("utf-8", "replace"), name) for name in names]
        words = [_words(lowered) for lowered, _ in encoded]
        named = Counter(chain.from_iterable(words))
        self._by_word: dict[bytes, list[tuple[bytes, _Name]]] = defaultdict(list)
        for entry, own in zip(encoded, words, strict=True):
            rarest = min(
                own, key=lambda word: (named[word] * (frequency[word] + 1), -len(word), word)
            )
            self._by_word[rarest].append(entry)
        self._rarest = frozenset(self._by_word)

    def among(self, text: bytes) -> list[_Name]:
        """Return the names that are in a text in lower case."""
        hits = self._rarest.intersection(_words(text)) & self._by_word.keys()
        return [name for word in hits for lowered, name in self._by_word[word] if lowered in text]

    def remove(self, name: _Name) -> None:
        """Remove a name, which is no longer found then."""
        entry = (name.lowered.encode("utf-8", "replace"), name)
        for word in set(_words(entry[0])):
            names = self._by_word.get(word, [])
            if entry in names:
                names.remove(entry)
                if not names:
                    del self._by_word[word]


def _lowered(data: bytes) -> bytes:
    return data.lower() if data.isascii() else _text(data).lower().encode("utf-8", "replace")


def _words(lowered: bytes) -> list[bytes]:
    """Return the words of a text in lower case."""
    if not lowered.isascii():
        lowered = _PUNCTUATION.sub(b" ", lowered)
    return lowered.translate(_BLANKS).split()


def _by_length(name: _Name) -> tuple[int, str, str]:
    """Sort the longest name first, which says most."""
    return -len(name.text), name.text, name.note.text


def _is_specific(name: str) -> bool:
    """Return whether a name can be told from an everyday word."""
    if is_date(name) or sum(map(str.isalpha, name)) < _MIN_LETTERS:
        return False
    return _has_several_words(name) or _is_distinctive(name) or name[0].isupper()


def _has_several_words(name: str) -> bool:
    return len(_WORD.findall(name)) > 1


def _is_distinctive(word: str) -> bool:
    """Return whether a word is a name wherever it stands, such as "GraphQL" or "my_note"."""
    return any(char.isupper() or char.isdigit() or char == "_" for char in word[1:])
