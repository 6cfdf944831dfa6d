"""What every hit of a search holds, as bytes that can be looked for in very many notes at once, and the lines in which hits can be.

Case is ignored as `str.casefold` does. For ASCII that is lower case, and the few other characters that fold to ASCII letters (the sharp s,
the Kelvin sign, ligatures) are known: notes that hold them are marked when they are indexed, and always looked at.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Final

from obsidian_agent.dataclass import dataclass
from obsidian_agent.vault.text import split_lines

_ASCII_RUN: Final = re.compile(r"[\x00-\x7f]+")
ODD_CHARACTERS: Final = "\u00df\u0130\u0131\u0149\u017f\u01f0\u1e96\u1e97\u1e98\u1e99\u1e9a\u1e9e\u212a\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06"
"""The characters that are not ASCII, but one of whose cases is or holds some."""

_ODD: Final = re.compile("|".join(ODD_CHARACTERS).encode())
_ASCII: Final = bytes(range(0x80))


@dataclass(frozen=True, slots=True)
class Needle:
    """`data` is in the bytes of every note with a hit: as it is, or with `lower` in their ASCII lower case."""

    data: bytes
    lower: bool


def exact_needle(text: str) -> Needle | None:
    """The needle of a text that is looked for as it is; None when every note must be looked at."""
    return Needle(text.encode("utf-8", "surrogatepass"), lower=False) if text else None


def folded_needle(text: str) -> Needle | None:
    """The needle of a text that is looked for in any case: its longest piece of ASCII, or all of it when it knows no case."""
    folded = text.casefold()
    if not folded.isascii() and folded == text.upper() == text.lower() == text.upper().casefold():
        return Needle(text.encode("utf-8", "surrogatepass"), lower=False)
    run = max(_ASCII_RUN.findall(folded), key=len, default="")
    return Needle(run.encode(), lower=True) if run else None


def folds_oddly(data: bytes) -> bool:
    """Whether bytes hold characters that case folding turns into ASCII letters, or ASCII into them."""
    return not data.isascii() and _ODD.search(data.translate(None, _ASCII)) is not None


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


def lines_with(text: str, needle: Needle | None) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text, without line end, of each line that may hold a needle; of every line for None."""
    searched = None if needle is None else _searched(text, needle)
    if searched is None or needle is None:
        for number, line in enumerate(split_lines(text), start=1):
            yield number, line.removesuffix("\n").removesuffix("\r")
        return
    wanted = needle.data.decode("utf-8", "surrogatepass")
    number, counted = 1, 0
    at = searched.find(wanted)
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        number += text.count("\n", counted, start)
        counted = start
        yield number, text[start:end].removesuffix("\r")
        at = searched.find(wanted, end)


def _searched(text: str, needle: Needle) -> str | None:
    """What the needle is to be looked for in, place by place as the text; None when there is no such thing."""
    if not needle.lower:
        return text
    if not text.isascii() and folds_oddly(text.encode("utf-8", "surrogatepass")):
        return None
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else None
