"""The filters of references, a closed list: those that tools share, and `date:FORMAT`. `${item.text|trim|default:Untitled|filename}`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from obsidian_agent.errors import ToolError
from obsidian_agent.plan.moment import format_moment, parse_moment
from obsidian_agent.plan.nearest import nearest
from obsidian_agent.tools import filters as shared
from obsidian_agent.tools.filters import FilterCall, basename, text_of

__all__ = ["ARGUMENTS", "MISSING", "NO_SELECTION", "FilterCall", "FilterContext", "Missing", "apply", "flaw", "plain_link", "text_of"]


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


ARGUMENTS: Final[Mapping[str, Literal["none", "optional", "required"]]] = {
    **dict.fromkeys(shared.FILTERS, "none"),
    "date": "optional",
    "default": "required",
    "join": "required",
}
"""Every filter, and whether a text follows its colon."""


def flaw(call: FilterCall) -> str | None:
    """What is wrong with a filter as written, or None."""
    wants = ARGUMENTS.get(call.name)
    if wants is None:
        near = nearest(call.name, ARGUMENTS)
        hint = f"did you mean '{near}'?" if near else f"there are {', '.join(sorted(ARGUMENTS))}."
        return f"unknown filter '{call.name}': {hint}"
    if wants == "required" and call.argument is None:
        return f"the filter '{call.name}' needs a text: '{call.name}:…'"
    if wants == "none" and call.argument is not None:
        return f"the filter '{call.name}' takes no text after a colon"
    return None


def apply(call: FilterCall, value: Any, context: FilterContext) -> Any:
    """The value after one filter; a `Missing` comes out as it went in, unless the filter is `default`.

    ToolError REFERENCE_ERROR when there is no such filter or it cannot take such a value.
    """
    if call.name == "date":
        return value if isinstance(value, Missing) else _date(value, call.argument or "YYYY-MM-DD", context.now)
    given = shared.MISSING if isinstance(value, Missing) else value
    try:
        result = shared.apply_filters(given, (call,), context.link_for)
    except ToolError as error:
        raise ToolError(error.message, code="REFERENCE_ERROR", hint=error.hint) from error
    return value if result is shared.MISSING else result


def _date(value: Any, pattern: str, now: datetime) -> str | None:
    if value is None or value == "":
        return None
    moment = parse_moment(value, now)
    if moment is None:
        message = f"'date' needs a date such as 2026-03-14 or 2026-03-14T09:30, not {text_of(value)[:60]!r}."
        raise ToolError(message, code="REFERENCE_ERROR")
    return format_moment(moment, pattern)
