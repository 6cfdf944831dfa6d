from __future__ import annotations

from obsidian_agent.tui.screens.json_editor import editable
from obsidian_agent.tui.screens.macros import macro_literals
from tui.fakes import plan_of


def test_literals_are_short_texts_without_references_and_folders_of_paths() -> None:
    steps = [
        {"id": "a", "tool": "t", "args": {"path": "Projects/Sub/${name}.md", "content": "line\nline", "tags": ["work", "work"]}},
        {"id": "b", "tool": "t", "args": {"path": "Inbox/A.md", "text": "x" * 300}},
    ]
    assert macro_literals(plan_of(steps)) == ["Projects", "Sub", "work", "Inbox/A.md", "Inbox"]


def test_the_editor_shows_hidden_characters_as_escapes_that_mean_the_same() -> None:
    import json

    document = {"a": "x\x1b[2J\u202e\U000e0041é\x7f\n👍"}
    text = editable(document)
    assert json.loads(text) == document
    assert "\\u202e" in text
    assert "é" in text
    assert not any(char in text for char in "\x1b\u202e\x7f")
