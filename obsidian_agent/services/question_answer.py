"""The answer to a question that was read from a sentence; its first line states the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, TypeVar, assert_never

from msgspec import Struct

from obsidian_agent.agent.events import Answer
from obsidian_agent.expression import expression
from obsidian_agent.offline.names import Surroundings, display_text
from obsidian_agent.offline.note_set import COUNTS, NoteSet
from obsidian_agent.offline.question import (
    DayQuery,
    Measure,
    NoteQuery,
    Order,
    Part,
    PartQuery,
    PropertyQuery,
    Question,
    TaskQuery,
)
from obsidian_agent.tools.core.lookup import sort_key, value_of, without_properties, word_count
from obsidian_agent.tools.core.tool import ToolContext
from obsidian_agent.tools.items import parse_number
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.tools.search.conditions import day_of
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse
from obsidian_agent.vault.text import decode

T = TypeVar("T")
_Result = tuple[str, Sequence[str], Sequence[str]]
"""The query in words with its result, the lines, and the paths of their notes."""
MAX_LINES: Final = 200
"""Lines of a list in an answer; further items are only counted."""
_DATE: Final = expression(r"\d{4}-\d{2}-\d{2}")
_MOST: Final = 20
"""Lines of notes in an order, such as the newest ones."""
_ORDERED: Final[Mapping[Order, str]] = {
    "newest": "last changed first",
    "oldest": "longest unchanged first",
    "longest": "longest first",
    "shortest": "shortest first",
    "most linked": "most linked first",
}
TITLES: Final[Mapping[Measure, str]] = {
    "values": "",
    "sum": "total ",
    "average": "average ",
    "highest": "highest ",
    "lowest": "lowest ",
}
_UNLINKABLE: Final = expression(r"[\[\]|#^\n\r]")
"""The characters of a name that no link can have."""
_LONGEST: Final = 120
"""Characters of a line that holds the text of a description."""
_MAX_VALUES: Final = 12
"""Existing values that are listed if no note has the one that is asked for."""


def answer_question(question: Question, around: Surroundings) -> Answer:
    """Return the answer. Raise `ObsidianAgentError` if a note or folder is missing. May block."""
    query = _Query(question.notes, around)
    match question.query:
        case NoteQuery(order, limit):
            head, lines, sources = query.listed(order)
            lines, sources = lines[:limit], sources[:limit]
        case PropertyQuery() as values:
            head, lines, sources = query.values(values)
        case TaskQuery() as tasks:
            head, lines, sources = query.tasks(tasks)
        case DayQuery(is_next):
            head, lines, sources = query.days(is_next=is_next)
        case PartQuery(part):
            head, lines, sources = query.parts(part)
        case _ as unreachable:
            assert_never(unreachable)
    if question.is_yes_no and (sources or not head.startswith("no ")):
        head = f"{'Yes' if sources else 'No'}: {head}"
    head = with_unused(capitalized(head), question.unused)
    if not sources:
        return Answer("\n".join([f"{head}.", *query.known_values()]))
    is_ordered = isinstance(question.query, NoteQuery) and question.query.order is not None
    most = _MOST if is_ordered else MAX_LINES
    more = [f"… and {len(lines) - most:,} more."] if len(lines) > most else []
    return Answer("\n".join([head, *lines[:most], *more]), tuple(dict.fromkeys(sources)))


def with_unused(head: str, unused: Sequence[str]) -> str:
    """Return the first line of an answer with the words of the question that have no part in it."""
    if not unused:
        return head
    colon = ":" if head.endswith(":") else ""
    texts = " and ".join(f"“{text}”" for text in unused)
    return f"{head.removesuffix(':')} (not used: {texts}){colon}"


def capitalized(text: str) -> str:
    """Return a text that begins with a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def link_to(path: VaultPath, around: Surroundings) -> str:
    """Return a link to a file by its name, or by its path if other notes have that name."""
    target = path.text.removesuffix(".md")
    if _UNLINKABLE.search(target):
        return path.text
    is_unique = len(around.names.find(path.stem, "note")) == 1 and path.text.endswith(".md")
    return f"[[{path.stem}]]" if is_unique else f"[[{target}]]"


class _Query(Struct, frozen=True):
    notes: NoteSet
    around: Surroundings

    @property
    def paths(self) -> list[VaultPath]:
        is_linked = any(term.key == "linked-from" for term in self.notes.terms)
        kind = "files" if is_linked else "notes"
        paths = [parse(path, PathUse.READ) for path in self.notes.paths(self.around, kind)]
        return sorted(paths, key=lambda path: (path.stem.casefold(), path.text))

    def known_values(self) -> list[str]:
        """Return the values of the properties in a description that no note meets."""
        names = dict.fromkeys(term.property for term in self.notes.terms if term.op == ":")
        known = self.around.names.properties
        return [
            f"Values of {name}: {_first_values(sorted(known[name]))}"
            for name in names
            if name is not None and known.get(name)
        ]

    def listed(self, order: Order | None) -> _Result:
        """List the notes, or the first ones in an order."""
        if order is None:
            texts = [path.text for path in self.paths]
            lines = [f"- {self._link(path)}{self._line(path)}" for path in self.paths]
            is_named = any(term.key == "note" and not term.negated for term in self.notes.terms)
            if is_named or not texts:
                return f"{self._no_notes()}" if not texts else f"{self.notes.text()}:", lines, texts
            return f"{self.notes.counted(len(texts))}:", lines, texts
        view = self.around.view
        measured: list[tuple[float, str, VaultPath]] = []
        for path in self.paths:
            match order:
                case "newest" | "oldest":
                    size = view.stat(path).mtime_ms
                    label = f"{datetime.fromtimestamp(size / 1000):%Y-%m-%d %H:%M}"
                case "longest" | "shortest" | "words":
                    size = word_count(without_properties(decode(view.read(path), path.text)))
                    label = f"{size:,} word{'' if size == 1 else 's'}"
                case "most linked":
                    size = len(view.index.backlinks(path))
                    label = f"{size:,} backlink{'' if size == 1 else 's'}"
                case _ as unreachable:
                    assert_never(unreachable)
            measured.append((size, label, path))
        measured.sort(key=lambda one: one[0], reverse=order not in ("oldest", "shortest"))
        lines = [f"- {self._link(path)}: {label}" for _, label, path in measured]
        sources = [path.text for _, _, path in measured]
        text = self.notes.text()
        if not measured:
            return self._no_notes(), [], []
        if order == "words":
            return f"words in {text}: {sum(size for size, _, _ in measured):,}", lines, sources
        answer = f"{measured[0][2].stem} ({measured[0][1]})"
        return f"{text}, {_ORDERED[order]}: {answer}", lines, sources

    def _link(self, path: VaultPath | str) -> str:
        known = parse(path, PathUse.READ) if isinstance(path, str) else path
        return link_to(known, self.around)

    def _no_notes(self) -> str:
        """Return that there are no such notes."""
        text = self.notes.text()
        return f"no {text}" if text.startswith("notes") else f"{text}: nothing found"

    def _line(self, path: VaultPath) -> str:
        """Return what a note says about the text of the description, or "".

        That is the line that holds it, or the properties if only a heading does, or for a note
        that is named.
        """
        needles = [
            str(term.value).casefold()
            for term in self.notes.terms
            if term.key == "text" and not term.negated
        ]
        known = self.around.view.index.facts(path).properties
        properties = properties_text(known)
        compared = [term.property for term in self.notes.terms if term.op in COUNTS]
        if values := {name: value_of(known, name) for name in compared if name is not None}:
            return f": {properties_text(values)}"
        if not needles:
            is_named = any(term.key == "note" and not term.negated for term in self.notes.terms)
            return f": {properties[:_LONGEST]}" if is_named and properties else ""
        text = without_properties(decode(self.around.view.read(path), path.text))
        held = [line.strip() for line in text.splitlines() if needles[0] in line.casefold()]
        line = next((line for line in held if not line.startswith("#")), "")
        line = line or properties
        return f": {line[:_LONGEST]}" if line else ""

    def values(self, query: PropertyQuery) -> _Result:
        """List the values of a property, or what is measured of them."""
        facts = ((path, self.around.view.index.facts(path).properties) for path in self.paths)
        having = [(path, value_of(own, query.property)) for path, own in facts]
        having = [(path, value) for path, value in having if value not in (None, "", [])]
        are_numbers = all(parse_number(value) is not None for _, value in having)
        having.sort(key=lambda pair: sort_key(pair[1]) or (), reverse=are_numbers)
        name = f"{TITLES[query.measure]}{query.property}"
        if query.further:
            return self._several((query.property, *query.further))
        if not having:
            return f"no {query.property} in {self.notes.text()}", [], []
        counted, answer = having, ""
        if query.measure != "values":
            counted, answer = measured(having, query.measure)
        if query.limit is not None:
            having.sort(
                key=lambda pair: sort_key(pair[1]) or (), reverse=query.measure == "highest"
            )
            counted = having[: query.limit]
        lines = [f"- {self._link(path)}: {value_text(value)}" for path, value in counted]
        sources = [path.text for path, _ in counted]
        if len(having) == 1 and query.measure == "values":
            answer = value_text(having[0][1])
            lines = lines if any(term.key != "note" for term in self.notes.terms) else []
        if answer:
            return f"{name} of {self.notes.text()}: {answer}", lines, sources
        return f"{name} of {self.notes.counted(len(counted))}:", lines, sources

    def _several(self, names: Sequence[str]) -> _Result:
        """List the values of several properties."""
        texts = [path.text for path in self.paths]
        lines: list[str] = []
        for path in self.paths:
            own = self.around.view.index.facts(path).properties
            values = {name: value_of(own, name) for name in names}
            lines.append(f"- {self._link(path)}: {properties_text(values)}")
        return f"{' and '.join(names)} of {self.notes.text()}:", lines, texts

    def tasks(self, query: TaskQuery) -> _Result:
        """List the tasks in the notes."""
        limits = [
            f" tagged #{query.tag}" if query.tag else "",
            " with a date" if query.is_dated else "",
            " without a date" if query.is_dated is False else "",
            f" due from {query.after}" if query.after else "",
            f" due before {query.before}" if query.before else "",
        ]
        folder = self.around.context.notes.templates
        is_template = folder is not None and any(
            str(term.value).startswith(folder) for term in self.notes.terms
        )
        without = f"{folder}/" if folder and not is_template else "/"
        tool = TOOLS["vault.listTasks"]
        arguments = {
            "files": [one.text for one in self.paths if not one.text.startswith(without)],
            "status": query.status,
            "dueBefore": query.before,
            "dueAfter": query.after or ("0001-01-01" if query.is_dated else None),
        }
        filled = {name: value for name, value in arguments.items() if value is not None}
        context = ToolContext(self.around.view, self.around.view, self.around.context)
        items = tool.propose(tool.input.model_validate(filled), context).output.items
        items = [task for task in items if query.is_dated is not False or task.due is None]
        tags = [term.value for term in self.notes.terms if term.key == "tag" and not term.negated]
        for tag in tags:
            # If a tag is on tasks, it says which tasks are meant, and not only which notes.
            own = tool.propose(tool.input.model_validate(filled | {"tag": tag}), context)
            items = [task for task in items if task in own.output.items] or items
        lines = [f"- {self._link(task.path)}: {task.text}" for task in items]
        status = "" if query.status == "all" else f"{query.status} "
        count = f"{len(items):,}" if items else "no"
        noun = "task" if len(items) == 1 else "tasks"
        head = f"{count} {status}{noun} in {self.notes.text()}{''.join(limits)}"
        return f"{head}:" if items else head, lines, [task.path for task in items]

    def parts(self, part: Part) -> _Result:
        """List the tags, headings or properties of the notes."""
        sources = [path.text for path in self.paths]
        match part:
            case "tags":
                tags = self._items("vault.listTags", files=sources)
                lines = [f"- #{one.tag} ({one.count})" for one in tags]
            case "headings":
                items = (self._items("util.parseHeadings", path=path) for path in sources)
                lines = [f"- {heading.text}" for one in items for heading in one]
            case "properties":
                facts = (self.around.view.index.facts(path) for path in self.paths)
                pairs = (pair for one in facts for pair in one.properties.items())
                lines = [f"- {name}: {value_text(value)}" for name, value in pairs]
            case _ as unreachable:
                assert_never(unreachable)
        count = f"{len(lines):,}" if lines else "no"
        noun = part if len(lines) != 1 else {"properties": "property"}.get(part, part[:-1])
        head = f"{count} {noun} in {self.notes.text()}"
        return f"{head}:" if lines else head, lines, sources if lines else []

    def _items(self, name: str, **arguments: Any) -> Sequence[Any]:
        """Return the items that a tool lists."""
        filled = {key: value for key, value in arguments.items() if value is not None}
        context = ToolContext(self.around.view, self.around.view, self.around.context)
        proposal = TOOLS[name].propose(TOOLS[name].input.model_validate(filled), context)
        return proposal.output.items  # type: ignore[no-any-return]

    def days(self, *, is_next: bool) -> _Result:
        """List the days of the notes, the last one first, or only those to come."""
        index, today = self.around.view.index, self.around.context.now.date()
        names = self.notes.terms[:1] if len(self.notes.terms) == 1 else ()
        is_one = any(term.key == "note" for term in names)
        dated: list[tuple[str, str]] = []
        for path in self.paths:
            day = day_of(path, index) or _first_day(index.facts(path).properties)
            if is_one:
                dated += (
                    (f"{value} ({name})", path.text)
                    for name, value in index.facts(path).properties.items()
                    if isinstance(value, str) and _DATE.match(value)
                )
            elif day is not None and (day >= today if is_next else day <= today):
                dated.append((day.isoformat(), path.text))
        dated.sort(reverse=not is_next)
        lines = [f"- {text}: {self._link(path)}" for text, path in dated]
        if not dated:
            return f"no date in {self.notes.text()}", [], []
        which = f"{'next' if is_next else 'latest'} date of"
        which = "dates in" if is_one else which
        lines = [] if is_one and len(dated) == 1 else lines
        return f"{which} {self.notes.text()}: {dated[0][0]}", lines, [path for _, path in dated]


def _first_day(properties: Mapping[str, Any]) -> date | None:
    """Return the first property that is a day, such as `start`."""
    texts = (str(value) for value in properties.values() if value)
    days = (text for text in texts if _DATE.fullmatch(text))
    return next((date.fromisoformat(text) for text in days), None)


def _first_values(values: Sequence[str]) -> str:
    first = ", ".join(map(value_text, values[:_MAX_VALUES]))
    rest = len(values) - _MAX_VALUES
    return f"{first} and {rest:,} more" if rest > 0 else first


def properties_text(properties: Mapping[str, Any]) -> str:
    """Return the properties that have values as one line."""
    known = (item for item in properties.items() if item[1] not in (None, "", []))
    return "; ".join(f"{name}: {value_text(value)}" for name, value in known)


def value_text(value: Any) -> str:
    """Return the value of a property as a user reads it, links as names."""
    if isinstance(value, list):
        return ", ".join(map(value_text, value))
    return display_text(value) or str(value)


def measured(having: Iterable[tuple[T, Any]], measure: Measure) -> tuple[list[tuple[T, Any]], str]:
    """Return the notes or rows with the values that count, and the result."""
    if measure in ("highest", "lowest"):
        keys = [(sort_key(value), path, value) for path, value in having]
        known = [(key, path, value) for key, path, value in keys if key is not None]
        pick = max if measure == "highest" else min
        best = pick((key for key, _, _ in known), default=None)
        first = [(path, value) for key, path, value in known if key == best]
        return first, value_text(first[0][1]) if first else ""
    numbers: list[tuple[T, Decimal]] = []
    for path, value in having:
        if (number := parse_number(value)) is not None:
            numbers.append((path, number))
    result = sum((number for _, number in numbers), Decimal(0))
    if measure == "average" and numbers:
        result = round(result / len(numbers), 2)
    texts = [(path, _number_text(number)) for path, number in numbers]
    return texts, _number_text(result)


def _number_text(number: Decimal) -> str:
    return f"{number.normalize():f}"
