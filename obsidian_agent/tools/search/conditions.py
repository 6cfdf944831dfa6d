"""Conditions on notes, joined by `all`, `any` and `not`.

A condition is checked one path at a time, cheap checks before those that need a note's text. Only
the condition `text` is searched once for the whole vault.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from functools import partial
from operator import ge, gt, le, lt
from typing import Any, Final, Literal, assert_never

from pydantic import Field

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.lookup import (
    find_file,
    find_folder,
    tagged,
    unread_warnings,
    value_of,
    without_properties,
    word_count,
)
from obsidian_agent.tools.core.models import ToolModel
from obsidian_agent.tools.core.moment import created_ms, moment_ms
from obsidian_agent.tools.core.patterns import whole_words
from obsidian_agent.tools.core.tool import PathText, ToolContext
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.index.text_search import Needle, folded_needle
from obsidian_agent.vault.links.resolve import file_name, link_key
from obsidian_agent.vault.markdown.lines import tasks
from obsidian_agent.vault.paths.path import ROOT, VaultPath
from obsidian_agent.vault.text import decode
from obsidian_agent.vault.views.view import VaultView

_DAY: Final = re.compile(
    r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?=(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?(?!\d)|(?!\d))"
)
"""A day, also as the beginning of a timestamp such as 202403121015."""

_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,10})?")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_DATE_PROPERTIES: Final = ("date", "created", "day", "published")
WHEN: Final = "A date (YYYY-MM-DD, meaning its beginning) or an ISO date and time."
"""The description of the fields that take a date or a time."""

Check = Callable[[VaultPath], bool]
CountedPart = Literal["words", "links", "backlinks"]

_LINK: Final = re.compile(r"\s*\[\[([^\[\]\n]+)\]\]\s*")
_NOTE_SUFFIX: Final = ".md"


class Condition(ToolModel):
    """A condition whose fields must all hold; without fields it holds for everything."""

    all_: list[Condition] | None = Field(default=None, alias="all")
    any_: list[Condition] | None = Field(default=None, alias="any", min_length=1)
    not_: Condition | None = Field(default=None, alias="not")
    paths: list[PathText] | None = Field(default=None, description="One of these files.")
    folder: PathText | None = Field(default=None, description='Anywhere below it; "" is the vault.')
    directly: bool = Field(default=False, description="With folder: not in its subfolders.")
    tag: str | list[str] | None = Field(
        default=None,
        description="Has one of these tags, with or without #; nested tags are included.",
    )
    property: dict[str, Any] | None = Field(
        default=None,
        description="Property: its value, or a list of allowed values; "
        "a list property matches by any of its values, a link by its target; "
        "null: it is missing or empty.",
    )
    at_least: dict[str, float | str] | None = Field(
        default=None, description="Property: its minimum, a number or date (YYYY-MM-DD)."
    )
    at_most: dict[str, float | str] | None = Field(
        default=None, description="Property: its maximum, a number or date."
    )
    above: dict[str, float | str] | None = Field(
        default=None, description="Like atLeast, but not equal."
    )
    below: dict[str, float | str] | None = Field(
        default=None, description="Like atMost, but not equal."
    )
    has: list[str] | None = Field(
        default=None, description="Has all these properties, with or without a value."
    )
    name: str | list[str] | None = Field(
        default=None,
        description="A part of the name, ignoring case, or a pattern with * and ?; "
        "of a list, any one.",
    )
    text: str | None = Field(
        default=None, min_length=1, description="Contains this text as whole words, ignoring case."
    )
    modified_before: str | None = Field(default=None, description=WHEN)
    modified_after: str | None = Field(
        default=None, description="Like modifiedBefore; the time itself is included."
    )
    created_before: str | None = Field(
        default=None,
        description="Like modifiedBefore; uses the property created if that is a date, "
        "else the file's own time.",
    )
    created_after: str | None = None
    dated_before: str | None = Field(
        default=None,
        description="A day (YYYY-MM-DD). A note's day is in its name, "
        "or its property date, created, day or published.",
    )
    dated_after: str | None = Field(
        default=None, description="Like datedBefore; the day itself is included."
    )
    links_to: PathText | None = Field(default=None, description="Links to this file.")
    linked_from: PathText | None = Field(default=None, description="Is linked from this file.")
    tagged: bool | None = Field(default=None, description="true: has a tag; false: has none.")
    linked: bool | None = Field(
        default=None, description="true: another file links to it; false: none does."
    )
    linking: bool | None = Field(
        default=None, description="true: links to another file; false: to none."
    )
    empty: bool | None = Field(
        default=None, description="true: has no text below its properties; false: has text."
    )
    tasks: str | None = Field(
        default=None,
        pattern=r"^(open|done|any|none)$",
        description="Has such tasks: open, done, any or none.",
    )
    more_than: dict[CountedPart, int] | None = Field(
        default=None, description="Has more words, links to other notes, or backlinks than this."
    )
    fewer_than: dict[CountedPart, int] | None = Field(default=None, description="Like moreThan.")
    properties: bool | None = Field(
        default=None, description="true: has a property; false: has none."
    )
    extension: list[str] | None = Field(
        default=None, description="One of these, without dot, ignoring case."
    )


class Matcher:
    """A checker of conditions against one state of a vault.

    `problems` are the errors of the notes that could not be read, by path. `uses_facts` is True if
    a condition needs tags or properties, which the index lacks for such notes.
    """

    def __init__(self, ctx: ToolContext) -> None:
        self.ctx = ctx
        self.index = ctx.view.index
        self.problems: dict[str, Problem] = {}
        self.uses_facts = False

    def check(self, condition: Condition) -> Check:
        """Return the condition as one check. Raise ToolError for an invalid tag, date or path."""
        checks = list(self._checks(condition))
        return lambda path: all(check(path) for check in checks)

    def candidates(self, condition: Condition) -> Iterable[VaultPath]:
        """Return all files that a condition may hold for. Raise the errors of `check`."""
        if condition.paths is None:
            return self.index.files()
        named = (find_file(self.ctx.view, text) for text in condition.paths)
        return {path for path in named if path in self.index.files_named(file_name(path))}

    def warnings(self, condition: Condition) -> tuple[Problem, ...]:
        """Return the read errors that may explain why files are missing from the result.

        Files that the condition excludes by their paths have no warning.
        """
        problems = self.problems | (
            {problem.path: problem for problem in unread_warnings(self.index)}
            if self.uses_facts
            else {}
        )
        path_checks = list(_by_path(condition, self.ctx.view)) if problems else []
        return tuple(
            problems[path.text]
            for path in self.index.files()
            if path.text in problems and all(check(path) for check in path_checks)
        )

    def _checks(self, condition: Condition) -> Iterator[Check]:
        """Yield the checks of one condition, cheap ones first."""
        yield from _by_path(condition, self.ctx.view)
        yield from self._by_time(condition)
        yield from self._by_facts(condition)
        yield from self._by_links(condition)
        for inner_condition in condition.all_ or ():
            yield self.check(inner_condition)
        if condition.any_ is not None:
            options = [self.check(inner_condition) for inner_condition in condition.any_]
            yield lambda path: any(option(path) for option in options)
        if condition.not_ is not None:
            inner = self.check(condition.not_)
            yield lambda path: not inner(path)
        yield from self._by_content(condition)
        yield from self._by_counts(condition)

    def _by_time(self, condition: Condition) -> Iterator[Check]:
        stat, now = self.ctx.view.stat, self.ctx.run.now
        before = moment_ms(condition.modified_before, now, "modifiedBefore")
        after = moment_ms(condition.modified_after, now, "modifiedAfter")
        created_before = moment_ms(condition.created_before, now, "createdBefore")
        created_after = moment_ms(condition.created_after, now, "createdAfter")
        if before is not None:
            yield lambda path: stat(path).mtime_ms < before
        if after is not None:
            yield lambda path: stat(path).mtime_ms >= after
        if condition.created_before is not None or condition.created_after is not None:
            self.uses_facts = True
        if created_before is not None:
            yield lambda path: self.created_ms(path) < created_before
        if created_after is not None:
            yield lambda path: self.created_ms(path) >= created_after

    def created_ms(self, path: VaultPath) -> float:
        """Return the creation time of a file; see `moment.created_ms`."""
        return created_ms(path, self.index.facts(path).properties if path.is_note else {}, self.ctx)

    def _by_facts(self, condition: Condition) -> Iterator[Check]:
        index = self.index
        if condition.tag is not None:
            self.uses_facts = True
            tags = [condition.tag] if isinstance(condition.tag, str) else condition.tag
            tagged_notes = frozenset(path for tag in tags for path in tagged(index, tag, ROOT))
            yield lambda path: path in tagged_notes
        if condition.tagged is not None:
            self.uses_facts = True
            yield lambda path: bool(index.facts(path).tags) == condition.tagged
        if condition.properties is not None:
            self.uses_facts = True
            yield lambda path: bool(index.facts(path).properties) == condition.properties
        for name, value in (condition.property or {}).items():
            self.uses_facts = True
            yield self._property(name, value)
        for limits, holds in (
            (condition.at_least, ge),
            (condition.at_most, le),
            (condition.above, gt),
            (condition.below, lt),
        ):
            for name, limit in (limits or {}).items():
                self.uses_facts = True
                yield self._compared(name, limit, holds)
        for name in condition.has or ():
            self.uses_facts = True
            yield _has_property(index, name)
        if condition.dated_before is not None or condition.dated_after is not None:
            yield self._dated(condition.dated_after, condition.dated_before)

    def _property(self, name: str, value: Any) -> Check:
        if value is None or value == []:
            return lambda path: value_of(self.index.facts(path).properties, name) in (None, "", [])
        filters = [
            PropertyFilter(name, filter_, self.index)
            for filter_ in (value if isinstance(value, list) else [value])
        ]
        return lambda path: any(filter_.fits(path) for filter_ in filters)

    def _compared(self, name: str, limit: float | str, holds: Callable[[Any, Any], bool]) -> Check:
        """Return a check that compares numbers with a number and dates with a date.

        Other values never match.
        """

        def fits(path: VaultPath) -> bool:
            value = comparable(value_of(self.index.facts(path).properties, name))
            bound = comparable(limit)
            return (
                value is not None
                and isinstance(value, str) == isinstance(bound, str)
                and holds(value, bound)
            )

        if comparable(limit) is None:
            raise ToolError(
                f"{limit!r} is neither a number nor a date.",
                hint="Use a number, or a date such as 2026-03-14.",
            )
        return fits

    def _dated(self, after: str | None, before: str | None) -> Check:
        first, last = _day(after, "datedAfter"), _day(before, "datedBefore")

        def fits(path: VaultPath) -> bool:
            day = day_of(path, self.index)
            return (
                day is not None and (first is None or day >= first) and (last is None or day < last)
            )

        return fits

    def _by_links(self, condition: Condition) -> Iterator[Check]:
        index = self.index
        if condition.links_to is not None:
            sources = frozenset(index.backlinks(find_file(self.ctx.view, condition.links_to)))
            yield lambda path: path in sources
        if condition.linked_from is not None:
            source = find_file(self.ctx.view, condition.linked_from)
            targets = frozenset(
                index.resolve(target, source) for target in index.facts(source).targets
            )
            yield lambda path: path in targets
        if condition.linked is not None:
            yield lambda path: bool(index.backlinks(path)) == condition.linked
        if condition.linking is not None:
            yield lambda path: self._links_out(path) == condition.linking

    def _links_out(self, path: VaultPath) -> bool:
        return any(
            self.index.resolve(target, path) not in (None, path)
            for target in self.index.facts(path).targets
        )

    def _count(self, part: CountedPart, path: VaultPath) -> int:
        match part:
            case "words":
                return word_count(without_properties(self._text(path)))
            case "links":
                targets = self.index.facts(path).targets
                return len({self.index.resolve(target, path) or target for target in targets})
            case "backlinks":
                return len(self.index.backlinks(path))
            case _:
                assert_never(part)

    def _by_counts(self, condition: Condition) -> Iterator[Check]:
        for limits, holds in ((condition.more_than, gt), (condition.fewer_than, lt)):
            for part, limit in (limits or {}).items():
                yield partial(self._is_counted, part, limit, holds)

    def _is_counted(
        self, part: CountedPart, limit: int, holds: Callable[[Any, Any], bool], path: VaultPath
    ) -> bool:
        return holds(self._count(part, path), limit)

    def _by_content(self, condition: Condition) -> Iterator[Check]:
        if condition.text is not None:
            pattern = whole_words(condition.text)
            longest = folded_needle(max(condition.text.split(), key=len, default=condition.text))
            notes = self.notes_with(ROOT, longest, lambda text: pattern.search(text) is not None)
            yield lambda path: path in notes
        if condition.tasks is not None:
            yield self._with_tasks(condition.tasks)
        if condition.empty is not None:
            yield lambda path: _is_empty(self._text(path)) == condition.empty

    def notes_with(
        self, folder: VaultPath, needle: Needle | None, fits: Callable[[str], bool]
    ) -> frozenset[VaultPath]:
        """Return the notes below a folder for whose text `fits` returns True.

        Only notes that may contain the needle are read.
        """
        matches: list[VaultPath] = []
        for path, data in self.index.texts(folder, needle):
            if isinstance(data, Problem):
                self.problems[path.text] = data
            elif fits(self._decoded(path, data)):
                matches.append(path)
        return frozenset(matches)

    def _with_tasks(self, state: str) -> Check:
        def fits(path: VaultPath) -> bool:
            states = {task.status for task in tasks(self._text(path)) if task.text.strip()}
            match state:
                case "open":
                    return bool(states & {" ", "/"})
                case "done":
                    return bool(states & {"x", "X"})
                case _:
                    return bool(states) == (state == "any")

        return fits

    def _text(self, path: VaultPath) -> str:
        try:
            return self._decoded(path, self.ctx.view.read(path))
        except VaultError as error:
            self.problems[path.text] = error.problem()
            return ""

    def _decoded(self, path: VaultPath, data: bytes) -> str:
        try:
            return decode(data, path.text)
        except VaultError as error:
            self.problems[path.text] = error.problem()
            return ""


def comparable(value: Any) -> float | str | None:
    """Return a number, the beginning of a text that is a date, or `None` for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    text = value.strip() if isinstance(value, str) else ""
    if _NUMBER.fullmatch(text):
        return float(text)
    return text[:10] if _DATE.match(text) else None


def day_of(path: VaultPath, index: VaultIndex) -> date | None:
    """Return the day that a note is about: in its name, or else in one of its properties."""
    match = _DAY.search(path.stem)
    properties = index.facts(path).properties
    texts = (
        [match[0]]
        if match
        else [
            value for key in _DATE_PROPERTIES if isinstance(value := value_of(properties, key), str)
        ]
    )
    for text in texts:
        match = _DAY.search(text)
        if match:
            try:
                return date(int(match[1]), int(match[2]), int(match[3]))
            except ValueError:
                continue
    return None


def _by_path(condition: Condition, view: VaultView) -> Iterator[Check]:
    if condition.paths is not None:
        named = frozenset(find_file(view, text) for text in condition.paths)
        yield lambda path: path in named
    if condition.folder is not None:
        folder = find_folder(view, condition.folder or None)
        yield (
            lambda path: (
                (path.parent == folder)
                if condition.directly
                else folder.is_root or path.within(folder)
            )
        )
    if condition.name is not None:
        patterns = [
            _name_pattern(name)
            for name in ([condition.name] if isinstance(condition.name, str) else condition.name)
        ]
        yield lambda path: any(
            fnmatch.fnmatchcase(path.stem.casefold(), pattern) for pattern in patterns
        )
    if condition.extension is not None:
        endings = frozenset(f".{ending.lstrip('.').lower()}" for ending in condition.extension)
        yield lambda path: path.suffix.lower() in endings


def _has_property(index: VaultIndex, name: str) -> Check:
    folded = name.casefold()
    return lambda path: any(key.casefold() == folded for key in index.facts(path).properties)


def _name_pattern(name: str) -> str:
    pattern = name.casefold().removesuffix(".md").replace("[", "[[]")
    return pattern if "*" in pattern or "?" in pattern else f"*{pattern}*"


def _day(text: str | None, argument: str) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text.strip()[:10])
    except ValueError as error:
        raise ToolError(
            f"{argument} {text!r} is not a date.", hint="Write it like 2026-03-14."
        ) from error


def _is_empty(text: str) -> bool:
    return not without_properties(text).strip("\ufeff \t\r\n")


class PropertyFilter:
    """A property and its required value.

    Texts are compared exactly, links by the file they lead to.
    """

    def __init__(self, key: str, required: Any, index: VaultIndex) -> None:
        self._key = key
        self._required = required
        self._index = index
        self._required_target = _target(required) if isinstance(required, str) else None

    def fits(self, path: VaultPath) -> bool:
        """Return whether a note meets the condition."""
        value = value_of(self._index.facts(path).properties, self._key)
        if self._required is None:
            return value is None
        if _equal(value, self._required):
            return True
        members = value if isinstance(value, list) else [value]
        return any(
            _equal(member, self._required) or self._is_link(member, path) for member in members
        )

    def _is_link(self, value: Any, source: VaultPath) -> bool:
        """Return whether one of the values is a link to the other.

        A link matches a link to the same file, and a text with its target, or with the path or the
        name of the file.
        """
        if not isinstance(value, str) or not isinstance(self._required, str):
            return False
        target = _target(value)
        if target is None:
            return self._required_target is not None and link_key(value) == link_key(
                self._required_target
            )
        required = link_key((self._required_target or self._required).strip()).removesuffix(
            _NOTE_SUFFIX
        )
        if link_key(target).removesuffix(_NOTE_SUFFIX) == required:
            return True
        file = self._index.resolve(target, source)
        if file is None:
            return False
        if self._required_target is not None:
            return self._index.resolve(self._required_target, source) == file
        path = link_key(file.text).removesuffix(_NOTE_SUFFIX)
        return path == required or path.rpartition("/")[2] == required


def _target(text: str) -> str | None:
    """Return the target of a text that is exactly one wikilink.

    Heading and display text are not part of it.
    """
    match = _LINK.fullmatch(text)
    if match is None:
        return None
    return match[1].partition("|")[0].partition("#")[0].strip() or None


def _equal(value: Any, required: Any) -> bool:
    """Return whether the values are equal and of one type (true is not 1).

    A number or boolean also equals its text.
    """
    if isinstance(required, str) and isinstance(value, (bool, int, float)):
        return json.dumps(value) == required.strip()
    if isinstance(value, bool) != isinstance(required, bool):
        return False
    return bool(value == required)
