"""The targets of links and the names of tags in a note, and nothing else, for an index of a vault.

One regular expression matches everything that can be a link or a tag. It also matches code, math
and comments, in which links and tags do not count, if it is obvious where they begin and end. Where
that is not obvious, it matches a single character, and the note is read by the scanner of `note.py`
instead. So this module decides nothing difficult, and a law tests that both agree.

There are three readers of links. Measured on 4,000 generated notes of 2 to 3 KB, this one takes 34
microseconds a note, including the scanner for the tenth of the notes that it cannot read. The
scanner alone, which also reports positions and all other elements, takes 90. markdown-it, which
`references.py` uses for the few notes with definitions or HTML, takes 620, and knows neither
wikilinks nor columns.
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
_WIKILINK: Final = r"\[\[(?![ \t]*\]\])(?>(?:[^\[\]\n]++|\](?!\])|\[(?!\[))+)\]\]"
_TABLE: Final = expression(r"\n[ \t>]*+(?:\|[ \t]*+:?-|:?-++:?[ \t]*+\|)")
_PIPED: Final = expression(rb"\[\[[^\[\]\n]*?(?<!\\)\||```|~~~|\$\$")
_IS_LINK, _IS_TAG, _IS_PIPED_LINK, _IS_PIPED, _IS_OPEN, _IS_NOTHING = range(6)
"""The kinds of events.

PIPED is other text with a `|`, which in a table ends the cell. OPEN is a single character that may
begin a construct; NOTHING is text that is skipped, such as code.
"""
_ANCHOR: Final = expression(r"\]:[ \t]*\#")
_MAX_CACHED: Final = 50_000
_MAX_CACHED_LENGTH: Final = 200
"""Events with at least this many characters are not cached: they rarely occur twice."""

_known: dict[str, tuple[int, str]] = {}
"""Kind and name of the events seen so far: most links and tags occur in very many notes."""


def _fenced(marks: str) -> str:
    """Return the pattern of a fenced block after its opening line.

    The block ends with the first line that begins with `marks`, which must hold nothing else.
    """
    return (
        rf"(?>(?:\n(?!\ {{0,3}}{marks})[^\n]*+)*)"
        rf"\n\ {{0,3}}{marks}{marks[0]}*+[ \t]*+\r?(?=\n|\Z){_NOT_INDENTED}"
    )


# As in inline.py, every alternative begins with one literal character, so that `re` skips others
# quickly; an alternative that begins with a repeated character makes the whole expression five
# times as slow. Therefore the text before an event is checked by a lookbehind. A match of one
# character means that the scanner may have to decide. Brackets that cannot be a link are not
# matched, because links and tags inside them count.
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


def targets_and_tags(text: str, start: int) -> tuple[list[str], list[str]] | None:
    """Return the targets of links and the names of tags in a text from `start` on, in order.

    Targets are as written. Returns None if the text needs the scanner. There must be no byte order
    mark at `start`.
    """
    events = _read(text, start)
    return None if events is None else events[:2]


def links_where(
    data: bytes, text: str, start: int, matches: Callable[[str], bool]
) -> list[Link] | None:
    """Return the links whose target `matches`, in order, or None if the text needs the scanner.

    `text` is `data` decoded. It is read from `start` on.
    """
    events = _read(text, start)
    if events is None:
        return None
    targets, _, links = events
    matching = [link for target, link in zip(targets, links, strict=True) if matches(target)]
    inline = InlineScanner(data)
    for at, end in _positions(text, start, matching):
        first = at if len(data) == len(text) else len(text[:at].encode())
        inline.scan(first, first + len(text[at:end].encode()))
    return inline.links


def _positions(text: str, start: int, links: list[str]) -> list[tuple[int, int]]:
    """Return the ranges of links, including the `!` of embeds.

    `links` are links as written; a link that occurs several times in the text is listed as often.
    """
    positions: list[tuple[int, int]] = []
    for link in dict.fromkeys(links):
        # If the text occurs exactly as often as it was matched as a link, every occurrence is one.
        # Searching for it is faster than matching all events again.
        at, count = text.find(link, start), 0
        while at >= 0:
            embed = at > start and text[at - 1] == "!"
            positions.append((at - embed, at + len(link)))
            at, count = text.find(link, at + len(link)), count + 1
        if "<" in link or count != links.count(link):
            break
    else:
        if not any(text[at] == "!" and text[at - 1 : at] == "\\" for at, _ in positions):
            return sorted(positions)
    positions, previous_end = [], start
    for event in _EVENT.finditer(text, start):
        at, end = event.span()
        if event[0] in links:
            positions.append((at - (at > previous_end and text[at - 1] == "!"), end))
        previous_end = end
    return positions


def _read(text: str, start: int) -> tuple[list[str], list[str], list[str]] | None:
    """Return targets, tags, and for each target the link as written.

    Returns None if the text needs the scanner.
    """
    # Indents may make code blocks, which only the scanner recognizes.
    if ("\t" in text or "    " in text) and _tables(text, start) is None:
        return None
    # In a definition this is no tag.
    if "]:" in text and _ANCHOR.search(text, start):
        return None
    targets: list[str] = []
    tags: list[str] = []
    links: list[str] = []
    piped = False
    harmless = ""
    known = _known
    for event in _EVENT.findall(text, start):
        kind, name = known.get(event) or _classify(event)
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


def _classify(event: str) -> tuple[int, str]:
    """Return the kind of an event, and the target or tag that it names."""
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
    if len(event) < _MAX_CACHED_LENGTH:
        if len(_known) >= _MAX_CACHED:
            _known.clear()
        _known[event] = kind, name
    return kind, name


def _wiki_target(event: str) -> str:
    target = event[2:-2]
    if (pipe := target.find("|")) > 0:
        target = target[:pipe].removesuffix("\\")
    if "#" in target:
        target = target[: target.index("#")]
    return target.strip()


def _is_harmless(event: str, text: str, start: int) -> bool:
    """Return True if nothing in the note closes what this character may open."""
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
    """Return True if a pipe within a link or a fence may be the border of a table cell."""
    if not _TABLE.search(text, start):
        return False
    tables = _tables(text, start)
    if tables is None:
        return True
    data = text.encode()
    return any(_PIPED.search(data, first, last) for first, last in tables)
