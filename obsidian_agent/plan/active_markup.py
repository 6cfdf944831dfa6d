"""Addresses and code in HTML, CSS and single values, as a browser would take them.

A tokenizer for whole pages has one state: a quote or a comment that stays open hides all that follows. Obsidian renders a note block by
block, so here a tag is read wherever one can begin, whatever stands before it. Attributes follow the tokenization of the HTML standard
(https://html.spec.whatwg.org/multipage/parsing.html, 13.2.5.32 to 13.2.5.39), addresses the URL standard (https://url.spec.whatwg.org):
tabs and line ends inside are dropped, `\\` counts as `/`, and `https:host` needs no slashes at all.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_INNER = re.compile(
    r"(?<![\w+.-])(?:(?:https?|wss?|ftps?):[\\/]*|(?<![^\s\"'`(,;=\[|])[\\/]{2}(?=[^\s\"'`<>()\\/]*\.\w))[^\s\"'`<>()\\/|,;]+[^\s\"'`<>|]*",
    re.I,
)
_WHOLE = re.compile(r"(?:(?:https?|wss?|ftps?):[\\/]*|[\\/]{2,})[^\s\\/].*", re.I | re.S)
_FILE = re.compile(r"file:(?:[\\/]{2}(?![\\/]|localhost[\\/])|[\\/]{4,})[^\\/]", re.I)
_HOST = re.compile(r"^(?:[a-z]+:)?[\\/]*([^\\/?#\s\"'<>()]*)", re.I)
_DROPPED = re.compile(r"[\t\n\r]")
_BLANK = "".join(map(chr, range(0x21)))

_SCRIPT = re.compile(r"(?:java|vb|live)script:\s*\S|data:\s*(?:text/(?:html|xml)|application/(?:xhtml|xml))", re.I)
_SVG_DATA = re.compile(r"data:\s*image/svg", re.I)
_COMMAND = re.compile(r"obsidian:[\\/]*(?!(?:open|search|daily|new|choose-vault|vault|show-plugin)\b)[\w-]", re.I)
"""Links that plugins take as commands (Advanced URI, Shell commands, …); the actions of Obsidian itself run nothing."""

_TAG = re.compile(r"<([a-z][^\s/>]*)", re.I)
_ATTRIBUTE = re.compile(r"[\s/]*([^\s/>][^\s/>=]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]*)))?")
_INERT = frozenset({"title", "alt", "class", "id", "cite", "xmlns", "placeholder", "lang", "rel", "name", "label", "summary", "d"})
"""Attributes whose addresses nobody loads."""
_INERT_STARTS = ("aria-", "data-", "xmlns:")
_FRAMES = frozenset({"iframe", "frame", "object", "embed", "webview", "a", "use", "portal"})
"""Elements that open what they name as a document of its own."""

_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.S)
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(\n|\r\n?|\f)|(.))", re.I)


class Tangled(Exception):
    """The text is made so that reading it closely would take too long."""


@dataclass(slots=True)
class Found:
    """What was found so far: addresses that would be loaded, and code with the kind of it in front."""

    remote: set[str] = field(default_factory=set)
    code: set[tuple[str, str]] = field(default_factory=set)

    def load(self, value: str) -> None:
        """A value that names one thing to be loaded."""
        self.remote |= set(whole_address(value))

    def search(self, text: str) -> None:
        """Text in which an address may stand anywhere."""
        self.remote |= set(addresses(text))

    def follow(self, value: str, tag: str = "a") -> None:
        """A value that something is done with when it is opened or clicked."""
        plain = _DROPPED.sub("", value).strip(_BLANK)
        if _SCRIPT.match(plain) or (tag in _FRAMES and _SVG_DATA.match(plain)):
            self.code.add((plain.partition(":")[0].lower() + ":", plain))
        elif _COMMAND.match(plain):
            self.code.add(("obsidian: link", plain))


def whole_address(value: str) -> Iterator[str]:
    """The value itself when it leads out of this computer."""
    plain = _DROPPED.sub("", value).strip(_BLANK)
    if _WHOLE.match(plain) or _FILE.match(plain):
        yield plain


def addresses(text: str) -> Iterator[str]:
    """Every address that stands in a text, also one with line ends and tabs in it."""
    for reading in {text, _DROPPED.sub("", text)}:
        for found in _INNER.finditer(reading):
            yield found[0]


def host_of(address: str) -> str:
    """The computer that an address leads to, in lower case."""
    found = _HOST.match(address.removeprefix("file:"))
    return found[1].rpartition("@")[2].lower() if found else ""


def read_markup(text: str, found: Found) -> None:
    """Every tag in a text."""
    budget = 2 * len(text) + 50_000
    for tag in _TAG.finditer(text):
        name, place = tag[1].lower(), tag.end()
        while (attribute := _ATTRIBUTE.match(text, place)) is not None:
            budget -= attribute.end() - place
            if budget < 0:
                raise Tangled
            place = attribute.end()
            value = next((group for group in attribute.groups()[1:] if group is not None), "")
            _read_attribute(name, attribute[1].lower(), html.unescape(value), found)
        if name == "script":
            found.code.add(("<script>", _until(text, place, "</script")))
        elif name == "style":
            read_css(_until(text, place, "</style"), found)


def read_css(text: str, found: Found) -> None:
    """Style rules: any address in them is loaded."""
    for reading in (text, _CSS_COMMENT.sub("", text)):
        found.search(_CSS_ESCAPE.sub(_unescaped, reading))


def _read_attribute(tag: str, name: str, value: str, found: Found) -> None:
    if name.startswith("on") and name[2:].isalpha():
        found.code.add((f"{name[:40]}=", value))
    elif name == "style":
        read_css(value, found)
    elif name == "srcdoc":
        read_markup(value, found)
    elif name not in _INERT and not name.startswith(_INERT_STARTS) and value:
        found.follow(value, tag)
        if not (tag in ("a", "area") and name.endswith("href")):
            found.load(value)
            found.search(value)


def _until(text: str, place: int, end: str) -> str:
    closing = re.compile(re.escape(end), re.I).search(text, place)
    return text[place : closing.start() if closing else len(text)]


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        code = int(found[1], 16)
        return chr(code) if 0 < code < 0x110000 else "\ufffd"
    return "" if found[2] else found[3]
