from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from obsidian_agent.tui.diff_lines import parse_diff, word_marks
from obsidian_agent.tui.widgets.diff import wrap
from obsidian_agent.vault.views.diff import unified_diff

words = st.text(st.sampled_from("ab cé日\t👍-+@"), max_size=30)
lines = st.lists(words, max_size=12).map("\n".join)


@given(words, st.integers(4, 40))
@example(" @@@日", 4)
def test_wrapped_parts_make_up_the_line_and_fit(text: str, width: int) -> None:
    text = text.replace("\t", " ")
    parts = wrap(text, width)
    assert "".join(text[start:end] for start, end in parts) == text
    assert all(cell_len(text[start:end].rstrip()) <= width for start, end in parts)


@given(lines, lines)
def test_both_sides_can_be_read_back_with_their_numbers(before: str, after: str) -> None:
    diff = parse_diff(unified_diff(before.encode(), after.encode(), "a", "a"))
    old, new = before.split("\n"), after.split("\n")
    for line in diff.lines:
        if line.old is not None:
            assert line.text == old[line.old - 1].expandtabs(4)
        if line.new is not None:
            assert line.text == new[line.new - 1].expandtabs(4)
    assert diff.added == sum(line.kind == "add" for line in diff.lines)


def test_a_line_that_looks_like_a_header_is_a_line() -> None:
    diff = parse_diff(unified_diff(b"-- old\n++ x\n", b"-- new\n++ x\n", "a", "a"))
    assert [(line.kind, line.text) for line in diff.lines[1:]] == [
        ("del", "-- old"),
        ("add", "-- new"),
        ("same", "++ x"),
    ]


def test_content_that_imitates_a_hunk_is_content() -> None:
    diff = parse_diff(unified_diff(b"a\n", b"a\n@@ -1 +1 @@\nb\n", "a", "a"))
    assert ("add", "@@ -1 +1 @@") in [(line.kind, line.text) for line in diff.lines]


def test_control_characters_and_line_ends_are_visible() -> None:
    diff = parse_diff(unified_diff(b"a\r\n", b"a\n\x1b[2J\x0cb\n", "a", "a"))
    assert [line.text for line in diff.lines if line.kind == "del"] == ["a␍"]
    assert [line.text for line in diff.lines if line.kind == "add"] == ["a␊", "␛[2J␌b␊"]


def test_crlf_is_noted_once_and_only_changed_ends_are_marked() -> None:
    def texts(before: bytes, after: bytes) -> list[str]:
        lines = parse_diff(unified_diff(before, after, "a", "a")).lines
        signs = {"add": "+", "del": "-", "same": " ", "note": "~"}
        return [signs[line.kind] + line.text for line in lines if line.kind != "hunk"]

    crlf = b"a\r\nb\r\nc\r\n"
    assert texts(crlf, b"a\r\nB\r\nc\r\nd\r\n") == ["~CRLF line ends", " a", "-b", "+B", " c", "+d"]
    assert texts(crlf, b"a\r\nb\nc\r\n") == ["~CRLF line ends", " a", "-b␍", "+b␊", " c"]
    assert texts(b"a\nb\n", b"a\nb\r\n") == [" a", "-b␊", "+b␍"]
    assert texts(b"", b"a\r\nb\r\n") == ["~CRLF line ends", "+a", "+b"]
    assert texts(b"a\r\nb", b"a\r\nb\r\nc\r\n") == ["~CRLF line ends", " a", " b", "+c"]
    assert texts(b"a\n\r\n", b"a\n\rb\n") == [" a", "-␍", "+␍b␊"]
    diff = parse_diff(unified_diff(crlf, b"A\r\nb\r\nc\r\n", "a", "a"))
    assert diff.substitutions() == (("a", "A"),)


def test_a_missing_newline_at_the_end_is_said() -> None:
    diff = parse_diff(unified_diff(b"a", b"b", "a", "a"))
    assert [line.kind for line in diff.lines] == ["hunk", "del", "note", "add", "note"]


def test_text_after_a_last_line_without_newline_is_only_added() -> None:
    diff = parse_diff(unified_diff(b"a\nlast", b"a\nlast\nnew\n", "a", "a"))
    assert [(line.kind, line.text, line.old, line.new) for line in diff.lines[1:]] == [
        ("same", "a", 1, 1),
        ("same", "last", 2, 2),
        ("add", "new", None, 3),
    ]
    assert (diff.added, diff.removed) == (1, 0)


def test_words_that_differ_are_marked() -> None:
    marks = word_marks("the quick brown fox", "the slow brown fox")
    assert ["the quick brown fox"[start:end] for start, end in marks] == ["quick"]
    assert word_marks("abc def", "xyz 123") == []


def test_changes_are_found_for_jumping() -> None:
    before = "\n".join(str(number) for number in range(40))
    after = before.replace("5\n", "five\n", 1).replace("\n30", "\nthirty")
    diff = parse_diff(unified_diff(before.encode(), after.encode(), "a", "a"))
    assert len(diff.changes()) == 2
    assert all(diff.lines[index].kind == "del" for index in diff.changes())


def test_an_empty_diff() -> None:
    assert parse_diff("").lines == ()
