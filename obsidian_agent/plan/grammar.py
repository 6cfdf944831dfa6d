"""The syntax of references: `${head.part.0|filter:text}` inside any string.

A whole string may also be `$steps.…` or `$vars.…`. The filters are a closed list, implemented in
tools/core/filters.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from obsidian_agent.errors import nearest
from obsidian_agent.tools.core.filters import FILTERS, FilterCall, parse_call

MAX_REFERENCE = 1000
"""The maximum number of characters between `${` and `}` of a reference."""

MAX_MALFORMED = 20
"""The maximum number of malformed references reported for one text."""

_NAME = r"[\w-]+(?: +[\w-]+)*"
_PATH: Final = re.compile(rf"(\$?[^\W\d][\w-]*)((?:\.{_NAME}|\[\d+\])*)")
_PART: Final = re.compile(rf"\.({_NAME})|\[(\d+)\]")
_BEGINNING: Final = re.compile(r"[ \t]*(?:\$[a-z]|[^\W\d])")
_BARE_PARTS = r"(?:\.[\w-]+|\[\d+\])+(?:\|[^|}]*)*"
_BARE: Final = re.compile(rf"\$(?:steps|vars){_BARE_PARTS}")
_ESCAPED_BARE: Final = re.compile(rf"\$\$+(?:steps|vars)(?:{_BARE_PARTS})?")

Kind = Literal["steps", "vars", "name"]


FILTER_TEXTS: Final[Mapping[str, Literal["none", "optional", "required"]]] = {
    **dict.fromkeys(FILTERS, "none"),
    "date": "optional",
    "default": "required",
    "join": "required",
}
"""Every filter, and whether a text follows its colon."""


class Reference(Struct, frozen=True, kw_only=True):
    """A reference as written in `source`.

    `head` is the id of the step, the captured name, or the name itself. `flaw` describes what is
    wrong with its head or filters, None if nothing is. In long text an unknown name stays as
    written.
    """

    source: str
    kind: Kind
    head: str
    parts: tuple[str, ...] = ()
    filters: tuple[FilterCall, ...] = ()
    flaw: str | None = None
    long_text: bool = False

    @property
    def name(self) -> str:
        """The head and path without filters, as in messages: `$steps.notes.0.path`, `item.text`."""
        prefix = "" if self.kind == "name" else f"${self.kind}."
        return prefix + ".".join((self.head, *self.parts))


class Malformed(Struct, frozen=True):
    """A `${` that begins no valid reference. In long text it stays as written."""

    source: str
    long_text: bool = False


Piece = str | Reference | Malformed


def pieces(text: str, long_text: bool) -> list[Piece]:
    """Split a string into literal text, references and malformed references.

    Escapes are resolved in the literal text.
    """
    if "$" not in text:
        return [text]
    if _ESCAPED_BARE.fullmatch(text):
        return [text[1:]]
    if _BARE.fullmatch(text) and (bare := parse_reference(text, text, long_text)):
        return [bare]
    return list(_merge_literals(_split(text, long_text)))


def parse_reference(body: str, source: str, long_text: bool = False) -> Reference | None:
    """Parse `body`, the text between `${` and `}`. Return None if it is not a reference."""
    path, *calls = body.split("|")
    match = _PATH.fullmatch(path.strip(" \t"))
    if match is None:
        return None
    head, parts = match[1], tuple(name or index for name, index in _PART.findall(match[2]))
    parsed = tuple(parse_call(call) for call in calls)
    flaw = next((why for why in map(filter_flaw, parsed) if why), None)
    if head.removeprefix("$") == "steps" or head == "$vars":
        kind: Kind = "vars" if head == "$vars" else "steps"
        if not parts:
            what = "a captured name" if kind == "vars" else "a step's id"
            flaw = f"{head} must be followed by a dot and {what}"
        name, parts = (parts[0], parts[1:]) if parts else ("", ())
    else:
        kind, name = "name", head
    return Reference(
        source=source,
        kind=kind,
        head=name,
        parts=parts,
        filters=parsed,
        flaw=flaw,
        long_text=long_text,
    )


def filter_flaw(call: FilterCall) -> str | None:
    """Describe what is wrong with a filter as written, or return None."""
    text_rule = FILTER_TEXTS.get(call.name)
    if text_rule is None:
        near = nearest(call.name, FILTER_TEXTS)
        hint = (
            f"did you mean '{near}'?" if near else f"use one of {', '.join(sorted(FILTER_TEXTS))}."
        )
        return f"unknown filter '{call.name}': {hint}"
    if text_rule == "required" and call.argument is None:
        return f"the filter '{call.name}' needs a text: '{call.name}:…'"
    if text_rule == "none" and call.argument is not None:
        return f"the filter '{call.name}' takes no text after a colon"
    return None


def _split(text: str, long_text: bool) -> Iterator[Piece]:
    start = malformed = 0
    while (opened := text.find("${", start)) >= 0:
        if opened > start and text[opened - 1] == "$":
            yield text[start : opened - 1] + "${"
            start = opened + 2
            continue
        yield text[start:opened]
        closed = (
            text.find("}", opened + 2, opened + 3 + MAX_REFERENCE)
            if _BEGINNING.match(text, opened + 2)
            else -1
        )
        source = text[opened : closed + 1]
        reference = (
            parse_reference(text[opened + 2 : closed], source, long_text) if closed >= 0 else None
        )
        if reference is not None:
            yield reference
            start = closed + 1
            continue
        malformed += 1
        if malformed <= MAX_MALFORMED:
            yield Malformed(source or text[opened : opened + 40], long_text)
        yield "${"
        start = opened + 2
    yield text[start:]


def _merge_literals(split_pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Merge adjacent literal texts and drop empty ones. A malformed piece stands for no text."""
    literal: list[str] = []
    for piece in split_pieces:
        if isinstance(piece, str):
            literal.append(piece)
            continue
        if isinstance(piece, Reference) and (text := "".join(literal)):
            yield text
        if isinstance(piece, Reference):
            literal.clear()
        yield piece
    if text := "".join(literal):
        yield text
