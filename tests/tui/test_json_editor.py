from __future__ import annotations

from obsidian_agent.tui.screens.json_editor import editable


def test_the_editor_shows_hidden_characters_as_escapes_that_mean_the_same() -> None:
    import json

    document = {"a": "x\x1b[2J\u202e\U000e0041é\x7f\n👍"}
    text = editable(document)
    assert json.loads(text) == document
    assert "\\u202e" in text
    assert "é" in text
    assert not any(char in text for char in "\x1b\u202e\x7f")
