"""The part of a note's text that checks of a whole vault compare, in a few numbers.

It depends on the text alone, so the index stores it, and only changed notes are digested again.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Final, NamedTuple
from zlib import crc32

from obsidian_agent.errors import Problem
from obsidian_agent.vault.index.index import TextDigest
from obsidian_agent.vault.markdown.lines import scan, tasks_of, without_block_id
from obsidian_agent.vault.markdown.model import NoteTask

IS_SHORT: Final = 1
"""Flag of a text, without properties, that is too short to be compared."""

HAS_FENCES: Final = 2
"""Flag of a note that begins with the fences of properties."""

REPEATS_NAMES: Final = 4
"""Flag of properties in which two lines begin with the same name."""

HAS_MARKS: Final = 8
"""Flag of a text with each of git's conflict marks."""

MAY_BE_EMPTY: Final = 16
"""Flag of a text, without properties, that is nothing or one heading."""

HAS_PLACEHOLDERS: Final = 32
"""Flag of a note with marks of values that are filled in later, as templates have them."""

MAY_LACK_FENCE: Final = 64
"""Flag of a note without properties that begins with hyphens."""

SPELLS_TAGS: Final = 128
"""Flag of a note with a tag in more than one spelling."""

HAS_LINKS_IN_ROWS: Final = 256
"""Flag of a note with wikilinks and lines that begin as rows of a table."""

MIN_PROSE: Final = 20
"""Characters without headings and empty list items below which equal texts mean nothing."""

BOM: Final = "\ufeff".encode()
BLANKS: Final = b" \t\r\n"
_OPENING: Final = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n")
_CLOSING: Final = re.compile(rb"---(?<![^\n]---)[ \t]*\r?(?:\n|\Z)")
"""The fences of properties, as `find_frontmatter` finds them in a decoded text."""
_NAME: Final = re.compile(rb"^([^\s#:-][^:\n]*):", re.MULTILINE)
_CONFLICT_MARKS: Final = (b"<<<<<<<", b"\n=======", b"\n>>>>>>>")

_DUE_MARKS: Final = tuple(mark.encode() for mark in ("📅", "📆", "🗓", "due::", "@due("))
_DUE: Final = re.compile(
    r"(?:📅|📆|🗓)\ufe0f?\s*(\d{4}-\d{2}-\d{2})|[\[(]due::\s*(\d{4}-\d{2}-\d{2})\s*[\])]"
    r"|@due\((\d{4}-\d{2}-\d{2})\)"
)
_TASK_LINE: Final = re.compile(
    r"^[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+"
    r"\[(?P<status>[^\[\]\r\n])\][ \t]+(?P<text>.*)$",
    re.MULTILINE,
)
_HIDING: Final = re.compile(r"```|~~~|%%|<!--|\$\$|<(?:script|pre|style|textarea)", re.IGNORECASE)
"""Starts of code, comments, formulas and HTML, which may hide a task."""

_MIN_PIECE: Final = 20
"""Bytes of a sentence that counts."""
_MIN_PIECES: Final = 4
_MIN_WORDS: Final = 30
_SKETCH: Final = 8
"""Pieces of a text that are compared: those with the smallest checksums."""


class DueTask(NamedTuple):
    """An open task with a due date. `line` counts from 1, `due` is YYYY-MM-DD."""

    line: int
    text: str
    due: str


def digest(data: bytes, *, spells_tags: bool = False) -> TextDigest:
    """Return the digest of a note. `spells_tags`: it has a tag in more than one spelling."""
    start, body = body_start(data), body_of(data)
    names = _NAME.findall(data, 0, start) if start else []
    flags = SPELLS_TAGS if spells_tags else 0
    flags |= IS_SHORT if len(body) < MIN_PROSE else 0
    flags |= HAS_FENCES if start else 0
    flags |= REPEATS_NAMES if len(names) != len(set(names)) else 0
    is_line = b"\n" not in body and body[:1] in (b"", b"#")
    flags |= MAY_BE_EMPTY if is_line else 0
    flags |= HAS_PLACEHOLDERS if b"{{" in data or b"<%" in data else 0
    flags |= HAS_LINKS_IN_ROWS if b"[[" in body and b"|" in body and b"\n|" in b"\n" + body else 0
    flags |= MAY_LACK_FENCE if not start and body.startswith(b"--") else 0
    flags |= HAS_MARKS if all(mark in data for mark in _CONFLICT_MARKS) else 0
    return TextDigest(flags, crc32(body), _pieces(body), _due_tasks(data))


def body_start(data: bytes) -> int:
    """Return where the text below the properties begins; 0 without properties."""
    opening = _OPENING.match(data)
    closing = _CLOSING.search(data, opening.end()) if opening is not None else None
    return closing.end() if closing is not None else 0


def body_of(data: bytes | Problem) -> bytes:
    """Return the text below the properties, without carriage returns and outer blanks."""
    if isinstance(data, Problem):
        return b""
    body = data[body_start(data) :]
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n")
    return body.removeprefix(BOM).strip(BLANKS)


def _pieces(body: bytes) -> bytes:
    if body.count(b" ") < _MIN_WORDS:
        return b""
    sentences = body.replace(b". ", b"\n").split(b"\n")
    pieces = {crc32(sentence) for sentence in sentences if len(sentence) >= _MIN_PIECE}
    if len(pieces) < _MIN_PIECES:
        return b""
    return array("I", sorted(pieces)[:_SKETCH]).tobytes()


def _due_tasks(data: bytes) -> tuple[DueTask, ...]:
    starts = {start for mark in _DUE_MARKS for start in _lines_with(mark, data)}
    if not starts:
        return ()
    text = data.decode("utf-8", "replace")
    if len(text) != len(data):
        starts = {len(data[:start].decode("utf-8", "replace")) for start in starts}
    matches = filter(None, map(_TASK_LINE.match, repeat(text), sorted(starts)))
    lines = [match for match in matches if match["status"] in " /" and _due(match["text"])]
    if not lines:
        return ()
    is_hidden = _HIDING.search(text, 0, lines[-1].start()) is not None
    if is_hidden:
        tasks: Iterable[NoteTask] = tasks_of(scan(text, stop=lines[-1].end()))
    else:
        tasks = map(_task_at, repeat(text), lines)
    return tuple(
        DueTask(task.line, task.text, due)
        for task in tasks
        if task.status in " /" and (due := _due(task.text))
    )


def _lines_with(mark: bytes, data: bytes) -> Iterator[int]:
    """Yield where each line with a mark begins."""
    at = data.find(mark)
    while at >= 0:
        yield data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        at = data.find(mark, end) if end >= 0 else -1


def _due(text: str) -> str:
    match = _DUE.search(text)
    return next(filter(None, match.groups())) if match is not None else ""


def _task_at(text: str, match: re.Match[str]) -> NoteTask:
    line = text.count("\n", 0, match.start()) + 1
    return NoteTask(match["status"], without_block_id(match["text"].rstrip()), line)
