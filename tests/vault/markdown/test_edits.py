from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_agent.errors import ToolError
from obsidian_agent.vault.frontmatter.properties import find_frontmatter, read_properties
from obsidian_agent.vault.markdown import edits as markdown
from obsidian_agent.vault.markdown.lines import bullets, scan, tasks
from obsidian_agent.vault.paths import rules
from obsidian_agent.vault.paths.rules import slug

LAW = settings(deadline=None)

NOTE = """---
title: "# no"
---
# One

intro

## Two ##
- a

### Deep
deep

## Two
second

# Last"""


def titles(text: str) -> list[tuple[str, int, int]]:
    return [(heading.text, heading.level, heading.line) for heading in markdown.headings(text)]


# --- headings ---


def test_headings_with_levels_and_lines() -> None:
    assert titles(NOTE) == [
        ("One", 1, 4),
        ("Two", 2, 8),
        ("Deep", 3, 11),
        ("Two", 2, 14),
        ("Last", 1, 17),
    ]


def test_a_section_ends_before_the_next_heading_of_its_level_or_above() -> None:
    bodies = {
        (heading.text, heading.line): NOTE[heading.end : heading.section_end]
        for heading in markdown.headings(NOTE)
    }
    assert bodies[("Two", 8)] == "- a\n\n### Deep\ndeep\n\n"
    assert bodies[("Deep", 11)] == "deep\n\n"
    assert bodies[("One", 4)].endswith("second\n\n")
    assert bodies[("Last", 17)] == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# a\r\n## b\r\n", [("a", 1, 1), ("b", 2, 2)]),
        ("   # a", [("a", 1, 1)]),
        ("#\ta #b # \n", [("a #b", 1, 1)]),
        ("# a#\n", [("a#", 1, 1)]),
        ("#\n## \n### ###\n", [("", 1, 1), ("", 2, 2), ("", 3, 3)]),
        ("\ufeff# a", [("a", 1, 1)]),
        ("#tag\n####### seven\n\\# no\n    # code\n", []),
        ("a\n    # no\n", []),
        ("Title\n===\n\nOther\n-\n", [("Title", 1, 1), ("Other", 2, 4)]),
        ("two\nlines\n---\n", []),
        ("- item\n---\n\n> quote\n---\n\n---\n", []),
        ("a | b\n--- | ---\n", []),
        ("> # quoted\n- # in a list\n", []),
        ("```\n# no\n```\n# yes\n", [("yes", 1, 4)]),
        ("~~~~ sh\n# no\n~~~\n# no\n~~~~~\n# yes", [("yes", 1, 6)]),
        ("``` not ` a fence\n# yes\n", [("yes", 1, 2)]),
        ("```\n# no, unclosed\n", []),
        ("- a\n  ```\n  # no\n  ```\n# yes\n", [("yes", 1, 5)]),
        ("- a\n  ```\n# the list has ended\n", [("the list has ended", 1, 3)]),
        ("> ```\n> # no\n# yes\n", [("yes", 1, 3)]),
        ("%%\n# no\n%%\n# yes\n", [("yes", 1, 4)]),
        ("%% one line %%\n# yes\n%% unclosed\n# yes too\n", [("yes", 1, 2), ("yes too", 1, 4)]),
        ("<!--\n# no\n-->\n# yes\n", [("yes", 1, 4)]),
        ("<!-- one line -->\n# yes\n", [("yes", 1, 2)]),
        ("<div>\n# no\n\n# yes\n", [("yes", 1, 4)]),
        ("<pre>\n\n# no\n</pre>\n# yes\n", [("yes", 1, 5)]),
        ("<3 # x\n# yes\n", [("yes", 1, 2)]),
        ("$$\n# no\n$$\n# yes\n$$x$$\n# and\n", [("yes", 1, 4), ("and", 1, 6)]),
        ("a\u2028# no\x0c# no\n", []),
    ],
)
def test_what_is_a_heading(text: str, found: list[tuple[str, int, int]]) -> None:
    assert titles(text) == found


def test_the_first_heading_of_that_text_is_meant() -> None:
    found = markdown.section(NOTE, "Two")
    assert found.heading.line == 8
    assert NOTE[found.start : found.text_end] == "- a\n\n### Deep\ndeep\n"
    assert NOTE[found.text_end : found.end] == "\n"


@pytest.mark.parametrize("asked", ["Two", " Two ", "## Two"])
def test_spellings_of_a_heading(asked: str) -> None:
    assert markdown.section(NOTE, asked).heading.line == 8


@pytest.mark.parametrize("asked", ["two", "Two ##", "# Two", "Tw", ""])
def test_a_heading_that_is_not_there(asked: str) -> None:
    with pytest.raises(ToolError) as caught:
        markdown.section(NOTE, asked)
    assert caught.value.code == "MARKER_NOT_FOUND"
    assert "“One”, “Two”, “Deep”" in caught.value.problem().message


def test_headings_in_other_unicode_forms_are_equal() -> None:
    assert markdown.section("# Cafe\u0301\nx", "Caf\u00e9").heading.line == 1


# --- edits ---


@pytest.mark.parametrize(
    ("text", "content", "result"),
    [
        ("a\n", "b", "a\nb\n"),
        ("a", "b\n", "a\nb\n"),
        ("a\r\nb", "c\nd", "a\r\nb\r\nc\r\nd\r\n"),
        ("", "b", "b\n"),
        ("\ufeff", "b", "\ufeffb\n"),
        ("a\n\n", "b\n\n", "a\n\nb\n\n"),
        ("a", "", "a"),
    ],
)
def test_append(text: str, content: str, result: str) -> None:
    assert markdown.append(text, content) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("# A\nx\n\n\n# B\n", "# A\nx\nNEW\n\n\n# B\n"),
        ("# A\n\n# B\n", "# A\nNEW\n\n# B\n"),
        ("# A\n# B\n", "# A\nNEW\n# B\n"),
        ("# A", "# A\nNEW\n"),
        ("# A\nx", "# A\nx\nNEW\n"),
        ("# A\n## Sub\nx\n \n# B\n", "# A\n## Sub\nx\nNEW\n \n# B\n"),
        ("A\n=\r\nx\r\n\r\n# B\r\n", "A\n=\r\nx\r\nNEW\r\n\r\n# B\r\n"),
        ("# A\n```\n# B\n```\n", "# A\n```\n# B\n```\nNEW\n"),
    ],
)
def test_append_to_section(text: str, result: str) -> None:
    assert markdown.append_to_section(text, "A", "NEW") == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("x\n", "NEW\nx\n"),
        ("", "NEW\n"),
        ("\ufeffx", "\ufeffNEW\nx"),
        ("---\na: 1\n---\n\nx\n", "---\na: 1\n---\nNEW\n\nx\n"),
        ("---\r\na: 1\r\n---", "---\r\na: 1\r\n---\r\nNEW\r\n"),
        ("---\nunclosed\n", "NEW\n---\nunclosed\n"),
    ],
)
def test_prepend_below_frontmatter(text: str, result: str) -> None:
    assert markdown.prepend_below_frontmatter(text, "NEW") == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("# A\n\nx\n", "# A\nNEW\n\nx\n"),
        ("x\n# A", "x\n# A\nNEW\n"),
        ("A\n===\nx", "A\n===\nNEW\nx"),
    ],
)
def test_prepend_below_heading(text: str, result: str) -> None:
    assert markdown.prepend_below_heading(text, "A", "NEW") == result


@pytest.mark.parametrize(
    ("text", "line", "result"),
    [
        ("a\nb\n", 1, "NEW\na\nb\n"),
        ("a\nb\n", 2, "a\nNEW\nb\n"),
        ("a\nb\n", 3, "a\nb\nNEW\n"),
        ("a\nb", 3, "a\nb\nNEW\n"),
        ("", 1, "NEW\n"),
        ("\ufeffa\r\n", 1, "\ufeffNEW\r\na\r\n"),
        ("a\rb\u2028c\nd", 2, "a\rb\u2028c\nNEW\nd"),
    ],
)
def test_insert_line(text: str, line: int, result: str) -> None:
    assert markdown.insert_line(text, line, "NEW") == result


@pytest.mark.parametrize(("text", "line"), [("a\nb\n", 0), ("a\nb\n", 4), ("", 2), ("a", -1)])
def test_insert_at_a_line_that_is_not_there(text: str, line: int) -> None:
    with pytest.raises(ToolError) as caught:
        markdown.insert_line(text, line, "NEW")
    assert caught.value.code == "ARGUMENT_INVALID"


@pytest.mark.parametrize(
    ("text", "marker", "result"),
    [
        ("a\n\t- [[x]]  \nb\n", "\t- [[x]]", "a\n\t- [[x]]  \nNEW\nb\n"),
        ("a\r\nb", "b \n", "a\r\nb\r\nNEW\r\n"),
        ("\ufeffa\nab\n", "a", "\ufeffa\nNEW\nab\n"),
    ],
)
def test_insert_after_marker(text: str, marker: str, result: str) -> None:
    assert markdown.insert_after_marker(text, marker, "NEW") == result


@pytest.mark.parametrize(
    ("marker", "code"),
    [
        ("a", "COUNT_MISMATCH"),
        ("x", "MARKER_NOT_FOUND"),
        ("b", "MARKER_NOT_FOUND"),
        (" ", "ARGUMENT_INVALID"),
        ("a\nb", "ARGUMENT_INVALID"),
    ],
)
def test_markers_that_are_not_one_line(marker: str, code: str) -> None:
    with pytest.raises(ToolError) as caught:
        markdown.insert_after_marker("a\n b\na \n\n", marker, "NEW")
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "content", "result"),
    [
        ("# A\nold\n## Sub\nx\n\n# B\n", "NEW", "# A\nNEW\n\n# B\n"),
        ("# A\nold", "NEW\n", "# A\nNEW\n"),
        ("# A", "NEW", "# A\nNEW\n"),
        ("# A\nold\n\n# B\n", "", "# A\n\n# B\n"),
        ("# A\r\nold\r\n", "1\n2", "# A\r\n1\r\n2\r\n"),
    ],
)
def test_replace_section_body(text: str, content: str, result: str) -> None:
    assert markdown.replace_section_body(text, "A", content) == result


PIECES = st.lists(
    st.sampled_from(
        (
            "# A",
            "## B",
            "text",
            "- a",
            "  - b",
            "\t1. c",
            "",
            " ",
            "```",
            "%%",
            "> q",
            "---",
            "===",
            "a: 1",
            "<!--",
            "-->",
            "$$",
            "<div>",
            "    x",
        )
    ),
    max_size=12,
)
NOTES = st.builds(
    lambda lines, newline, last: newline.join(lines) + last * newline,
    PIECES,
    st.sampled_from(("\n", "\r\n")),
    st.sampled_from((0, 1)),
)


@LAW
@given(NOTES)
def test_law_the_lines_are_the_text(text: str) -> None:
    lines = scan(text)
    assert "".join(text[line.start : line.next] for line in lines) == text
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    front = find_frontmatter(text)
    assert all(line.hidden for line in lines if front and line.start < front.body_start)


@LAW
@given(NOTES)
def test_law_sections_are_nested(text: str) -> None:
    found = markdown.headings(text)
    for heading in found:
        inside = [other for other in found if heading.end <= other.start < heading.section_end]
        assert all(
            other.level > heading.level and other.section_end <= heading.section_end
            for other in inside
        )
        assert heading.start < heading.end <= heading.section_end <= len(text)


@LAW
@given(NOTES, st.sampled_from(("NEW", "N\nE\n", "N\r\nW")), st.integers(1, 14))
def test_law_an_insert_adds_lines_and_changes_none(text: str, content: str, line: int) -> None:
    edits: list[Any] = [
        lambda: markdown.append(text, content),
        lambda: markdown.prepend_below_frontmatter(text, content),
    ]
    edits += [
        lambda: markdown.insert_line(text, line, content),
        lambda: markdown.append_to_section(text, "A", content),
    ]
    edits += [lambda: markdown.prepend_below_heading(text, "B", content)]
    added = content.splitlines()
    for edit in edits:
        try:
            result = edit()
        except ToolError:
            continue
        before, after = text.splitlines(), result.splitlines()
        places = [
            place for place in range(len(after)) if after[place : place + len(added)] == added
        ]
        assert any(after[:place] + after[place + len(added) :] == before for place in places)
        assert "\r\n" not in text or "\n" not in result.replace("\r\n", "")
        assert "\r" not in result or "\r" in text or "\n" not in text


# --- lists ---


def items(text: str) -> list[tuple[str, int, bool | None]]:
    return [(bullet.text, bullet.depth, bullet.checked) for bullet in bullets(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "- a\n* b\n+ c\n1. d\n2) e\n",
            [("a", 0, None), ("b", 0, None), ("c", 0, None), ("d", 0, None), ("e", 0, None)],
        ),
        (
            "- [ ] a\n- [x] b\n- [-] c\n- [] d\n- [ab] e\n- [ ]f",
            [
                ("a", 0, False),
                ("b", 0, True),
                ("c", 0, True),
                ("[] d", 0, None),
                ("[ab] e", 0, None),
                ("[ ]f", 0, None),
            ],
        ),
        (
            "- a\n  - b\n    - c\n  - d\n- e",
            [("a", 0, None), ("b", 1, None), ("c", 2, None), ("d", 1, None), ("e", 0, None)],
        ),
        ("- a\n    - b\n        - c\n", [("a", 0, None), ("b", 1, None), ("c", 2, None)]),
        (
            "- a\n\t- b\n\t\t- c\n\t- d\n",
            [("a", 0, None), ("b", 1, None), ("c", 2, None), ("d", 1, None)],
        ),
        (
            "1. a\n   - b\n10. c\n    - d\n",
            [("a", 0, None), ("b", 1, None), ("c", 0, None), ("d", 1, None)],
        ),
        ("- a\n - b\n", [("a", 0, None), ("b", 0, None)]),
        ("\t- a\n\t\t- b\n", [("a", 0, None), ("b", 1, None)]),
        ("    - a\n    - b\n", [("a", 0, None), ("b", 0, None)]),
        ("- a ^block-1\n- b^c\n- ^only\n", [("a", 0, None), ("b^c", 0, None)]),
        ("-\n- \n- [ ] \n- x\n", [("x", 0, None)]),
        ("-a\n1.b\n---\n* * *\n- - -\n-- x\n", []),
        ("text\n    - continued\n\n    - code\n", []),
        (
            "```\n- no\n```\n- yes\n  ```\n  - no\n  ```\n  - too\n",
            [("yes", 0, None), ("too", 1, None)],
        ),
        (
            "> [!todo]\n> - [ ] a\n>   - b\n\n- c\n",
            [("a", 0, False), ("b", 1, None), ("c", 0, None)],
        ),
        (
            "- a\n\n  text\n\n  - b\n\ntext\n\n- c\n",
            [("a", 0, None), ("b", 1, None), ("c", 0, None)],
        ),
        ("%%\n- no\n%%\n- yes\r\n", [("yes", 0, None)]),
        ("---\ntags:\n- no\n---\n- yes\n", [("yes", 0, None)]),
        ("- **bold** [[L|x]] #t\n", [("**bold** [[L|x]] #t", 0, None)]),
    ],
)
def test_bullets(text: str, found: list[tuple[str, int, bool | None]]) -> None:
    assert items(text) == found


def test_raw_is_the_whole_line() -> None:
    assert [bullet.raw for bullet in bullets("- a\r\n  * [x] b ^id  \n")] == [
        "- a",
        "  * [x] b ^id  ",
    ]


def test_tasks_with_status_and_line() -> None:
    text = "---\na: 1\n---\n- [ ] one ^x\n- no task\n> 1. [/] two\n```\n- [ ] no\n```\n- [x]\n"
    assert [(task.text, task.status, task.line) for task in tasks(text)] == [
        ("one", " ", 4),
        ("two", "/", 6),
        ("", "x", 10),
    ]


# --- slugs ---


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Plan: Q3/Q4 (draft)", "plan-q3-q4-draft"),
        ("Don’t Panic!", "dont-panic"),
        ("  a -- b  ", "a-b"),
        ("Übergrößen", "übergrößen"),
        ("Cafe\u0301", "caf\u00e9"),
        ("日本語 タイトル", "日本語-タイトル"),
        ("हिन्दी", "हिन्दी"),
        ("😀 mood 👩‍🚀", "😀-mood-👩‍🚀"),
        ("snake_case v1.2", "snake_case-v1-2"),
        ("../..\\x", "x"),
        ("CON", "con_"),
        ("Com1", "com1_"),
        ("", "untitled"),
        ("###", "untitled"),
        ("İ", "i\u0307"),
    ],
)
def test_slug(title: str, expected: str) -> None:
    assert slug(title) == expected


def test_slug_options() -> None:
    assert slug("One Two Three", "_") == "one_two_three"
    assert slug("One Two Three", "") == "onetwothree"
    assert slug("One Two Three", max_length=9) == "one-two"
    assert slug("Onetwothree", max_length=5) == "onetw"
    assert slug("con", max_length=3) == "co_"
    assert slug("con x", ".") == "con_.x"
    assert len(slug("é" * 400).encode()) <= 240


@pytest.mark.parametrize(
    ("separator", "length"), [("/", None), ("a", None), ("------", None), ("-", 0)]
)
def test_slug_refuses(separator: str, length: int | None) -> None:
    with pytest.raises(ToolError) as caught:
        slug("x", separator, length)
    assert caught.value.code == "ARGUMENT_INVALID"


@LAW
@given(st.text(), st.integers(1, 40))
def test_law_a_slug_is_a_name(title: str, length: int) -> None:
    name = slug(title, max_length=length)
    assert 1 <= len(name) <= length
    assert rules.unportable(name) is None
    assert rules.unlinkable(name) is None
    assert not rules.protected(name)
    assert not set(name) & set('\\/:*?"<>|#^[]%. \n\r\t\0')
    assert name not in {"con", "nul", "aux", "prn"}


# --- Obsidian's own answers ---


def test_headings_and_items_are_those_of_obsidian(shared: Path) -> None:
    truth = json.loads((shared / "data/truth/obsidian-parse-89-notes.json").read_text("utf-8"))
    assert len(truth) > 80
    for name, note in truth.items():
        text = note["contents"]
        expected = [
            (heading["text"], heading["level"], heading["line"] + 1)
            for heading in note["headings"] or ()
        ]
        assert titles(text) == expected, name
        expected_tasks = [
            (item["task"], item["line"] + 1)
            for item in note["listItems"] or ()
            if item["task"] is not None
        ]
        assert [(task.status, task.line) for task in tasks(text)] == expected_tasks, name
        found = {
            key: value for key, value in (note["frontmatter"] or {}).items() if key != "position"
        }
        assert read_properties(text) == found, name
