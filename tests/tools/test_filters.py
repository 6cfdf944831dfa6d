from __future__ import annotations

import pytest

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.filters import FILTERS, MISSING, FilterCall, FilterContext, apply_filters, parse_call


def filtered(value, *filters):
    return apply_filters(value, [parse_call(text) for text in filters], FilterContext(lambda text: f"<{text}>"))


@pytest.mark.parametrize(
    ("value", "filters", "expected"),
    [
        ("A/B", ["filename"], "A-B"),
        ("A/B/v1.2 plan.md", ["basename"], "v1.2 plan"),
        ("A/B/", ["basename"], "B"),
        ("1. Intro", ["basename"], "1. Intro"),
        ("Plan: Q3 (draft)", ["slug"], "plan-q3-draft"),
        ("ÀB", ["lower"], "àb"),
        ("straße", ["upper"], "STRASSE"),
        ("  a \n", ["trim"], "a"),
        ({"a": ["é", None]}, ["json"], '{"a": ["é", null]}'),
        ("x", ["link"], "<x>"),
        ("", ["default:none"], "none"),
        (None, ["default:a:b"], "a:b"),
        (MISSING, ["upper", "default:x"], "x"),
        (0, ["default:x"], 0),
        (False, ["default:x"], False),
        (["a", 1, None, True], ["join:; "], "a; 1; ; true"),
        (None, ["join:,"], ""),
        ([1, 2], ["count"], 2),
        (None, ["count"], 0),
        (12, ["upper"], "12"),
        (" A ", ["trim", "lower", "link"], "<a>"),
    ],
)
def test_filters(value, filters, expected):
    assert filtered(value, *filters) == expected


def test_what_is_missing_stays_missing():
    assert filtered(MISSING, "upper", "json", "count", "join:,") is MISSING


@pytest.mark.parametrize(("value", "call"), [("x", "shout"), ("x", "join:,"), (3, "count"), ({}, "join:,")])
def test_what_a_filter_cannot_do_is_an_error(value, call):
    with pytest.raises(ToolError) as caught:
        filtered(value, call)
    assert caught.value.code == "ARGUMENT_INVALID"


def test_arguments_are_verbatim():
    assert parse_call(" join : a ") == FilterCall("join", " a ")
    assert parse_call("default:") == FilterCall("default", "")
    assert parse_call("trim") == FilterCall("trim")


def test_the_list_is_closed():
    assert set(FILTERS) == {"filename", "basename", "slug", "lower", "upper", "trim", "json", "link", "default", "join", "count", "date"}


def test_date_formats_a_date_and_leaves_nothing_alone() -> None:
    assert filtered("2026-03-14", "date:DD.MM.YY") == "14.03.26"
    assert filtered("2026-03-14") == "2026-03-14"
    assert filtered(None, "date", "default:none") == "none"
