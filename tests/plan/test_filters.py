"""The closed list of filters: what each takes, and what is said of one that does not exist."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from obsidian_agent.errors import ToolError
from obsidian_agent.plan.filters import ARGUMENTS, MISSING, NO_SELECTION, FilterCall, FilterContext, apply, flaw, plain_link

CONTEXT = FilterContext(link_for=lambda text: f"<{text}>", now=datetime(2026, 3, 14, 9, 30, tzinfo=UTC))


def test_the_list_is_the_one_of_the_language() -> None:
    assert set(ARGUMENTS) == {"filename", "basename", "slug", "lower", "upper", "trim", "json", "link", "date", "default", "join", "count"}


@pytest.mark.parametrize(
    ("call", "value", "expected"),
    [
        (FilterCall("date", "DD.MM."), "2026-03-01", "01.03."),
        (FilterCall("date"), "2026-03-01T10:00", "2026-03-01"),
        (FilterCall("date", ""), "2026-03-01", "2026-03-01"),
        (FilterCall("date", "HH-mm"), "07:08", "07-08"),
        (FilterCall("date", "YYYY"), None, None),
        (FilterCall("date", "YYYY"), "", None),
        (FilterCall("default", "x"), MISSING, "x"),
        (FilterCall("default", "x"), NO_SELECTION, "x"),
        (FilterCall("default", "x"), None, "x"),
        (FilterCall("default", "x"), "", "x"),
        (FilterCall("default", "x"), 0, 0),
        (FilterCall("default", "x"), False, False),
        (FilterCall("default", "x"), [], []),
        (FilterCall("link"), "A/b.md", "<A/b.md>"),
        (FilterCall("json"), "a\n", '"a\\n"'),
        (FilterCall("json"), {"ü": None}, '{"ü": null}'),
        (FilterCall("trim"), "\n a ", "a"),
        (FilterCall("upper"), True, "TRUE"),
        (FilterCall("count"), {"a": 1}, 1),
        (FilterCall("join", ""), [1, "a", None, [2]], "1a[2]"),
    ],
)
def test_applies(call: FilterCall, value: Any, expected: Any) -> None:
    assert apply(call, value, CONTEXT) == expected


@pytest.mark.parametrize("name", sorted(set(ARGUMENTS) - {"default"}))
def test_what_is_missing_stays_missing(name: str) -> None:
    for missing in (MISSING, NO_SELECTION):
        assert apply(FilterCall(name, "x"), missing, CONTEXT) is missing


@pytest.mark.parametrize(
    ("name", "value"), [("join", "text"), ("join", {"a": 1}), ("count", 3), ("count", True), ("date", "soon"), ("nope", "x")]
)
def test_refuses(name: str, value: Any) -> None:
    with pytest.raises(ToolError) as raised:
        apply(FilterCall(name, "x"), value, CONTEXT)
    assert raised.value.code == "REFERENCE_ERROR"


def test_flaws_say_what_to_do() -> None:
    assert "did you mean 'lower'" in str(flaw(FilterCall("lowr")))
    assert "slug" in str(flaw(FilterCall("zzz")))
    assert "needs a text" in str(flaw(FilterCall("join")))
    assert "takes no text" in str(flaw(FilterCall("trim", "x")))
    assert flaw(FilterCall("date")) is None
    assert flaw(FilterCall("default", "")) is None


def test_links_without_a_vault() -> None:
    assert plain_link("A/b c.md") == "[[b c]]"
    assert plain_link("Some text") == "[[Some text]]"
