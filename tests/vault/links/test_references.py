"""References that Obsidian's graph does not count, definitions and HTML, and their places."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.vault.links.references import MAX_PARSED, references_in


def found(text: str) -> list[tuple[str, str, str]]:
    data = text.encode()
    references = references_in(data)
    assert references.is_certain
    return [
        (link.target, link.subpath, data[link.target_start : link.target_end].decode())
        for link in references.links
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[one]: Note.md", [("Note.md", "", "Note.md")]),
        ("See [Note].\n\n[Note]: <A b.md#H> 'title'\n", [("A b.md", "#H", "A b.md")]),
        (
            '[a]: A%20b.md#H%20x "t"\n[b]: b.md\n[a]: c.md',
            [("A b.md", "#H x", "A%20b.md"), ("b.md", "", "b.md"), ("c.md", "", "c.md")],
        ),
        ("[a]:\r\n  x.md\r\n", [("x.md", "", "x.md")]),
        ("> - [ä]: ö.md\n", [("ö.md", "", "ö.md")]),
        ("---\nk: '[a]: b.md'\n---\n[c]: d.md", [("d.md", "", "d.md")]),
        ("\ufeff[c]: d.md", [("d.md", "", "d.md")]),
        ("text\n[no]: n.md", []),
        ("[no]: My Note.md", []),
        ("[^1]: Note.md", []),
        ("[a]: https://x.org/Note.md\n[b]: #here\n[c]: //x.org\n[d]: mailto:a@b.c", []),
        ("```\n[a]: b.md\n<a href='b.md'>\n```\n\n    [a]: b.md\n", []),
        ('x <a href="Note.md#H">t</a> y', [("Note.md", "#H", "Note.md")]),
        ("ä <A class='b' HREF='A b.md'>t</A>", [("A b.md", "", "A b.md")]),
        ("<a href=R%26D&amp;x.md>", [("R&D&x.md", "", "R%26D&amp;x.md")]),
        (
            "<div>\n<img\n  src='p.png'><source src=\"q.mp3\">\n</div>",
            [("p.png", "", "p.png"), ("q.mp3", "", "q.mp3")],
        ),
        ("> a <a\n> href='p.md'>x</a>", [("p.md", "", "p.md")]),
        ("`<a href='a.md'>` <a href='a.md'>", [("a.md", "", "a.md")]),
        ("<!-- <a href='a.md'> -->\n\nx <!-- <a href='a.md'> --> \\<a href='a.md'>", []),
        ("<a title=\" href='no.md'\" data-href='no.md' href='a.md'>", [("a.md", "", "a.md")]),
        ("<script>\nx = '<a href=\"a.md\">'\n</script>\n", []),
        (
            "<a href=''> <a href> <a href='#x'> <a href='http://x.md'> <a href='java&#115;cript:x'>",
            [],
        ),
        ("href='a.md' and [a] : b.md", []),
    ],
)
def test_what_a_note_refers_to(text, expected):
    assert found(text) == expected


def test_the_line_of_a_reference_is_told():
    assert [
        link.line
        for link in references_in(b"one\r\n\r\n[a]: b.md\r\n\r\nx\r\n<a href='c.md'>").links
    ] == [3, 6]


def test_a_code_span_does_not_stand_for_the_tag_behind_it():
    data = b"`<a href='a.md'>` <a href='a.md'>"
    (link,) = references_in(data).links
    assert link.target_start > data.index(b"`", 1)


def test_a_note_too_long_to_be_read_is_only_looked_at():
    references = references_in(b"```\n[a]: b.md\n```\n" + b"x" * MAX_PARSED)
    assert ([link.target for link in references.links], references.is_certain) == (["b.md"], False)
    assert references_in(b"x" * MAX_PARSED) == ((), True)


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "<",
        "<a ",
        "<a b='",
        "[a\n",
        "[a]:\n",
        "\\[",
        "<!--",
        "* * a\n",
        "> ",
        "`a``",
        "<a href=",
        "<a href='b'",
        "<div>\n<a ",
        "&#",
    ],
)
def test_a_hostile_note_costs_seconds_at_most(piece):
    started = time.process_time()
    references_in((piece * (MAX_PARSED // len(piece) - 9) + "\n\n[a]: b.md\n").encode())
    assert time.process_time() - started < 20


PIECES = [
    "[a]: x.md\n",
    "<a href='y.md'>",
    "<img src=z.png>",
    "`",
    "```\n",
    "> ",
    "- ",
    "\n",
    "\n\n",
    "ä",
    "<div>\n",
    "</div>",
    "<!--",
    "-->",
    "    ",
    "\r\n",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_what_is_found_is_what_stands_there(text):
    data = text.encode()
    for link in references_in(data).links:
        assert link.start <= link.target_start < link.target_end <= link.end <= len(data)
        assert data[link.target_start : link.target_end].decode() == link.target
