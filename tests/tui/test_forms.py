from __future__ import annotations

import pytest

from obsidian_agent.tui.literals import literals
from obsidian_agent.tui.screens.json_editor import editable
from obsidian_agent.tui.screens.values_form import converted
from tui.fakes import plan_of


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("x", "text", "x"),
        (" 3 ", "number", 3),
        ("2.5", "number", 2.5),
        ("Yes", "boolean", True),
        ("off", "boolean", False),
        ("a, b ,,c", "list", ["a", "b", "c"]),
        ("2025-01-01", "date", "2025-01-01"),
        ("A/b.md", "path", "A/b.md"),
    ],
)
def test_values_get_the_type_of_their_parameter(text: str, type_: str, value: object) -> None:
    assert converted(text, type_) == value


@pytest.mark.parametrize(("text", "type_"), [("", "text"), ("  ", "text"), ("x", "number"), ("maybe", "boolean")])
def test_values_that_do_not_fit_are_refused_in_words(text: str, type_: str) -> None:
    with pytest.raises(ValueError, match="needed|number|true nor false"):
        converted(text, type_)


def test_literals_are_short_texts_without_references_and_folders_of_paths() -> None:
    steps = [
        {"id": "a", "tool": "t", "args": {"path": "Projects/Sub/${name}.md", "content": "line\nline", "tags": ["work", "work"]}},
        {"id": "b", "tool": "t", "args": {"path": "Inbox/A.md", "text": "x" * 300}},
    ]
    assert literals(plan_of(steps)) == ["Projects", "Sub", "work", "Inbox/A.md", "Inbox"]


def test_the_editor_shows_hidden_characters_as_escapes_that_mean_the_same() -> None:
    import json

    document = {"a": "x\x1b[2J\u202e\U000e0041é\x7f\n👍"}
    text = editable(document)
    assert json.loads(text) == document
    assert "\\u202e" in text
    assert "é" in text
    assert not any(char in text for char in "\x1b\u202e\x7f")
