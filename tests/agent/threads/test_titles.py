"""Names for conversations."""

from __future__ import annotations

import pytest

from agents import scripted
from obsidian_agent.agent.threads.manager import LONGEST, title_by, title_from


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("What about the garden?", "What about the garden?"),
        ("please, could you tag every meeting note. And then more.", "Tag every meeting note"),
        ("/ask where is the plan", "Where is the plan"),
        ("Hallo! Kannst du die Einkaufsliste ordnen?", "Die Einkaufsliste ordnen?"),
        ("# Größe 📏 notieren\nmehr", "Größe 📏 notieren"),
        ("\u202eevil\x1b[31m words here", "⟦U+202E⟧evil⟦U+001B⟧[31m words here"),
    ],
)
def test_the_persons_words(question: str, title: str) -> None:
    assert title_from(question) == title


def test_long_ones_end_at_a_word() -> None:
    title = title_from("word " * 40)
    assert title is not None
    assert len(title) <= LONGEST + 1
    assert title.endswith("word…")
    assert len(title_from("x" * 500) or "") == LONGEST + 1


def test_the_answers_first_line_when_the_question_says_nothing() -> None:
    assert title_from("hi", "# Your vault\n\nIt holds…") == "Your vault"
    assert title_from("?", "") is None


async def test_a_models_title_is_cleaned() -> None:
    assert await title_by(scripted({"text": '\n Title: "Garden plans."\nmore', "thinking": "Hm."}), "q", "a") == "Garden plans"
    assert await title_by(scripted({"error": {"message": "no"}}), "q", "a") is None
    assert await title_by(scripted({"text": "  "}), "q", "a") is None


async def test_a_model_gets_the_two_sides_and_no_more() -> None:
    model = scripted({"text": "T"})
    await title_by(model, "q" * 5000, "a" * 5000)
    (request,) = model.requests
    assert sum(len(message.text) for message in request.messages) < 2500
    assert not request.tools
