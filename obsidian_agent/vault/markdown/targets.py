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

# As in inline.py every alternative begins with a plain character, so that re passes over all others at once (one that begins with a repeated
# character costs five times as much for the whole expression); what must precede is looked up behind it. A match of one character
# is something that is not plain. Brackets that are certainly no link are not found at all: nothing is hidden in them.
_EVENT: Final = expression(
    rf"""\\[!-/:-@\[-`{{-~]
    |{_WIKILINK}
    |\[[^\[\]\\`\n\#|]*+\]\([^\s()<>\\|]++\)
    |\[[^\[\]\\`\n\#|$<~%]*+\]\(<[^<>\n\\|]++>\)
    |\[\[*(?=\[\[\[)
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
    found = _found(text, start)
    return None if found is None else found[:2]


def links_where(
    data: bytes, text: str, start: int, wanted: Callable[[str], bool]
) -> list[Link] | None:
    """The links in a note's text from `start` on whose targets are wanted, in order; None as `targets_and_tags`. `text` is `data` decoded."""
    found = _found(text, start)
    if found is None:
        return None
    inline = InlineScanner(data)
    for at, end in _places(
        text,
        start,
        [written for target, written in zip(found[0], found[2], strict=True) if wanted(target)],
    ):
        first = at if len(data) == len(text) else len(text[:at].encode())
        inline.scan(first, first + len(text[at:end].encode()))
    return inline.links


def _places(text: str, start: int, links: list[str]) -> list[tuple[int, int]]:
    """Where links stand, each with the mark of an embed before it; all that are written in the same way are asked for."""
    places: list[tuple[int, int]] = []
    for link in dict.fromkeys(links):
        # As often as it is a link is it in the text, so all of them are links: that is quicker than a place for everything there is.
        at, count = text.find(link, start), 0
        while at >= 0:
            embed = at > start and text[at - 1] == "!"
            places.append((at - embed, at + len(link)))
            at, count = text.find(link, at + len(link)), count + 1
        if "<" in link or count != links.count(link):
            break
    else:
        if not any(text[at] == "!" and text[at - 1 : at] == "\\" for at, _ in places):
            return sorted(places)
    places, behind = [], start
    for event in _EVENT.finditer(text, start):
        at, end = event.span()
        if event[0] in links:
            places.append((at - (at > behind and text[at - 1] == "!"), end))
        behind = end
    return places


def _found(text: str, start: int) -> tuple[list[str], list[str], list[str]] | None:
    """Targets, tags, and how the link of each target is written."""
    if ("\t" in text or "    " in text) and _tables(text, start) is None:
        return None
    targets: list[str] = []
    tags: list[str] = []
    links: list[str] = []
    piped = False
    harmless = ""
    known = _known
    for event in _EVENT.findall(text, start):
        kind, name = known.get(event) or _judged(event)
        if kind in (_IS_LINK, _IS_PIPED_LINK):
            targets.append(name)
            links.append(event)
            piped = piped or kind == _IS_PIPED_LINK
        elif kind == _IS_TAG:
            tags.append(name)
        elif kind == _IS_PIPED:
            piped = True
        elif kind == _IS_OPEN and event not in harmless:
            if not _is_harmless(event, text, start):
                return None
            harmless += event
    return None if piped and _may_cross_cells(text, start) else (targets, tags, links)


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
