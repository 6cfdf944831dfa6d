from __future__ import annotations

import pytest
from pydantic import ValidationError

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.text.lists import parse_number


@pytest.mark.parametrize(
    ("text", "options", "after"),
    [
        (
            "- b\n\t- deep\n- [[x|A]]\n- c10\n- c9\n",
            {"sort": "az"},
            "- [[x|A]]\n- b\n\t- deep\n- c9\n- c10\n",
        ),
        ("- a\n- b", {"sort": "za"}, "- b\n- a"),
        ("3. b\n4. a\n\ntext\n\n- d\n- c\n", {"sort": "az"}, "3. a\n4. b\n\ntext\n\n- c\n- d\n"),
        ("- b\n\n- a\n\nend\n", {"sort": "az"}, "- a\n\n- b\n\nend\n"),
        (
            "- [x] a\n- [ ] b\n- [x] c\n- [ ] d\n",
            {"sort": "openFirst"},
            "- [ ] b\n- [ ] d\n- [x] a\n- [x] c\n",
        ),
        (
            "- a\n- b\n- a\n- [ ] a\n- a\n\t- x\n",
            {"unique": True},
            "- a\n- b\n- [ ] a\n- a\n\t- x\n",
        ),
        ("1. a\n2. a\n3. b\n", {"unique": True}, "1. a\n2. b\n"),
        ("* a\n  * deep\n* b\n", {"marker": "1."}, "1. a\n   * deep\n2. b\n"),
        ("1. a\n2. b\n", {"marker": "-"}, "- a\n- b\n"),
        ("- a\n- [x] b\n", {"checkboxes": "add"}, "- [ ] a\n- [x] b\n"),
        ("- [ ] a\n- [x] b\n", {"checkboxes": "remove"}, "- a\n- b\n"),
        ("- b\r\n- a", {"sort": "az"}, "- a\r\n- b"),
        (
            "```\n- b\n- a\n```\n> - b\n> - a\n",
            {"sort": "az"},
            "```\n- b\n- a\n```\n> - b\n> - a\n",
        ),
    ],
)
def test_lists_are_arranged_and_all_else_stays(bench, text, options, after):
    vault = bench({"a.md": text})
    vault.run("vault.arrangeLists", path="a.md", **options)
    assert vault.text("a.md") == after
    assert vault.run("util.arrangeList", text=text, **options)["text"] == after


def test_only_a_section_and_a_word_where_there_is_no_list(bench):
    vault = bench({"a.md": "# A\n- b\n- a\n# B\n- d\n- c\n"})
    assert vault.run("vault.arrangeLists", path="a.md", heading="B", sort="az") == {
        "path": "a.md",
        "lists": 1,
        "changed": True,
    }
    assert vault.text("a.md") == "# A\n- b\n- a\n# B\n- c\n- d\n"
    vault = bench({"a.md": "text\n"})
    assert vault.run("vault.arrangeLists", path="a.md", sort="az")["lists"] == 0
    assert vault.warnings == ["TEXT_NOT_FOUND"]


def test_something_must_be_wanted(bench):
    with pytest.raises(ValidationError):
        bench({"a.md": ""}).run("vault.arrangeLists", path="a.md")


def test_bullets(bench):
    text = "Intro\n- [x] Dark: mode ^id1\n  1. Sub/item\n* plain\n```\n- code\n```\n"
    assert bench().run("util.parseMarkdownBullets", text=text) == {
        "items": [
            {
                "text": "Dark: mode",
                "raw": "- [x] Dark: mode ^id1",
                "depth": 0,
                "slug": "dark-mode",
                "checked": True,
            },
            {"text": "Sub/item", "raw": "  1. Sub/item", "depth": 1, "slug": "sub-item"},
            {"text": "plain", "raw": "* plain", "depth": 0, "slug": "plain"},
        ],
        "count": 3,
    }


# --- items of lists ---

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
