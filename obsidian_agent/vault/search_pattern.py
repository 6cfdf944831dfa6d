"""The text that every match of a regular expression holds, found in the parsed expression; it spares looking at most notes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Any

from obsidian_agent.vault.search_needle import Needle, exact_needle, folded_needle

_WORTHWHILE = 2


def required_text(pattern: str, *, ignore_case: bool) -> Needle | None:
    """The needle of a valid expression; None when it requires no text of some length."""
    if "(?" in pattern:
        # Flags inside of it, conditions and looking around: not worth telling which of them still require something.
        return None
    try:
        # The parser of the standard library is no documented part of it: without it every note is looked at.
        from re import _parser  # type: ignore[attr-defined]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            runs = _runs(_parser.parse(pattern, re.MULTILINE))
    except (ImportError, AttributeError, re.error, TypeError, ValueError):
        return None
    longest = max(runs, key=len, default="")
    if len(longest) < _WORTHWHILE or "\n" in longest:
        return None
    return folded_needle(longest) if ignore_case else exact_needle(longest)


def _runs(items: Iterable[Any]) -> list[str]:
    """The pieces of plain text that stand in every match."""
    found = [""]
    for kind, value in items:
        match str(kind):
            case "LITERAL":
                found[-1] += chr(value)
                continue
            case "SUBPATTERN":
                found += [*_runs(value[-1]), ""]
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if value[0] >= 1:
                found += [*_runs(value[2]), ""]
            case "AT":
                continue
            case _:
                found.append("")
    return found
