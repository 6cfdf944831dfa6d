from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.offline.sentence import parse_day, shift

TODAY = date(2026, 3, 14)
"""A Saturday."""


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("today", "2026-03-14"),
        ("Today's", "2026-03-14"),
        ("yesterday", "2026-03-13"),
        ("tomorrow", "2026-03-15"),
        ("the day before yesterday", "2026-03-12"),
        ("2025-06-19", "2025-06-19"),
        ("19 June 2025", "2025-06-19"),
        ("June 19th, 2025", "2025-06-19"),
        ("19th of June", "2026-06-19"),
        ("Dec 1", "2026-12-01"),
        ("3 days ago", "2026-03-11"),
        ("two weeks ago", "2026-02-28"),
        ("a month ago", "2026-02-14"),
        ("in 2 days", "2026-03-16"),
        ("monday", "2026-03-16"),
        ("next monday", "2026-03-16"),
        ("last monday", "2026-03-09"),
        ("saturday", "2026-03-14"),
        ("next saturday", "2026-03-21"),
        ("last saturday", "2026-03-07"),
    ],
)
def test_days(text, day):
    assert parse_day(text, TODAY) == date.fromisoformat(day)


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2025-02-30", "32 June", "Projects", "99999 years ago", "9999 years ago", "1234", "may be", "last month", "2024", "March"],
)
def test_no_dates(text):
    assert parse_day(text, TODAY) is None


def test_a_day_that_the_month_lacks_becomes_its_last():
    assert shift(date(2026, 3, 31), -1, "month") == date(2026, 2, 28)
    assert shift(date(2024, 2, 29), 1, "year") == date(2025, 2, 28)
    assert shift(date(2026, 12, 31), 2, "month") == date(2027, 2, 28)


@given(st.dates(date(1950, 1, 1), date(2100, 1, 1)), st.integers(-200, 200), st.sampled_from(["day", "week", "month", "year"]))
def test_shifting_there_and_back_loses_at_most_the_end_of_a_month(day, count, unit):
    back = shift(shift(day, count, unit), -count, unit)
    assert abs(back - day) <= timedelta(days=3)
    assert shift(day, 0, unit) == day


@given(st.dates(date(1950, 1, 1), date(2100, 1, 1)))
def test_a_written_day_reads_back(day):
    assert parse_day(day.isoformat(), TODAY) == day


@given(st.text(max_size=40))
def test_any_text_is_a_date_or_none(text):
    assert isinstance(parse_day(text, TODAY), date | None)
