from __future__ import annotations

import pytest

BOOKS = [
    {"name": "Emma", "frontmatter": {"year": 1815, "genre": ["[[Novels|novel]]", "Satire"]}},
    None,
    {"name": "dune", "frontmatter": {"year": 1965, "genre": "[[Genres/Science fiction]]"}},
    {"name": "Anon", "frontmatter": {}},
    {"name": "Ulysses", "frontmatter": {"year": "unknown", "genre": "satire"}},
]


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ({"by": "name"}, ["Anon", "dune", "Emma", "Ulysses"]),
        ({"by": "frontmatter.year"}, ["Emma", "dune", "Ulysses", "Anon"]),
        ({"by": "frontmatter.year", "descending": True}, ["Ulysses", "dune", "Emma", "Anon"]),
    ],
)
def test_sort(bench, args, names):
    assert [item["name"] for item in bench().run("util.sortItems", items=BOOKS, **args)["items"]] == names


def test_sort_of_plain_values(bench):
    assert bench().run("util.sortItems", items=["b", "A", None, "c"])["items"] == ["A", "b", "c"]


def test_field_values_joins_lists_and_leaves_out_what_is_missing(bench):
    assert bench().run("util.fieldValues", items=BOOKS, by="frontmatter.genre")["items"] == [
        "[[Novels|novel]]",
        "Satire",
        "[[Genres/Science fiction]]",
        "satire",
    ]


def test_groups_are_sorted_and_named_by_what_links_show(bench):
    answer = bench().run("util.groupItems", items=BOOKS, by="frontmatter.genre", none="Unsorted", template="- {name}")
    assert [(group["key"], group["text"]) for group in answer["groups"]] == [
        ("novel", "- Emma"),
        ("Satire", "- Emma\n- Ulysses"),
        ("Science fiction", "- dune"),
        ("Unsorted", "- Anon"),
    ]
    assert answer["count"] == 4


def test_groups_without_a_template_have_no_text(bench):
    assert bench().run("util.groupItems", items=[{"done": True}, {"done": False}], by="done")["groups"][0] == {
        "key": "false",
        "items": [{"done": False}],
        "count": 1,
        "text": "",
    }


def test_members_are_items_with_their_first_group(bench):
    answer = bench().run("util.groupItems", items=BOOKS, by="frontmatter.genre")
    assert [(each["key"], each["item"]["name"]) for each in answer["members"]] == [
        ("novel", "Emma"),
        ("Science fiction", "dune"),
        ("satire", "Ulysses"),
    ]
