"""The title of a step: its preview line, or its tool and main argument in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MAIN_ARGUMENTS: Final = ("path", "from", "folder", "query", "name", "tag", "title")
"""The arguments that say best what a call is about, the most telling first."""
_REFERENCE = re.compile(r"\$\{[^{}]*\}|\$(?:steps|vars)\.[\w.]+")


def step_title(tool: str, args: Mapping[str, Any], preview: str | None) -> str:
    """Return the title of a step, with “…” for references.

    Without a preview line it is like “Find notes in WebClips” or “Rename A.md”.
    """
    return _REFERENCE.sub("…", preview or _in_words(tool, args))


def _in_words(tool: str, args: Mapping[str, Any]) -> str:
    words = _CAMEL.sub(" ", tool.rpartition(".")[2]).lower().capitalize()
    where = args.get("where")
    if isinstance(where, Mapping):
        folder, tag = where.get("folder"), where.get("tag")
        words += " notes"
        words += f" tagged {tag}" if isinstance(tag, str) else ""
        words += f" in {folder}" if isinstance(folder, str) else ""
        return words
    main = next((args[name] for name in _MAIN_ARGUMENTS if isinstance(args.get(name), str)), "")
    return f"{words} {main}" if main else words
