"""Links in bases: `.base` files, whose filters, formulas and views are YAML.

Bases are only read, because Obsidian is not known to change them on a rename. Their links are
reported, for example before a rename, but are not in the link graph, as in Obsidian.
"""

from __future__ import annotations

from typing import Final

from obsidian_agent.expression import expression
from obsidian_agent.vault.markdown.blocks import LineFinder
from obsidian_agent.vault.markdown.model import Link

BASE: Final = ".base"

# The quotes of an argument are escaped or doubled where the whole expression is a quoted string.
_FILE: Final = expression(
    rb"\b(?:link|file|hasLink|image|embed)\(\s*+"
    rb"""(?:\\?"([^"\\\n]++)\\?"|'{1,2}([^'\n]++)'{1,2})"""
    rb"|\[\[([^\[\]\n]++)\]\]"
)
_WIKILINK: Final = 3
"""The group of `_FILE` for the text of a wikilink."""
_COMMENT: Final = expression(rb"\s*#")


def base_links(data: bytes) -> tuple[Link, ...]:
    """Return the files that a base names, in order, except in comments.

    They are arguments of `link()`, `file()` and similar functions, and wikilinks.
    """
    links: list[Link] = []
    lines = LineFinder(data)
    for match in _FILE.finditer(data):
        if _COMMENT.match(data, lines.start(match.start())):
            continue
        group = match.lastindex or _WIKILINK
        text = match[group].decode(errors="replace")
        display = None
        pipe = text.find("|") if group == _WIKILINK else -1
        if pipe > 0:
            text, display = text[:pipe], text[pipe + 1 :]
        path, mark, subpath = text.partition("#")
        start = match.start(group)
        links.append(
            Link(
                kind="base",
                target=path.strip(),
                subpath=mark + subpath,
                display=display,
                start=match.start(),
                end=match.end(),
                target_start=start,
                target_end=start + len(path.encode()),
                line=lines.number(start),
            )
        )
    return tuple(links)
