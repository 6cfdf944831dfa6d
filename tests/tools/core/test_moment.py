"""Moment.js formats, against documented values and the calendar of the standard library."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.tools.core.moment import format_moment, parse_moment

WHEN = datetime(2026, 3, 4, 0, 5, 7, 89_000, tzinfo=timezone(timedelta(hours=-3, minutes=-30)))
NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("YYYY-MM-DD", "2026-03-04"),
        ("YY M D", "26 3 4"),
        ("Q Qo", "1 1st"),
        ("MMM MMMM Mo", "Mar March 3rd"),
        ("Do DDD DDDo DDDD", "4th 63 63rd 063"),
        ("d do dd ddd dddd e E", "3 3rd We Wed Wednesday 3 3"),
        ("w ww wo gg gggg", "10 10 10th 26 2026"),
        ("W WW Wo GG GGGG", "10 10 10th 26 2026"),
        ("H HH h hh k kk", "0 00 12 12 24 24"),
        ("A a", "AM am"),
        ("m mm s ss S SS SSS", "5 05 7 07 0 08 089"),
        ("Z ZZ", "-03:30 -0330"),
        ("X x", "1772595307 1772595307089"),
        ("[Week] WW [of] gggg", "Week 10 of 2026"),
        ("dddd, MMMM Do YYYY, h:mm:ss a", "Wednesday, March 4th 2026, 12:05:07 am"),
        ("L LL LLL", "03/04/2026 March 4, 2026 March 4, 2026 12:05 AM"),
        ("LT LTS", "12:05 AM 12:05:07 AM"),
        ("YYYY/MM-MMMM/[Day] D", "2026/03-March/Day 4"),
        (r"\Y\\", r"Y\\"[:2]),
        ("été #1 (x)", "été #1 (1772595307089)"),
        ("", ""),
    ],
)
def test_formats(pattern: str, expected: str) -> None:
    assert format_moment(WHEN, pattern) == expected


@pytest.mark.parametrize(
    ("day", "week"),
    [
        ("2025-12-31", "2026-01"),
        ("2026-01-01", "2026-01"),
        ("2026-01-04", "2026-02"),
        ("2022-01-01", "2022-01"),
        ("2022-12-31", "2022-53"),
    ],
)
def test_english_weeks_start_on_sunday_and_week_one_holds_january_first(
    day: str, week: str
) -> None:
    assert format_moment(datetime.fromisoformat(day), "gggg-ww") == week


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)))
def test_agrees_with_the_calendar(when: datetime) -> None:
    iso = when.isocalendar()
    assert format_moment(when, "YYYY-MM-DDTHH:mm:ss") == when.isoformat(timespec="seconds")
    assert format_moment(when, "GGGG WW E") == f"{iso.year:04} {iso.week:02} {iso.weekday}"
    assert 1 <= int(format_moment(when, "w")) <= 54


@given(st.datetimes(), st.text(max_size=30))
def test_every_pattern_can_be_written(when: datetime, pattern: str) -> None:
    assert isinstance(format_moment(when.replace(tzinfo=UTC), pattern), str)


@given(st.text(alphabet="-_/. ()0123456789éß", max_size=20))
def test_text_without_tokens_stays(text: str) -> None:
    assert format_moment(WHEN, text) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-04", "2026-03-04T00:00"),
        (" 2026-03-04T10:11 ", "2026-03-04T10:11"),
        ("2026-03-04 10:11:12", "2026-03-04T10:11"),
        ("08:15", "2026-03-14T08:15"),
        ("8:15", "2026-03-14T08:15"),
        (1772595307089, "2026-03-04T03:35"),
        (1772595307089.5, "2026-03-04T03:35"),
        (date(2026, 3, 4), "2026-03-04T00:00"),
    ],
)
def test_values_that_are_dates(value: object, expected: str) -> None:
    moment = parse_moment(value, NOW)
    assert moment is not None
    assert moment.isoformat().startswith(expected)
    assert moment.tzinfo is not None


@pytest.mark.parametrize(
    "value",
    [
        "",
        "soon",
        "2026",
        "20260304",
        "2026-13-01",
        "25:00",
        True,
        None,
        [],
        {},
        1e300,
        float("inf"),
        -(10**30),
    ],
)
def test_values_that_are_none(value: object) -> None:
    assert parse_moment(value, NOW) is None
