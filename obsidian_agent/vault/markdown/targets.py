"""The targets of links and the tags in running text, and nothing else: what an index of a whole vault needs, in a few microseconds a note.

One expression finds all that can be a link or a tag and passes over what hides one, as long as that begins and ends plainly. Whatever is not
plain is found too, as a single character; then the note is left to `scan`. So this module never decides anything difficult, and a law holds
it to what `scan` says.

Why there are three readers of links, measured on 4,000 generated notes of 2 to 3 KB: this one and, for the tenth of the notes that it leaves
over, `scan` take 34 microseconds a note together; `scan` alone, which tells every place and all else that a note says, takes 90; markdown-it,
which `references.py` asks about the few notes with definitions or HTML, takes 620, and knows neither wikilinks nor places in a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from obsidian_agent.expression import expression
from obsidian_agent.vault.markdown.blocks import NeedsBlocks, flat_tables
from obsidian_agent.vault.markdown.inline import InlineScanner, decoded, is_external, tag_name
from obsidian_agent.vault.markdown.model import Link

_IN_TAG: Final = r"""[^\s\#,.;:!?(){}\[\]"'`<>|\\*=+&%$@^~]"""
_NOT_INDENTED: Final = r"(?!\n(?:\ {4}|\ {0,3}\t)[ \t]*+[^ \t\r\n])"


def _fenced(marks: str) -> str:
    """What follows the opening line of a fence: up to the first line that begins with its marks, if that holds nothing else."""
    return rf"(?>(?:\n(?!\ {{0,3}}{marks})[^\n]*+)*)\n\ {{0,3}}{marks}{marks[0]}*+[ \t]*+\r?(?=\n|\Z){_NOT_INDENTED}"


_WIKILINK: Final = r"\[\[(?![ \t]*\]\])(?>(?:[^\[\]\n]++|\](?!\])|\[(?!\[))+)\]\]"

# As in inline.py every alternative begins with a plain character; what must precede is looked up behind it. A match of one character
# is something that is not plain. Brackets that are certainly no link are not found at all: nothing is hidden in them.
_EVENT: Final = expression(
    rf"""\\[!-/:-@\[-`{{-~]
    |{_WIKILINK}
    |\[[^\[\]\\`\n\#|]*+\]\([^\s()<>\\|]++\)
    |\[[^\[\]\\`\n\#|$<~%]*+\]\(<[^<>\n\\|]++>\)
    |\[+(?=\[\[\[)
    |\[(?![^\[\]\\`\n\#|$<~%]*+\](?!\())
    |\#(?<![^ \t\n\r\v\f>(]\#){_IN_TAG}++
    |\#(?<![^\\][0-9A-Za-z_/.,:;=?&"'@!+-]\#)(?={_IN_TAG})
    |`[^`\n|]++`(?!`)
    |`(?<![^\n]`)``(?!`)[^`\n]*+{_fenced("```")}
    |`(?<![^\n]`)```(?!`)[^`\n]*+{_fenced("````")}
    |`
    |\$(?<![^\n]\$)\$[^$\n]*+\n[^$]*+(?>(?:\$(?!\$)[^$]*+)*)\$\$[^\n]*+(?=\n|\Z){_NOT_INDENTED}
    |\$(?![ \t\r\n]|\Z)
    |<[A-Za-z][A-Za-z0-9+.\-]{{1,31}}:[^\s<>|]*+>
    |<(?<=[^\s>]<)/?[A-Za-z][A-Za-z0-9-]*+\ ?/?>
    |<(?=[A-Za-z/!?])
    |~(?<![^\n]~)~~(?!~)[^\n]*+{_fenced("~~~")}
    |~(?<![^\s>]~)(?=~~)
    |%(?<![^\n]%)%[^%\#\n]*+\n[^%\#]*+%%[^\n\#]*+(?=\n|\Z){_NOT_INDENTED}
    |%(?<![^\s>]%)(?=%)""",
    re.VERBOSE | re.ASCII,
)
_TABLE: Final = expression(r"\n[ \t>]*+(?:\|[ \t]*+:?-|:?-++:?[ \t]*+\|)")
_PIPED: Final = expression(rb"\[\[[^\[\]\n]*?(?<!\\)\||```|~~~|\$\$")


def targets_and_tags(text: str, start: int) -> tuple[list[str], list[str]] | None:
    """The targets of the links to files, as written, and the names of the tags, in the order of a note's text from `start` on.

    None when that takes more than a look. There must be no byte order mark at `start`.
    """
    if ("\t" in text or "    " in text) and _tables(text, start) is None:
        return None
    targets: list[str] = []
    tags: list[str] = []
    piped = False
    harmless = ""
    known = _known
    for event in _EVENT.findall(text, start):
        kind, name = known.get(event) or _judged(event)
        if kind == _IS_LINK:
            targets.append(name)
        elif kind == _IS_TAG:
            tags.append(name)
        elif kind == _IS_PIPED_LINK:
            targets.append(name)
            piped = True
        elif kind == _IS_PIPED:
            piped = True
        elif kind == _IS_OPEN and event not in harmless:
            if not _is_harmless(event, text, start):
                return None
            harmless += event
    return None if piped and _may_cross_cells(text, start) else (targets, tags)


_IS_LINK, _IS_TAG, _IS_PIPED_LINK, _IS_PIPED, _IS_OPEN, _IS_NOTHING = range(6)
_KEPT: Final = 50_000

_known: dict[str, tuple[int, str]] = {}
"""What events are, for those that were seen: links and tags are written in the same way in very many places."""


def _judged(event: str) -> tuple[int, str]:
    """What an event is, and the target or tag that it names."""
    kind, name, first = _IS_NOTHING, "", event[0]
    if len(event) == 1 or event[1] == event[-1] == "[":
        kind = _IS_OPEN
    elif first == "[":
        name = _wiki_target(event) if event[-1] == "]" else _destination(event)
        kind = _IS_LINK if name else _IS_NOTHING
        if "|" in event and event.count("|") != event.count("\\|"):
            kind = _IS_PIPED_LINK if name else _IS_PIPED
    elif first == "#":
        name = tag_name(event[1:])
        kind = _IS_TAG if name else _IS_NOTHING
    elif first in "`~$" and "|" in event:
        kind = _IS_PIPED
    if len(event) < _LONG:
        if len(_known) >= _KEPT:
            _known.clear()
        _known[event] = kind, name
    return kind, name


_LONG: Final = 200
"""Events of this many characters will not be seen again."""


def links_where(data: bytes, text: str, start: int, wanted: Callable[[str], bool]) -> list[Link] | None:
    """The links in a note's text from `start` on whose targets are wanted, in order; None as `targets_and_tags`. `text` is `data` decoded."""
    if ("\t" in text or "    " in text) and _tables(text, start) is None:
        return None
    places: list[tuple[int, int]] = []
    piped = False
    behind = start
    harmless = ""
    for event in _EVENT.finditer(text, start):
        piece = event[0]
        kind, name = _known.get(piece) or _judged(piece)
        if kind == _IS_OPEN and piece not in harmless:
            if not _is_harmless(piece, text, start):
                return None
            harmless += piece
        piped = piped or kind in (_IS_PIPED_LINK, _IS_PIPED)
        if kind in (_IS_LINK, _IS_PIPED_LINK) and wanted(name):
            at, end = event.span()
            places.append((at - (at > behind and text[at - 1] == "!"), end))
        behind = event.end()
    if piped and _may_cross_cells(text, start):
        return None
    inline = InlineScanner(data)
    for at, end in places:
        first = at if len(data) == len(text) else len(text[:at].encode())
        inline.scan(first, first + len(text[at:end].encode()))
    return inline.links


def _wiki_target(event: str) -> str:
    target = event[2:-2]
    if (pipe := target.find("|")) > 0:
        target = target[:pipe].removesuffix("\\")
    if "#" in target:
        target = target[: target.index("#")]
    return target.strip()


def _is_harmless(event: str, text: str, start: int) -> bool:
    """Whether a character that can open something has nothing in the note that could close it. That is so for all of its kind."""
    if event[0] == "[":
        return text.find("](", start) < 0
    return event == "$" and text.count("$", start) == 1


def _destination(event: str) -> str:
    raw = event[event.index("](") + 2 : -1].encode()
    if raw[0] == 60:
        raw = raw[1:-1]
    return "" if is_external(raw) else decoded(raw).partition("#")[0].strip()


def _tables(text: str, start: int) -> list[tuple[int, int]] | None:
    data = text.encode()
    try:
        return flat_tables(data, start if len(data) == len(text) else len(text[:start].encode()))
    except NeedsBlocks:
        return None


def _may_cross_cells(text: str, start: int) -> bool:
    """Whether a link or a fence with a pipe in it stands where that pipe may be the border of a table's cell."""
    if not _TABLE.search(text, start):
        return False
    tables = _tables(text, start)
    if tables is None:
        return True
    data = text.encode()
    return any(_PIPED.search(data, first, last) for first, last in tables)
