"""Headings and sections of a note, and text edits that keep every other character: append, prepend, insert, replace a section.

Inserted text takes the note's line ends and ends with one. Lines are 1-based, offsets count characters.
"""

from __future__ import annotations

import unicodedata

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ToolError
from obsidian_agent.vault.frontmatter.properties import find_frontmatter
from obsidian_agent.vault.markdown.lines import headings_of, read_heading, scan
from obsidian_agent.vault.text import BOM, newline_of, split_lines, with_newlines

_MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: `start` to `end` are its own line or lines with their line end, `end` to `section_end` what belongs to it.

    A section ends before the next heading of the same or a higher level.
    """

    text: str
    level: int
    line: int
    start: int
    end: int
    section_end: int


@dataclass(frozen=True, slots=True)
class Section:
    """What stands below a heading: `start` to `end`; from `text_end` on there are only blank lines."""

    heading: Heading
    start: int
    text_end: int
    end: int


def headings(text: str) -> list[Heading]:
    """All headings in order, those underlined with ``=`` or ``-`` too. Not those in code, comments, quotes, lists and properties."""
    found = list(headings_of(scan(text)))
    ends = _section_ends(
        [level for _, level, _, _ in found], [first.start for _, _, first, _ in found], len(text)
    )
    return [
        Heading(title, level, first.number, first.start, last.next, end)
        for (title, level, first, last), end in zip(found, ends, strict=True)
    ]


def section(text: str, heading: str) -> Section:
    """The section of the first heading with this text. Raises `ToolError` MARKER_NOT_FOUND that names the headings there are."""
    wanted = unicodedata.normalize("NFC", heading.strip())
    marked = read_heading(wanted)
    there = headings(text)
    for found in there:
        title = unicodedata.normalize("NFC", found.text)
        if title == wanted or marked == (title, found.level):
            body = text[found.end : found.section_end]
            return Section(
                found, found.end, found.end + _without_blank_lines(body), found.section_end
            )
    names = ", ".join(f"“{found.text}”" for found in there[:_MOST_NAMED]) + (
        ", …" if len(there) > _MOST_NAMED else ""
    )
    raise ToolError(
        f"There is no heading “{heading}”.",
        code="MARKER_NOT_FOUND",
        hint=f"The headings are {names}." if there else "The note has no headings.",
    )


# --- edits ------------------------------------------------------------------------------------------------------------------------


def append(text: str, content: str) -> str:
    """The text with content at its end, on a new line."""
    return _insert(text, len(text), content)


def append_to_section(text: str, heading: str, content: str) -> str:
    """The text with content behind the last line of a section that is not blank."""
    return _insert(text, section(text, heading).text_end, content)


def prepend_below_frontmatter(text: str, content: str) -> str:
    """The text with content as the first lines below the properties, or at the top when there are none."""
    front = find_frontmatter(text)
    return _insert(text, front.body_start if front else _first(text), content)


def prepend_below_heading(text: str, heading: str, content: str) -> str:
    """The text with content directly below a heading."""
    return _insert(text, section(text, heading).start, content)


def insert_line(text: str, line: int, content: str) -> str:
    """The text with content before a line; the number of lines plus one is the end. `ToolError` ARGUMENT_INVALID for any other number."""
    lines = split_lines(text)
    if not 1 <= line <= len(lines) + 1:
        raise ToolError(
            f"There is no line {line}: the text has {len(lines)} lines.",
            hint=f"Use 1 to {len(lines) + 1}.",
        )
    return _insert(text, max(_first(text), sum(map(len, lines[: line - 1]))), content)


def insert_after_marker(text: str, marker: str, content: str) -> str:
    """The text with content behind the one line that equals `marker`, blanks at the ends of lines aside.

    Raises `ToolError` MARKER_NOT_FOUND when there is none, COUNT_MISMATCH when there are several, ARGUMENT_INVALID for a marker that
    is blank or longer than a line.
    """
    wanted = marker.rstrip()
    if not wanted or "\n" in wanted:
        raise ToolError("The marker must be one line that is not blank.")
    position, found = 0, []
    for number, line in enumerate(split_lines(text), 1):
        position += len(line)
        if line.removeprefix(BOM if number == 1 else "").rstrip() == wanted:
            found.append((number, position))
    if not found:
        hint = "The marker is a whole line, with the blanks at its beginning."
        raise ToolError(f"No line equals “{wanted}”.", code="MARKER_NOT_FOUND", hint=hint)
    if len(found) > 1:
        numbers = ", ".join(str(number) for number, _ in found[:_MOST_NAMED])
        message = f"{len(found)} lines equal “{wanted}”: {numbers}."
        raise ToolError(message, code="COUNT_MISMATCH", hint="Say the line instead of the marker.")
    return _insert(text, found[0][1], content)


def replace_section_body(text: str, heading: str, content: str) -> str:
    """The text with content instead of what stands below a heading; the blank lines before the next heading stay."""
    found = section(text, heading)
    return _insert(
        text[: found.start] + text[found.text_end :], found.start, content, newline_of(text)
    )


def _insert(text: str, position: int, content: str, newline: str | None = None) -> str:
    """Content as whole lines at a position that is the beginning of a line or the end of the text."""
    if not content:
        return text
    newline = newline or newline_of(text if "\n" in text else content)
    before = newline if position > _first(text) and not text.endswith("\n", 0, position) else ""
    lines = with_newlines(content, newline)
    after = "" if lines.endswith(newline) else newline
    return f"{text[:position]}{before}{lines}{after}{text[position:]}"


def _first(text: str) -> int:
    return len(BOM) if text.startswith(BOM) else 0


def _without_blank_lines(body: str) -> int:
    """Length of a section's body without the blank lines at its end."""
    end = len(body.rstrip())
    if not end:
        return 0
    newline = body.find("\n", end)
    return len(body) if newline < 0 else newline + 1


def _section_ends(levels: list[int], starts: list[int], length: int) -> list[int]:
    """For each heading the start of the next one of the same or a higher level, else the end of the text."""
    ends = [length] * len(levels)
    open_sections: list[int] = []
    for position, level in enumerate(levels):
        while open_sections and levels[open_sections[-1]] >= level:
            ends[open_sections.pop()] = starts[position]
        open_sections.append(position)
    return ends
