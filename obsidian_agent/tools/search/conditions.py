"""Which notes are meant: conditions that hold together, joined by `all`, `any` and `not`.

A condition is checked one path at a time, what is cheap before what needs a note's text. `text` is looked up once for the whole vault.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from operator import ge, gt, le, lt
from typing import Any, Final

from pydantic import Field

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.lookup import (
    find_file,
    find_folder,
    unread_warnings,
    value_of,
    without_properties,
)
from obsidian_agent.tools.core.models import ToolModel
from obsidian_agent.tools.core.moment import created_ms, moment_ms
from obsidian_agent.tools.core.patterns import whole_words
from obsidian_agent.tools.core.tool import PathText, ToolContext
from obsidian_agent.tools.search.search import tagged
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
"""A day, also the beginning of a moment such as 202403121015."""

_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,10})?")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_DATE_PROPERTIES: Final = ("date", "created", "day", "published")
WHEN: Final = "A date (YYYY-MM-DD, that is its beginning) or an ISO date and time."

Check = Callable[[VaultPath], bool]


class Condition(ToolModel):
    """All fields that are given must hold; none given: everything does."""

    all_: list[Condition] | None = Field(default=None, alias="all")
    any_: list[Condition] | None = Field(default=None, alias="any", min_length=1)
    not_: Condition | None = Field(default=None, alias="not")
    paths: list[PathText] | None = Field(default=None, description="One of these files.")
    folder: PathText | None = Field(
        default=None, description='Somewhere below it; "" is the vault.'
    )
    directly: bool = Field(
        default=False, description="With folder: not in a folder below that one."
    )
    tag: str | list[str] | None = Field(
        default=None,
        description="Has one of these tags, with or without #; nested tags are included.",
    )
    property: dict[str, Any] | None = Field(
        default=None,
        description="Property: its value, or a list of which it has one; it may be in the property's list; a link by its target; "
        "null: it is missing or empty.",
    )
    at_least: dict[str, float | str] | None = Field(
        default=None, description="Property: a number or date (YYYY-MM-DD) that it reaches."
    )
    at_most: dict[str, float | str] | None = Field(
        default=None, description="Property: a number or date that it does not exceed."
    )
    above: dict[str, float | str] | None = Field(
        default=None, description="As atLeast, but not equal."
    )
    below: dict[str, float | str] | None = Field(
        default=None, description="As atMost, but not equal."
    )
    has: list[str] | None = Field(
        default=None, description="Has all these properties, with a value or without."
    )
    name: str | list[str] | None = Field(
        default=None,
        description="A part of the name, in any case, or a pattern with * and ?; one of several.",
    )
    text: str | None = Field(
        default=None, min_length=1, description="Holds this text as whole words, in any case."
    )
    modified_before: str | None = Field(default=None, description=WHEN)
    modified_after: str | None = Field(
        default=None, description="As modifiedBefore; the moment itself is included."
    )
    created_before: str | None = Field(
        default=None,
        description="As modifiedBefore; by its property created where that is a date, else by the file's own time.",
    )
    created_after: str | None = None
    dated_before: str | None = Field(
        default=None,
        description="A day (YYYY-MM-DD). A note's own day is in its name, or its property date, created, day or published.",
    )
    dated_after: str | None = Field(
        default=None, description="As datedBefore; the day itself is included."
    )
    links_to: PathText | None = Field(default=None, description="Links to this file.")
    linked_from: PathText | None = Field(default=None, description="This file links to it.")
    tagged: bool | None = Field(default=None, description="Has any tag, or none.")
    linked: bool | None = Field(default=None, description="Any other file links to it, or none.")
    linking: bool | None = Field(default=None, description="Links to any other file, or to none.")
    empty: bool | None = Field(
        default=None, description="Nothing stands below its properties, or something."
    )
    tasks: str | None = Field(
        default=None,
        pattern=r"^(open|done|any|none)$",
        description="Has such tasks: open, done, any or none.",
    )
    properties: bool | None = Field(default=None, description="Has any property, or none.")
    extension: list[str] | None = Field(
        default=None, description="One of these, without dot, in any case."
    )


@dataclass(slots=True)
class Matcher:
    """Checks conditions against one state of a vault. `problems` are the notes that could not be read."""

    ctx: ToolContext
    problems: dict[str, Problem] = field(default_factory=dict)
    index: VaultIndex = field(init=False)
    uses_facts: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.index = self.ctx.view.index

    def check(self, condition: Condition) -> Check:
        """The condition as one check. ToolError for a tag, date or path that is none."""
        checks = list(self._checks(condition))
        return lambda path: all(check(path) for check in checks)

    def candidates(self, condition: Condition) -> Iterable[VaultPath]:
        """All files that a condition may hold for. Raises as `check`."""
        if condition.paths is None:
            return self.index.files()
        named = (find_file(self.ctx.view, text) for text in condition.paths)
        return {path for path in named if path in self.index.named(file_name(path))}

    def warnings(self, condition: Condition) -> tuple[Problem, ...]:
        """Why files may be missing from the answer to a condition: those that it does not leave out by their paths."""
        problems = self.problems | (
            {each.path: each for each in unread_warnings(self.index)} if self.uses_facts else {}
        )
        fits = list(_by_path(condition, self.ctx.view)) if problems else []
        return tuple(
            problems[path.text]
            for path in self.index.files()
            if path.text in problems and all(check(path) for check in fits)
        )

    def _checks(self, wanted: Condition) -> Iterator[Check]:
        """The checks of one condition, cheap ones first."""
        yield from _by_path(wanted, self.ctx.view)
        yield from self._by_time(wanted)
        yield from self._by_facts(wanted)
        yield from self._by_links(wanted)
        for each in wanted.all_ or ():
            yield self.check(each)
        if wanted.any_ is not None:
            options = [self.check(each) for each in wanted.any_]
            yield lambda path: any(option(path) for option in options)
        if wanted.not_ is not None:
            inner = self.check(wanted.not_)
            yield lambda path: not inner(path)
        yield from self._by_content(wanted)

    def _by_time(self, wanted: Condition) -> Iterator[Check]:
        stat, now = self.ctx.view.stat, self.ctx.run.now
        before = moment_ms(wanted.modified_before, now, "modifiedBefore")
        after = moment_ms(wanted.modified_after, now, "modifiedAfter")
        made_before = moment_ms(wanted.created_before, now, "createdBefore")
        made_after = moment_ms(wanted.created_after, now, "createdAfter")
        if before is not None:
            yield lambda path: stat(path).mtime_ms < before
        if after is not None:
            yield lambda path: stat(path).mtime_ms >= after
        if wanted.created_before is not None or wanted.created_after is not None:
            self.uses_facts = True
        if made_before is not None:
            yield lambda path: self.created_ms(path) < made_before
        if made_after is not None:
            yield lambda path: self.created_ms(path) >= made_after

    def created_ms(self, path: VaultPath) -> float:
        """When a file was made; see `created_ms`."""
        return created_ms(path, self.index.facts(path).properties if path.is_note else {}, self.ctx)

    def _by_facts(self, wanted: Condition) -> Iterator[Check]:
        index = self.index
        if wanted.tag is not None:
            self.uses_facts = True
            tags = [wanted.tag] if isinstance(wanted.tag, str) else wanted.tag
            having = frozenset(path for tag in tags for path in tagged(index, tag, ROOT))
            yield lambda path: path in having
        if wanted.tagged is not None:
            self.uses_facts = True
            yield lambda path: bool(index.facts(path).tags) == wanted.tagged
        if wanted.properties is not None:
            self.uses_facts = True
            yield lambda path: bool(index.facts(path).properties) == wanted.properties
        for name, value in (wanted.property or {}).items():
            self.uses_facts = True
            yield self._property(name, value)
        for limits, holds in (
            (wanted.at_least, ge),
            (wanted.at_most, le),
            (wanted.above, gt),
            (wanted.below, lt),
        ):
            for name, limit in (limits or {}).items():
                self.uses_facts = True
                yield self._compared(name, limit, holds)
        for name in wanted.has or ():
            self.uses_facts = True
            yield _having(index, name)
        if wanted.dated_before is not None or wanted.dated_after is not None:
            yield self._dated(wanted.dated_after, wanted.dated_before)

    def _property(self, name: str, value: Any) -> Check:
        if value is None or value == []:
            return lambda path: value_of(self.index.facts(path).properties, name) in (None, "", [])
        filters = [
            PropertyFilter(name, each, self.index)
            for each in (value if isinstance(value, list) else [value])
        ]
        return lambda path: any(each.fits(path) for each in filters)

    def _compared(self, name: str, limit: float | str, holds: Callable[[Any, Any], bool]) -> Check:
        """Numbers with a number, dates with a date; what is neither never fits."""

        def fits(path: VaultPath) -> bool:
            value = comparable(value_of(self.index.facts(path).properties, name))
            wanted = comparable(limit)
            return (
                value is not None
                and isinstance(value, str) == isinstance(wanted, str)
                and holds(value, wanted)
            )

        if comparable(limit) is None:
            raise ToolError(
                f"{limit!r} is neither a number nor a date.",
                hint="Write a number, or a date like 2026-03-14.",
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

    def _by_links(self, wanted: Condition) -> Iterator[Check]:
        index = self.index
        if wanted.links_to is not None:
            sources = frozenset(index.linking(find_file(self.ctx.view, wanted.links_to)))
            yield lambda path: path in sources
        if wanted.linked_from is not None:
            source = find_file(self.ctx.view, wanted.linked_from)
            targets = frozenset(
                index.resolve(target, source) for target in index.facts(source).targets
            )
            yield lambda path: path in targets
        if wanted.linked is not None:
            yield lambda path: bool(index.linking(path)) == wanted.linked
        if wanted.linking is not None:
            yield lambda path: self._links_out(path) == wanted.linking

    def _links_out(self, path: VaultPath) -> bool:
        return any(
            self.index.resolve(target, path) not in (None, path)
            for target in self.index.facts(path).targets
        )

    def _by_content(self, wanted: Condition) -> Iterator[Check]:
        if wanted.text is not None:
            pattern = whole_words(wanted.text)
            longest = folded_needle(max(wanted.text.split(), key=len, default=wanted.text))
            holding = self.holding(ROOT, longest, lambda text: pattern.search(text) is not None)
            yield lambda path: path in holding
        if wanted.tasks is not None:
            yield self._with_tasks(wanted.tasks)
        if wanted.empty is not None:
            yield lambda path: _is_empty(self._text(path)) == wanted.empty

    def holding(
        self, folder: VaultPath, needle: Needle | None, fits: Callable[[str], bool]
    ) -> frozenset[VaultPath]:
        """The notes below a folder whose text fits, looked for among those that may hold a needle."""
        found: list[VaultPath] = []
        for path, data in self.index.texts(folder, needle):
            if isinstance(data, Problem):
                self.problems[path.text] = data
            elif fits(self._decoded(path, data)):
                found.append(path)
        return frozenset(found)

    def _with_tasks(self, wanted: str) -> Check:
        def fits(path: VaultPath) -> bool:
            states = {task.status for task in tasks(self._text(path))}
            match wanted:
                case "open":
                    return bool(states & {" ", "/"})
                case "done":
                    return bool(states & {"x", "X"})
                case _:
                    return bool(states) == (wanted == "any")

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
    """A number, or the beginning of a text that is a date; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    text = value.strip() if isinstance(value, str) else ""
    if _NUMBER.fullmatch(text):
        return float(text)
    return text[:10] if _DATE.match(text) else None


def day_of(path: VaultPath, index: VaultIndex) -> date | None:
    """The day that a note is about: in its name, else in one of its properties."""
    found = _DAY.search(path.stem)
    properties = index.facts(path).properties
    texts = (
        [found[0]]
        if found
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


def _by_path(wanted: Condition, view: VaultView) -> Iterator[Check]:
    if wanted.paths is not None:
        named = frozenset(find_file(view, text) for text in wanted.paths)
        yield lambda path: path in named
    if wanted.folder is not None:
        folder = find_folder(view, wanted.folder or None)
        yield (
            lambda path: (
                (path.parent == folder)
                if wanted.directly
                else folder.is_root or path.within(folder)
            )
        )
    if wanted.name is not None:
        patterns = [
            _name_pattern(name)
            for name in ([wanted.name] if isinstance(wanted.name, str) else wanted.name)
        ]
        yield lambda path: any(
            fnmatch.fnmatchcase(path.stem.casefold(), pattern) for pattern in patterns
        )
    if wanted.extension is not None:
        endings = frozenset(f".{ending.lstrip('.').lower()}" for ending in wanted.extension)
        yield lambda path: path.suffix.lower() in endings


def _having(index: VaultIndex, name: str) -> Check:
    folded = name.casefold()
    return lambda path: any(key.casefold() == folded for key in index.facts(path).properties)


def _name_pattern(name: str) -> str:
    wanted = name.casefold().removesuffix(".md").replace("[", "[[]")
    return wanted if "*" in wanted or "?" in wanted else f"*{wanted}*"


def _day(text: str | None, argument: str) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text.strip()[:10])
    except ValueError as error:
        raise ToolError(
            f"{argument} {text!r} is no day.", hint="Write it like 2026-03-14."
        ) from error


def _is_empty(text: str) -> bool:
    return not without_properties(text).strip("\ufeff \t\r\n")


_LINK: Final = re.compile(r"\s*\[\[([^\[\]\n]+)\]\]\s*")


_NOTE: Final = ".md"


class PropertyFilter:
    """One property and the value it must have. Text is compared exactly, links by the file they lead to."""

    def __init__(self, key: str, wanted: Any, index: VaultIndex) -> None:
        self._key = key
        self._wanted = wanted
        self._index = index
        self._wanted_target = _target(wanted) if isinstance(wanted, str) else None

    def fits(self, path: VaultPath) -> bool:
        """Whether a note meets the condition."""
        value = value_of(self._index.facts(path).properties, self._key)
        if self._wanted is None:
            return value is None
        if _equal(value, self._wanted):
            return True
        members = value if isinstance(value, list) else [value]
        return any(
            _equal(member, self._wanted) or self._is_link(member, path) for member in members
        )

    def _is_link(self, value: Any, source: VaultPath) -> bool:
        """Whether a value is a link to what is wanted: a link to the same file, its path, or its name."""
        if not isinstance(value, str) or not isinstance(self._wanted, str):
            return False
        target = _target(value)
        if target is None:
            return self._wanted_target is not None and link_key(value) == link_key(
                self._wanted_target
            )
        wanted = link_key((self._wanted_target or self._wanted).strip()).removesuffix(_NOTE)
        if link_key(target).removesuffix(_NOTE) == wanted:
            return True
        file = self._index.resolve(target, source)
        if file is None:
            return False
        if self._wanted_target is not None:
            return self._index.resolve(self._wanted_target, source) == file
        path = link_key(file.text).removesuffix(_NOTE)
        return path == wanted or path.rpartition("/")[2] == wanted


def _target(text: str) -> str | None:
    """The target of a text that is exactly one wikilink, without heading and display text."""
    found = _LINK.fullmatch(text)
    if found is None:
        return None
    return found[1].partition("|")[0].partition("#")[0].strip() or None


def _equal(value: Any, wanted: Any) -> bool:
    """Equal and of one kind (true is not 1); a number or truth value also equals its text."""
    if isinstance(wanted, str) and isinstance(value, (bool, int, float)):
        return json.dumps(value) == wanted.strip()
    if isinstance(value, bool) != isinstance(wanted, bool):
        return False
    return bool(value == wanted)
