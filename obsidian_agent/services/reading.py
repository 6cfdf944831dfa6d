"""Notes as they are read: the destinations of links, the text of embeds, backlinks, and lines.

Every function may block, as the first use of the index builds it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tools.links.links import subpath_keys
from obsidian_agent.vault.index.text_search import folded_needle, lines_with
from obsidian_agent.vault.links.graph import links_of
from obsidian_agent.vault.markdown.canvas import CANVAS, Card, readable_cards
from obsidian_agent.vault.markdown.edits import headings
from obsidian_agent.vault.markdown.json_document import JsonDocumentError
from obsidian_agent.vault.markdown.note import scan, scan_text
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.text import decode

if TYPE_CHECKING:
    from obsidian_agent.vault.views.view import VaultView

MAX_EMBEDS: Final = 40
MAX_EMBEDDED: Final = 20_000
"""Characters of an embedded note that are read."""

MAX_LINES_PER_NOTE: Final = 3
"""Lines of one note among the matches of a search."""

MAX_PREVIEW: Final = 160

MAX_BEFORE: Final = 40
"""Characters of a line before its match."""


class Destination(Struct, frozen=True):
    """The file to which a link leads, and the line of its heading or block (from 1)."""

    path: str
    line: int | None = None


class NoteLine(Struct, frozen=True):
    """A line of a note (from 1), with its text."""

    path: str
    line: int
    text: str
    is_heading: bool = False


class EmbeddedNote(Struct, frozen=True):
    """The embedded part of a note."""

    path: str
    text: str


class ReadableNote(Struct, frozen=True, kw_only=True):
    """A note or canvas to read, with its properties or its cards."""

    path: str
    text: str
    properties: Mapping[str, Any] = {}
    cards: Sequence[Card] | None = None
    """The cards of a canvas; None for a note, and for a canvas that is not valid JSON."""


class LinkFacts(Struct, frozen=True):
    """The facts about the targets of a note's links, by the targets with their subpaths."""

    missing: frozenset[str] = frozenset()
    embeds: dict[str, EmbeddedNote] = {}
    sizes: dict[str, int] = {}


def is_readable(path: str) -> bool:
    """Return True for files that the app displays: notes and canvases."""
    return path.lower().endswith((".md", CANVAS))


def read(view: VaultView, path: str) -> ReadableNote:
    """Return a note or canvas to read."""
    file = parse(path, PathUse.READ)
    text = _text(view, file)
    if path.lower().endswith(CANVAS):
        try:
            return ReadableNote(path=path, text=text, cards=readable_cards(text))
        except JsonDocumentError:
            return ReadableNote(path=path, text=text)
    properties = scan(text.encode()).properties if text.startswith("---") else {}
    return ReadableNote(path=path, text=text, properties=properties)


def destination(view: VaultView, target: str, source: str) -> Destination | None:
    """Return the destination of a link (`Note#Heading`) in the note `source`, or None.

    `source` is "" for a text without a note.
    """
    name, mark, rest = target.partition("#")
    # The links of such a text, for example an answer, are resolved as in the vault's root.
    origin = parse(source or "Untitled.md", PathUse.READ)
    file = origin if not name else view.index.resolve(name, origin)
    if file is None:
        return None
    line = None
    if mark and file.is_note:
        line = _line_of(_text(view, file), f"#{rest}")
    return Destination(file.text, line)


def _text(view: VaultView, file: VaultPath) -> str:
    return decode(view.read(file), file.text)


def _line_of(text: str, subpath: str) -> int | None:
    if subpath.startswith("#^"):
        blocks = scan_text(text).blocks
        return next((block.line for block in blocks if block.name == subpath[2:]), None)
    keys = subpath_keys(subpath)
    for heading in headings(text):
        if keys and subpath_keys(f"#{heading.text}") == keys[-1:]:
            return heading.line
    return None


def link_facts(view: VaultView, path: str) -> LinkFacts:
    """Return the facts about the targets of a note's links."""
    source = parse(path, PathUse.READ)
    missing: set[str] = set()
    embeds: dict[str, EmbeddedNote] = {}
    sizes: dict[str, int] = {}
    for link in links_of(source, view.read(source)):
        target = link.target + link.subpath
        file = view.index.resolve(link.target, source) if link.target else source
        if file is None:
            missing.add(target)
        elif link.kind in ("embed", "markdown-embed") and len(embeds) < MAX_EMBEDS:
            if not file.is_note:
                sizes[target] = view.stat(file).size
            elif target not in embeds and file != source:
                embeds[target] = EmbeddedNote(file.text, _embedded(_text(view, file), link.subpath))
    return LinkFacts(frozenset(missing), embeds, sizes)


def _embedded(text: str, subpath: str) -> str:
    """Return the embedded part of a note: a section, a block, or all below the properties."""
    data = text.encode()
    line = _line_of(text, subpath) if subpath else None
    if line is None:
        front = scan(data).frontmatter if text.startswith("---") else None
        start = 0 if front is None else front.body_start
        return data[start : start + MAX_EMBEDDED].decode(errors="ignore")
    if subpath.startswith("#^"):
        return _block(text, line)
    section = next(heading for heading in headings(text) if heading.line == line)
    return text[section.start : section.section_end][:MAX_EMBEDDED]


def _block(text: str, line: int) -> str:
    """Return the paragraph or list item with a line."""
    rows = text.split("\n")
    first = line - 1
    while first > 0 and rows[first - 1].strip() and not rows[first].lstrip().startswith(("-", "*")):
        first -= 1
    return "\n".join(rows[first:line])[:MAX_EMBEDDED]


def mentions(view: VaultView, path: str) -> list[NoteLine]:
    """Return the lines of other files that link to a file."""
    file = parse(path, PathUse.READ)
    lines_linking: list[NoteLine] = []
    for source in view.index.backlinks(file):
        data = view.read(source)
        rows = data.decode(errors="replace").split("\n")
        numbers = {
            link.line
            for link in links_of(source, data)
            if view.index.resolve(link.target, source) == file
        }
        if source.text.endswith(CANVAS):
            lines_linking.append(NoteLine(source.text, 1, "canvas"))
            continue
        lines_linking += (
            NoteLine(source.text, line, rows[line - 1].strip()[:MAX_PREVIEW])
            for line in sorted(numbers)
            if line <= len(rows)
        )
    return lines_linking


def outline(text: str) -> list[tuple[int, str, int]]:
    """Return level, text and line (from 1) of the headings of a note."""
    return [(heading.level, heading.text, heading.line) for heading in headings(text)]


def search_lines(
    view: VaultView, query: str, limit: int, is_cancelled: Callable[[], bool] = lambda: False
) -> list[NoteLine]:
    """Return lines that hold every word of a query, headings first. Case does not matter.

    A query `#tag` returns the notes with the tag.
    """
    words = query.casefold().split()
    if not words:
        return []
    if len(words) == 1 and words[0].startswith("#") and len(words[0]) > 1:
        return [NoteLine(path.text, 1, query) for path in view.index.tagged(words[0], ROOT)][:limit]
    hits: list[NoteLine] = []
    for note in view.index.texts(ROOT, *(folded_needle(word) for word in words)):
        if is_cancelled() or len(hits) >= limit * 4:
            break
        if isinstance(note.data, bytes):
            hits += _lines_of(note.path.text, note.data, words)
    return sorted(hits, key=lambda hit: not hit.is_heading)[:limit]


def _lines_of(path: str, data: bytes, words: Sequence[str]) -> Iterator[NoteLine]:
    text = data.decode("utf-8", "replace")
    needle = folded_needle(max(words, key=len))
    count = 0
    for number, line in lines_with(text, needle):
        folded = line.casefold()
        if all(word in folded for word in words):
            stripped = line.strip()
            is_heading = stripped.startswith("#") and stripped.lstrip("#").startswith(" ")
            yield NoteLine(path, number, _around(stripped, folded.find(words[0])), is_heading)
            count += 1
            if count == MAX_LINES_PER_NOTE:
                return


def _around(line: str, at: int) -> str:
    """Return the part of a line that starts shortly before its match."""
    if at > MAX_BEFORE:
        start = line.rfind(" ", 0, at - MAX_BEFORE) + 1
        line = f"…{line[start:]}" if start else line
    return line[:MAX_PREVIEW]


def recently_modified(view: VaultView, limit: int, templates: str = "") -> list[str]:
    """Return the notes that were modified last, the latest first.

    Those in the folder of `templates` are left out.
    """
    times: list[tuple[float, str]] = []
    for note in view.index.notes(ROOT):
        if templates and note.text.startswith(f"{templates}/"):
            continue
        try:
            times.append((view.stat(note).mtime_ms, note.text))
        except ObsidianAgentError:
            continue
    return [path for _, path in heapq.nlargest(limit, times)]
