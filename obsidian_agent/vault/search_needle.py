"""A text that every hit of a search holds, as bytes that can be looked for in very many notes at once.

Case is ignored as `str.casefold` does. For ASCII that is lower case, and the few other characters that fold to ASCII letters (the sharp s,
the Kelvin sign, ligatures) are known: notes that hold them are marked when they are indexed, and always looked at.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from typing import Final

_ASCII_RUN: Final = re.compile(r"[\x00-\x7f]+")


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


@cache
def _odd() -> re.Pattern[bytes]:
    """The characters that are not ASCII, but one of whose cases is or holds some."""
    code_points = (chr(code) for code in range(0x80, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    odd = [char for char in code_points if any(map(str.isascii, char.casefold() + char.lower() + char.upper()))]
    return re.compile(b"|".join(re.escape(char.encode()) for char in odd))


def folds_oddly(data: bytes) -> bool:
    """Whether bytes hold characters that case folding turns into ASCII letters, or ASCII into them."""
    return not data.isascii() and _odd().search(data) is not None
