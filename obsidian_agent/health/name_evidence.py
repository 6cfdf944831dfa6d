"""The files that a name without a file may mean, by what speaks for each of them."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Final, NamedTuple

from msgspec import Struct

from obsidian_agent.errors import PathRefused, Problem
from obsidian_agent.health.names import has_date, is_date, is_day, names_also, without_accents
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.links.graph import ATTACHMENTS
from obsidian_agent.vault.links.resolve import is_relative, link_key, target_name
from obsidian_agent.vault.links.spelling import folder_fits, is_same_name, spelling_key
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.markdown.note import scan_lossy
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse

_MAX_SIMILAR: Final = 5
_MAX_LONGER: Final = 50
"""Names with the same beginning that are looked at."""
_MIN_SIMILAR: Final = 6
"""Letters from which on names that differ in one of them may be the same."""
_WORD: Final = re.compile(r"\w+")
_HEADING: Final = re.compile(rb"\n#{1,6} +(.+?)[ \t#]*\r?(?=\n|\Z)")
_NOT_SIMILAR: Final = re.compile(r"\d+|[+#]+|\b[IVXLC]+\b")
_NO_LETTER: Final = re.compile(r"[^\w+#]")
_NO_WORD: Final = re.compile(r"(?!\d{8})\w*\d\w*|\w|Untitled", re.IGNORECASE)
_NUMBER_OF_COPY: Final = re.compile(r"(?<=\S) ?\(\d+\)\Z")
_FILE_SUFFIX: Final = re.compile(r"\.[A-Za-z]{2,5}")
_SUFFIXES: Final = {".jpeg": ".jpg", ".tiff": ".tif"}


class LostLink(Struct, frozen=True):
    """A name without a file in one note: the link as written first, and its line."""

    source: VaultPath
    name: str
    link: Link

    @property
    def last_name(self) -> str:
        """The name without folders."""
        return self.name.rpartition("/")[2]


class Match(Struct, frozen=True):
    """A file that a name may mean, and why. `is_certain`: that speaks for no other file.

    `heading` is the one in the file that has the name, "" if the name means the file.
    """

    file: VaultPath
    reason: str
    is_certain: bool
    heading: str = ""


class _Heading(NamedTuple):
    """A heading of a note. `is_title`: it is the first one, and of the first level."""

    note: VaultPath
    text: str
    is_title: bool


class NameEvidence:
    """The files that missing names may mean."""

    def __init__(self, survey: VaultSurvey, missing: Iterable[LostLink]) -> None:
        self.survey = survey
        self._missing_keys: set[str] = set()
        self._folders: dict[str, list[str]] = defaultdict(list)
        """The folders of the notes with links by a missing name."""
        for lost in missing:
            self._missing_keys.add(spelling_key(lost.last_name))
            self._folders[link_key(lost.name)].append(lost.source.parent.text)
        self._similar: dict[str, list[VaultPath]] = {}
        self._new_notes: dict[str, VaultPath | None] = {}

    def new_note(self, name: str) -> VaultPath | None:
        """Return the path for the note that is missing, None if it can have no such name.

        It is the same note for all links with this name, where Obsidian creates new notes.
        """
        if name not in self._new_notes:
            self._new_notes[name] = self._new_note(name)
        return self._new_notes[name]

    def _new_note(self, name: str) -> VaultPath | None:
        folder = self._folder_of_new(name)
        path = name if "/" in name or not folder else f"{folder}/{name}"
        try:
            note = parse(f"{path}.md", PathUse.CREATE)
        except PathRefused:
            return None
        is_other_file = _FILE_SUFFIX.fullmatch(posixpath.splitext(name)[1]) is not None
        if is_other_file or is_relative(name) or self.survey.view.twin(note) is not None:
            return None
        return note

    def _folder_of_new(self, name: str) -> str:
        settings = self.survey.settings
        if settings.daily_notes and is_day(name):
            return settings.daily_notes
        if settings.new_notes is not None:
            return settings.new_notes
        return posixpath.commonpath(self._folders[link_key(name)])

    def of(self, lost: LostLink) -> list[Match]:
        """Return each file that something speaks for, with the strongest evidence, that first."""
        matches: dict[VaultPath, Match] = {}
        for match in self._matches(lost):
            matches.setdefault(match.file, match)
        return list(matches.values()) or self._under_heading(lost)

    def _matches(self, lost: LostLink) -> Iterator[Match]:
        name = lost.last_name
        # In "Q/A" the slash is no folder.
        if "/" in lost.name and len(name) > 1:
            for file in self.survey.index.files_named(target_name(lost.link.target)):
                if file.is_note and self.survey.is_linkable(file):
                    fits = folder_fits(lost.link.target, lost.source, file)
                    yield Match(file, "the same name in another folder", fits)
        key = spelling_key(name)
        may_be_spelled = bool(key) and not is_date(name)
        if may_be_spelled:
            named = self._named.get(key, ())
            named = [pair for pair in named if not _have_other_emoji(name, pair[1])]
            for file, own in named:
                if own == file.stem:
                    reason = "the same name but for case, spaces, punctuation or emoji"
                    yield Match(file, reason, _fits(lost, file, own))
            for file, alias in named:
                if alias != file.stem:
                    # "Paris", an alias of "Paris (Texas)", is more likely something else.
                    is_specific = self._is_specific(alias) and not names_also(file.stem, alias)
                    is_certain = is_specific and _fits(lost, file, alias)
                    yield Match(file, "an alias of that note", is_certain)
        if renamed := self._renamed(lost):
            yield renamed
        if may_be_spelled:
            for file, title, is_title in self._headings.get(key, ()):
                if not is_title:
                    continue
                is_certain = _fits(lost, file, title) and self._is_name(title, file)
                is_certain = is_certain and ("/" in lost.link.target or self._is_specific(name))
                yield Match(file, "the title in that note", is_certain)

    def _under_heading(self, lost: LostLink) -> list[Match]:
        """Return the note with the only heading of the vault that has a name of several words.

        That is never certain: the name may be that of a note to be written.
        """
        headings = self._headings.get(spelling_key(lost.name), ())
        if len(headings) != 1 or lost.link.subpath or not _is_phrase(lost.name):
            return []
        ((file, heading, is_title),) = headings
        return [] if is_title else [Match(file, "a heading with these words", False, heading)]

    def _is_specific(self, name: str) -> bool:
        """Return whether a name has several words, and is not a part of longer names."""
        return len(_words(name)) > 1 and not self._longer_names(name)

    def similar(self, lost: LostLink) -> list[VaultPath]:
        """Return notes with a similar name or alias, which are never more than candidates."""
        name = lost.last_name
        if is_date(name):
            return []
        if name not in self._similar:
            self._similar[name] = self._named_alike(name)
        return self._similar[name]

    def _named_alike(self, name: str) -> list[VaultPath]:
        from rapidfuzz import fuzz, process

        key = without_accents(spelling_key(name))
        by_name = self._plain_names.get((_digits(name), key[:1]), {})
        matches = process.extract(
            key, by_name.keys(), scorer=fuzz.ratio, score_cutoff=80, limit=_MAX_SIMILAR
        )
        similar = [own for own, _, _ in matches if _may_be_misspelled(key, own)]
        longer = self._longer_names(name)
        files = [file for own in similar for file in by_name[own]]
        # A word that many names begin with means none of them.
        files = longer + files if len(longer) <= _MAX_SIMILAR else files
        return [file for file in dict.fromkeys(files) if not _have_other_emoji(name, file.stem)]

    def _longer_names(self, name: str) -> list[VaultPath]:
        """Return notes whose names begin with a name, or end with one of several words.

        More than `_MAX_SIMILAR` mean none of them, so the others are not looked up.
        """
        beginning = name.casefold()
        longer = _with_beginning(self._stems, beginning)
        if len(_words(name)) > 1:
            ending = _with_beginning(self._reversed_stems, beginning[::-1])
            longer = chain(longer, ending)
        return [*islice(longer, _MAX_SIMILAR + 1)]

    @cached_property
    def attachments(self) -> dict[str, list[VaultPath]]:
        """The attachments by their keys."""
        files: dict[str, list[VaultPath]] = defaultdict(list)
        for file in self.survey.files:
            if file.suffix in ATTACHMENTS:
                for key in attachment_keys(file.name):
                    files[key].append(file)
        return files

    @cached_property
    def _named(self) -> dict[str, list[tuple[VaultPath, str]]]:
        """The notes with their names and aliases, by the keys of those."""
        named: dict[str, list[tuple[VaultPath, str]]] = defaultdict(list)
        for note in self.survey.linkable:
            for name in (note.stem, *self.survey.facts[note].aliases):
                named[spelling_key(name)].append((note, name))
        return named

    @cached_property
    def _plain_names(self) -> dict[tuple[str, str], dict[str, list[VaultPath]]]:
        """The notes by names and aliases without accents, by what similar ones have in common.

        That is what never counts as similar, and the first letter.
        """
        names: dict[tuple[str, str], dict[str, list[VaultPath]]] = defaultdict(dict)
        for key, named in self._named.items():
            plain = without_accents(key)
            for note, name in named:
                names[_digits(name), plain[:1]].setdefault(plain, []).append(note)
        return names

    @cached_property
    def _stems(self) -> list[tuple[str, VaultPath]]:
        """The names of the notes without case, sorted, with the notes."""
        return sorted((note.stem.casefold(), note) for note in self.survey.linkable)

    @cached_property
    def _reversed_stems(self) -> list[tuple[str, VaultPath]]:
        return sorted((stem[::-1], note) for stem, note in self._stems)

    @cached_property
    def _headings(self) -> dict[str, list[_Heading]]:
        """The headings that are missing names, by the keys of those."""
        headings: dict[str, list[_Heading]] = defaultdict(list)
        for note in self.survey.linkable:
            data = self.survey.index.text(note)
            if isinstance(data, Problem):
                continue
            # A pattern that begins with a text is found much faster than one with `^`.
            written = b"\1".join(_HEADING.findall(b"\n" + data)).decode("utf-8", "replace")
            # One key of all headings is made faster than one of each.
            if self._missing_keys.isdisjoint(spelling_key(written).split("\1")):
                continue
            for number, heading in enumerate(scan_lossy(data).headings):
                if (key := spelling_key(heading.text)) in self._missing_keys:
                    is_title = number == 0 and heading.level == 1
                    headings[key].append(_Heading(note, heading.text, is_title))
        return headings

    def _is_name(self, title: str, note: VaultPath) -> bool:
        """Return whether a title is the name of a note, and not of many, as "Meeting notes" is.

        The name of its file says nothing or is part of the title, or it is a property, too.
        """
        if names_also(title, note.stem):
            return _digits(note.stem) == _digits(title)
        own = self.survey.facts[note].properties.get("title")
        if isinstance(own, str) and spelling_key(own) == spelling_key(title):
            return True
        return not has_date(note.stem) and all(map(_NO_WORD.fullmatch, _WORD.findall(note.stem)))

    @cached_property
    def _moves(self) -> dict[str, str]:
        """The new path of each renamed file, the last one, by the old path without case."""
        return {link_key(old): new for old, new in reversed(self.survey.settings.renames())}

    @cached_property
    def _old_names(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = defaultdict(list)
        for old in self._moves:
            names[old.rpartition("/")[2]].append(old)
        return names

    def _renamed(self, lost: LostLink) -> Match | None:
        """Return the present path of the only file that had this name.

        That is never certain: the name may have been that of a draft, or be in use again.
        """
        name = f"{link_key(lost.name)}.md"
        olds = [
            old
            for old in self._old_names.get(name.rpartition("/")[2], [])
            if old == name or old.endswith(f"/{name}")
        ]
        files = {file for file in map(self._followed, olds) if file is not None}
        if len(files) != 1:
            return None
        return Match(files.pop(), "the note had this name before it was renamed", False)

    def _followed(self, old: str) -> VaultPath | None:
        """Return the file that was renamed from `old`, over all later renames, if it is there."""
        path = old
        for _ in self._moves:
            if link_key(path) not in self._moves:
                break
            path = self._moves[link_key(path)]
        try:
            entry = self.survey.view.locate(parse(path, PathUse.READ))
        except PathRefused:
            return None
        return entry.path if entry is not None and entry.kind == "file" else None


def _with_beginning(stems: Sequence[tuple[str, VaultPath]], beginning: str) -> Iterator[VaultPath]:
    """Yield the notes of sorted names that begin with the words of another one."""
    start = bisect_left(stems, (beginning,))
    for stem, note in islice(stems, start, start + _MAX_LONGER):
        if not stem.startswith(beginning):
            break
        if _NO_LETTER.match(stem, len(beginning)):
            yield note


def attachment_keys(name: str) -> set[str]:
    """Return the keys of an attachment: with and without the number that a copy has."""
    stem, suffix = posixpath.splitext(name)
    return {attachment_key(name), attachment_key(_NUMBER_OF_COPY.sub("", stem) + suffix)}


def attachment_key(name: str) -> str:
    """Return the name of an attachment without case, spaces, punctuation and accents."""
    stem, suffix = posixpath.splitext(name)
    suffix = suffix.lower()
    return without_accents(spelling_key(stem)) + _SUFFIXES.get(suffix, suffix)


def _fits(lost: LostLink, file: VaultPath, actual: str) -> bool:
    """Return whether a name, with its folders, can only mean the file that is called `actual`."""
    return folder_fits(lost.link.target, lost.source, file) and is_same_name(lost.last_name, actual)


def _words(name: str) -> list[str]:
    return [spelling_key(word) for word in _WORD.findall(unicodedata.normalize("NFKC", name))]


def _is_phrase(name: str) -> bool:
    """Return whether a name has several words, or is long in a script without blanks."""
    return len(_words(name)) > 1 or (
        len(name) >= _MIN_SIMILAR and unicodedata.category(name[0]) == "Lo"
    )


def _have_other_emoji(name: str, actual: str) -> bool:
    """Return whether both names have emoji, which differ."""
    emoji, own_emoji = _emoji(name), _emoji(actual)
    return bool(emoji and own_emoji) and emoji != own_emoji


def _emoji(name: str) -> list[str]:
    return [character for character in name if unicodedata.category(character) == "So"]


def _may_be_misspelled(key: str, own_key: str) -> bool:
    """Return whether one of two similar keys with one first letter may be meant as the other."""
    first, second = sorted((key, own_key), key=len)
    return second.startswith(first) or len(first) >= _MIN_SIMILAR


def _digits(name: str) -> str:
    """Return the parts of a name that never count as similar: numbers, `+` and `#`."""
    return " ".join(part.lstrip("0") for part in _NOT_SIMILAR.findall(name))
