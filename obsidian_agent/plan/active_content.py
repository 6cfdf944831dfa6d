"""What a change brings into a file that Obsidian would load from elsewhere, or that plugins may run as code.

Judged is the result: everything active in the file after the change that was not in it before, so that a character which completes an
address is seen like the address itself. Files that are too large or too tangled to be read closely are looked at roughly: then more is
shown than there may be.
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, Final

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import VaultError
from obsidian_agent.expression import expression
from obsidian_agent.plan.active_markdown import (
    ActiveFindings,
    TooComplex,
    address_label,
    addresses,
    digest,
    is_quiet,
    read_css,
    read_markdown,
    read_markup,
    read_maths,
)
from obsidian_agent.vault.frontmatter.properties import find_frontmatter, read_block
from obsidian_agent.vault.text import BOM

CLOSELY: Final = 200_000
"""Characters; what is longer is only looked at roughly."""

_CANVAS: Final = (".canvas", ".excalidraw")
_DRAWING: Final = ".excalidraw.md"
_PAGES: Final = (".html", ".htm", ".xhtml", ".svg", ".xml", ".mhtml")
_SCRIPTS: Final = (
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".jsx",
    ".tsx",
    ".py",
    ".sh",
    ".bat",
    ".cmd",
    ".ps1",
    ".wasm",
)
_DATA: Final = (".json", ".jsonl", ".csv", ".tsv", ".yaml", ".yml", ".toml", ".bib", ".log")
"""Text that Obsidian shows nothing of."""

_WORDS: Final = frozenset({"text", "label", "id", "type", "color", "fromNode", "toNode"})
"""Keys of a canvas whose values are words; what Markdown is in them counts, an address alone does not."""
_PICTURE: Final = expression(
    r"banner|cover|image|img|thumb|poster|photo|picture|avatar|icon|logo|background", re.I
)
_DECLARATION: Final = expression(r"<(?:!ENTITY|\?xml-stylesheet)[^>]*", re.I)
_PICTURE_CALL: Final = expression(
    r"\b(?:image|html)\b(?=(?>(?:[\s)?.]|/\*(?:[^*]|\*(?!/)){0,99}\*/){0,20})\()", re.I
)
"""Calls of the functions of a base that load what their argument names."""
_PROPERTY: Final = (
    r"(?!(?:formula|value|index|acc)\b)[^\W\d][\w-]*(?:\.[\w-]+)*"
    r"(?:\[\s*(?:\"[^\"\\]*\"|'[^'\\]*'|\d+)\s*\])*"
)
_PLAIN_CALL: Final = expression(rf"\s*\(\s*(?:(\"[^\"\\]*\"|'[^'\\]*')|{_PROPERTY})\s*\)", re.I)
"""An argument that is one literal or one property."""
_LITERAL: Final = expression(r"\"[^\"\n]*\"|'[^'\n]*'")
_FORMULA_NAME: Final = expression(r"\s*formula\s*[.\[]", re.I)
_BASE_BLOCK: Final = expression(r"(?:```|~~~)[^\n]*base", re.I)
_ROUGH_CODE: Final = expression(
    r"(?:(?<!`)`{3,}+|(?<!~)~{3,}+)[^\S\n]*+[^\s`]+|<%|`\s*\$?=|<script|\bon[a-z]+\s*=|script\s*:(?=\S)|(?:button|view)\[|obsidian:[\\/]*[\w-]+\?",
    re.I,
)
_JSON_ESCAPE: Final = expression(r"\\(?:u([0-9a-fA-F]{4})|([/\"\\]))")
_SHAPING: Final = expression(r"[`~<>%$!\[\]()\"'{}\\&:/=-]")


@dataclass(frozen=True, slots=True)
class ActiveContent:
    """`hosts` that would be asked, and `code`: what kinds of code there are. Both sorted, in words for people; foreign text."""

    hosts: tuple[str, ...] = ()
    code: tuple[str, ...] = ()


def added_content(
    path: str, after: bytes, read_before: Callable[[], bytes], path_before: str | None = None
) -> ActiveContent:
    """What is active in `after` and was not in the bytes before (b"": there was no file), which are read where that matters.

    `path_before`: the name that the file had then.
    """
    name, name_before = path.lower(), (path_before or path).lower()
    text = _text(after)
    if _is_note(name) and not name.endswith(_DRAWING) and is_quiet(text):
        return ActiveContent()
    old = _text(read_before())
    new = _shortened(text, old) if name == name_before and _is_note(name) else (text, old)
    try:
        if max(len(text), len(old)) > CLOSELY:
            raise TooComplex
        found = _read(name, new[0])
        if not (found.remote or found.code):
            return ActiveContent()
        known = _read(name_before, new[1])
    except TooComplex:
        found, known = (
            _roughly(name, text),
            _roughly(name, old) if _only_words(text, old) else ActiveFindings(),
        )
        known = known if old else ActiveFindings()
    hosts = {address_label(address) for address in found.remote - known.remote}
    return ActiveContent(
        tuple(sorted(hosts)), tuple(sorted({kind for kind, _ in found.code - known.code}))
    )


def _text(data: bytes) -> str:
    text = data.decode("utf-8", "replace").removeprefix(BOM)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _is_note(name: str) -> bool:
    return not name.endswith((*_CANVAS, *_PAGES, *_SCRIPTS, *_DATA, ".css", ".base"))


def _shortened(text: str, old: str) -> tuple[str, str]:
    """Both texts without the part below the properties where that is the same."""
    spans = find_frontmatter(text), find_frontmatter(old)
    starts = [span.body_start if span is not None else 0 for span in spans]
    same = text[starts[0] :] == old[starts[1] :]
    return (text[: starts[0]], old[: starts[1]]) if same else (text, old)


def _read(name: str, text: str) -> ActiveFindings:
    found = ActiveFindings()
    if not text or name.endswith(_DATA):
        pass
    elif name.endswith(_CANVAS):
        _read_canvas(text, found)
    elif name.endswith(_PAGES):
        read_markup(text, found)
        for declaration in _DECLARATION.finditer(text):
            found.search(html.unescape(declaration[0]))
    elif name.endswith(".css"):
        read_css(text, found)
    elif name.endswith(".base"):
        _read_base(text, found)
    elif name.endswith(_SCRIPTS):
        found.code.add(("script file", text))
    else:
        _read_note(text, found, drawing=name.endswith(_DRAWING))
    return found


def _read_note(text: str, found: ActiveFindings, *, drawing: bool = False) -> None:
    if is_quiet(text) and not drawing:
        return

    def special(language: str, content: str) -> bool:
        if language == "base":
            _read_base(content, found)
        return language == "base"

    front = find_frontmatter(text)
    if front is not None:
        _read_properties(text[front.content_start : front.content_end], found)
    read_markdown(text if front is None else text[front.body_start :], found, special)
    if drawing:
        for block in re.findall(r"```json\n(.*?)```", text, re.S):
            _read_canvas(block, found)


def _read_properties(block: str, found: ActiveFindings) -> None:
    """Properties: pictures that cards and banners show, and Markdown in values."""
    try:
        values = read_block(block)
    except VaultError:
        values = {"image": block}
    for key, value in _strings(values):
        if _PICTURE.search(key):
            found.search(value)
        if not is_quiet(value):
            read_markdown(value, found)
    read_markdown(block, found)


def _read_canvas(text: str, found: ActiveFindings) -> None:
    """JSON Canvas 1.0: text cards hold Markdown; pages (`url`) and backgrounds are loaded when the canvas is opened."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        plain = _JSON_ESCAPE.sub(_json_character, text)
        found.search(plain)
        read_markdown(plain, found)
        return
    for key, value in _strings(document):
        if key not in _WORDS:
            found.load(value)
        if not is_quiet(value):
            _read_note(value, found)


def _read_base(text: str, found: ActiveFindings) -> None:
    """Read a base: its formulas make pictures and HTML of text, also of text that they compute.

    What a computed text comes to is not followed: it is remote.
    """
    read_markup(text, found)
    context = digest(text)
    plain = _JSON_ESCAPE.sub(_json_character, text)
    try:
        values = list(_strings(read_block(text)))
    except VaultError:
        values = []
        found.search(plain)
    for key, value in values:
        found.load(value)
        read_markup(value, found)
        if key == "image" and _FORMULA_NAME.match(value):
            found.compute(f"computed by {value}", context)
        for literal in _LITERAL.finditer(value):
            found.search(literal[0][1:-1])
        _read_formula(value, found, context)
    _read_formula(plain, found, context)


def _read_formula(formula: str, found: ActiveFindings, context: str) -> None:
    """Read the calls in a formula that load something other than one literal or property."""
    for reading in {formula, _JSON_ESCAPE.sub(_json_character, formula)}:
        for call in _PICTURE_CALL.finditer(reading):
            plain = _PLAIN_CALL.match(reading, call.end())
            if plain is None:
                found.compute(f"computed by {reading[call.start() : call.end() + 40]}", context)
            elif plain[1]:
                found.load(plain[1][1:-1])
                found.search(plain[1][1:-1])


def _json_character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else escape[2]


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a JSON value with the key that it stands under. Deep values raise `TooComplex`."""
    waiting: list[tuple[str, Any]] = [(key, value)]
    while waiting:
        name, each = waiting.pop()
        match each:
            case str():
                yield name, each
            case dict():
                waiting += [(str(inner), content) for inner, content in each.items()]
            case list():
                waiting += [(name, content) for content in each]
            case _:
                pass


def _roughly(name: str, text: str) -> ActiveFindings:
    """Every address and every mark of code, wherever it stands."""
    found = ActiveFindings()
    if not text or name.endswith(_DATA) or (_is_note(name) and is_quiet(text)):
        return found
    plain = html.unescape(_JSON_ESCAPE.sub(_json_character, text))
    found.remote |= set(addresses(plain))
    context = digest(text)
    read_maths(plain, found, context)
    if name.endswith(".base") or _BASE_BLOCK.search(plain):
        _read_formula(plain, found, context)
    found.code |= {
        (hit[0].strip()[:20], plain[hit.start() : hit.end() + 200])
        for hit in _ROUGH_CODE.finditer(plain)
    }
    return found


def _only_words(text: str, old: str) -> bool:
    """Whether the part that differs, has no sign in it that could shift where something begins or ends."""
    shorter = min(len(text), len(old))
    start = bisect_left(range(1, shorter + 1), True, key=lambda size: text[:size] != old[:size])
    end = bisect_left(
        range(1, shorter - start + 1), True, key=lambda size: text[-size:] != old[-size:]
    )
    return _SHAPING.search(text[start : len(text) - end] + old[start : len(old) - end]) is None
