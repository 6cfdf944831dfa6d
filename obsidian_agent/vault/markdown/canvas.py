"""Canvases (JSON Canvas 1.0, https://jsoncanvas.org): cards that are files, and cards of text, which link as notes do.

Places are bytes of the file, so that a rename can change one JSON string and every other byte stays.

And bases (`.base`: filters, formulas and views in YAML): which files they name. Read only, because Obsidian is not known to change bases on a
rename: people are told of these links, for example before a rename; they are no part of the link graph, as they are not in Obsidian's.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from itertools import accumulate
from json import JSONDecoder
from typing import Any, Final, NamedTuple

from obsidian_agent.dataclass import dataclass
from obsidian_agent.expression import expression
from obsidian_agent.vault.markdown.blocks import LineFinder
from obsidian_agent.vault.markdown.model import Link, ScannedNote
from obsidian_agent.vault.markdown.note import scan_text

CANVAS: Final = ".canvas"
BASE: Final = ".base"

_BLANKS: Final = expression(r"[ \t\r\n]*")
_PLAIN: Final = expression(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_DEEPEST: Final = 200
_DECODER: Final = JSONDecoder()


class JsonValue(NamedTuple):
    """A value and its characters in the text, quotes included. `value` is a str, a dict or list of places, or None for all the rest."""

    value: Any
    start: int
    end: int


class NotJson(ValueError):
    """The text is no JSON document, or is nested too deeply."""


def parse(text: str) -> JsonValue:
    """The document of a text. Raises NotJson."""
    start = _skip(text, 1 if text.startswith("\ufeff") else 0)
    place = _value(text, start, 0)
    if _skip(text, place.end) != len(text):
        raise NotJson("There is something behind the document.")
    return place


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _value(text: str, at: int, depth: int) -> JsonValue:
    if depth > _DEEPEST:
        raise NotJson("It is nested too deeply.")
    opening = text[at : at + 1]
    if opening == '"':
        return _string(text, at)
    if opening == "{":
        return _object(text, at, depth)
    if opening == "[":
        return _array(text, at, depth)
    plain = _PLAIN.match(text, at)
    if plain is None:
        raise NotJson(f"There is no value at character {at}.")
    return JsonValue(None, at, plain.end())


def _string(text: str, at: int) -> JsonValue:
    if text[at : at + 1] != '"':
        raise NotJson(f"A string was expected at character {at}.")
    try:
        value, end = _DECODER.raw_decode(text, at)
    except ValueError as error:
        raise NotJson(str(error)) from error
    return JsonValue(value, at, end)


def _object(text: str, start: int, depth: int) -> JsonValue:
    members: dict[str, JsonValue] = {}
    at = _skip(text, start + 1)
    if text.startswith("}", at):
        return JsonValue(members, start, at + 1)
    while True:
        key = _string(text, at)
        at = _skip(text, key.end)
        if not text.startswith(":", at):
            raise NotJson(f"A colon was expected at character {at}.")
        member = _value(text, _skip(text, at + 1), depth + 1)
        members[key.value] = member
        at = _skip(text, member.end)
        if text.startswith("}", at):
            return JsonValue(members, start, at + 1)
        at = _comma(text, at)


def _array(text: str, start: int, depth: int) -> JsonValue:
    items: list[JsonValue] = []
    at = _skip(text, start + 1)
    if text.startswith("]", at):
        return JsonValue(items, start, at + 1)
    while True:
        item = _value(text, at, depth + 1)
        items.append(item)
        at = _skip(text, item.end)
        if text.startswith("]", at):
            return JsonValue(items, start, at + 1)
        at = _comma(text, at)


def _comma(text: str, at: int) -> int:
    if not text.startswith(",", at):
        raise NotJson(f"A comma was expected at character {at}.")
    return _skip(text, at + 1)


_ESCAPE: Final = expression(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)"
)


@dataclass(frozen=True, slots=True)
class FileCard:
    """A card that shows a file. `start` to `end` are the bytes of the JSON string that names it, quotes included."""

    node: str
    file: str
    subpath: str
    start: int
    end: int
    line: int


@dataclass(frozen=True, slots=True)
class TextCard:
    """A card of text: what a scan of it says (places in the decoded text), and its links with their places in the canvas."""

    node: str
    text: str
    note: ScannedNote
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class ScannedCanvas:
    """The cards of a canvas that can link, in the order of the file. `broken`: it is no JSON, and nothing is known of it."""

    files: tuple[FileCard, ...] = ()
    texts: tuple[TextCard, ...] = ()
    broken: bool = False

    @property
    def links(self) -> tuple[Link, ...]:
        """The links of all cards in the order of the file."""
        links = [link for card in self.texts for link in card.links]
        links.extend(_file_link(card) for card in self.files)
        return tuple(sorted(links, key=lambda link: link.start))


def scan_canvas(data: bytes) -> ScannedCanvas:
    """The cards of a canvas's bytes."""
    text = data.decode(errors="replace")
    if not text.strip("\ufeff \t\r\n"):
        return ScannedCanvas()
    try:
        document = parse(text)
    except NotJson:
        return ScannedCanvas(broken=True)
    places = _Offsets(text)
    files: list[FileCard] = []
    texts: list[TextCard] = []
    for node in _nodes(document):
        kind = _text(node, "type")
        if kind == "file" and (file := _text_of(node, "file")):
            line, start, end = (
                places.line_at(file.start),
                places.bytes_at(file.start),
                places.bytes_at(file.end),
            )
            files.append(
                FileCard(_text(node, "id"), file.value, _text(node, "subpath"), start, end, line)
            )
        elif kind == "text" and (card := _text_of(node, "text")):
            texts.append(_text_card(_text(node, "id"), text, card, places))
    return ScannedCanvas(tuple(files), tuple(texts))


def canvas_links(data: bytes) -> tuple[Link, ...]:
    """The links of a canvas, with their places in its bytes."""
    return scan_canvas(data).links


def json_text(text: str) -> str:
    """A text as it stands inside the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _file_link(card: FileCard) -> Link:
    return Link(
        "canvas",
        card.file,
        card.subpath,
        None,
        card.start,
        card.end,
        card.start + 1,
        card.end - 1,
        card.line,
        "json",
    )


def _text_card(node: str, text: str, card: JsonValue, places: _Offsets) -> TextCard:
    note = scan_text(card.value)
    if not note.links:
        return TextCard(node, card.value, note, ())
    line = places.line_at(card.start)
    inner = _Inner(text, card, places)
    links = tuple(
        link._replace(
            start=inner.at(link.start),
            end=inner.at(link.end),
            target_start=inner.at(link.target_start),
            target_end=inner.at(link.target_end),
            line=line,
        )
        for link in note.links
    )
    return TextCard(node, card.value, note, links)


class _Offsets:
    """From characters of a text to its UTF-8 bytes and lines; quick when asked in ascending order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ascii = text.isascii()
        self._known = (0, 0, 1)

    def bytes_at(self, character: int) -> int:
        return character if self._ascii else self._go(character)[1]

    def line_at(self, character: int) -> int:
        return self._go(character)[2]

    def _go(self, character: int) -> tuple[int, int, int]:
        at, size, line = self._known if character >= self._known[0] else (0, 0, 1)
        between = self._text[at:character]
        self._known = (character, size + len(between.encode()), line + between.count("\n"))
        return self._known


class _Inner:
    """From bytes of a decoded JSON string to bytes of the file, where escapes are longer."""

    def __init__(self, text: str, card: JsonValue, places: _Offsets) -> None:
        base = places.bytes_at(card.start + 1)
        pieces: list[tuple[int, int]] = []
        position = card.start + 1
        for escape in _ESCAPE.finditer(text, position, card.end - 1):
            plain = text[position : escape.start()]
            if plain:
                size = len(plain.encode())
                pieces.append((size, size))
            decoded = json.loads(f'"{escape[0]}"')
            pieces.append((len(decoded.encode(errors="replace")), len(escape[0])))
            position = escape.end()
        rest = len(text[position : card.end - 1].encode())
        pieces.append((rest, rest))
        self._decoded = [0, *accumulate(piece[0] for piece in pieces)]
        self._written = [
            base,
            *(base + total for total in accumulate(piece[1] for piece in pieces)),
        ]

    def at(self, offset: int) -> int:
        """The byte of the file for a byte of the decoded text that begins a character."""
        piece = min(bisect_right(self._decoded, offset) - 1, len(self._decoded) - 1)
        return self._written[piece] + offset - self._decoded[piece]


def _nodes(document: JsonValue) -> list[dict[str, JsonValue]]:
    nodes = document.value.get("nodes") if isinstance(document.value, dict) else None
    listed: list[Any] = nodes.value if nodes is not None and isinstance(nodes.value, list) else []
    return [node.value for node in listed if isinstance(node.value, dict)]


def _text_of(node: dict[str, JsonValue], key: str) -> JsonValue | None:
    place = node.get(key)
    return place if place is not None and isinstance(place.value, str) and place.value else None


def _text(node: dict[str, JsonValue], key: str) -> str:
    place = _text_of(node, key)
    return "" if place is None else place.value


# The quotes of an argument are escaped or doubled where the whole expression is a quoted string.
_NAMED: Final = expression(
    rb"""\b(?:link|file|hasLink|image|embed)\(\s*+(?:\\?"([^"\\\n]++)\\?"|'{1,2}([^'\n]++)'{1,2})|\[\[([^\[\]\n]++)\]\]"""
)
_COMMENT: Final = expression(rb"\s*#")


def base_links(data: bytes) -> tuple[Link, ...]:
    """The files that a base's bytes name, in order: arguments of `link()`, `file()` and the like, and wikilinks. Comments are left out."""
    found = []
    lines = LineFinder(data)
    for match in _NAMED.finditer(data):
        if _COMMENT.match(data, lines.start(match.start())):
            continue
        group = match.lastindex or 3
        text = match[group].decode(errors="replace")
        pipe = text.find("|")
        path, mark, subpath = (text[:pipe] if group == 3 and pipe > 0 else text).partition("#")
        start = match.start(group)
        found.append(
            Link(
                "base",
                path.strip(),
                mark + subpath,
                text[pipe + 1 :] if group == 3 and pipe > 0 else None,
                match.start(),
                match.end(),
                start,
                start + len(path.encode()),
                lines.number(start),
            )
        )
    return tuple(found)
