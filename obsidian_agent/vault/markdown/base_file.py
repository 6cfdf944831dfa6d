"""Which files a base (`.base`: filters, formulas and views in YAML) names. Read only: Obsidian is not known to change bases on a rename.

These links are told to people, for example before a rename; they are no part of the link graph, as they are not in Obsidian's.
"""

from __future__ import annotations

import re
from typing import Final

from obsidian_agent.vault.scan.model import Link

BASE: Final = ".base"

# The quotes of an argument are escaped or doubled where the whole expression is a quoted string.
_NAMED: Final = re.compile(
    rb"""\b(?:link|file|hasLink|image|embed)\(\s*+(?:\\?"([^"\\\n]++)\\?"|'{1,2}([^'\n]++)'{1,2})|\[\[([^\[\]\n]++)\]\]"""
)


def base_links(data: bytes) -> tuple[Link, ...]:
    """The files that a base's bytes name, in order: arguments of `link()`, `file()` and the like, and wikilinks. Comments are left out."""
    found = []
    for match in _NAMED.finditer(data):
        line = data.rfind(b"\n", 0, match.start()) + 1
        if data[line : match.start()].lstrip().startswith(b"#"):
            continue
        group = match.lastindex or 3
        text = match[group].decode(errors="replace")
        pipe = text.find("|")
        path, mark, subpath = (text[:pipe] if group == 3 and pipe > 0 else text).partition("#")
        start = match.start(group)
        found.append(
            Link(
                "base",
                path.strip(),
                mark + subpath,
                text[pipe + 1 :] if group == 3 and pipe > 0 else None,
                match.start(),
                match.end(),
                start,
                start + len(path.encode()),
                data.count(b"\n", 0, start) + 1,
            )
        )
    return tuple(found)
