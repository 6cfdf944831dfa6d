"""The filters of the plan language, a closed list of pure functions: `${item.text|trim|default:Untitled|filename}`."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from rapidfuzz import fuzz, process

from obsidian_agent.errors import ToolError
from obsidian_agent.plan.moment import format_moment, parse_moment
from obsidian_agent.vault.names import clean_component


class Missing:
    """A value that is not there. It passes through every filter except `default`. `code` is the error it becomes in the end."""

    __slots__ = ("code",)

    def __init__(self, code: str) -> None:
        self.code = code

    def __repr__(self) -> str:
        return f"Missing({self.code})"


MISSING: Final = Missing("REFERENCE_ERROR")
NO_SELECTION: Final = Missing("NO_SELECTION")


def plain_link(text: str) -> str:
    """A wikilink made without knowing the vault: to the basename of a note's path, else to the text itself."""
    return f"[[{basename(text)}]]" if text.lower().endswith(".md") else f"[[{text}]]"


@dataclass(frozen=True, slots=True)
class FilterContext:
    """What filters know besides the value: how a path is linked in this vault, and the run's clock."""

    link_for: Callable[[str], str] = plain_link
    now: datetime = field(default_factory=lambda: datetime.now().astimezone())


@dataclass(frozen=True, slots=True)
class FilterCall:
    """One filter as written; `argument` is the verbatim text after its first colon, None without a colon."""

    name: str
    argument: str | None = None


def text_of(value: Any) -> str:
    """A value as text inside other text: null is empty, true and numbers as in JSON, lists and objects as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False)


def basename(path: str) -> str:
    """The last part of a path without its extension: `b.c` of `a/b.c.md`."""
    name = path.rstrip("/").rpartition("/")[2]
    stem, dot, _ = name.rpartition(".")
    return stem if dot and stem.strip(".") else name


def slugify(text: str, separator: str = "-") -> str:
    """Lower-case letters and digits of any script, everything else between them as one separator."""
    words = re.findall(r"[^\W_]+", re.sub(r"['’]", "", unicodedata.normalize("NFC", text).lower()))
    return separator.join(words)


def flaw(call: FilterCall) -> str | None:
    """What is wrong with a filter as written, or None."""
    wants = ARGUMENTS.get(call.name)
    if wants is None:
        near = process.extractOne(call.name, ARGUMENTS, scorer=fuzz.ratio, score_cutoff=60)
        hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(sorted(ARGUMENTS))}."
        return f"unknown filter '{call.name}': {hint}"
    if wants == "required" and call.argument is None:
        return f"the filter '{call.name}' needs a text: '{call.name}:…'"
    if wants == "none" and call.argument is not None:
        return f"the filter '{call.name}' takes no text after a colon"
    return None


def apply(call: FilterCall, value: Any, context: FilterContext) -> Any:
    """The value after one filter. ToolError REFERENCE_ERROR when the filter cannot take such a value."""
    argument = call.argument or ""
    if call.name == "default":
        return argument if isinstance(value, Missing) or value is None or value == "" else value
    if isinstance(value, Missing):
        return value
    match call.name:
        case "json":
            return json.dumps(value, ensure_ascii=False)
        case "count":
            return _count(value)
        case "join":
            return _join(value, argument)
        case "date":
            return _date(value, argument, context.now)
        case "link":
            return context.link_for(text_of(value))
        case _:
            if (function := _TEXT_FILTERS.get(call.name)) is None:
                raise ToolError(f"Unknown filter '{call.name}'.", code="REFERENCE_ERROR")
            return function(text_of(value))


def _count(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, list | tuple | dict | str):
        return len(value)
    raise ToolError(f"'count' needs a list, not {_kind(value)}.", code="REFERENCE_ERROR")


def _join(value: Any, separator: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, list | tuple):
        raise ToolError(f"'join' needs a list, not {_kind(value)}.", code="REFERENCE_ERROR")
    return separator.join(map(text_of, value))


def _date(value: Any, pattern: str, now: datetime) -> str | None:
    if value is None or value == "":
        return value if value is None else ""
    moment = parse_moment(value, now)
    if moment is None:
        raise ToolError(f"'date' needs a date such as 2026-03-14 or 2026-03-14T09:30, not {text_of(value)[:60]!r}.", code="REFERENCE_ERROR")
    return format_moment(moment, pattern or "YYYY-MM-DD")


def _kind(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", dict: "an object"}
    return names.get(type(value), type(value).__name__)


_TEXT_FILTERS: Final[dict[str, Callable[[str], str]]] = {
    "filename": clean_component,
    "basename": basename,
    "slug": slugify,
    "lower": str.lower,
    "upper": str.upper,
    "trim": str.strip,
}

ARGUMENTS: Final = {
    **dict.fromkeys((*_TEXT_FILTERS, "json", "link", "count"), "none"),
    "date": "optional",
    "default": "required",
    "join": "required",
}
"""Every filter, and whether a text follows its colon: none, optional or required."""
