"""Days and periods in a sentence: ISO dates, numbers and words, in several languages.

A period is a month, a year, or a calendar unit such as “last week”.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Final

from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.words import NEAR, WORD, Stretch, Word, folded, vocabulary

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
NUMBERS: Final = {"a": 1, "an": 1} | {
    word: count
    for count, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1
    )
}
FEASTS: Final = {"christma": (12, 25), "halloween": (10, 31)}
"""The month and day of feasts, by the senses of the words for them."""
_MAX_WORDS: Final = 6
_MONTH: Final = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in MONTHS)
_COUNT: Final = r"\d{1,4}|" + "|".join(NUMBERS)
_ISO: Final = unicode_expression(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_CALENDAR: Final = unicode_expression(
    rf"{_DAY}\.? (?:of )?(?P<month>{_MONTH})\.?,?(?: (?P<year>\d{{4}}))?"
    rf"|(?P<month>{_MONTH})\.? {_DAY}(?:,? (?P<year>\d{{4}}))?"
)
_EASTERN: Final = unicode_expression(
    r"(?:(?P<year>\d{4})[年년] ?)?(?P<month>\d{1,2})[月월] ?(?P<day>\d{1,2})[日일号]"
)
_AWAY: Final = unicode_expression(
    rf"(?P<in>in )?(?P<count>{_COUNT}) (?P<unit>day|week|month|year)s?(?(in)| ago)"
)
_WEEKDAY: Final = unicode_expression(rf"(?:(last|next|this|on) )?({'|'.join(WEEKDAYS)})")


_UNITS: Final = ("week", "month", "year")
UNITS: Final = ("day", *_UNITS)
_RELATIVE: Final = {"thi": 0, "next": 1, "recently": -1}
"""The distance of a week, month or year, by the senses of the word beside it."""
_INTRODUCING: Final = frozenset({"in", "befor", "sinc", "of", "on", "from"})
"""The senses of the words before a month; “may” and “march” are verbs too."""
_MONTH_NUMBERS: Final = frozenset(map(str, range(1, 13)))
_YEARS: Final = unicode_expression(r"(?:19|20)\d\d")


class Period(Stretch, frozen=True):
    """Some days in a sentence; the text is the first one, as YYYY-MM-DD, `until` excluded."""

    until: str
    is_fixed: bool = True
    """False for a month without a year."""

    @property
    def of_last_year(self) -> Period:
        """The same days a year earlier."""
        first, until = map(date.fromisoformat, (self.text, self.until))
        start, end = shift(first, -1, "year"), shift(until, -1, "year")
        return Period(self.start, self.end, start.isoformat(), end.isoformat())


def periods(spoken: Sequence[Word], bare: str, today: date) -> Iterator[Period]:
    """Yield the weeks, months and years in a sentence.

    A month without a year is the one nearest to today.
    """
    for number, word in enumerate(spoken):
        before = spoken[number - 1] if number else None
        after = spoken[number + 1] if number + 1 < len(spoken) else None
        unit = next((unit for unit in _UNITS if unit in word.senses), None)
        beside = (word, before, after) if unit else ()
        for other in (one for one in beside if one is not None):
            distance = next((_RELATIVE[one] for one in _RELATIVE if one in other.senses), None)
            if unit is not None and distance is not None:
                first = shift(_beginning(today, unit), distance, unit)
                start, end = min(word.start, other.start), max(word.end, other.end)
                yield _period(start, end, first, unit)
                break
        month = next(
            (position for position, name in enumerate(MONTHS, 1) if name in word.senses), None
        )
        end = word.end
        if word.text in _MONTH_NUMBERS and after is not None and after.text == "月":
            month, end = int(word.text), after.end
        is_cued = before is not None and bool(before.senses & _INTRODUCING)
        if after is not None and "of" in after.senses:  # “febrero de 2027”
            after = spoken[number + 2] if number + 2 < len(spoken) else None
        year = after if after is not None and _YEARS.fullmatch(after.text) else None
        is_name = bare[word.start].isupper() or bare[end - 1] in "月월"
        if month is not None and (is_cued or year is not None or is_name):
            months = [date(int(year.text), month, 1)] if year else _near(month, today)
            first = min(months, key=lambda day: abs((day - today).days + 15))
            yield _period(word.start, year.end if year else end, first, "month", fixed=bool(year))


def _near(month: int, today: date) -> list[date]:
    return [date(today.year + distance, month, 1) for distance in (-1, 0, 1)]


def _beginning(day: date, unit: str) -> date:
    """Return the first day of the week, month or year of a day."""
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)


def _period(start: int, end: int, first: date, unit: str, *, fixed: bool = True) -> Period:
    return Period(start, end, first.isoformat(), shift(first, 1, unit).isoformat(), fixed)


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


def feast(word: Word, today: date) -> Stretch | None:
    """Return the next day of the feast that a word means, or None."""
    day = next((day for sense, day in FEASTS.items() if sense in word.senses), None)
    if day is None:
        return None
    first = date(today.year, *day)
    first = first if first >= today else first.replace(year=today.year + 1)
    return Stretch(word.start, word.end, first.isoformat())


def parse_day(text: str, today: date, *, ahead: bool = False) -> date | None:
    """Return the day that a phrase means, or None.

    A weekday means the next one; a date without a year is in this year, or the next one `ahead`.
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
            return _in_year(match["year"], month, int(match["day"]), today, ahead=ahead)
        if match := _EASTERN.fullmatch(phrase):
            month, day = int(match["month"]), int(match["day"])
            return _in_year(match["year"], month, day, today, ahead=ahead)
        if match := _AWAY.fullmatch(phrase):
            count = int(match["count"]) if match["count"].isdigit() else NUMBERS[match["count"]]
            return shift(today, count if match["in"] else -count, match["unit"])
        if match := _WEEKDAY.fullmatch(phrase):
            distance = (WEEKDAYS.index(match[2]) - today.weekday()) % 7
            if match[1] == "last":
                distance -= 7
            elif match[1] == "next" and not distance:
                distance = 7
            return today + timedelta(days=distance)
    except (ValueError, OverflowError):
        pass
    return None


def _in_year(year: str | None, month: int, day: int, today: date, *, ahead: bool) -> date:
    this_year = date(int(year or today.year), month, day)
    is_over = year is None and ahead and this_year < today
    return this_year.replace(year=today.year + 1) if is_over else this_year


def _translated(text: str) -> str:
    """Return a phrase in lower case, with the English names of its days and months."""
    bare = " ".join(text.casefold().replace("’", "'").removesuffix("'s").split())
    known = vocabulary()
    phrase: list[str] = []
    spoken = bare.removeprefix("the ").split(" ")
    for number, word in enumerate(spoken, 1):
        senses = known.get(folded(word.rstrip(".")), frozenset())
        is_article = bool(phrase) and "of" in senses and number < len(spoken)
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
