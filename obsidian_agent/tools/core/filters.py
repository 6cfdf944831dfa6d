"""Filters of the plan language, and the templates of lists.

`{field|filter}` occurs in templates of lists, `${path|filter}` in references.

A filter receives the value, the text after its `:` and a `FilterContext`. A missing value stays
`Missing` until `default` replaces it; a value that is still missing at the end is an error that the
caller reports.

In a template `{name}`, `{name.part}` and `{name|filter|filter:argument}` are replaced. Braces
around anything else, and doubled braces as in Obsidian's own `{{date}}`, stay as written. Inserted
text is not expanded again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Final

from msgspec import Struct, field

from obsidian_agent import budget
from obsidian_agent.errors import ToolError, VaultError
from obsidian_agent.tools.core.moment import format_moment, parse_moment
from obsidian_agent.vault.links.link_text import link_target
from obsidian_agent.vault.links.resolve import LinkResolver
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath
from obsidian_agent.vault.paths.rules import clean_component, extension, slug
from obsidian_agent.vault.views.view import VaultView

_PLACEHOLDER = re.compile(
    r"\{\{.*?\}\}|\{(?P<path>[^\W\d][\w-]*(?:\.[\w-]+)*)(?P<filters>(?:\|[^|{}]*)*)\}", re.DOTALL
)


def plain_link(text: str) -> str:
    """Return a wikilink without looking into the vault.

    Links to the basename of a note's path, or else to the text itself.
    """
    return f"[[{basename(text)}]]" if text.lower().endswith(".md") else f"[[{text}]]"


class FilterContext(Struct, frozen=True):
    """The context of filters: the link format of this vault (`LinkWriter`) and the run's clock."""

    link_for: Callable[[str], str] = plain_link
    now: datetime = field(default_factory=lambda: datetime.now().astimezone())


Filter = Callable[[Any, str, FilterContext], Any]


class Missing(Enum):
    """A missing value, distinct from every JSON value.

    The member's value is the code of the error that it finally becomes.
    """

    VALUE = "REFERENCE_ERROR"
    SELECTION = "NO_SELECTION"


MISSING: Final = Missing.VALUE
"""A reference without a value."""

NO_SELECTION: Final = Missing.SELECTION
"""The selection when nothing is selected."""


class FilterCall(Struct, frozen=True):
    """One filter as written: `default:none` has the name `default` and the argument `none`."""

    name: str
    argument: str | None = None


def parse_call(text: str) -> FilterCall:
    """Parse the text between two `|`: the trimmed name, and verbatim the text after the colon."""
    name, colon, argument = text.partition(":")
    return FilterCall(name.strip(), argument if colon else None)


def apply_filters(value: Any, calls: Sequence[FilterCall], context: FilterContext) -> Any:
    """Apply the filters from left to right.

    Raise ToolError ARGUMENT_INVALID for an unknown filter or a value that a filter does not
    support.
    """
    check_filters(calls)
    for call in calls:
        if not isinstance(value, Missing) or call.name == "default":
            value = FILTERS[call.name](value, call.argument or "", context)
            budget.check()
    return value


def check_filters(calls: Iterable[FilterCall]) -> None:
    """Raise ToolError ARGUMENT_INVALID for a filter that does not exist."""
    for call in calls:
        if call.name not in FILTERS:
            raise ToolError(
                f"Unknown filter {call.name!r}.", hint=f"Filters: {', '.join(sorted(FILTERS))}."
            )


def text_of(value: Any) -> str:
    """Return a value as part of a longer text: strings unchanged, null as "", all else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple | dict):
        budget.spend(_characters(value))
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _characters(value: Any) -> int:
    """Return the characters of all strings in a value, which may hold one of them many times."""
    match value:
        case str():
            return len(value)
        case list() | tuple():
            return sum(map(_characters, value))
        case dict():
            return sum(map(_characters, value.values()))
        case _:
            return 0


def basename(path: str) -> str:
    """Return the last part of a path without its extension: `b` of `a/b.md`, all of `1. Intro`."""
    name = path.rstrip("/").rpartition("/")[2]
    ending = extension(name)
    return name[: -len(ending)] if ending else name


def _of_text(change: Callable[[str], str]) -> Filter:
    return lambda value, argument, context: change(text_of(value))


def _link(value: Any, argument: str, context: FilterContext) -> str:
    return context.link_for(text_of(value))


def _json(value: Any, argument: str, context: FilterContext) -> str:
    budget.spend(_characters(value))
    return json.dumps(value, ensure_ascii=False)


def _default(value: Any, argument: str, context: FilterContext) -> Any:
    return argument if isinstance(value, Missing) or value is None or value == "" else value


def _join(value: Any, argument: str, context: FilterContext) -> str:
    if value is None:
        return ""
    if not isinstance(value, list | tuple):
        raise ToolError(f"The filter join needs a list, not {text_of(value)[:60]!r}.")
    texts = [text_of(item) for item in value]
    budget.spend(sum(map(len, texts)))
    return argument.join(texts)


def _count(value: Any, argument: str, context: FilterContext) -> int:
    if value is None:
        return 0
    if not isinstance(value, list | tuple | dict | str):
        raise ToolError(f"The filter count needs a list, not {text_of(value)[:60]!r}.")
    return len(value)


def _date(value: Any, argument: str, context: FilterContext) -> str | None:
    if value is None or value == "":
        return None
    moment = parse_moment(value, context.now)
    if moment is None:
        raise ToolError(
            "The filter date needs a date such as 2026-03-14 or 2026-03-14T09:30, "
            f"not {text_of(value)[:60]!r}."
        )
    return format_moment(moment, argument or "YYYY-MM-DD")


FILTERS: Final[Mapping[str, Filter]] = {
    "filename": _of_text(clean_component),
    "basename": _of_text(basename),
    "slug": _of_text(slug),
    "lower": _of_text(str.lower),
    "upper": _of_text(str.upper),
    "trim": _of_text(str.strip),
    "json": _json,
    "link": _link,
    "default": _default,
    "join": _join,
    "count": _count,
    "date": _date,
}
"""All filters by name."""


class ListTemplate:
    """A template that is parsed once and filled for every item.

    The constructor raises ToolError ARGUMENT_INVALID for an unknown filter.
    """

    def __init__(self, template: str, context: FilterContext) -> None:
        self._context = context
        self._texts: list[str] = []
        self._fields: list[tuple[list[str], tuple[FilterCall, ...]]] = []
        end = 0
        for match in _PLACEHOLDER.finditer(template):
            if match["path"] is None:
                continue
            self._texts.append(template[end : match.start()])
            calls = tuple(parse_call(part) for part in match["filters"].split("|")[1:])
            check_filters(calls)
            self._fields.append((match["path"].split("."), calls))
            end = match.end()
        self._texts.append(template[end:])

    def fill(self, item: Any, index: int) -> str:
        """Return the text for one item.

        Raise ToolError REFERENCE_ERROR for a field that it lacks, and ARGUMENT_INVALID for a value
        that a filter does not support.
        """
        parts = [self._texts[0]]
        for (path, calls), text in zip(self._fields, self._texts[1:], strict=True):
            value = apply_filters(_look_up(path, item, index), calls, self._context)
            if isinstance(value, Missing):
                raise ToolError(
                    f"Item {index} has no {'.'.join(path)!r}.",
                    code="REFERENCE_ERROR",
                    hint=_hint(item),
                )
            inserted = text_of(value)
            budget.spend(len(inserted) + len(text))
            parts += inserted, text
        return "".join(parts)


def _look_up(path: list[str], item: Any, index: int) -> Any:
    if path == ["index"]:
        return index
    value = item
    for part in path[1:] if path[0] == "item" else path:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


def _hint(item: Any) -> str:
    return (
        f"It has {', '.join(map(str, item))}."
        if isinstance(item, dict) and item
        else "Use {item} for the item itself."
    )


class LinkWriter:
    """A writer of wikilinks for one state of a vault.

    The names of all files are read once, on first use.
    """

    def __init__(self, view: VaultView) -> None:
        self._view = view
        self._resolver: LinkResolver | None = None

    def __call__(self, text: str) -> str:
        """Return `[[Name]]` or `[[folder/Name]]` for the path of a file, or else `[[text]]`."""
        try:
            entry = self._view.locate(paths.parse(text, PathUse.READ))
        except VaultError:
            entry = None
        return (
            f"[[{self.target(entry.path)}]]"
            if entry is not None and entry.kind == "file"
            else f"[[{text}]]"
        )

    def target(self, path: VaultPath) -> str:
        """Return the link target that means `path` from every note."""
        if self._resolver is None:
            self._resolver = LinkResolver(
                entry.path for entry in self._view.walk(ROOT) if entry.kind == "file"
            )
        return link_target(self._resolver, path, path)
