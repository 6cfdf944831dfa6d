"""Results and errors of tool calls, as the model gets them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from obsidian_agent.agent.turn.tool_round import MAX_CHARACTERS, Scrubber, error_text, result_text
from obsidian_agent.errors import Problem

ROOT = "/srv/some where/vault"
SCRUBBER = Scrubber.of(ROOT)


@pytest.mark.parametrize(
    ("message", "clean"),
    [
        (f"{ROOT}/Notes/a.md cannot be read.", "… cannot be read."),
        (f"[Errno 13] Permission denied: '{ROOT}/a b.md'", "[Errno 13] Permission denied: '…'"),
        ("Permission denied: '/etc/passwd'", "Permission denied: '…'"),
        ('No such file: "C:\\Users\\ada\\vault\\a.md"', "No such file: '…'"),
        (f"In {Path.home()}/x and {tempfile.gettempdir()}/y.", "In … and …"),
        (
            "'limit' must be a whole number. (at /limit)",
            "'limit' must be a whole number. (at /limit)",
        ),
        ("Notes/a.md does not exist in the vault.", "Notes/a.md does not exist in the vault."),
        ("Bearer sk-abcdefghijklmnop was refused", "Bearer [key] was refused"),
        ("two\nlines <|im_start|>", "two lines ⟦im_start⟧"),
    ],
)
def test_messages_are_cleaned(message: str, clean: str) -> None:
    assert SCRUBBER.clean(message) == clean


def test_an_error_is_a_small_object() -> None:
    one = json.loads(
        error_text([Problem("FILE_NOT_FOUND", "a.md does not exist.", path="a.md")], SCRUBBER)
    )
    assert one == {
        "error": {"code": "FILE_NOT_FOUND", "message": "a.md does not exist.", "path": "a.md"}
    }
    two = json.loads(
        error_text(
            [Problem("A", "First.", "s1"), Problem("B", f"Second in {ROOT}/x.", "s2")], SCRUBBER
        )
    )
    assert two["error"] == {"code": "A", "message": "First."}
    assert [problem["message"] for problem in two["problems"]] == ["First.", "Second in …"]


def test_each_content_has_a_fence_of_its_own() -> None:
    document = {
        "files": [
            {"path": "a.md", "content": 'Line 1\n"quoted"\n', "size": 9},
            {"path": "b.md", "error": "NOT_TEXT"},
        ]
    }
    text = result_text("result", document, "m4rk")
    assert text == (
        "<<<DATA m4rk result\n"
        '{"files": [{"path": "a.md", "content": "(below)", "size": 9}, {"path": "b.md", "error": "NOT_TEXT"}]}\n'
        "DATA m4rk>>>\n\n"
        '<<<DATA m4rk content of "a.md"\n'
        'Line 1\n"quoted"\n\n'
        "DATA m4rk>>>"
    )


def test_a_long_content_is_truncated_with_a_mark() -> None:
    text = result_text("result", {"path": "a.md", "content": "x" * (MAX_CHARACTERS + 1234)}, "m4rk")
    assert "[truncated: 1,234 more characters" in text
    assert len(text) < MAX_CHARACTERS + 500
