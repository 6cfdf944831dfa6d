"""The names in a vault as the offline matcher wants them, taken from one walk over a view, and Obsidian's settings for daily notes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cached_property
from typing import Any

from obsidian_agent.errors import VaultError
from obsidian_agent.tools.moment import format_moment
from obsidian_agent.vault import markdown
from obsidian_agent.vault.index import index_of
from obsidian_agent.vault.paths import ROOT, PathUse, parse
from obsidian_agent.vault.text import decode
from obsidian_agent.vault.view import VaultView

DEFAULT_DAILY_FORMAT = "YYYY-MM-DD"
WEEKLY_FORMAT = "gggg-[W]ww"
_WEEK = re.compile(r"\d{4}-?W\d{2}")
_WEEKLY = re.compile(r"\bweek(?:ly|s)?\b", re.IGNORECASE)
_ARCHIVES = frozenset(("archive", "archives", "archived"))
_PROPERTIES = re.compile(r"\A---\r?\n.*?^---\s*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\s*\[\[([^\[\]\n]+)\]\]\s*")


@dataclass(frozen=True, slots=True)
class DailySettings:
    """Where daily notes are (a folder, "" for the root), how they are named (Moment tokens), and the path of their template."""

    folder: str = ""
    format: str = DEFAULT_DAILY_FORMAT
    template: str | None = None

    @classmethod
    def read(cls, config: Callable[[Any], object | None]) -> DailySettings:
        """From Obsidian's `daily-notes.json`; what is missing or no text is as Obsidian has it by default."""
        document = config("daily-notes")
        settings = {key: value.strip() for key, value in document.items() if isinstance(value, str)} if isinstance(document, dict) else {}
        return cls(settings.get("folder", "").strip("/"), settings.get("format") or DEFAULT_DAILY_FORMAT, settings.get("template") or None)

    def path(self, day: date) -> str:
        """The path of a day's note."""
        name = format_moment(datetime.combine(day, time()), self.format)
        return f"{self.folder}/{name}.md" if self.folder else f"{name}.md"


class ViewNames:
    """Names of everything below the root of a view, at the moment it was made. `find` tells which files a description means."""

    def __init__(
        self,
        view: VaultView,
        daily: DailySettings,
        find: Callable[[Mapping[str, Any]], Sequence[str] | None] = lambda described: None,
        templates: str | None = None,
    ) -> None:
        self.templates = templates
        self._view = view
        self._daily = daily
        self._find = find
        notes: list[str] = []
        files: list[str] = []
        folders: list[str] = []
        for entry in view.walk(ROOT):
            kept = folders if entry.kind == "folder" else notes if entry.path.text.lower().endswith(".md") else files
            kept.append(entry.path.text)
        self._notes, self._files, self._folders = tuple(notes), tuple(files), tuple(folders)

    @property
    def notes(self) -> Sequence[str]:
        """Paths of the Markdown notes."""
        return self._notes

    @property
    def files(self) -> Sequence[str]:
        """Paths of all other files."""
        return self._files

    @property
    def folders(self) -> Sequence[str]:
        """Paths of the folders, without the root."""
        return self._folders

    def headings(self, note: str) -> Sequence[str]:
        """Texts of a note's headings, in order; none when it cannot be read."""
        return [heading.text for heading in self._sections(note)]

    def levels(self, note: str) -> Sequence[int]:
        """Levels of a note's headings, in order."""
        return [heading.level for heading in self._sections(note)]

    def lines(self, note: str) -> Sequence[str] | None:
        """The lines of a note below its properties; None when it cannot be read."""
        text = self.text(note)
        return _PROPERTIES.sub("", text).splitlines() if text is not None else None

    def _sections(self, note: str) -> Sequence[markdown.Heading]:
        text = self.text(note)
        return markdown.headings(text) if text is not None else []

    def meant(self, described: Mapping[str, Any]) -> frozenset[str] | None:
        """The paths that a description of notes means, or None when it cannot be told."""
        found = self._find(described)
        return None if found is None else frozenset(found)

    def daily_note(self, day: date) -> str:
        """Where the daily note of a day belongs."""
        return self._daily.path(day)

    @property
    def daily_set(self) -> Mapping[str, Any]:
        """The condition of `vault.find` that daily notes meet: their folder, and their name where the format is Obsidian's own."""
        named = {"name": "????-??-??"} if self._daily.format == DEFAULT_DAILY_FORMAT else {}
        return ({"folder": self._daily.folder} if self._daily.folder else {}) | named

    @property
    def daily_template(self) -> str | None:
        """The template that Obsidian's settings name for daily notes."""
        return self._daily.template

    @cached_property
    def tags(self) -> Sequence[str]:
        """All tags, without `#`."""
        index = index_of(self._view)
        return list(dict.fromkeys(tag for path in index.notes(ROOT) for tag in index.facts(path).tags))

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """Other names of notes; one that several notes have stands for none of them."""
        index = index_of(self._view)
        found: dict[str, set[str]] = {}
        for path in index.notes(ROOT):
            for alias in index.facts(path).aliases:
                found.setdefault(alias, set()).add(path.text)
        return {alias: paths.pop() for alias, paths in found.items() if len(paths) == 1}

    @cached_property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        """All properties: by name, their values by what a person would call them."""
        index = index_of(self._view)
        found: dict[str, dict[str, Any]] = {}
        for path in index.notes(ROOT):
            for name, value in index.facts(path).properties.items():
                values = found.setdefault(name, {})
                for each in value if isinstance(value, list) else [value]:
                    if isinstance(each, str | int | float) and each != "":
                        said, wanted = _said(each)
                        if type(values.setdefault(said, wanted)) is not type(wanted):
                            values[said] = said  # some hold it as a text: as a text it is found in all
        return found

    def title(self, note: str) -> str | None:
        """The heading that a note begins with, when it is the only one of the first level; else None."""
        sections = self._sections(note)
        levels = [section.level for section in sections]
        return sections[0].text if levels[:1] == [1] and levels.count(1) == 1 and sections[0].text else None

    @property
    def archive(self) -> str | None:
        """The one folder that is called an archive; of several the one that all others are in."""
        found = [folder for folder in self._folders if folder.rpartition("/")[2].casefold().strip("_- 0123456789") in _ARCHIVES]
        highest = min(found, key=len, default=None)
        return highest if highest is not None and all(each == highest or each.startswith(f"{highest}/") for each in found) else None

    def text(self, note: str) -> str | None:
        """The text of a note, or None when it is missing or no text."""
        try:
            path = parse(note, PathUse.READ)
            return decode(self._view.read(path), path.text)
        except VaultError:
            return None


@dataclass(frozen=True, slots=True)
class WeeklyHabits:
    """Where weekly notes go, as far as the vault shows it: beside those there are, else in a folder for them, else with the daily notes."""

    folder: str
    template: str | None

    @classmethod
    def seen_in(cls, names: ViewNames, daily: DailySettings) -> WeeklyHabits:
        """From the names alone; a template is a note in a folder of templates whose name says that it is weekly."""
        folders = [note.rpartition("/")[0] for note in names.notes if _WEEK.fullmatch(note.rpartition("/")[2].removesuffix(".md"))]
        named = [folder for folder in names.folders if _WEEKLY.search(folder.rpartition("/")[2])]
        used = Counter(folders).most_common(1)
        folder = used[0][0] if used else named[0] if len(named) == 1 else daily.folder
        templates = [
            note
            for note in names.notes
            if _WEEKLY.search(note.rpartition("/")[2]) and "template" in note.casefold() and note not in folders
        ]
        return cls(folder, templates[0] if len(templates) == 1 else None)


def _said(value: str | float) -> tuple[str, Any]:
    """What a person calls a value, and the value to look for: a link is called by its text and found by its target."""
    if isinstance(value, bool):
        return ("true" if value else "false"), value
    if not isinstance(value, str):
        return str(value), value
    link = _LINK.fullmatch(value)
    if link is None:
        return value, value
    target = link[1].partition("|")[0].partition("#")[0].strip().removesuffix(".md")
    name = target.rpartition("/")[2]
    return name, name
