from __future__ import annotations

import pytest

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.items import parse_number

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
    assert [
        item["name"] for item in bench().run("util.sortItems", items=BOOKS, **args)["items"]
    ] == names


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
    answer = bench().run(
        "util.groupItems", items=BOOKS, by="frontmatter.genre", none="Unsorted", template="- {name}"
    )
    assert [(group["key"], group["text"]) for group in answer["groups"]] == [
        ("novel", "- Emma"),
        ("Satire", "- Emma\n- Ulysses"),
        ("Science fiction", "- dune"),
        ("Unsorted", "- Anon"),
    ]
    assert answer["count"] == 4


def test_groups_without_a_template_have_no_text(bench):
    assert bench().run("util.groupItems", items=[{"done": True}, {"done": False}], by="done")[
        "groups"
    ][0] == {
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


def note(name, **properties):
    return {"path": f"{name}.md", "frontmatter": properties}


INVOICES = [
    note("a", amount=5200, no=1),
    note("b", amount=7350.5, no=2),
    note("c", amount="1,250.00 €"),
    note("d", status="open"),
    None,
]


def test_sum_and_the_like(bench):
    answer = bench().run("util.summarize", items=INVOICES, by="frontmatter.amount")
    assert (answer["sum"], answer["average"], answer["count"]) == (13800.5, 4600.17, 3)
    assert [each["of"]["path"] for each in answer["least"]] == ["c.md"]
    assert (answer["smallest"], answer["largest"]) == (1250, 7350.5)
    assert [each["path"] for each in answer["missing"]] == ["d.md"]


def test_the_field_that_is_meant(bench):
    vault = bench()
    assert vault.run("util.summarize", items=INVOICES)["by"] == "amount"
    assert vault.run("util.summarize", items=[note("a", pages=3), note("b", pages=4)])["sum"] == 7
    with pytest.raises(ToolError, match="height, pages"):
        vault.run("util.summarize", items=[note("a", pages=3, height=4)])
    with pytest.raises(ToolError, match="No property is"):
        vault.run("util.summarize", items=[note("a", pages="x")])


def test_nothing_adds_up_to_nothing(bench):
    answer = bench().run("util.summarize", items=[], by="x")
    assert (answer["sum"], answer["count"], answer["most"]) == (0, 0, [])


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", "12"),
        ("1.250,50", "1250.50"),
        ("1,250", "1250"),
        ("1.5", "1.5"),
        ("€ 9", "9"),
        ("3 kg", "3"),
        ("1'000'000", "1000000"),
        ("-4", "-4"),
    ],
)
def test_numbers_in_texts(text, number):
    assert str(parse_number(text)) == number


@pytest.mark.parametrize("value", [True, None, "two", "2026-03-14", "a 3 b 4", "chapter 3", [1]])
def test_what_is_no_number(value):
    assert parse_number(value) is None


@pytest.mark.parametrize(
    ("items", "args", "text"),
    [
        ([{"a": 1}, {"a": 2}], {"template": "- {a}"}, "- 1\n- 2"),
        (
            ["x", 2, True, ["é"]],
            {"template": "{index}={item}", "separator": ", "},
            '0=x, 1=2, 2=true, 3=["é"]',
        ),
        ([{"a": {"b": ["c"]}}], {"template": "{a.b.0} {item.a.b.0}"}, "c c"),
        ([{"t": "A b "}], {"template": "[{t|trim|slug}] {t|upper}"}, "[a-b] A B "),
        ([{"a": None}], {"template": "{a|default:no}{b|default:-}"}, "no-"),
        ([{"a": "{a}"}], {"template": "{a} {{a}} { a } {} {a b}"}, "{a} {{a}} { a } {} {a b}"),
        (["a", None, "b"], {"template": "{index}{item}"}, "0a\n2b"),
        ([], {"template": "- {a}"}, ""),
        (["x"], {"template": "fixed"}, "fixed"),
    ],
)
def test_format_list(bench, items, args, text):
    output = bench().run("util.formatList", items=items, **args)
    assert output == {"text": text, "count": sum(item is not None for item in items)}


def test_format_list_links_what_was_made(bench):
    vault = bench({"Old/B.md": ""})
    items = [
        vault.run("vault.createFile", path=path, content="") for path in ("New/A.md", "New/B.md")
    ]
    assert (
        vault.run("util.formatList", items=items, template="- {path|link}")["text"]
        == "- [[A]]\n- [[New/B]]"
    )


@pytest.mark.parametrize(
    ("items", "template", "code"),
    [
        ([{"a": 1}], "{b}", "REFERENCE_ERROR"),
        (["x"], "{a}", "REFERENCE_ERROR"),
        (["x"], "{item|shout}", "ARGUMENT_INVALID"),
        ([], "{a|shout}", "ARGUMENT_INVALID"),
    ],
)
def test_format_list_refuses(bench, items, template, code):
    assert bench().refusal("util.formatList", items=items, template=template) == code
