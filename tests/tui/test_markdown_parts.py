from __future__ import annotations

import random

import pytest

from obsidian_agent.tui.markdown_text import MOST, PART, MarkdownPart, Splitter, render

PARAGRAPH = "Some words that make a line.\n" * 5
CODE = "```python\n" + "print('x')\n\n" * 400 + "```\n"
TEXT = f"# Head\n\n{PARAGRAPH}\n" * 8 + f"\n1. one\n2. two\n\n   goes on\n\n3. three\n\n{CODE}\nThe end.\n\n" + "no line end at all " * 400


def split(text: str, seed: int) -> tuple[list[MarkdownPart], Splitter]:
    splitter, parts, at = Splitter(), [], 0
    dice = random.Random(seed)
    while at < len(text):
        size = dice.randint(1, 40)
        parts += splitter.take(text[at : at + size])
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
    assert all(len(part.text) <= MOST + 200 for part in parts)
    assert len(splitter.tail) <= MOST + 200


def test_parts_end_with_paragraphs_outside_of_code() -> None:
    parts, splitter = split(f"{PARAGRAPH}\n" * 20, 0)
    assert all(part.text.endswith("\n\n") and part.gap for part in parts)
    assert len(parts) == pytest.approx(20 * len(PARAGRAPH) / PART, abs=4)
    parts, splitter = split("```\na\n\nb\n\n" + "c\n\n" * 400, 0)
    assert parts == []
    assert splitter.tail.startswith("```\na")


def test_drawn_in_parts_it_reads_as_in_one_piece() -> None:
    text = f"# Head\n\n{PARAGRAPH}\n" * 8 + f"{CODE}\nThe end.\n"
    parts, splitter = split(text, 1)
    drawn = "\n".join(str(render(part.text)) for part in [*parts, MarkdownPart(splitter.tail)])
    assert drawn.split() == str(render(text)).split()
