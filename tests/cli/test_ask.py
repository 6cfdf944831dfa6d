"""ask from the command line: answers with their sources, what is asked back, and who answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import MakeCommands

Ask = Callable[..., tuple[int, Any]]

FILES = {
    "Inbox.md": "- [ ] call the bank\n- [x] done\n[[Ideas]] and [[Nowhere]]\n",
    "Ideas.md": "---\ntags: [idea]\nstatus: open\n---\n# Plans\n\n## Later\n",
    "Projects/Site.md": "#idea see [[Ideas]]\n- [ ] ship\n",
}


@pytest.fixture
def ask(commands: MakeCommands) -> Ask:
    """Ask with `--json`; the exit code and the document."""
    return partial(commands(FILES).json, "ask")


def test_an_answer_comes_with_its_sources(ask: Ask) -> None:
    assert ask("Which notes link to Ideas?", "--offline") == (
        0,
        {
            "answer": "2 notes that link to Ideas:\n- [[Inbox]]\n- [[Site]]",
            "sources": ["Inbox.md", "Projects/Site.md"],
            "usage": None,
            "outcome": "done",
        },
    )


def test_without_a_model_recipes_answer_too(ask: Ask) -> None:
    code, document = ask("Which tasks are open?")
    assert (code, document["outcome"]) == (0, "done")
    assert document["answer"].startswith("2 open tasks in all notes:\n")


def test_what_no_recipe_answers_is_said(ask: Ask) -> None:
    code, document = ask("Why is the sky blue?", "--offline")
    assert (code, document["outcome"], document["sources"]) == (0, "done", [])
    assert document["answer"].startswith("No note holds most of these words.")


@pytest.mark.parametrize(
    "order", ["delete Inbox", "rename Inbox to Outbox", "create a note called X"]
)
def test_an_order_is_no_question(ask: Ask, tmp_path: Path, order: str) -> None:
    code, document = ask(order, "--offline")
    assert (code, document["outcome"]) == (3, "needs-input")
    assert sorted(path.name for path in (tmp_path / "vault").rglob("*.md")) == [
        "Ideas.md",
        "Inbox.md",
        "Site.md",
    ]


def test_a_model_answers_when_one_is_chosen(ask: Ask, tmp_path: Path) -> None:
    script = tmp_path / "answers.jsonl"
    script.write_text(json.dumps({"text": "Two ideas.", "usage": [7, 3]}) + "\n")
    code, document = ask("What are my ideas?", "--model", f"scripted/{script}")
    assert (code, document["answer"], document["usage"]) == (
        0,
        "Two ideas.",
        {"promptTokens": 7, "completionTokens": 3},
    )


def test_offline_wins_over_a_model(ask: Ask, tmp_path: Path) -> None:
    code, document = ask("List all tags", "--offline", "--model", "scripted/none")
    assert (code, document["usage"]) == (0, None)
    assert document["answer"].startswith("1 tag in all notes:\n")


def test_the_open_note_is_this_note(ask: Ask) -> None:
    code, document = ask("List the headings of this note", "--offline", "--active-file", "Ideas.md")
    assert code == 0
    assert "Plans" in document["answer"]
    assert document["sources"] == ["Ideas.md"]


def test_the_best_reading_is_answered_at_once_and_the_others_are_named(ask: Ask) -> None:
    question = "Is there a note that gladly would link to Ideas?"
    code, document = ask(question, "--offline")
    assert (code, document["sources"]) == (0, ["Inbox.md", "Projects/Site.md"])
    assert document["answer"].startswith("Yes: 2 notes that link to Ideas (not used: “gladly”):\n")
    assert (
        "Or did you mean: 2. What a note links to: files that Ideas links to" in document["answer"]
    )
    code, document = ask(question, "--offline", "--pick", "2")
    assert (code, document["answer"].splitlines()[0]) == (
        0,
        "No notes linked from Ideas.",
    )


def test_nothing_is_an_answer(ask: Ask) -> None:
    code, document = ask("Which notes would link to Projects/Site?", "--offline")
    assert (code, document["outcome"], document["sources"]) == (0, "done", [])
    assert document["answer"].startswith("No notes that link to Site.\n\nOr did you mean: 2. ")


def test_a_question_that_no_query_covers_is_answered_with_passages(ask: Ask) -> None:
    assert ask("When will I call the bank?", "--offline") == (
        0,
        {
            "answer": "Notes with most of the words “call bank”: 1\n1. [[Inbox]], line 1: - [ ] call the bank",
            "sources": ["Inbox.md"],
            "usage": None,
            "outcome": "done",
        },
    )
