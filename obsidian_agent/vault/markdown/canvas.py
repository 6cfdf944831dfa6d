"""Canvases (JSON Canvas 1.0, https://jsoncanvas.org): the cards that link to files.

A card can be a file, or text that links as a note does. Positions are bytes of the canvas, so that
a rename can change one JSON string and preserve every other byte.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from itertools import accumulate
from typing import Any, Final, Literal

from msgspec import Struct

from obsidian_agent.expression import expression
from obsidian_agent.vault.markdown.json_document import JsonDocumentError, JsonValue, parse
from obsidian_agent.vault.markdown.model import Link, ScannedNote
from obsidian_agent.vault.markdown.note import scan_text

CANVAS: Final = ".canvas"

_ESCAPE: Final = expression(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)"
)


class FileCard(Struct, frozen=True, kw_only=True):
    """A card that displays a file.

    `start` to `end` are the bytes of the JSON string that names the file, including its quotes.
    """

    node: str
    file: str
    subpath: str
    start: int
    end: int
    line: int


class TextCard(Struct, frozen=True):
    """A card of text."""

    node: str
    text: str
    note: ScannedNote
    """The scan of the text. Its positions are those in the decoded text."""
    links: tuple[Link, ...]
    """The links of the text, with their positions in the canvas."""


class ScannedCanvas(Struct, frozen=True):
    """The cards of a canvas that can link, in the order of the file."""

    files: tuple[FileCard, ...] = ()
    texts: tuple[TextCard, ...] = ()
    broken: bool = False
    """True if the canvas is invalid JSON. It has no cards then."""

    @property
    def links(self) -> tuple[Link, ...]:
        """The links of all cards in the order of the file."""
        links = [link for card in self.texts for link in card.links]
        links.extend(_file_link(card) for card in self.files)
        return tuple(sorted(links, key=lambda link: link.start))


def scan_canvas(data: bytes) -> ScannedCanvas:
    """Scan the bytes of a canvas."""
    text = data.decode(errors="replace")
    if not text.strip("\ufeff \t\r\n"):
        return ScannedCanvas()
    try:
        document = parse(text)
    except JsonDocumentError:
        return ScannedCanvas(broken=True)
    offsets = _Offsets(text)
    files: list[FileCard] = []
    texts: list[TextCard] = []
    for node in _nodes(document):
        kind = _text(node, "type")
        if kind == "file" and (file := _string(node, "file")):
            files.append(
                FileCard(
                    node=_text(node, "id"),
                    file=file.value,
                    subpath=_text(node, "subpath"),
                    line=offsets.line_at(file.start),
                    start=offsets.byte_at(file.start),
                    end=offsets.byte_at(file.end),
                )
            )
        elif kind == "text" and (card := _string(node, "text")):
            texts.append(_text_card(_text(node, "id"), text, card, offsets))
    return ScannedCanvas(tuple(files), tuple(texts))


class Card(Struct, frozen=True):
    """A card as it is read: a text, or the name of a file, an address or a group.

    `line` is that of the canvas, from 1.
    """

    kind: Literal["text", "file", "link", "group"]
    text: str
    line: int


def readable_cards(text: str) -> list[Card]:
    """Return the cards of a canvas from top to bottom. Raise `JsonDocumentError`."""
    cards: list[tuple[float, float, Card]] = []
    for node in _nodes(parse(text)):
        for kind, key in (("text", "text"), ("file", "file"), ("link", "url"), ("group", "label")):
            content = _string(node, key)
            if _text(node, "type") == kind and content is not None:
                words = content.value + _text(node, "subpath")
                line = text.count("\n", 0, content.start) + 1
                position = _number(text, node, "y"), _number(text, node, "x")
                cards.append((*position, Card(kind, words, line)))  # type: ignore[arg-type]
    return [card for _, _, card in sorted(cards, key=lambda card: card[:2])]


def _number(text: str, node: dict[str, JsonValue], key: str) -> float:
    """Return a coordinate. A group is above its cards as it begins above them."""
    member = node.get(key)
    if member is None:
        return 0.0
    try:
        return float(text[member.start : member.end])
    except ValueError:
        return 0.0


def canvas_links(data: bytes) -> tuple[Link, ...]:
    """Return the links of a canvas, with their positions in its bytes."""
    return scan_canvas(data).links


def _file_link(card: FileCard) -> Link:
    return Link(
        kind="canvas",
        target=card.file,
        subpath=card.subpath,
        display=None,
        start=card.start,
        end=card.end,
        target_start=card.start + 1,
        target_end=card.end - 1,
        line=card.line,
        form="json",
    )


def _text_card(node: str, text: str, card: JsonValue, offsets: _Offsets) -> TextCard:
    note = scan_text(card.value)
    if not note.links:
        return TextCard(node, card.value, note, ())
    line = offsets.line_at(card.start)
    decoded = _DecodedOffsets(text, card, offsets)
    links = tuple(
        link._replace(
            start=decoded.byte_at(link.start),
            end=decoded.byte_at(link.end),
            target_start=decoded.byte_at(link.target_start),
            target_end=decoded.byte_at(link.target_end),
            line=line,
        )
        for link in note.links
    )
    return TextCard(node, card.value, note, links)


class _Offsets:
    """Conversion of characters of a text to UTF-8 bytes and lines. Fast in ascending order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ascii = text.isascii()
        self._last = (0, 0, 1)

    def byte_at(self, character: int) -> int:
        return character if self._ascii else self._convert(character)[1]

    def line_at(self, character: int) -> int:
        return self._convert(character)[2]

    def _convert(self, character: int) -> tuple[int, int, int]:
        at, size, line = self._last if character >= self._last[0] else (0, 0, 1)
        between = self._text[at:character]
        self._last = (character, size + len(between.encode()), line + between.count("\n"))
        return self._last


class _DecodedOffsets:
    """Conversion of bytes of a decoded JSON string to those of the file, which has escapes."""

    def __init__(self, text: str, card: JsonValue, offsets: _Offsets) -> None:
        base = offsets.byte_at(card.start + 1)
        sizes: list[tuple[int, int]] = []
        position = card.start + 1
        for escape in _ESCAPE.finditer(text, position, card.end - 1):
            plain = text[position : escape.start()]
            if plain:
                size = len(plain.encode())
                sizes.append((size, size))
            decoded = json.loads(f'"{escape[0]}"')
            sizes.append((len(decoded.encode(errors="replace")), len(escape[0])))
            position = escape.end()
        rest = len(text[position : card.end - 1].encode())
        sizes.append((rest, rest))
        self._decoded = [0, *accumulate(decoded for decoded, _ in sizes)]
        self._written = [base, *(base + total for total in accumulate(raw for _, raw in sizes))]

    def byte_at(self, offset: int) -> int:
        """Return the byte of the file for the first byte of a character in the decoded text."""
        piece = min(bisect_right(self._decoded, offset) - 1, len(self._decoded) - 1)
        return self._written[piece] + offset - self._decoded[piece]


def _nodes(document: JsonValue) -> list[dict[str, JsonValue]]:
    nodes = document.value.get("nodes") if isinstance(document.value, dict) else None
    listed: list[Any] = nodes.value if nodes is not None and isinstance(nodes.value, list) else []
    return [node.value for node in listed if isinstance(node.value, dict)]


def _string(node: dict[str, JsonValue], key: str) -> JsonValue | None:
    """Return the value of a key if it is a string that is not empty."""
    member = node.get(key)
    if member is not None and isinstance(member.value, str) and member.value:
        return member
    return None


def _text(node: dict[str, JsonValue], key: str) -> str:
    member = _string(node, key)
    return "" if member is None else member.value
