"""Calls that a model writes down instead of making them: small models on one's own machine do that, in the shapes that they were trained on.

Understood is an answer that is nothing but calls. They go through everything that other calls go through.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Final

from obsidian_agent.providers.base import ToolCall

LONGEST: Final = 200_000
MOST: Final = 16
_TAGGED: Final = re.compile(r"<(tool_call|function_call)>\s*(.*?)\s*(?:</\1>|\Z)", re.DOTALL)
_FENCED: Final = re.compile(r"\A(?:```|~~~)(?:json|tool_call|tool)?[ \t]*\n(.*?)\n?(?:```|~~~)\Z", re.DOTALL)


def written_calls(text: str, names: Collection[str]) -> tuple[ToolCall, ...]:
    """The calls that a text consists of; () when it is anything else. `names` are the functions on offer."""
    text = text.strip()
    if len(text) > LONGEST or not text.startswith(("<", "`", "~", "{", "[")):
        return ()
    tagged = [match.group(2) for match in _TAGGED.finditer(text)]
    if tagged:
        pieces = tagged if not _TAGGED.sub("", text).strip() else []
    else:
        fenced = _FENCED.match(text)
        pieces = [fenced.group(1) if fenced is not None else text]
    found = [call for piece in pieces for document in _documents(piece) if (call := _call(document, names)) is not None]
    complete = sum(len(_documents(piece)) for piece in pieces) == len(found)
    return tuple(found[:MOST]) if complete else ()


def _documents(piece: str) -> list[Any]:
    try:
        document = json.loads(piece)
    except (ValueError, RecursionError):
        return [None]
    return document if isinstance(document, list) and document else [document]


def _call(document: Any, names: Collection[str]) -> ToolCall | None:
    if not isinstance(document, dict):
        return None
    inner = document.get("function")
    called = inner if isinstance(inner, dict) else document
    name = called.get("name", called.get("tool"))
    arguments: Any = next((called[key] for key in ("arguments", "parameters", "args") if key in called), {})
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict | str):
        return None
    return ToolCall("", name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False))
