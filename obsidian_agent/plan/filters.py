"""The filters in references, a closed list: `${item.text|trim|default:Untitled|filename}`. What they do stands in `tools.filters`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from obsidian_agent.errors import ToolError
from obsidian_agent.plan.nearest import nearest
from obsidian_agent.tools.core import filters as shared
from obsidian_agent.tools.core.filters import FilterCall, FilterContext, plain_link, text_of

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
    given = shared.MISSING if isinstance(value, Missing) else value
    try:
        result = shared.apply_filters(given, (call,), context)
    except ToolError as error:
        raise ToolError(error.message, code="REFERENCE_ERROR", hint=error.hint) from error
    return value if result is shared.MISSING else result
