"""The text filters of the plan language that need no clock: `{field|filter}` in `util.formatList`, `${path|filter}` in references.

For plan/filters.py: tools cannot import the plan package, so what both need stands here and is meant to be imported from there, which
adds `date:FORMAT`. A filter takes the value, the text behind its `:` and the `LinkText` of the vault as it is at that moment. A value that
is missing stays `MISSING` until `default` replaces it; what is still missing at the end is the caller's error to tell.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from obsidian_agent.errors import ToolError
from obsidian_agent.vault.markdown import slug
from obsidian_agent.vault.names import clean_component, extension

LinkText = Callable[[str], str]
"""Makes the wikilink for a path in the vault, or `[[text]]` for any other text (`linktext.LinkWriter`)."""

Filter = Callable[[Any, str, LinkText], Any]


class Missing(Enum):
    """The type of `MISSING`, so that it can be told apart from every value that JSON knows."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""A reference that leads nowhere."""


@dataclass(frozen=True, slots=True)
class FilterCall:
    """One filter as written: `default:none` has the name `default` and the argument `none`."""

    name: str
    argument: str | None = None


def parse_call(text: str) -> FilterCall:
    """What stands between two `|`: the name, trimmed, and verbatim what follows its first colon."""
    name, colon, argument = text.partition(":")
    return FilterCall(name.strip(), argument if colon else None)


def apply_filters(value: Any, calls: Sequence[FilterCall], link: LinkText) -> Any:
    """The value after all filters, left to right. ToolError ARGUMENT_INVALID for an unknown filter or a value that it cannot take."""
    refuse_unknown(calls)
    for call in calls:
        if value is not MISSING or call.name == "default":
            value = FILTERS[call.name](value, call.argument or "", link)
    return value


def refuse_unknown(calls: Iterable[FilterCall]) -> None:
    """ToolError ARGUMENT_INVALID for a filter that is not in the list."""
    for call in calls:
        if call.name not in FILTERS:
            raise ToolError(f"There is no filter {call.name!r}.", hint=f"Filters: {', '.join(sorted(FILTERS))}.")


def text_of(value: Any) -> str:
    """A value inside a longer text: strings as they are, null as nothing, all else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def basename(path: str) -> str:
    """The last part of a path without its extension: `b` of `a/b.md`, all of `1. Intro`."""
    name = path.rstrip("/").rpartition("/")[2]
    ending = extension(name)
    return name[: -len(ending)] if ending else name


def _of_text(change: Callable[[str], str]) -> Filter:
    return lambda value, argument, link: change(text_of(value))


def _link(value: Any, argument: str, link: LinkText) -> str:
    return link(text_of(value))


def _json(value: Any, argument: str, link: LinkText) -> str:
    return json.dumps(value, ensure_ascii=False)


def _default(value: Any, argument: str, link: LinkText) -> Any:
    return argument if value is MISSING or value is None or value == "" else value


def _join(value: Any, argument: str, link: LinkText) -> str:
    if value is None:
        return ""
    if not isinstance(value, list | tuple):
        raise ToolError(f"The filter join needs a list, not {text_of(value)[:60]!r}.")
    return argument.join(map(text_of, value))


def _count(value: Any, argument: str, link: LinkText) -> int:
    if value is None:
        return 0
    if not isinstance(value, list | tuple | dict | str):
        raise ToolError(f"The filter count needs a list, not {text_of(value)[:60]!r}.")
    return len(value)


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
}
"""All filters but `date`, by name."""
