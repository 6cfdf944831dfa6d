from __future__ import annotations

import pytest
from pydantic import ValidationError


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
