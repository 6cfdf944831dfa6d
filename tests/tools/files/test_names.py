from __future__ import annotations

import pytest

from obsidian_agent.errors import ToolError

FILES = [
    {"path": "People/Ada.md", "frontmatter": {"born": "1815-12-10"}},
    {"path": "Old plan.md", "frontmatter": {}},
    None,
]


def test_names_are_made_by_a_pattern(bench):
    named = bench().run("util.newNames", items=FILES, pattern="{index} {name}")
    assert named == {
        "items": [{"path": "People/Ada.md", "to": "People/1 Ada.md"}, {"path": "Old plan.md", "to": "2 Old plan.md"}],
        "count": 2,
    }


def test_a_text_in_the_names_is_replaced_and_what_stays_is_left_out(bench):
    assert bench().run("util.newNames", items=FILES, find="Old", replace="New")["items"] == [{"path": "Old plan.md", "to": "New plan.md"}]


def test_a_property_in_the_name_is_cleaned(bench):
    files = [{"path": "a.md", "frontmatter": {"date": "1/2: x"}}]
    assert bench().run("util.newNames", items=files, pattern="{frontmatter.date}")["items"][0]["to"] == "1-2 - x.md"


def test_a_name_must_be_one(bench):
    with pytest.raises(ToolError):
        bench().run("util.newNames", items=[FILES[1]], pattern="{frontmatter.born}")
    with pytest.raises(ToolError):
        bench().run("util.newNames", items=[FILES[1]], find="Old plan")


def test_a_table_of_notes_with_their_properties(bench):
    items = [{"path": "a.md", "frontmatter": {"Tags": ["x", "y"], "note": "1 | 2"}}, {"path": "Gone.md", "frontmatter": {}}]
    assert bench({"a.md": ""}).run("util.formatTable", items=items, columns=["tags", "note"]) == {
        "text": "| Note | tags | note |\n| --- | --- | --- |\n| [[a]] | x, y | 1 \\| 2 |\n| [[Gone.md]] |  |  |",
        "count": 2,
    }


@pytest.mark.parametrize(
    ("files", "args", "path"),
    [
        ([], {"period": "month"}, "2026-03.md"),
        ([], {"period": "quarter", "offset": 1}, "2026-Q2.md"),
        ([], {"period": "year", "offset": -1}, "2025.md"),
        ([], {"period": "week"}, "2026-W11.md"),
        (["Journal/Monthly/2026-01.md", "Journal/Monthly/2026-02.md", "x/2020-01.md"], {"period": "month"}, "Journal/Monthly/2026-03.md"),
        (["Log/2025/2025-12.md", "Log/2026/2026-01.md"], {"period": "month", "offset": 10}, "Log/2027/2027-01.md"),
        (["M/January 2026.md"], {"period": "month", "offset": -1}, "M/February 2026.md"),
        (["Reviews/Quarterly/"], {"period": "quarter"}, "Reviews/Quarterly/2026-Q1.md"),
        (["W/2026W10.md"], {"period": "week", "offset": -1}, "W/2026W10.md"),
        (["Templates/2026-01.md"], {"period": "month"}, "2026-03.md"),
    ],
)
def test_beside_the_others_and_named_like_them(bench, files, args, path):
    answer = bench(dict.fromkeys(files, "")).run("util.periodNote", **args)
    assert answer["path"] == path
    assert answer["title"] == path.rpartition("/")[2].removesuffix(".md")


def test_the_one_template_that_is_named_after_it(bench):
    vault = bench({"Templates/Monthly review.md": "", "Templates/Daily.md": "", "Monthly ideas.md": ""})
    answer = vault.run("util.periodNote", period="month")
    assert (answer["template"], answer["bare"], answer["day"]) == ("Templates/Monthly review.md", False, "2026-03-01")
    assert bench({"Templates/Monthly.md": "", "Templates/Month.md": ""}).run("util.periodNote", period="month")["bare"] is True


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
