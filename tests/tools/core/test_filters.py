"""The closed list of filters: what each takes and makes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.filters import (
    FILTERS,
    MISSING,
    NO_SELECTION,
    FilterCall,
    FilterContext,
    LinkWriter,
    apply_filters,
    parse_call,
    plain_link,
)


def filtered(value, *filters):
    return apply_filters(
        value,
        [parse_call(text) for text in filters],
        FilterContext(lambda text: f"<{text}>", datetime(2026, 3, 14, 9, 30, tzinfo=UTC)),
    )


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
        (True, ["upper"], "TRUE"),
        ({"a": 1}, ["count"], 1),
        ([1, "a", None, [2]], ["join:"], "1a[2]"),
        (NO_SELECTION, ["default:x"], "x"),
        ([], ["default:x"], []),
        ("2026-03-14", ["date:DD.MM.YY"], "14.03.26"),
        ("2026-03-01T10:00", ["date"], "2026-03-01"),
        ("2026-03-01", ["date:"], "2026-03-01"),
        ("07:08", ["date:HH-mm"], "07-08"),
        ("", ["date:YYYY"], None),
        (None, ["date", "default:none"], "none"),
    ],
)
def test_filters(value, filters, expected):
    assert filtered(value, *filters) == expected


@pytest.mark.parametrize("missing", [MISSING, NO_SELECTION])
def test_what_is_missing_stays_missing(missing):
    assert filtered(missing, *(f"{name}:x" for name in FILTERS if name != "default")) is missing


@pytest.mark.parametrize(
    ("value", "call"),
    [
        ("x", "shout"),
        ("x", "join:,"),
        (3, "count"),
        (True, "count"),
        ({}, "join:,"),
        ("soon", "date"),
    ],
)
def test_what_a_filter_cannot_do_is_an_error(value, call):
    with pytest.raises(ToolError) as caught:
        filtered(value, call)
    assert caught.value.code == "ARGUMENT_INVALID"


def test_arguments_are_verbatim():
    assert parse_call(" join : a ") == FilterCall("join", " a ")
    assert parse_call("default:") == FilterCall("default", "")
    assert parse_call("trim") == FilterCall("trim")


def test_the_list_is_closed():
    assert set(FILTERS) == {
        "filename",
        "basename",
        "slug",
        "lower",
        "upper",
        "trim",
        "json",
        "link",
        "default",
        "join",
        "count",
        "date",
    }


def test_links_without_a_vault():
    assert plain_link("A/b c.md") == "[[b c]]"
    assert plain_link("Some text") == "[[Some text]]"


VAULT = {
    "Note.md": "",
    "A/Other.md": "",
    "A/Twice.md": "",
    "B/twice.md": "",
    "B/v1.2 plan.md": "",
    "pic.png": b"",
    "A/pic.png": b"",
    "B/only.pdf": b"",
    "only.pdf.md": "",
    "README": "",
}


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("Note.md", "[[Note]]"),
        ("A/Other.md", "[[Other]]"),
        ("A/Twice.md", "[[A/Twice]]"),
        ("B/twice.md", "[[B/twice]]"),
        ("B/v1.2 plan.md", "[[v1.2 plan]]"),
        ("A/pic.png", "[[A/pic.png]]"),
        ("B/only.pdf", "[[only.pdf]]"),
        ("only.pdf.md", "[[only.pdf.md]]"),
        ("README", "[[README]]"),
        ("Note", "[[Note]]"),
        ("A", "[[A]]"),
        ("missing.md", "[[missing.md]]"),
        ("../x", "[[../x]]"),
        ("any text: here", "[[any text: here]]"),
        ("", "[[]]"),
    ],
)
def test_links(bench, text, link):
    assert LinkWriter(bench(VAULT).base)(text) == link


def test_links_know_what_earlier_steps_made(bench):
    vault = bench({"A/Idea.md": ""})
    assert LinkWriter(vault.overlay)("A/Idea.md") == "[[Idea]]"
    vault.run("vault.createFile", path="B/idea.md", content="")
    assert LinkWriter(vault.overlay)("A/Idea.md") == "[[A/Idea]]"
    assert LinkWriter(vault.overlay)("B/idea.md") == "[[B/idea]]"
