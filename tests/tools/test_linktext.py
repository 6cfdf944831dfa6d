from __future__ import annotations

import pytest

from obsidian_agent.tools.core.filters import LinkWriter

VAULT = {
    "Note.md": "",
    "A/Other.md": "",
    "A/Twice.md": "",
    "B/twice.md": "",
    "B/v1.2 plan.md": "",
    "pic.png": b"",
    "A/pic.png": b"",
    "B/only.pdf": b"",
    "only.pdf.md": "",
    "README": "",
}


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("Note.md", "[[Note]]"),
        ("A/Other.md", "[[Other]]"),
        ("A/Twice.md", "[[A/Twice]]"),
        ("B/twice.md", "[[B/twice]]"),
        ("B/v1.2 plan.md", "[[v1.2 plan]]"),
        ("A/pic.png", "[[A/pic.png]]"),
        ("B/only.pdf", "[[only.pdf]]"),
        ("only.pdf.md", "[[only.pdf.md]]"),
        ("README", "[[README]]"),
        ("Note", "[[Note]]"),
        ("A", "[[A]]"),
        ("missing.md", "[[missing.md]]"),
        ("../x", "[[../x]]"),
        ("any text: here", "[[any text: here]]"),
        ("", "[[]]"),
    ],
)
def test_links(bench, text, link):
    assert LinkWriter(bench(VAULT).base)(text) == link


def test_links_know_what_earlier_steps_made(bench):
    vault = bench({"A/Idea.md": ""})
    assert LinkWriter(vault.overlay)("A/Idea.md") == "[[Idea]]"
    vault.run("vault.createFile", path="B/idea.md", content="")
    assert LinkWriter(vault.overlay)("A/Idea.md") == "[[A/Idea]]"
    assert LinkWriter(vault.overlay)("B/idea.md") == "[[B/idea]]"
