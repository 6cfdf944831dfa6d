from __future__ import annotations

import pytest
from pydantic import ValidationError

from obsidian_agent.errors import ObsidianAgentError


def test_bullets(bench):
    text = "Intro\n- [x] Dark: mode ^id1\n  1. Sub/item\n* plain\n```\n- code\n```\n"
    assert bench().run("util.parseMarkdownBullets", text=text) == {
        "items": [
            {"text": "Dark: mode", "raw": "- [x] Dark: mode ^id1", "depth": 0, "slug": "dark-mode", "checked": True},
            {"text": "Sub/item", "raw": "  1. Sub/item", "depth": 1, "slug": "sub-item"},
            {"text": "plain", "raw": "* plain", "depth": 0, "slug": "plain"},
        ],
        "count": 3,
    }


NOTE = "# One\n\nfirst\n\n## Sub part\r\nsecond\n\n# Two\n"


def test_headings(bench):
    output = bench().run("util.parseHeadings", text=NOTE)
    assert output["count"] == 3
    assert output["items"][0] == {"text": "One", "level": 1, "slug": "one", "content": "first\n\n## Sub part\r\nsecond", "line": 1}
    assert [(item["text"], item["content"], item["line"]) for item in output["items"][1:]] == [("Sub part", "second", 5), ("Two", "", 8)]


def test_headings_of_one_level_in_a_file(bench):
    output = bench({"a.md": NOTE}).run("util.parseHeadings", path="a.md", level=2)
    assert [item["text"] for item in output["items"]] == ["Sub part"]


def test_tasks(bench):
    output = bench({"a.md": "- [ ] a\n- b\n  * [x] c\n"}).run("util.parseTasks", path="a.md")
    assert output == {"items": [{"text": "a", "status": " ", "line": 1}, {"text": "c", "status": "x", "line": 3}], "count": 2}


@pytest.mark.parametrize("tool", ["util.parseHeadings", "util.parseTasks"])
def test_text_or_path(bench, tool):
    for wrong in ({}, {"text": "x", "path": "a.md"}):
        with pytest.raises(ValidationError):
            bench().run(tool, **wrong)
    with pytest.raises(ObsidianAgentError) as caught:
        bench().run(tool, path="no.md")
    assert caught.value.code == "FILE_NOT_FOUND"


@pytest.mark.parametrize(
    ("items", "args", "text"),
    [
        ([{"a": 1}, {"a": 2}], {"template": "- {a}"}, "- 1\n- 2"),
        (["x", 2, True, ["é"]], {"template": "{index}={item}", "separator": ", "}, '0=x, 1=2, 2=true, 3=["é"]'),
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
    items = [vault.run("vault.createFile", path=path, content="") for path in ("New/A.md", "New/B.md")]
    assert vault.run("util.formatList", items=items, template="- {path|link}")["text"] == "- [[A]]\n- [[New/B]]"


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
    with pytest.raises(ObsidianAgentError) as caught:
        bench().run("util.formatList", items=items, template=template)
    assert caught.value.code == code


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
