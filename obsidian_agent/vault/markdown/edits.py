"""Headings and sections of a note, and edits of its text that keep every other character.

Inserted text gets the line ends of the note, and ends with one. Lines are 1-based, offsets count
characters.
"""

from __future__ import annotations

import unicodedata

from msgspec import Struct

from obsidian_agent.errors import ToolError
from obsidian_agent.vault.frontmatter.properties import find_frontmatter
from obsidian_agent.vault.markdown.lines import headings_of, read_heading, scan
from obsidian_agent.vault.text import BOM, newline_of, split_lines, with_newlines

_MAX_LISTED = 12


class Heading(Struct, frozen=True, kw_only=True):
    """A heading with its section, which ends before the next heading of the same or a higher level.

    `start` to `end` are the heading's own line or lines with their line end, `end` to `section_end`
    the text below it.
    """

    text: str
    level: int
    line: int
    start: int
    end: int
    section_end: int


class Section(Struct, frozen=True):
    """The text below a heading, `start` to `end`. After `text_end` there are only blank lines."""

    heading: Heading
    start: int
    text_end: int
    end: int


def headings(text: str) -> list[Heading]:
    """Return all headings in order, including those underlined with ``=`` or ``-``.

    Headings in code, comments, quotes, lists and properties are omitted.
    """
    scanned = list(headings_of(scan(text)))
    levels = [level for _, level, _, _ in scanned]
    ends = _section_ends(levels, [first.start for _, _, first, _ in scanned], len(text))
    return [
        Heading(
            text=title,
            level=level,
            line=first.number,
            start=first.start,
            end=last.next,
            section_end=section_end,
        )
        for (title, level, first, last), section_end in zip(scanned, ends, strict=True)
    ]


def section(text: str, heading: str) -> Section:
    """Return the section of the first heading with a text, which may start with its `#` marks.

    Raises `ToolError` MARKER_NOT_FOUND, which names the headings of the note.
    """
    query = unicodedata.normalize("NFC", heading.strip())
    marked = read_heading(query)
    available = headings(text)
    for candidate in available:
        title = unicodedata.normalize("NFC", candidate.text)
        if title == query or marked == (title, candidate.level):
            body = text[candidate.end : candidate.section_end]
            return Section(
                heading=candidate,
                start=candidate.end,
                text_end=candidate.end + _length_of_text(body),
                end=candidate.section_end,
            )
    names = ", ".join(f"“{candidate.text}”" for candidate in available[:_MAX_LISTED])
    if len(available) > _MAX_LISTED:
        names += ", …"
    raise ToolError(
        f"There is no heading “{heading}”.",
        code="MARKER_NOT_FOUND",
        hint=f"The headings are {names}." if available else "The note has no headings.",
    )


def append(text: str, content: str) -> str:
    """Append content to a text, on a new line."""
    return _insert(text, len(text), content)


def append_to_section(text: str, heading: str, content: str) -> str:
    """Insert content after the last line of a section that is not blank."""
    return _insert(text, section(text, heading).text_end, content)


def prepend_below_frontmatter(text: str, content: str) -> str:
    """Insert content directly below the properties, or at the top if there are none."""
    front = find_frontmatter(text)
    return _insert(text, front.body_start if front else _start(text), content)


def prepend_below_heading(text: str, heading: str, content: str) -> str:
    """Insert content directly below a heading."""
    return _insert(text, section(text, heading).start, content)


def insert_line(text: str, line: int, content: str) -> str:
    """Insert content before a line. The number of lines plus one means the end of the text.

    Raises `ToolError` ARGUMENT_INVALID for any other number.
    """
    lines = split_lines(text)
    if not 1 <= line <= len(lines) + 1:
        raise ToolError(
            f"There is no line {line}: the text has {len(lines)} lines.",
            hint=f"Use 1 to {len(lines) + 1}.",
        )
    return _insert(text, max(_start(text), sum(map(len, lines[: line - 1]))), content)


def insert_after_marker(text: str, marker: str, content: str) -> str:
    """Insert content after the only line that equals `marker`, ignoring blanks at its end.

    Raises `ToolError` MARKER_NOT_FOUND if there is no such line, COUNT_MISMATCH if there are
    several, ARGUMENT_INVALID for a marker that is blank or longer than a line.
    """
    query = marker.rstrip()
    if not query or "\n" in query:
        raise ToolError("The marker must be one line that is not blank.")
    position = 0
    matches: list[tuple[int, int]] = []
    for number, line in enumerate(split_lines(text), 1):
        position += len(line)
        if line.removeprefix(BOM if number == 1 else "").rstrip() == query:
            matches.append((number, position))
    if not matches:
        hint = "The marker is a whole line, including the blanks at its beginning."
        raise ToolError(f"No line equals “{query}”.", code="MARKER_NOT_FOUND", hint=hint)
    if len(matches) > 1:
        numbers = ", ".join(str(number) for number, _ in matches[:_MAX_LISTED])
        message = f"{len(matches)} lines equal “{query}”: {numbers}."
        hint = "Use the number of the line instead of the marker."
        raise ToolError(message, code="COUNT_MISMATCH", hint=hint)
    return _insert(text, matches[0][1], content)


def replace_section_body(text: str, heading: str, content: str) -> str:
    """Replace the text below a heading, except the blank lines before the next heading."""
    old = section(text, heading)
    rest = text[: old.start] + text[old.text_end :]
    return _insert(rest, old.start, content, newline_of(text))


def _insert(text: str, position: int, content: str, newline: str | None = None) -> str:
    """Insert content as whole lines at the beginning of a line or the end of the text."""
    if not content:
        return text
    newline = newline or newline_of(text if "\n" in text else content)
    before = newline if position > _start(text) and not text.endswith("\n", 0, position) else ""
    lines = with_newlines(content, newline)
    after = "" if lines.endswith(newline) else newline
    return f"{text[:position]}{before}{lines}{after}{text[position:]}"


def _start(text: str) -> int:
    return len(BOM) if text.startswith(BOM) else 0


def _length_of_text(body: str) -> int:
    """Return the length of a section without the blank lines at its end."""
    end = len(body.rstrip())
    if not end:
        return 0
    newline = body.find("\n", end)
    return len(body) if newline < 0 else newline + 1


def _section_ends(levels: list[int], starts: list[int], length: int) -> list[int]:
    """Return for each heading the start of the next one of the same or a higher level.

    For the last ones this is the end of the text, `length`.
    """
    ends = [length] * len(levels)
    open_sections: list[int] = []
    for position, level in enumerate(levels):
        while open_sections and levels[open_sections[-1]] >= level:
            ends[open_sections.pop()] = starts[position]
        open_sections.append(position)
    return ends
