"""The template of one item of a list: `- {path|link}`, `{index}: {item}`.

`{name}`, `{name.part}` and `{name|filter|filter:argument}` are filled in; braces around anything else, and doubled braces as in Obsidian's
own `{{date}}`, stay as they are written. What was filled in is never looked at again.
"""

from __future__ import annotations

import re
from typing import Any

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.filters import MISSING, FilterCall, FilterContext, apply_filters, parse_call, refuse_unknown, text_of

_PLACE = re.compile(r"\{\{.*?\}\}|\{(?P<path>[^\W\d][\w-]*(?:\.[\w-]+)*)(?P<filters>(?:\|[^|{}]*)*)\}", re.DOTALL)


class ListTemplate:
    """A template, split once and filled for every item. ToolError ARGUMENT_INVALID for a filter that there is not."""

    def __init__(self, template: str, context: FilterContext) -> None:
        self._context = context
        self._texts: list[str] = []
        self._places: list[tuple[list[str], tuple[FilterCall, ...]]] = []
        end = 0
        for found in _PLACE.finditer(template):
            if found["path"] is None:
                continue
            self._texts.append(template[end : found.start()])
            calls = tuple(parse_call(part) for part in found["filters"].split("|")[1:])
            refuse_unknown(calls)
            self._places.append((found["path"].split("."), calls))
            end = found.end()
        self._texts.append(template[end:])

    def fill(self, item: Any, index: int) -> str:
        """The text for one item. ToolError REFERENCE_ERROR for a field that it lacks, ARGUMENT_INVALID for a value no filter can take."""
        parts = [self._texts[0]]
        for (path, calls), text in zip(self._places, self._texts[1:], strict=True):
            value = apply_filters(_look_up(path, item, index), calls, self._context)
            if value is MISSING:
                raise ToolError(f"Item {index} has no {'.'.join(path)!r}.", code="REFERENCE_ERROR", hint=_hint(item))
            parts += text_of(value), text
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
    return f"It has {', '.join(map(str, item))}." if isinstance(item, dict) and item else "Use {item} for the item itself."
