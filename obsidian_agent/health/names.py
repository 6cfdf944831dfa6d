"""Names that do not name notes: placeholders, dates and numbers."""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from typing import Final

_PLACEHOLDER: Final = re.compile(r"\{\{|<%|\$\{|\$(?:steps|vars)\b")
_WEEK: Final = r"K?W ?\d{2}"
_PERIOD: Final = (
    rf"\d{{1,2}}([-./])\d{{1,2}}\1\d{{4}}"
    rf"|\d{{4}}(?:[-./]?\d{{2}}(?:[-./]?\d{{2}})?|[-./ ]?(?:Q[1-4]|{_WEEK}(?:[-./]?\d{{2}})?))"
    rf"|(?<![^\W_]){_WEEK}(?: \d{{4}})?"
)
"""A day, a week, a month or a quarter. German weeks are called KW."""

_PERIOD_WITHIN: Final = re.compile(rf"(?<!\d)(?:{_PERIOD})(?!\d)")
_DATE: Final = re.compile(rf"{_PERIOD}|\d+")
_ID: Final = re.compile(r"\A\d{12}(?:\d\d)?[\s_-]+")
_ACCENTS: Final = re.compile(r"(?<=[A-Za-z])[\u0300-\u036f]+")
"""Of other scripts, marks make other letters."""
_STROKES: Final = str.maketrans("łøđŁØĐ", "lodLOD")
"""Letters with a stroke, which Unicode does not separate from them."""
_SPELLED_OUT: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
"""Letters as German and the Nordic languages write them without marks."""


def has_placeholder(name: str) -> bool:
    """Return whether a name is filled in later by a template, or would be by a plan."""
    return _PLACEHOLDER.search(name) is not None


def is_date(name: str) -> bool:
    """Return whether a name is a date or a number, as those of periodic notes."""
    return _DATE.fullmatch(name.strip()) is not None


def has_date(name: str) -> bool:
    """Return whether a name holds a day, a week or a month, as those of dated notes."""
    return bool(period(name))


def period(name: str) -> str:
    """Return the first day, week or month in a name, as it is written there, or ""."""
    match = _PERIOD_WITHIN.search(name)
    return match[0] if match is not None else ""


def names_also(name: str, other: str) -> bool:
    """Return whether a name is longer than one in it: "Copy of Plan", "Plan (old)" and "Plan"."""
    longer, shorter = name.casefold(), other.casefold()
    # Most pairs need no pattern.
    if len(name) <= len(other) or shorter not in longer:
        return False
    return re.search(rf"(?<!\w){re.escape(shorter)}(?!\w)", longer) is not None


def without_id(name: str) -> str:
    """Return a name without the minute or second before it, which many take as an id."""
    return _ID.sub("", name)


def is_day(text: str) -> bool:
    """Return whether a text is a day of the calendar, as YYYY-MM-DD."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def spelled_out(text: str) -> str:
    """Return a text in lower case with two letters for each that a keyboard may not have."""
    return text if text.isascii() else unicodedata.normalize("NFC", text).translate(_SPELLED_OUT)


def accents(text: str) -> int:
    """Return the number of accents in a text."""
    return sum(map(bool, map(unicodedata.combining, unicodedata.normalize("NFD", text))))


def without_accents(text: str) -> str:
    """Return a text without the accents of Latin letters."""
    if text.isascii():
        return text
    plain = _ACCENTS.sub("", unicodedata.normalize("NFD", text.translate(_STROKES)))
    return unicodedata.normalize("NFC", plain)
