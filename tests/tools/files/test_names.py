from __future__ import annotations

import pytest

from obsidian_agent.errors import ToolError

NAMED = [
    {"path": "People/Ada.md", "frontmatter": {"born": "1815-12-10"}},
    {"path": "Old plan.md", "frontmatter": {}},
    None,
]


def test_names_are_made_by_a_pattern(bench):
    named = bench().run("util.newNames", items=NAMED, pattern="{index} {name}")
    assert named == {
        "items": [
            {"path": "People/Ada.md", "to": "People/1 Ada.md"},
            {"path": "Old plan.md", "to": "2 Old plan.md"},
        ],
        "count": 2,
    }


def test_a_text_in_the_names_is_replaced_and_what_stays_is_left_out(bench):
    assert bench().run("util.newNames", items=NAMED, find="Old", replace="New")["items"] == [
        {"path": "Old plan.md", "to": "New plan.md"}
    ]


def test_a_property_in_the_name_is_cleaned(bench):
    files = [{"path": "a.md", "frontmatter": {"date": "1/2: x"}}]
    assert (
        bench().run("util.newNames", items=files, pattern="{frontmatter.date}")["items"][0]["to"]
        == "1-2 - x.md"
    )


def test_a_name_must_be_one(bench):
    with pytest.raises(ToolError):
        bench().run("util.newNames", items=[NAMED[1]], pattern="{frontmatter.born}")
    with pytest.raises(ToolError):
        bench().run("util.newNames", items=[NAMED[1]], find="Old plan")


@pytest.mark.parametrize(
    ("args", "slug"),
    [
        ({"title": "Plan: Q3/Q4"}, "plan-q3-q4"),
        ({"title": "A b", "separator": "_"}, "a_b"),
        ({"title": "one two three", "maxLength": 8}, "one-two"),
        ({"title": "?"}, "untitled"),
    ],
)
def test_slugify(bench, args, slug):
    assert bench().run("util.slugifyTitle", **args) == {"slug": slug}
