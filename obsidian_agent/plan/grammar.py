"""How references are written: `${head.part.0|filter:text}` inside any string, `$steps.…` or `$vars.…` as a whole string.

The filters are a closed list; what they do stands in tools/core/filters.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import nearest
from obsidian_agent.tools.core.filters import FILTERS, FilterCall, parse_call

MAX_REFERENCE = 1000
"""Characters between `${` and `}`; more is no reference."""

MAX_MALFORMED = 20
"""How many of the `${` in one text that begin no reference are told."""

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


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference. `head` is the step's id, the captured name, or the name itself; `source` is how it is written.

    `flaw` says what is wrong with its filters or its head, None when nothing is. In long text a name that nobody knows stays as written.
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
        """Head and path without filters, as messages write it: `$steps.notes.0.path`, `item.text`."""
        prefix = "" if self.kind == "name" else f"${self.kind}."
        return prefix + ".".join((self.head, *self.parts))


@dataclass(frozen=True, slots=True)
class Malformed:
    """A `${` that begins no reference. In long text it stays as written."""

    source: str
    long_text: bool = False


Piece = str | Reference | Malformed


def pieces(text: str, long_text: bool) -> list[Piece]:
    """A string cut into literal text, references and what only looks like one; escapes are undone in the literal text."""
    if "$" not in text:
        return [text]
    if _ESCAPED_BARE.fullmatch(text):
        return [text[1:]]
    if _BARE.fullmatch(text) and (bare := parse_reference(text, text, long_text)):
        return [bare]
    return list(_joined(_cut(text, long_text)))


def parse_reference(body: str, source: str, long_text: bool = False) -> Reference | None:
    """The reference that `body` (without `${` and `}`) writes, or None if it is none."""
    path, *calls = body.split("|")
    found = _PATH.fullmatch(path.strip(" \t"))
    if found is None:
        return None
    head, parts = found[1], tuple(name or index for name, index in _PART.findall(found[2]))
    parsed = tuple(parse_call(call) for call in calls)
    flaw = next((why for why in map(filter_flaw, parsed) if why), None)
    if head.removeprefix("$") == "steps" or head == "$vars":
        kind: Kind = "vars" if head == "$vars" else "steps"
        if not parts:
            what = "a captured name" if kind == "vars" else "a step's id"
            return Reference(
                source,
                kind,
                "",
                (),
                parsed,
                f"{head} must be followed by a dot and {what}",
                long_text,
            )
        return Reference(source, kind, parts[0], parts[1:], parsed, flaw, long_text)
    return Reference(source, "name", head, parts, parsed, flaw, long_text)


def filter_flaw(call: FilterCall) -> str | None:
    """What is wrong with a filter as written, or None."""
    wants = FILTER_TEXTS.get(call.name)
    if wants is None:
        near = nearest(call.name, FILTER_TEXTS)
        hint = (
            f"did you mean '{near}'?" if near else f"there are {', '.join(sorted(FILTER_TEXTS))}."
        )
        return f"unknown filter '{call.name}': {hint}"
    if wants == "required" and call.argument is None:
        return f"the filter '{call.name}' needs a text: '{call.name}:…'"
    if wants == "none" and call.argument is not None:
        return f"the filter '{call.name}' takes no text after a colon"
    return None


def _cut(text: str, long_text: bool) -> Iterator[Piece]:
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


def _joined(cut: Iterator[Piece]) -> Iterator[Piece]:
    """Neighbouring literal texts as one, empty ones left out; a malformed piece stands for no text itself."""
    literal: list[str] = []
    for piece in cut:
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
