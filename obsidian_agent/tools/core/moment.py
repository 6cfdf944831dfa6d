"""Dates and times, in arguments of tools and in the format language of Moment.js.

Obsidian uses Moment.js formats everywhere. Names are English, and weeks start on Sunday for `w` and
`g`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import Any, Final

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.lookup import value_of
from obsidian_agent.tools.core.tool import ToolContext
from obsidian_agent.vault.paths.path import VaultPath

_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_LOCALIZED: Final = {
    "LTS": "h:mm:ss A",
    "LT": "h:mm A",
    "LLLL": "dddd, MMMM D, YYYY h:mm A",
    "LLL": "MMMM D, YYYY h:mm A",
    "LL": "MMMM D, YYYY",
    "L": "MM/DD/YYYY",
    "llll": "ddd, MMM D, YYYY h:mm A",
    "lll": "MMM D, YYYY h:mm A",
    "ll": "MMM D, YYYY",
    "l": "M/D/YYYY",
}
_TOKEN: Final = re.compile(
    r"\[([^\[\]]*)\]|\\(.)"
    r"|(LTS|LT|L{1,4}|l{1,4})"
    r"|(YYYYYY|YYYYY|YYYY|YY|Y|Qo|Q|MMMM|MMM|MM|Mo|M|DDDD|DDDo|DDD|DD|Do|D|dddd|ddd|dd|do|d|e|E"
    r"|ww|wo|w|WW|Wo|W|gggg|gg|GGGG|GG|A|a|HH|H|hh|h|kk|k|mm|m|ss|s|S{1,9}|ZZ|Z|X|x)",
    re.DOTALL,
)


def format_moment(moment: datetime, pattern: str) -> str:
    """Format `moment` by a Moment.js pattern.

    Text in `[brackets]` and everything that is not a token stays unchanged. A moment without a time
    zone is local time.
    """

    def replacement(match: re.Match[str]) -> str:
        bracketed, escaped, localized, token = match.groups()
        if bracketed is not None:
            return bracketed
        if escaped is not None:
            return escaped
        if localized is not None:
            return format_moment(moment, _LOCALIZED[localized])
        return _format_token(token, moment)

    return _TOKEN.sub(replacement, pattern)


def parse_moment(value: object, now: datetime) -> datetime | None:
    """Return the moment that a value of a plan names, or `None`.

    The value is ISO text (a date, a date and time, or a time of `now`'s day), or milliseconds since
    the epoch.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return datetime.fromtimestamp(value / 1000, now.tzinfo).astimezone(now.tzinfo)
        except (ValueError, OverflowError, OSError):
            return None
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=now.tzinfo)
    if not isinstance(value, str):
        return None
    return _parse_text(value.strip(), now)


def _parse_text(text: str, now: datetime) -> datetime | None:
    if re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", text, re.ASCII):
        text = f"{now.date().isoformat()}T{text:0>{5 if text.count(':') == 1 else 8}}"
    if not re.match(r"\d{4}-", text, re.ASCII):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{({1: 'st', 2: 'nd', 3: 'rd'}).get(number % 10, 'th')}"


def _weekday(moment: datetime) -> int:
    """Return the day of the week; Sunday is 0."""
    return moment.isoweekday() % 7


def _week(moment: datetime) -> tuple[int, int]:
    """Return year and number of the English week.

    It starts on Sunday, and week 1 is the one with January 1.
    """
    saturday = moment.date().toordinal() - _weekday(moment) + 6
    year = _year_of(saturday)
    first = date(year, 1, 1) if year <= date.max.year else date.max
    start = first.toordinal() - first.isoweekday() % 7
    return year, (moment.date().toordinal() - start) // 7 + 1


def _year_of(ordinal: int) -> int:
    return date.fromordinal(ordinal).year if ordinal <= date.max.toordinal() else date.max.year + 1


def _offset(moment: datetime, separator: str) -> str:
    delta = (moment if moment.tzinfo else moment.astimezone()).utcoffset() or timedelta()
    minutes = int(delta.total_seconds() // 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{separator}{abs(minutes) % 60:02}"


_NUMBERS: Final[Mapping[str, Callable[[datetime], int]]] = {
    "Q": lambda m: (m.month + 2) // 3,
    "M": lambda m: m.month,
    "D": lambda m: m.day,
    "DDD": lambda m: m.timetuple().tm_yday,
    "d": _weekday,
    "e": _weekday,
    "E": lambda m: m.isoweekday(),
    "w": lambda m: _week(m)[1],
    "W": lambda m: m.isocalendar().week,
    "H": lambda m: m.hour,
    "h": lambda m: m.hour % 12 or 12,
    "k": lambda m: m.hour or 24,
    "m": lambda m: m.minute,
    "s": lambda m: m.second,
}
"""The tokens of numbers; a trailing `o` makes an ordinal, a doubled token has two digits."""

_TEXTS: Final[Mapping[str, Callable[[datetime], str]]] = {
    "YYYYYY": lambda m: f"+{m.year:06}",
    "YYYYY": lambda m: f"{m.year:05}",
    "YYYY": lambda m: f"{m.year:04}",
    "YY": lambda m: f"{m.year % 100:02}",
    "Y": lambda m: str(m.year),
    "MMM": lambda m: _MONTHS[m.month - 1][:3],
    "MMMM": lambda m: _MONTHS[m.month - 1],
    "DDDD": lambda m: f"{m.timetuple().tm_yday:03}",
    "dd": lambda m: _DAYS[_weekday(m)][:2],
    "ddd": lambda m: _DAYS[_weekday(m)][:3],
    "dddd": lambda m: _DAYS[_weekday(m)],
    "gg": lambda m: f"{_week(m)[0] % 100:02}",
    "gggg": lambda m: f"{_week(m)[0]:04}",
    "GG": lambda m: f"{m.isocalendar().year % 100:02}",
    "GGGG": lambda m: f"{m.isocalendar().year:04}",
    "A": lambda m: "AM" if m.hour < 12 else "PM",
    "a": lambda m: "am" if m.hour < 12 else "pm",
    "Z": lambda m: _offset(m, ":"),
    "ZZ": lambda m: _offset(m, ""),
    "X": lambda m: str(int(m.timestamp())),
    "x": lambda m: str(int(m.timestamp() * 1000)),
}


def _format_token(token: str, moment: datetime) -> str:
    if token[0] == "S":
        return f"{moment.microsecond:06}000"[: len(token)]
    if token in _TEXTS:
        return _TEXTS[token](moment)
    if token in _NUMBERS:
        return str(_NUMBERS[token](moment))
    if token.endswith("o"):
        return _ordinal(_NUMBERS[token[:-1]](moment))
    return f"{_NUMBERS[token[0]](moment):02}"


def moment_ms(text: str | None, now: datetime, argument: str) -> float | None:
    """Return an ISO date (its beginning) or date and time in milliseconds since the epoch.

    `None` stays `None`. A text without a time zone is in that of `now`. Raise ARGUMENT_INVALID,
    naming `argument`, for any other text.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ToolError(
            f"{argument} {text!r} is not an ISO date.",
            hint="Write it like 2026-03-14 or 2026-03-14T09:30.",
        ) from error
    if moment.tzinfo is None:
        moment = (
            moment.replace(tzinfo=now.tzinfo) if now.tzinfo is not None else moment.astimezone()
        )
    return moment.timestamp() * 1000


def created_ms(path: VaultPath, properties: Mapping[str, Any], ctx: ToolContext) -> float:
    """Return the creation time of a file in milliseconds since the epoch.

    It is the property `created` of a note if that is a date, or else the file's own time.
    """
    created = value_of(properties, "created") if path.is_note else None
    moment = parse_moment(created, ctx.run.now) if isinstance(created, str) else None
    return ctx.view.stat(path).created_ms if moment is None else moment.timestamp() * 1000
