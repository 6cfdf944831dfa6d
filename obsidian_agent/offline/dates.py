"""Days and spans of days: ISO dates and numbers always, English words where they are certain."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import regex

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {
    word: value
    for value, words in enumerate(
        ("", "a an one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
    for word in words.split()
}
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if name != "may" else "may" for name in _MONTHS)
_COUNT = r"\d{1,4}|" + "|".join(_NUMBERS)
_UNIT = r"day|week|month|quarter|year"

_ISO = regex.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_DAY_MONTH = regex.compile(rf"(\d{{1,2}})(?:st|nd|rd|th)?\.? (?:of )?({_MONTH})\.?,?(?: (\d{{4}}))?")
_MONTH_DAY = regex.compile(rf"({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?(?:,? (\d{{4}}))?")
_MONTH_YEAR = regex.compile(rf"({_MONTH})\.?(?: (\d{{4}}))?")
_AGO = regex.compile(rf"({_COUNT}) ({_UNIT})s? ago")
_AHEAD = regex.compile(rf"in ({_COUNT}) ({_UNIT})s?|({_COUNT}) ({_UNIT})s? from (?:now|today)")
_RELATIVE = regex.compile(rf"(last|previous|this|current|next|past|coming) ({_UNIT})")
_WEEKDAY = regex.compile(rf"(?:(last|next|this|on|coming) )?({'|'.join(_WEEKDAYS)})")


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `start` up to, but without, `end`. None: open on that side."""

    start: date | None
    end: date | None

    @property
    def day(self) -> date | None:
        """The day, when it is exactly one."""
        if self.start is not None and self.end == self.start + timedelta(days=1):
            return self.start
        return None


def one_day(day: date) -> Span:
    """The span of one day."""
    return Span(day, day + timedelta(days=1))


def parse(text: str, today: date) -> Span | None:
    """The span that a whole phrase names, or None when it is no date. A weekday alone is the next one; a year is taken as today's."""
    phrase = " ".join(text.casefold().replace("’", "'").removesuffix("'s").split())
    for known, offset in (
        ("today", 0),
        ("now", 0),
        ("yesterday", -1),
        ("tomorrow", 1),
        ("the day before yesterday", -2),
        ("the day after tomorrow", 2),
    ):
        if phrase == known:
            return one_day(today + timedelta(days=offset))
    phrase = phrase.removeprefix("the ")
    try:
        return _calendar(phrase, today) or _relative(phrase, today)
    except (ValueError, OverflowError):
        return None


def shift(day: date, count: int, unit: str) -> date:
    """`day` moved by calendar units; a day that the month lacks becomes its last."""
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * {"month": 1, "quarter": 3, "year": 12}[unit]
    year, month = divmod(months, 12)
    following = date(year + (month == 11), (month + 1) % 12 + 1, 1)
    return min(date(year, month + 1, 1) + timedelta(days=day.day - 1), following - timedelta(days=1))


def _calendar(phrase: str, today: date) -> Span | None:
    if match := _ISO.fullmatch(phrase):
        return one_day(date(int(match[1]), int(match[2]), int(match[3])))
    if match := _DAY_MONTH.fullmatch(phrase):
        return one_day(date(int(match[3] or today.year), _month(match[2]), int(match[1])))
    if match := _MONTH_DAY.fullmatch(phrase):
        return one_day(date(int(match[3] or today.year), _month(match[1]), int(match[2])))
    if match := _MONTH_YEAR.fullmatch(phrase):
        start = date(int(match[2] or today.year), _month(match[1]), 1)
        return Span(start, shift(start, 1, "month"))
    if regex.fullmatch(r"\d{4}", phrase) and 1900 <= int(phrase) < 2200:
        return Span(date(int(phrase), 1, 1), date(int(phrase) + 1, 1, 1))
    return None


def _relative(phrase: str, today: date) -> Span | None:
    if match := _AGO.fullmatch(phrase):
        return one_day(shift(today, -_count(match[1]), match[2]))
    if match := _AHEAD.fullmatch(phrase):
        return one_day(shift(today, _count(match[1] or match[3]), match[2] or match[4]))
    if match := _RELATIVE.fullmatch(phrase):
        steps = {"last": -1, "previous": -1, "past": -1, "next": 1, "coming": 1}.get(match[1], 0)
        start = shift(_start_of(today, match[2]), steps, match[2])
        return Span(start, shift(start, 1, match[2]))
    if match := _WEEKDAY.fullmatch(phrase):
        ahead = (_WEEKDAYS.index(match[2]) - today.weekday()) % 7
        if match[1] == "last":
            return one_day(today + timedelta(days=ahead - 7))
        return one_day(today + timedelta(days=ahead or (7 if match[1] == "next" else 0)))
    return None


def _start_of(day: date, unit: str) -> date:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "month":
        return day.replace(day=1)
    if unit == "quarter":
        return date(day.year, (day.month - 1) // 3 * 3 + 1, 1)
    if unit == "year":
        return date(day.year, 1, 1)
    return day


def _count(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text]


def _month(text: str) -> int:
    return next(number for number, name in enumerate(_MONTHS, 1) if name.startswith(text[:3]))
