"""Days in a sentence: ISO dates, numbers, and words if they are certain, in several languages.

Ranges of days are not read; forms have a field for each end.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.words import NEAR, WORD, Stretch, folded, vocabulary

_YEAR: Final = (
    "january february march april may june july august september october november december"
)
MONTHS: Final = _YEAR.split()
WEEKDAYS: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_NAMED: Final = {
    "today": 0,
    "now": 0,
    "yesterday": -1,
    "tomorrow": 1,
    "day before yesterday": -2,
    "day after tomorrow": 2,
}
_TRANSLATED: Final = frozenset({*MONTHS, *WEEKDAYS, *NEAR})
_NUMBERS: Final = {"a": 1, "an": 1} | {
    word: count
    for count, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1
    )
}
_MAX_WORDS: Final = 5
_MONTH: Final = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in MONTHS)
_COUNT: Final = r"\d{1,4}|" + "|".join(_NUMBERS)
_ISO: Final = unicode_expression(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_CALENDAR: Final = unicode_expression(
    rf"{_DAY}\.? (?:of )?(?P<month>{_MONTH})\.?,?(?: (?P<year>\d{{4}}))?"
    rf"|(?P<month>{_MONTH})\.? {_DAY}(?:,? (?P<year>\d{{4}}))?"
)
_AWAY: Final = unicode_expression(
    rf"(?P<in>in )?(?P<count>{_COUNT}) (?P<unit>day|week|month|year)s?(?(in)| ago)"
)
_WEEKDAY: Final = unicode_expression(rf"(?:(last|next|this|on) )?({'|'.join(WEEKDAYS)})")


def days(text: str, today: date) -> Iterator[Stretch]:
    """Yield the days in a text as YYYY-MM-DD, longest phrases first from the left."""
    spoken = list(WORD.finditer(text))
    reached = 0
    for number, first in enumerate(spoken):
        for last in reversed(spoken[number : number + _MAX_WORDS]):
            if first.start() < reached:
                break
            day = parse_day(text[first.start() : last.end()], today)
            if day is not None:
                reached = last.end()
                yield Stretch(first.start(), reached, day.isoformat())
                break


def parse_day(text: str, today: date) -> date | None:
    """Return the day that a phrase means, or None.

    A weekday means the next one; a date without a year is in this year.
    """
    phrase = _translated(text)
    if phrase in _NAMED:
        return today + timedelta(days=_NAMED[phrase])
    try:
        if match := _ISO.fullmatch(phrase):
            return date(int(match[1]), int(match[2]), int(match[3]))
        if match := _CALENDAR.fullmatch(phrase):
            month = next(
                number
                for number, name in enumerate(MONTHS, 1)
                if name.startswith(match["month"][:3])
            )
            return date(int(match["year"] or today.year), month, int(match["day"]))
        if match := _AWAY.fullmatch(phrase):
            count = int(match["count"]) if match["count"].isdigit() else _NUMBERS[match["count"]]
            return shift(today, count if match["in"] else -count, match["unit"])
        if match := _WEEKDAY.fullmatch(phrase):
            ahead = (WEEKDAYS.index(match[2]) - today.weekday()) % 7
            if match[1] == "last":
                ahead -= 7
            elif match[1] == "next" and not ahead:
                ahead = 7
            return today + timedelta(days=ahead)
    except (ValueError, OverflowError):
        pass
    return None


def _translated(text: str) -> str:
    """Return a phrase in lower case, with the English names of its days and months."""
    bare = " ".join(text.casefold().replace("’", "'").removesuffix("'s").split())
    known = vocabulary()
    phrase: list[str] = []
    for word in bare.removeprefix("the ").split(" "):
        senses = known.get(folded(word.rstrip(".")), frozenset())
        is_article = bool(phrase) and "of" in senses
        if not is_article:
            phrase.append(min(senses & _TRANSLATED, default=word))
    return " ".join(phrase)


def shift(day: date, count: int, unit: str) -> date:
    """Return a day moved by calendar units, at most to the last day of the month."""
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
