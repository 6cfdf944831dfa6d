"""YAML scalars, and simple blocks of properties, which are read line by line.

Reading follows the YAML 1.2 core schema (https://yaml.org/spec/1.2.2/#103-core-schema), as Obsidian
does: ``yes``, ``on``, ``12:30`` and dates are text. Writing is also safe under YAML 1.1
(https://yaml.org/type/), where they are not: text that either version would read as another type is
quoted.

A simple block consists of blank lines, comments and ``key: value`` lines. A value is a plain or
quoted text without escapes, or a list of these, in brackets or on the lines below. Such a block has
the same meaning in YAML 1.1 and 1.2, and reading it is ten times faster than parsing. Everything
else is left to libyaml (yaml_nodes.py).
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from obsidian_agent.errors import VaultError
from obsidian_agent.expression import expression

Scalar = str | int | float | bool | None
Quote = Literal["'", '"', ""]

MAX_BLOCK_LENGTH = 1 << 20
"""Characters of a block. A longer one is refused by everything that reads a block."""

_MAX_NUMBER_LENGTH = 300
_MAX_KEY_LENGTH = 200

_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_NOT_TEXT_START = frozenset("0123456789+-.~nNtTfF")
_INTEGER = expression(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = expression(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")

# Unquoted text that YAML 1.1 or 1.2 reads as another type.
_IMPLICIT = expression(
    r"""(?:~|null|true|false|yes|no|on|off|y|n|<<|=
    |[-+]?\.(?:inf|nan)
    |[-+]?0b[01_]+|[-+]?0o?[0-7_]+|[-+]?0x[0-9a-f_]+
    |[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?
    |[-+]?(?:\.[0-9_.]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:e[-+]?[0-9]+)?
    |[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:t|[ ]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?
     (?:[ ]*(?:z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?)?
    )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_DATE = expression(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)?", re.ASCII)

# Characters that must be escaped: unprintable in YAML, or a line end in YAML 1.1 or JavaScript.
_UNPRINTABLE = "\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff"
_BLANK = " \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_ESCAPED = expression(f'[{_UNPRINTABLE}"\\\\]')
_HAS_UNPRINTABLE = expression(f"[{_UNPRINTABLE}]")
_PLAIN_BLOCK = expression(
    rf"""[^\s\-?:,\[\]{{}}\#&*!|>'"%@`{_UNPRINTABLE}]   # no indicator at the start
    (?>(?:[^\s:\#{_UNPRINTABLE}]|:(?=\S)|(?<=\S)\#|[{_BLANK}](?!\#))*)(?<!\s)""",
    re.VERBOSE,
)
_FLOW_HAZARD = expression(r"[,\[\]{}:?#\"']")
_SHORT_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


# No simple line contains one of these. A separate expression, because excluding them from each
# character class below would take as long to compile as everything else.
_CONTROL = expression("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_END = r"\r?\n"
_COMMENT = r"\#[^\n]*+"
_REST = rf"(?:[ ]++(?:{_COMMENT})?)?{_END}"
_FIRST = r"[^\s\-?:,\[\]{}\#&*!|>'\"%@`]"
_PLAIN = rf"{_FIRST}(?>(?:[^\s:\#]|:(?=\S)|(?<=\S)\#|[ ]++(?=[^\s\#:]|:\S))*)"
_DOUBLE = r'"[^"\\\t\n]*+"'
_SINGLE = r"'[^'\t\n]*+'"
_INNER = r"[^\s,\[\]{}:\#?\"']"
_FLOW_ITEM = rf"(?:{_DOUBLE}|{_SINGLE}|{_FIRST}(?>(?:{_INNER}|[ ]++(?={_INNER}))*))"
_FLOW = rf"\[[ ]*+(?:{_FLOW_ITEM}(?>(?:[ ]*+,[ ]*+{_FLOW_ITEM})*))?[ ]*+\]"
_BLANK_LINE = expression(rf"[ ]*+(?:{_COMMENT})?{_END}")
_ENTRY = expression(
    rf"""(?P<key>\w(?>(?:[\w./]|[ \-]++(?=[\w./]))*))[ ]*+:
    (?:[ ]++(?:(?P<plain>{_PLAIN})|(?P<quoted>{_DOUBLE}|{_SINGLE})|(?P<flow>{_FLOW})))?{_REST}""",
    re.VERBOSE,
)
_FLOW_ITEMS = expression(
    rf"(?P<quoted>{_DOUBLE}|{_SINGLE})|(?P<plain>{_FIRST}(?>(?:{_INNER}|[ ]++(?={_INNER}))*))"
)
_LINE_ITEM = expression(
    rf"(?P<pad>[ ]*+)-[ ]++(?:(?P<quoted>{_DOUBLE}|{_SINGLE})|(?P<plain>{_PLAIN})){_REST}"
)

_MAX_CACHED = 20_000
_MAX_CACHED_LENGTH = 200
"""Lines in the cache of classified lines, and characters of each."""


def invalid(
    message: str,
    hint: str | None = "The note is unchanged. Correct its properties by hand first.",
) -> VaultError:
    """Return the error for properties that cannot be read or changed."""
    return VaultError(message, code="FRONTMATTER_INVALID", hint=hint)


def resolve(text: str) -> Scalar:
    """Return the value of an unquoted scalar: null, a boolean, a finite number, else the text."""
    if not text:
        return None
    if text[0] not in _NOT_TEXT_START:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _MAX_NUMBER_LENGTH:
        return text
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def is_date(text: str) -> bool:
    """Return True for an existing date, or date and time, in the form of Obsidian's properties."""
    if not _DATE.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_plain(text: str, *, flow: bool = False) -> bool:
    """Return True if unquoted text is read as itself by YAML 1.1 and 1.2.

    `flow` means inside of brackets.
    """
    if not _PLAIN_BLOCK.fullmatch(text) or _IMPLICIT.fullmatch(text):
        return False
    return not (flow and _FLOW_HAZARD.search(text))


def write_text(text: str, *, flow: bool = False, quote: Quote = "", dates: bool = False) -> str:
    """Return text as a scalar on one line.

    `quote` is the style to use even where no quotes are needed. `dates` leaves dates unquoted,
    which YAML 1.1 reads as dates and Obsidian as text.
    """
    if not quote and (is_plain(text, flow=flow) or (dates and is_date(text))):
        return text
    printable = not _HAS_UNPRINTABLE.search(text)
    if printable and (
        quote == "'" or (quote == "" and ('"' in text or "\\" in text) and "'" not in text)
    ):
        return "'" + text.replace("'", "''") + "'"
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def write_scalar(
    value: Scalar, *, flow: bool = False, quote: Quote = "", dates: bool = False
) -> str:
    """Return any scalar on one line. Raises ValueError for a number that is not finite."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _write_float(value)
        case str():
            return write_text(value, flow=flow, quote=quote, dates=dates)


def _write_float(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a number that a property can hold")
    text = repr(value)
    mantissa, exponent, power = text.partition("e")
    return text if not exponent or "." in mantissa else f"{mantissa}.0e{power}"


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT_ESCAPES.get(character) or (
        f"\\x{ord(character):02x}" if ord(character) < 0x100 else f"\\u{ord(character):04x}"
    )


def read(block: str) -> dict[str, Any] | None:
    """Return the properties of a simple block, or None. Of duplicate keys the last one counts."""
    if len(block) > MAX_BLOCK_LENGTH:
        return None
    properties: dict[str, Any] = {}
    items: list[Any] | None = None
    key: str | None = None
    pad: str | None = None
    lines = block.split("\n")
    if lines.pop():
        return None
    for text in lines:
        line = _classified.get(text) or _classify(text)
        if line.kind == "entry":
            value = line.value
            properties[line.name] = value.copy() if type(value) is list else value
            key = None
        elif line.kind == "item":
            # A list starts directly below its key, and all items have the same indentation.
            if key is None or (items is not None and line.name != pad):
                return None
            if items is None:
                items, pad = [], line.name
                properties[key] = items
            items.append(line.value)
            continue
        elif line.kind == "key":
            key = line.name
            properties[key] = None
        elif line.kind == "blank":
            key = None
        else:
            return None
        items = None
    return properties


class _Line(NamedTuple):
    """A classified line of a block."""

    kind: Literal["entry", "key", "item", "blank", "other"]
    """A `key` has its value on the lines below. Comments are `blank`."""
    name: str = ""
    """The key, or the blanks before an item."""
    value: Any = None


_OTHER: Final = _Line("other")

_classified: dict[str, _Line] = {}
"""A cache: most lines of properties occur in very many notes."""


def _classify(text: str) -> _Line:
    line = _OTHER if _CONTROL.search(text.removesuffix("\r")) else _match_line(f"{text}\n")
    if len(text) < _MAX_CACHED_LENGTH:
        if len(_classified) >= _MAX_CACHED:
            _classified.clear()
        _classified[text] = line
    return line


def _match_line(text: str) -> _Line:
    if _BLANK_LINE.fullmatch(text):
        return _Line("blank")
    if entry := _ENTRY.fullmatch(text):
        key = entry["key"]
        if len(key) > _MAX_KEY_LENGTH:
            return _OTHER
        if entry["flow"] is not None:
            items = [_value(item) for item in _FLOW_ITEMS.finditer(entry["flow"])]
            return _Line("entry", key, items)
        if entry["plain"] is entry["quoted"] is None:
            return _Line("key", key, _value(entry))
        return _Line("entry", key, _value(entry))
    if item := _LINE_ITEM.fullmatch(text):
        return _Line("item", item["pad"], _value(item))
    return _OTHER


def _value(match: re.Match[str]) -> Any:
    quoted = match["quoted"]
    return resolve(match["plain"] or "") if quoted is None else quoted[1:-1]
