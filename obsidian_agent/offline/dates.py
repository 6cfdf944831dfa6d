"""Days: ISO dates and numbers always, English words where they are certain. Spans of days are no value; forms have a field for each end."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta
from typing import Final

import regex

_MONTHS: Final = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"]
_WEEKDAYS: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_NAMED: Final = {"today": 0, "now": 0, "yesterday": -1, "tomorrow": 1, "day before yesterday": -2, "day after tomorrow": 2}
NEAR: Final = frozenset({"today", "yesterday", "tomorrow"})  # words that can be nothing else than a day
_NUMBERS: Final = {"a": 1, "an": 1} | {
    word: count for count, word in enumerate(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1)
}

_MONTH: Final = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS)
_COUNT: Final = r"\d{1,4}|" + "|".join(_NUMBERS)
_UNIT: Final = "day|week|month|year"
_ISO: Final = regex.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_CALENDAR: Final = regex.compile(
    rf"{_DAY}\.? (?:of )?(?P<month>{_MONTH})\.?,?(?: (?P<year>\d{{4}}))?|(?P<month>{_MONTH})\.? {_DAY}(?:,? (?P<year>\d{{4}}))?"
)
_AWAY: Final = regex.compile(rf"(?P<in>in )?(?P<count>{_COUNT}) (?P<unit>{_UNIT})s?(?(in)| ago)")
_WEEKDAY: Final = regex.compile(rf"(?:(last|next|this|on) )?({'|'.join(_WEEKDAYS)})")


def parse(text: str, today: date) -> date | None:
    """The day that a whole phrase names, or None when it is none. A weekday alone is the next one; a day without a year lies in this one."""
    phrase = " ".join(text.casefold().replace("’", "'").removesuffix("'s").split()).removeprefix("the ")
    if phrase in _NAMED:
        return today + timedelta(days=_NAMED[phrase])
    try:
        if match := _ISO.fullmatch(phrase):
            return date(int(match[1]), int(match[2]), int(match[3]))
        if match := _CALENDAR.fullmatch(phrase):
            month = next(number for number, name in enumerate(_MONTHS, 1) if name.startswith(match["month"][:3]))
            return date(int(match["year"] or today.year), month, int(match["day"]))
        if match := _AWAY.fullmatch(phrase):
            count = int(match["count"]) if match["count"].isdigit() else _NUMBERS[match["count"]]
            return shift(today, count if match["in"] else -count, match["unit"])
        if match := _WEEKDAY.fullmatch(phrase):
            ahead = (_WEEKDAYS.index(match[2]) - today.weekday()) % 7
            return today + timedelta(days=ahead - 7 if match[1] == "last" else ahead or (7 if match[1] == "next" else 0))
    except (ValueError, OverflowError):
        pass
    return None


def shift(day: date, count: int, unit: str) -> date:
    """`day` moved by calendar units; a day that the month lacks becomes its last."""
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
