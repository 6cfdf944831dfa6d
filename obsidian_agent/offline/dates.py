"""Days: ISO dates and numbers always, English words where they are certain. Spans of days are no value; forms have a field for each end."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

import regex

_MONTHS: Final = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"]
_WEEKDAYS: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_NAMED: Final = {"today": 0, "now": 0, "yesterday": -1, "tomorrow": 1, "day before yesterday": -2, "day after tomorrow": 2}
NEAR: Final = frozenset({"today", "yesterday", "tomorrow"})
"""Words that can be nothing else than a day."""

_NUMBERS: Final = {"a": 1, "an": 1} | {
    word: count for count, word in enumerate(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1)
}

_MONTH: Final = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS)
_COUNT: Final = r"\d{1,4}|" + "|".join(_NUMBERS)
_UNIT: Final = "day|week|month|year"
_ISO: Final = regex.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_DAY_MONTH: Final = regex.compile(rf"(\d{{1,2}})(?:st|nd|rd|th)?\.? (?:of )?({_MONTH})\.?,?(?: (\d{{4}}))?")
_MONTH_DAY: Final = regex.compile(rf"({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?(?:,? (\d{{4}}))?")
_AGO: Final = regex.compile(rf"({_COUNT}) ({_UNIT})s? ago")
_AHEAD: Final = regex.compile(rf"in ({_COUNT}) ({_UNIT})s?")
_WEEKDAY: Final = regex.compile(rf"(?:(last|next|this|on) )?({'|'.join(_WEEKDAYS)})")


def parse(text: str, today: date) -> date | None:
    """The day that a whole phrase names, or None when it is none. A weekday alone is the next one; a day without a year lies in this one."""
    phrase = " ".join(text.casefold().replace("’", "'").removesuffix("'s").split()).removeprefix("the ")
    if phrase in _NAMED:
        return today + timedelta(days=_NAMED[phrase])
    try:
        return _calendar(phrase, today) or _relative(phrase, today)
    except (ValueError, OverflowError):
        return None


def shift(day: date, count: int, unit: str) -> date:
    """`day` moved by calendar units; a day that the month lacks becomes its last."""
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    following = date(year + (month == 11), (month + 1) % 12 + 1, 1)
    return min(date(year, month + 1, 1) + timedelta(days=day.day - 1), following - timedelta(days=1))


def _calendar(phrase: str, today: date) -> date | None:
    if match := _ISO.fullmatch(phrase):
        return date(int(match[1]), int(match[2]), int(match[3]))
    if match := _DAY_MONTH.fullmatch(phrase):
        return date(int(match[3] or today.year), _month(match[2]), int(match[1]))
    if match := _MONTH_DAY.fullmatch(phrase):
        return date(int(match[3] or today.year), _month(match[1]), int(match[2]))
    return None


def _relative(phrase: str, today: date) -> date | None:
    if match := _AGO.fullmatch(phrase):
        return shift(today, -_count(match[1]), match[2])
    if match := _AHEAD.fullmatch(phrase):
        return shift(today, _count(match[1]), match[2])
    if match := _WEEKDAY.fullmatch(phrase):
        ahead = (_WEEKDAYS.index(match[2]) - today.weekday()) % 7
        return today + timedelta(days=ahead - 7 if match[1] == "last" else ahead or (7 if match[1] == "next" else 0))
    return None


def _count(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text]


def _month(text: str) -> int:
    return next(number for number, name in enumerate(_MONTHS, 1) if name.startswith(text[:3]))
