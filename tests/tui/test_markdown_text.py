from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.tui import markdown_text


def test_the_usual_parts() -> None:
    text = (
        "# Head\n\nSome **bold** and `code`.\n\n- a\n  - b\n\n3. x\n4. y\n\n> quoted\n\n```py\nx = 1\n```\n\n---\n\n|a|b|\n|-|-|\n|1|2|\n"
    )
    plain = markdown_text.render(text).plain
    for part in ("Head\n", "Some bold and code.", "• a\n  • b", "3. x\n4. y", "▎ quoted", "▏ x = 1", "a  b", "1  2"):
        assert part in plain


@pytest.mark.parametrize(
    "text", ["[/x]", "[@click=app.bell]x[/]", "[WIP] note", "[x] done", "[[Some note]]", "[bold]b", "[type=x, v={'a[0]'}]"]
)
def test_brackets_are_text(text: str) -> None:
    assert text in markdown_text.render(text).plain


def test_a_link_is_its_words_only() -> None:
    content = markdown_text.render("See [the docs](https://evil.test) and ![img](https://evil.test/x.png)")
    assert "the docs" in content.plain
    assert not any("click" in str(span.style) or "link" in str(span.style) for span in content.spans)


@given(st.text(max_size=200))
def test_any_text_can_be_rendered(text: str) -> None:
    plain = markdown_text.render(text).plain
    assert "\x1b" not in plain


def test_deep_nesting_does_not_break() -> None:
    markdown_text.render(">" * 5000 + " x")
    markdown_text.render("[" * 5000)
    markdown_text.render("\n".join(" " * (2 * depth) + "- x" for depth in range(200)))


def test_columns_of_a_table_are_lined_up() -> None:
    text = str(markdown_text.render("| What | When |\n|---|---|\n| **beans** and more | May |\n| x |\n\nAfter."))
    assert [line.rstrip() for line in text.split("\n")] == ["What            When", "beans and more  May", "x", "", "After."]
