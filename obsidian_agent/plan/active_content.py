"""Content added by a change that Obsidian would load from elsewhere or plugins may run as code.

The result is checked: everything active in the file after the change that was not in it before, so
that a character that completes an address counts like the address itself. Files too large or too
complex to parse are scanned roughly, which may report more than there is.
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

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

MAX_PARSED: Final = 200_000
"""Longer texts, in characters, are only scanned roughly."""

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
"""Extensions of text of which Obsidian displays nothing."""

_WORD_KEYS: Final = frozenset({"text", "label", "id", "type", "color", "fromNode", "toNode"})
"""Keys of a canvas whose values are words: Markdown in them counts, an address alone does not."""
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
_MAX_ARGUMENT: Final = 40
"""Maximum number of characters displayed of the argument of a call."""
_LITERAL: Final = expression(r"\"[^\"\n]*\"|'[^'\n]*'")
_FORMULA_NAME: Final = expression(r"\s*formula\s*[.\[]", re.I)
_BASE_BLOCK: Final = expression(r"(?:```|~~~)[^\n]*base", re.I)
_ROUGH_CODE: Final = expression(
    r"(?:(?<!`)`{3,}+|(?<!~)~{3,}+)[^\S\n]*+[^\s`]+|<%|`\s*\$?=|<script|\bon[a-z]+\s*="
    r"|script\s*:(?=\S)|(?:button|view)\[|obsidian:[\\/]*[\w-]+\?",
    re.I,
)
_JSON_ESCAPE: Final = expression(r"\\(?:u([0-9a-fA-F]{4})|([/\"\\]))")
_SHAPING: Final = expression(r"[`~<>%$!\[\]()\"'{}\\&:/=-]")


class ActiveContent(Struct, frozen=True):
    """Sorted `hosts` that would be contacted, and sorted kinds of `code`.

    Both are descriptions for users, and foreign text.
    """

    hosts: tuple[str, ...] = ()
    code: tuple[str, ...] = ()


def added_content(
    path: str, after: bytes, read_before: Callable[[], bytes], path_before: str | None = None
) -> ActiveContent:
    """Return what is active in `after` and was not before.

    `read_before` returns the bytes before the change (b"" without a file) and is called only if
    needed. `path_before` is the former name of the file.
    """
    name, name_before = path.lower(), (path_before or path).lower()
    text = _text(after)
    if _is_note(name) and not name.endswith(_DRAWING) and is_quiet(text):
        return ActiveContent()
    old = _text(read_before())
    new = _shortened(text, old) if name == name_before and _is_note(name) else (text, old)
    try:
        if max(len(text), len(old)) > MAX_PARSED:
            raise TooComplex
        findings = _read(name, new[0])
        if not (findings.remote or findings.code):
            return ActiveContent()
        known_before = _read(name_before, new[1])
    except TooComplex:
        findings, known_before = (
            _scan_roughly(name, text),
            _scan_roughly(name, old) if _only_words(text, old) else ActiveFindings(),
        )
        known_before = known_before if old else ActiveFindings()
    hosts = {address_label(address) for address in findings.remote - known_before.remote}
    return ActiveContent(
        tuple(sorted(hosts)), tuple(sorted({kind for kind, _ in findings.code - known_before.code}))
    )


def _text(data: bytes) -> str:
    text = data.decode("utf-8", "replace").removeprefix(BOM)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _is_note(name: str) -> bool:
    return not name.endswith((*_CANVAS, *_PAGES, *_SCRIPTS, *_DATA, ".css", ".base"))


def _shortened(text: str, old: str) -> tuple[str, str]:
    """Return both texts without the part below the properties if that is equal."""
    spans = find_frontmatter(text), find_frontmatter(old)
    starts = [span.body_start if span is not None else 0 for span in spans]
    same = text[starts[0] :] == old[starts[1] :]
    return (text[: starts[0]], old[: starts[1]]) if same else (text, old)


def _read(name: str, text: str) -> ActiveFindings:
    findings = ActiveFindings()
    if not text or name.endswith(_DATA):
        pass
    elif name.endswith(_CANVAS):
        _read_canvas(text, findings)
    elif name.endswith(_PAGES):
        read_markup(text, findings)
        for declaration in _DECLARATION.finditer(text):
            findings.search(html.unescape(declaration[0]))
    elif name.endswith(".css"):
        read_css(text, findings)
    elif name.endswith(".base"):
        _read_base(text, findings)
    elif name.endswith(_SCRIPTS):
        findings.code.add(("script file", text))
    else:
        _read_note(text, findings, drawing=name.endswith(_DRAWING))
    return findings


def _read_note(text: str, findings: ActiveFindings, *, drawing: bool = False) -> None:
    if is_quiet(text) and not drawing:
        return

    def special(language: str, content: str) -> bool:
        if language == "base":
            _read_base(content, findings)
        return language == "base"

    front = find_frontmatter(text)
    if front is not None:
        _read_properties(text[front.content_start : front.content_end], findings)
    read_markdown(text if front is None else text[front.body_start :], findings, special)
    if drawing:
        for block in re.findall(r"```json\n(.*?)```", text, re.S):
            _read_canvas(block, findings)


def _read_properties(block: str, findings: ActiveFindings) -> None:
    """Read properties: pictures that cards and banners display, and Markdown in values."""
    try:
        values = read_block(block)
    except VaultError:
        values = {"image": block}
    for key, value in _strings(values):
        if _PICTURE.search(key):
            findings.search(value)
        if not is_quiet(value):
            read_markdown(value, findings)
    read_markdown(block, findings)


def _read_canvas(text: str, findings: ActiveFindings) -> None:
    """Read JSON Canvas 1.0.

    Text cards hold Markdown; pages (`url`) and backgrounds are loaded when the canvas is opened.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        plain = _JSON_ESCAPE.sub(_json_character, text)
        findings.search(plain)
        read_markdown(plain, findings)
        return
    for key, value in _strings(document):
        if key not in _WORD_KEYS:
            findings.load(value)
        if not is_quiet(value):
            _read_note(value, findings)


def _read_base(text: str, findings: ActiveFindings) -> None:
    """Read a base, whose formulas turn text into pictures and HTML, also computed text.

    The value of a computed text is not followed: it counts as remote.
    """
    read_markup(text, findings)
    context = digest(text)
    plain = _JSON_ESCAPE.sub(_json_character, text)
    try:
        values = list(_strings(read_block(text)))
    except VaultError:
        values = []
        findings.search(plain)
    for key, value in values:
        findings.load(value)
        read_markup(value, findings)
        if key == "image" and _FORMULA_NAME.match(value):
            findings.compute(f"computed by {value}", context)
        for literal in _LITERAL.finditer(value):
            findings.search(literal[0][1:-1])
        _read_formula(value, findings, context)
    _read_formula(plain, findings, context)


def _read_formula(formula: str, findings: ActiveFindings, context: str) -> None:
    """Read the calls in a formula that load something other than one literal or property."""
    for reading in {formula, _JSON_ESCAPE.sub(_json_character, formula)}:
        for call in _PICTURE_CALL.finditer(reading):
            plain = _PLAIN_CALL.match(reading, call.end())
            if plain is None:
                findings.compute(f"computed by {_call_text(reading, call)}", context)
            elif plain[1]:
                findings.load(plain[1][1:-1])
                findings.search(plain[1][1:-1])


def _call_text(formula: str, call: re.Match[str]) -> str:
    """Return a call up to its closing bracket, or the beginning of a long one."""
    depth = 0
    end = call.end() + _MAX_ARGUMENT
    for index, character in enumerate(formula[call.end() : end], call.end()):
        if character == "(":
            depth += 1
        elif character == ")" and depth > 0:
            depth -= 1
            if depth == 0:
                return formula[call.start() : index + 1]
    return f"{formula[call.start() : end]}…"


def _json_character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else escape[2]


def _strings(root: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text in a JSON value with the key that it belongs to."""
    pending: list[tuple[str, Any]] = [(key, root)]
    while pending:
        name, item = pending.pop()
        match item:
            case str():
                yield name, item
            case dict():
                pending += [(str(inner), content) for inner, content in item.items()]
            case list():
                pending += [(name, content) for content in item]
            case _:
                pass


def _scan_roughly(name: str, text: str) -> ActiveFindings:
    """Return every address and every mark of code, wherever it stands."""
    findings = ActiveFindings()
    if not text or name.endswith(_DATA) or (_is_note(name) and is_quiet(text)):
        return findings
    plain = html.unescape(_JSON_ESCAPE.sub(_json_character, text))
    findings.remote |= set(addresses(plain))
    context = digest(text)
    read_maths(plain, findings, context)
    if name.endswith(".base") or _BASE_BLOCK.search(plain):
        _read_formula(plain, findings, context)
    findings.code |= {
        (hit[0].strip()[:20], plain[hit.start() : hit.end() + 200])
        for hit in _ROUGH_CODE.finditer(plain)
    }
    return findings


def _only_words(text: str, old: str) -> bool:
    """Return whether the differing part holds no sign that could shift a beginning or end."""
    shorter = min(len(text), len(old))
    start = bisect_left(range(1, shorter + 1), True, key=lambda size: text[:size] != old[:size])
    end = bisect_left(
        range(1, shorter - start + 1), True, key=lambda size: text[-size:] != old[-size:]
    )
    return _SHAPING.search(text[start : len(text) - end] + old[start : len(old) - end]) is None
