from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\na: 1\n---\n\n# T\n\ntext\n", "# T\n\ntext"),
        ("# T\n", "# T"),
        ("---\nnot closed\n", "---\nnot closed"),
        ("---\r\na: 1\r\n---\r\n  x\r\n", "  x"),
        ("", ""),
    ],
)
def test_the_body_is_what_stands_below_the_properties(bench, text, body):
    assert bench({"n.md": text}).run("util.noteBody", path="n.md") == {"path": "n.md", "body": body}
