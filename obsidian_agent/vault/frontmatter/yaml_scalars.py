"""YAML scalars, and the blocks of properties that nearly every note has, recognised line by line: ten times faster than a parser.

Reading follows the YAML 1.2 core schema (https://yaml.org/spec/1.2.2/#103-core-schema), as Obsidian does: ``yes``, ``on``, ``12:30`` and
dates are text. Writing is safe under YAML 1.1 as well (https://yaml.org/type/), where those are not: a text that either version would
take for something else is quoted.

A simple block is ``key: value`` lines whose value is one plain or quoted text without escapes, a list of such in brackets, or a list of
such on the lines below; besides there are only blank lines and comments. Such a block means the same to YAML 1.1 and 1.2, and its
properties do not depend on each other. What is not clearly of this kind is left to libyaml (yaml_nodes.py).
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

_LONGEST_NUMBER = 300

_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_NOT_TEXT_START = frozenset("0123456789+-.~nNtTfF")
_INTEGER = expression(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = expression(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")

# What YAML 1.1 or 1.2 reads as something other than text when it stands there unquoted.
_IMPLICIT = expression(
    r"""(?:~|null|true|false|yes|no|on|off|y|n|<<|=
    |[-+]?\.(?:inf|nan)
    |[-+]?0b[01_]+|[-+]?0o?[0-7_]+|[-+]?0x[0-9a-f_]+
    |[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?
    |[-+]?(?:\.[0-9_.]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:e[-+]?[0-9]+)?
    |[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:t|[ ]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ ]*(?:z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?)?
    )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_DATE = expression(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)?", re.ASCII)

# Characters that must be escaped: not printable for YAML, or a line end for YAML 1.1 or for JavaScript.
_UNPRINTABLE = "\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff"
_BLANK = " \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_ESCAPED = expression(f'[{_UNPRINTABLE}"\\\\]')
_HAS_UNPRINTABLE = expression(f"[{_UNPRINTABLE}]")
_PLAIN_BLOCK = expression(
    rf"""[^\s\-?:,\[\]{{}}\#&*!|>'"%@`{_UNPRINTABLE}]   # an indicator at the start would mean something
    (?>(?:[^\s:\#{_UNPRINTABLE}]|:(?=\S)|(?<=\S)\#|[{_BLANK}](?!\#))*)(?<!\s)""",
    re.VERBOSE,
)
_FLOW_HAZARD = expression(r"[,\[\]{}:?#\"']")
_SHORT_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def invalid(
    message: str,
    hint: str | None = "Correct the properties by hand first; the note is left as it is.",
) -> VaultError:
    """The one error of properties that cannot be read or changed."""
    return VaultError(message, code="FRONTMATTER_INVALID", hint=hint)


def resolve(text: str) -> Scalar:
    """What an unquoted scalar means: null, a boolean, a number that JSON can hold, else the text itself."""
    if not text:
        return None
    if text[0] not in _NOT_TEXT_START:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _LONGEST_NUMBER:
        return text
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def is_date(text: str) -> bool:
    """Whether a text is a date or a date and time as Obsidian's date properties hold it, and exists in the calendar."""
    if not _DATE.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_plain(text: str, *, flow: bool = False) -> bool:
    """Whether a text may stand without quotes and be read as itself by YAML 1.1 and 1.2; `flow`: inside brackets."""
    if not _PLAIN_BLOCK.fullmatch(text) or _IMPLICIT.fullmatch(text):
        return False
    return not (flow and _FLOW_HAZARD.search(text))


def write_text(text: str, *, flow: bool = False, quote: Quote = "", dates: bool = False) -> str:
    """A text as a scalar on one line.

    `quote` is the style to use even where none is needed; `dates` lets a date stand plain, which YAML 1.1 reads as a date and
    Obsidian as its text.
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
    """Any scalar on one line; null is written out. Raises ValueError for a number that JSON does not know."""
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


LONGEST_BLOCK = 1 << 20
"""Characters; a longer block is refused by everything that reads one."""

_LONGEST_KEY = 200
# No simple line holds one. Asked apart: each class of characters that named them would take as long to compile as all the rest.
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
_BLANK_LINE = expression(rf"[ ]*+(?:{_COMMENT})?{_END}")
_ENTRY = expression(
    rf"""(?P<key>\w(?>(?:[\w./]|[ \-]++(?=[\w./]))*))[ ]*+:
    (?:[ ]++(?:(?P<plain>{_PLAIN})|(?P<quoted>{_DOUBLE}|{_SINGLE})|(?P<flow>\[[ ]*+(?:{_FLOW_ITEM}(?>(?:[ ]*+,[ ]*+{_FLOW_ITEM})*))?[ ]*+\]))
    )?{_REST}""",
    re.VERBOSE,
)
_FLOW_ITEMS = expression(
    rf"(?P<quoted>{_DOUBLE}|{_SINGLE})|(?P<plain>{_FIRST}(?>(?:{_INNER}|[ ]++(?={_INNER}))*))"
)
_LINE_ITEM = expression(
    rf"(?P<pad>[ ]*+)-[ ]++(?:(?P<quoted>{_DOUBLE}|{_SINGLE})|(?P<plain>{_PLAIN})){_REST}"
)


def read(block: str) -> dict[str, Any] | None:
    """The properties of a simple block, of equal keys the last one; None when the block is not simple."""
    if len(block) > LONGEST_BLOCK:
        return None
    found: dict[str, Any] = {}
    items: list[Any] | None = None
    above: str | None = None
    pad: str | None = None
    lines = block.split("\n")
    if lines.pop():
        return None
    for text in lines:
        line = _known.get(text) or _judged(text)
        if line.kind == "entry":
            value = line.value
            found[line.name] = value.copy() if type(value) is list else value
            above = None
        elif line.kind == "item":
            # A list stands directly below its key, each item as far to the right as the first.
            if above is None or (items is not None and line.name != pad):
                return None
            if items is None:
                items, pad = [], line.name
                found[above] = items
            items.append(line.value)
            continue
        elif line.kind == "key":
            above = line.name
            found[above] = None
        elif line.kind == "blank":
            above = None
        else:
            return None
        items = None
    return found


class _Line(NamedTuple):
    """A line on its own: an `entry` (key and value), a `key` whose value is below it, an `item` of a list, `blank` (or a comment), or
    `other`. `name` is the key, or the blanks before an item."""

    kind: str
    name: str = ""
    value: Any = None


_OTHER: Final = _Line("other")
_KEPT = 20_000
_LONG = 200

_known: dict[str, _Line] = {}
"""What lines are, for those that were seen: most lines of properties are in very many notes."""


def _judged(text: str) -> _Line:
    line = _OTHER if _CONTROL.search(text.removesuffix("\r")) else _judge(f"{text}\n")
    if len(text) < _LONG:
        if len(_known) >= _KEPT:
            _known.clear()
        _known[text] = line
    return line


def _judge(text: str) -> _Line:
    if _BLANK_LINE.fullmatch(text):
        return _Line("blank")
    if entry := _ENTRY.fullmatch(text):
        key = entry["key"]
        if len(key) > _LONGEST_KEY:
            return _OTHER
        if entry["flow"] is not None:
            return _Line(
                "entry", key, [_value(item) for item in _FLOW_ITEMS.finditer(entry["flow"])]
            )
        return _Line(
            "key" if entry["plain"] is entry["quoted"] is None else "entry", key, _value(entry)
        )
    if item := _LINE_ITEM.fullmatch(text):
        return _Line("item", item["pad"], _value(item))
    return _OTHER


def _value(found: re.Match[str]) -> Any:
    quoted = found["quoted"]
    return resolve(found["plain"] or "") if quoted is None else quoted[1:-1]
