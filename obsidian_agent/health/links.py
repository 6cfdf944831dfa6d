"""Findings about links: those that lead nowhere, and those that can mean several files."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from obsidian_agent.errors import PathRefused, Problem, VaultError
from obsidian_agent.health.finding import HealthFinding, Repair, RepairChoice, RepairStep
from obsidian_agent.health.names import has_placeholder, is_date
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.links.graph import links_where, means_note, unresolved_name
from obsidian_agent.vault.links.resolve import file_name, is_relative, link_key, target_name
from obsidian_agent.vault.links.spelling import folder_fits, spelling_key
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.markdown.note import scan_lossy
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse

_MAX_CHOICES: Final = 5
_WORD: Final = re.compile(r"\w+")
_NOT_WRITTEN: Final = re.compile(r"[^\w!-/:-@\[-`{-~]")
_LONG: Final = 10
"""Letters of a name from which on it does not matter where its words are divided."""
_FILE_SUFFIX: Final = re.compile(r"\.[A-Za-z]{2,5}")
_TITLE_EVIDENCE: Final = "the title in that note"
_TITLE: Final = re.compile(rb"\n# +(.+?)[ \t#]*\r?(?=\n|\Z)")


class _Lost(Struct, frozen=True):
    """A name without a file in one note: the link as written first, and its line."""

    source: VaultPath
    name: str
    link: Link


def unresolved_links(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield the names in links that no file has, once for each note."""
    missing = list(_lost_links(survey))
    evidence = _Evidence(survey, missing)
    for lost in missing:
        if means_note(lost.link.target):
            yield _unresolved(evidence, lost)
        else:
            yield _missing_attachment(survey, lost)


def _lost_links(survey: VaultSurvey) -> Iterator[_Lost]:
    for source in filter(survey.is_examined, survey.sources):
        targets = {
            target
            for target, file in survey.targets[source].items()
            if file is None and not has_placeholder(target)
        }
        if not targets:
            continue
        try:
            data = survey.index.text(source) if source.is_note else survey.view.read(source)
        except VaultError:
            continue
        if isinstance(data, Problem):
            continue
        links = links_where(source, data, targets.__contains__)
        first: dict[str, Link] = {}
        for link in links:
            first.setdefault(link_key(unresolved_name(link.target)), link)
        for link in first.values():
            yield _Lost(source, unresolved_name(link.target), link)


def _missing_attachment(survey: VaultSurvey, lost: _Lost) -> HealthFinding:
    name = lost.link.target.rpartition("/")[2]
    same_name = survey.index.files_named(target_name(name))
    choices = [_retarget(lost, file) for file in same_name[:_MAX_CHOICES]]
    evidence = f"the same file name in {same_name[0].parent.text or 'the vault'}" if choices else ""
    is_certain = len(same_name) == 1 and folder_fits(lost.link.target, lost.source, same_name[0])
    return HealthFinding(
        kind="missing-attachment",
        path=lost.source.text,
        line=lost.link.line or None,
        subject=lost.name,
        text=f"“{lost.name}” is missing.",
        evidence=evidence,
        repair=Repair(tuple(choices), preselected=is_certain) if choices else None,
    )


def _unresolved(evidence: _Evidence, lost: _Lost) -> HealthFinding:
    reason, files = evidence.of(lost)
    if files:
        choices = [_retarget(lost, file) for file in files[:_MAX_CHOICES]]
    else:
        choices = [_retarget(lost, file) for file in evidence.similar(lost)]
    choices += [*_create(evidence, lost), _unlink(lost)]
    is_certain = len(files) == 1 and _is_certain(lost, files[0])
    if reason == _TITLE_EVIDENCE:
        # A title of one word, such as "Notes", is that of many notes.
        is_certain = is_certain and ("/" in lost.link.target or len(_words(lost.name)) > 1)
    return HealthFinding(
        kind="unresolved-link",
        path=lost.source.text,
        line=lost.link.line or None,
        subject=lost.name,
        text=f"“{lost.name}” leads nowhere.",
        evidence=reason if len(files) <= 1 else f"{len(files)} notes: {reason}",
        repair=Repair(tuple(choices), preselected=is_certain),
    )


def _is_certain(lost: _Lost, file: VaultPath) -> bool:
    """Return whether a name can mean one file only.

    It is not certain if the folder that it names is another, or if a short name differs in more
    than case and emoji ("Re-sign" and "Resign", ".NET" and "Net").
    """
    if not folder_fits(lost.link.target, lost.source, file):
        return False
    name = lost.name.rpartition("/")[2]
    stem = file.stem if file.is_note else file.name
    key = spelling_key(name)
    if key != spelling_key(stem) or len(key) >= _LONG:
        return True
    words = _words(name)
    if len(words) == 1:
        return _without_emoji(name) == _without_emoji(stem)
    return words == _words(stem)


def _without_emoji(name: str) -> str:
    """Return a name without case, emoji, blanks and Unicode form, but with its punctuation."""
    return _NOT_WRITTEN.sub("", unicodedata.normalize("NFKC", name).casefold())


def _words(name: str) -> list[str]:
    return [spelling_key(word) for word in _WORD.findall(unicodedata.normalize("NFKC", name))]


def _retarget(lost: _Lost, file: VaultPath) -> RepairChoice:
    name = file.stem if file.is_note else file.name
    keeps_text = spelling_key(lost.name.rpartition("/")[2]) != spelling_key(name)
    args: dict[str, Any] = {"path": lost.source.text, "name": lost.name, "to": file.text}
    if keeps_text:
        args["keepText"] = True
    written = f"[[{name}|{lost.name}]]" if keeps_text else f"[[{name}]]"
    title = f"[[{lost.name}]] → {written}"
    if lost.link.is_markdown:
        title = f"Link “{lost.name}” to {file.text}"
    return RepairChoice(title, (RepairStep("vault.retargetLinks", args),))


def _create(evidence: _Evidence, lost: _Lost) -> Iterator[RepairChoice]:
    """Yield the choice to create the missing note, if its name can be one.

    It is the same note for all links with this name, where Obsidian creates new notes.
    """
    survey = evidence.survey
    folder = evidence.folder_of_new(lost)
    path = lost.name if "/" in lost.name or not folder else f"{folder}/{lost.name}"
    try:
        note = parse(f"{path}.md", PathUse.CREATE)
    except PathRefused:
        return
    is_other_file = _FILE_SUFFIX.fullmatch(posixpath.splitext(lost.name)[1]) is not None
    if is_other_file or is_relative(lost.name) or survey.view.twin(note) is not None:
        return
    step = RepairStep("vault.createFile", {"path": note.text, "content": ""})
    yield RepairChoice(f"Create {note.text}", (step,))


def _unlink(lost: _Lost) -> RepairChoice:
    step = RepairStep("vault.removeLinks", {"path": lost.source.text, "name": lost.name})
    return RepairChoice("Turn the link into plain text", (step,))


class _Evidence:
    """The files that a missing name may mean, by the strength of the evidence."""

    def __init__(self, survey: VaultSurvey, missing: Iterable[_Lost]) -> None:
        self.survey = survey
        self._missing_keys: set[str] = set()
        self._folders: dict[str, list[str]] = defaultdict(list)
        """The folders of the notes with links by a missing name."""
        for lost in missing:
            self._missing_keys.add(_key(lost))
            self._folders[link_key(lost.name)].append(lost.source.parent.text)
        self._similar: dict[str, list[VaultPath]] = {}

    def folder_of_new(self, lost: _Lost) -> str:
        """Return the folder for the note that is missing: one for all links with its name."""
        folder = self.survey.settings.new_notes
        if folder is not None:
            return folder
        return posixpath.commonpath(self._folders[link_key(lost.name)])

    def of(self, lost: _Lost) -> tuple[str, list[VaultPath]]:
        """Return the strongest evidence and the files it speaks for; "" and none without any."""
        name = lost.name.rpartition("/")[2]
        if files := self._same_file_name(lost):
            return "the same name in another folder", files
        key = _key(lost)
        if not key:
            return "", []
        if not is_date(name):
            if files := self._spellings.get(key, []):
                return "the same name but for case, spaces, punctuation or emoji", files
            if files := self._aliases.get(key, []):
                return "an alias of that note", files
        if renamed := self._renamed(lost):
            return "the note had this name before it was renamed", [renamed]
        if not is_date(name) and (files := self._titles.get(key, [])):
            return _TITLE_EVIDENCE, files
        return "", []

    def similar(self, lost: _Lost) -> list[VaultPath]:
        """Return notes with a similar name, which are never more than candidates."""
        name = lost.name.rpartition("/")[2]
        if is_date(name):
            return []
        if name not in self._similar:
            self._similar[name] = self._named_alike(name)
        return self._similar[name]

    def _named_alike(self, name: str) -> list[VaultPath]:
        from rapidfuzz import fuzz, process

        matches = process.extract(
            spelling_key(name),
            self._keys.get(_digits(name), ()),
            scorer=fuzz.ratio,
            score_cutoff=80,
            limit=_MAX_CHOICES,
        )
        return [file for key, _, _ in matches for file in self._spellings[key]][:_MAX_CHOICES]

    @cached_property
    def _spellings(self) -> dict[str, list[VaultPath]]:
        return _grouped((spelling_key(note.stem), note) for note in self.survey.notes)

    @cached_property
    def _keys(self) -> dict[str, list[str]]:
        """The keys of notes by their digits: numbers and dates never count as similar."""
        keys: dict[str, list[str]] = defaultdict(list)
        for key in self._spellings:
            keys[_digits(key)].append(key)
        return keys

    @cached_property
    def _aliases(self) -> dict[str, list[VaultPath]]:
        facts = self.survey.facts
        return _grouped(
            (spelling_key(alias), note)
            for note in self.survey.notes
            for alias in facts[note].aliases
        )

    @cached_property
    def _titles(self) -> dict[str, list[VaultPath]]:
        """The notes by their first heading, if it is of the first level."""
        return _grouped((key, note) for note in self.survey.notes if (key := self._title_key(note)))

    def _title_key(self, note: VaultPath) -> str:
        """Return the key of a note's title if it is a missing name, else ""."""
        data = self.survey.index.text(note)
        # A pattern that begins with a text is found much faster than one with `^`.
        match = _TITLE.search(b"\n" + data) if isinstance(data, bytes) else None
        if match is None or not isinstance(data, bytes):
            return ""
        key = spelling_key(match[1].decode("utf-8", "replace"))
        if key not in self._missing_keys:
            return ""
        first = next(iter(scan_lossy(data).headings), None)
        return key if first is not None and first.level == 1 else ""

    @cached_property
    def _moves(self) -> dict[str, str]:
        """The latest path of renamed files, by the old path without case."""
        moves: dict[str, str] = {}
        for old, new in self.survey.settings.renames():
            moves.setdefault(link_key(old), new)
        return moves

    @cached_property
    def _old_names(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = defaultdict(list)
        for old in self._moves:
            names[old.rpartition("/")[2]].append(old)
        return names

    def _same_file_name(self, lost: _Lost) -> list[VaultPath]:
        """Return the files with the name of a link that also names a folder."""
        if "/" not in lost.name:
            return []
        named = self.survey.index.files_named(target_name(lost.link.target))
        return [file for file in named if file.is_note and self.survey.is_examined(file)]

    def _renamed(self, lost: _Lost) -> VaultPath | None:
        """Return the present path of the only file that had this name."""
        name = f"{link_key(lost.name)}.md"
        olds = [
            old
            for old in self._old_names.get(name.rpartition("/")[2], [])
            if old == name or old.endswith(f"/{name}")
        ]
        files = {file for old in olds if (file := self._followed(old)) is not None}
        return files.pop() if len(files) == 1 else None

    def _followed(self, old: str) -> VaultPath | None:
        """Return the file that was renamed from `old`, over all later renames."""
        seen: set[str] = set()
        path = old
        while (key := link_key(path)) in self._moves and key not in seen:
            seen.add(key)
            path = self._moves[key]
        try:
            entry = self.survey.view.locate(parse(path, PathUse.READ))
        except PathRefused:
            return None
        return entry.path if entry is not None and entry.kind == "file" else None


def _grouped(pairs: Iterable[tuple[str, VaultPath]]) -> dict[str, list[VaultPath]]:
    groups: dict[str, list[VaultPath]] = {}
    for key, note in pairs:
        group = groups.setdefault(key, [])
        if key and note not in group:
            group.append(note)
    return groups


def _key(lost: _Lost) -> str:
    return spelling_key(lost.name.rpartition("/")[2])


def _digits(name: str) -> str:
    return " ".join(re.findall(r"\d+", name))


def ambiguous_links(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield links by a bare name that several notes have, once for each note and name.

    A link to a note of the same folder is clear, and one to a note of the vault's own folder: that
    is what Obsidian itself writes for it.
    """
    named = _grouped((file_name(note), note) for note in survey.notes)
    shared = {name: notes for name, notes in named.items() if len(notes) > 1}
    if not shared:
        return
    for source in survey.notes:
        chosen = {
            target: file
            for target, file in survey.targets[source].items()
            if file is not None
            and "/" not in target
            and file.is_note
            and target_name(target) in shared
            and not file.parent.is_root
            and file.parent != source.parent
        }
        if not chosen:
            continue
        spellings = {link_key(target): target for target in sorted(chosen, reverse=True)}
        lines = _first_lines(survey, source, set(spellings.values()))
        for target in spellings.values():
            yield _ambiguous(
                source, target, lines.get(target), chosen[target], shared[target_name(target)]
            )


def _ambiguous(
    source: VaultPath, target: str, line: int | None, chosen: VaultPath, files: list[VaultPath]
) -> HealthFinding:
    others = [file for file in files if file != chosen]
    choices = [
        RepairChoice(
            f"Link to {file.text} instead",
            (
                RepairStep(
                    "vault.retargetLinks",
                    {"path": source.text, "from": chosen.text, "to": file.text},
                ),
            ),
        )
        for file in others[:_MAX_CHOICES]
    ]
    return HealthFinding(
        kind="ambiguous-link",
        path=source.text,
        line=line,
        subject=target,
        text=f"“{target}” can mean {len(files)} notes. Obsidian opens {chosen.text}.",
        evidence=", ".join(file.text for file in files[:_MAX_CHOICES]),
        repair=Repair(tuple(choices)),
    )


def _first_lines(survey: VaultSurvey, source: VaultPath, targets: Set[str]) -> dict[str, int]:
    """Return the line of the first link to each of the targets in a note."""
    data = survey.index.text(source)
    if not isinstance(data, bytes):
        return {}
    lines: dict[str, int] = {}
    for link in links_where(source, data, targets.__contains__):
        lines.setdefault(link.target, link.line)
    return lines
