from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.tui import markdown_text
from obsidian_agent.tui.markdown_text import MAX_PART, MIN_PART, MarkdownPart, Splitter, render


def test_the_usual_parts() -> None:
    text = "# Head\n\nSome **bold** and `code`.\n\n- a\n  - b\n\n3. x\n4. y\n\n> quoted\n\n```py\nx = 1\n```\n\n---\n\n|a|b|\n|-|-|\n|1|2|\n"
    plain = markdown_text.render(text).plain
    for part in (
        "Head\n",
        "Some bold and code.",
        "• a\n  • b",
        "3. x\n4. y",
        "▎ quoted",
        "▏ x = 1",
        "a  b",
        "1  2",
    ):
        assert part in plain


@pytest.mark.parametrize(
    "text",
    [
        "[/x]",
        "[@click=app.bell]x[/]",
        "[WIP] note",
        "[x] done",
        "[bold]b",
        "[type=x, v={'a[0]'}]",
    ],
)
def test_brackets_are_text(text: str) -> None:
    assert text in markdown_text.render(text).plain


def test_a_link_is_its_words_with_the_number_of_its_target() -> None:
    content, links = markdown_text.render_with_links(
        "See [the docs](https://evil.test), [[Soup#Salt|the soup]] and #food/warm"
    )
    assert content.plain == "See the docs, the soup and #food/warm"
    assert [(content.plain[link.start : link.end], link.target) for link in links] == [
        ("the docs", "https://evil.test"),
        ("the soup", "Soup#Salt"),
        ("#food/warm", "#food/warm"),
    ]
    metas = [span.style.meta for span in content.spans if not isinstance(span.style, str)]
    assert metas == [{"link": 0}, {"link": 1}, {"link": 2}]  # and no action


@given(st.text(max_size=200))
def test_any_text_can_be_rendered(text: str) -> None:
    plain = markdown_text.render(text).plain
    assert "\x1b" not in plain


def test_deep_nesting_does_not_break() -> None:
    markdown_text.render(">" * 5000 + " x")
    markdown_text.render("[" * 5000)
    markdown_text.render("\n".join(" " * (2 * depth) + "- x" for depth in range(200)))


def test_columns_of_a_table_are_lined_up() -> None:
    text = str(
        markdown_text.render(
            "| What | When |\n|---|---|\n| **beans** and more | May |\n| x |\n\nAfter."
        )
    )
    assert [line.rstrip() for line in text.split("\n")] == [
        "What            When",
        "beans and more  May",
        "x",
        "",
        "After.",
    ]


# --- parts, while a text arrives ---

PARAGRAPH = "Some words that make a line.\n" * 5
CODE = "```python\n" + "print('x')\n\n" * 400 + "```\n"
TEXT = (
    f"# Head\n\n{PARAGRAPH}\n" * 8
    + f"\n1. one\n2. two\n\n   goes on\n\n3. three\n\n{CODE}\nThe end.\n\n"
    + "no line end at all " * 400
)


def split(text: str, seed: int) -> tuple[list[MarkdownPart], Splitter]:
    splitter, parts, at = Splitter(), [], 0
    dice = random.Random(seed)
    while at < len(text):
        size = dice.randint(1, 40)
        parts += splitter.feed(text[at : at + size])
        at += size
    return parts, splitter


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_however_it_comes(seed: int) -> None:
    parts, splitter = split(TEXT, seed)
    assert splitter.text == TEXT
    whole = "".join(part.text for part in parts) + splitter.tail
    fences = whole.count("```") - TEXT.count("```")
    assert fences > 0
    assert fences % 2 == 0, "a code block is closed and opened again"
    bare = whole.replace("```python\n", "").replace("```", "")
    assert bare.split() == TEXT.replace("```python\n", "").replace("```", "").split()
    assert all(len(part.text) <= MAX_PART + 200 for part in parts)
    assert len(splitter.tail) <= MAX_PART + 200


def test_parts_end_with_paragraphs_outside_of_code() -> None:
    parts, splitter = split(f"{PARAGRAPH}\n" * 20, 0)
    assert all(part.text.endswith("\n\n") and part.has_gap for part in parts)
    assert len(parts) == pytest.approx(20 * len(PARAGRAPH) / MIN_PART, abs=4)
    parts, splitter = split("```\na\n\nb\n\n" + "c\n\n" * 400, 0)
    assert parts == []
    assert splitter.tail.startswith("```\na")


def test_drawn_in_parts_it_reads_as_in_one_piece() -> None:
    text = f"# Head\n\n{PARAGRAPH}\n" * 8 + f"{CODE}\nThe end.\n"
    parts, splitter = split(text, 1)
    drawn = "\n".join(str(render(part.text)) for part in [*parts, MarkdownPart(splitter.tail)])
    assert drawn.split() == str(render(text)).split()


@pytest.mark.parametrize(
    ("language", "code", "style"),
    [
        ("python", "return 1", "$primary"),
        ("python", "return 1\n" * 1_000, "$secondary"),
        ("brainfuck", "return 1", "$secondary"),
        ("", "return 1", "$secondary"),
    ],
)
def test_code_of_a_known_language_has_colors(language: str, code: str, style: str) -> None:
    content = render(f"```{language}\n{code}\n```\n")
    assert content.plain.startswith("▏ return 1")
    assert any(span.style == style for span in content.spans if span.start == 2)
