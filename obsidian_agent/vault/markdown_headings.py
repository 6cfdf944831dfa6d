"""Which lines of a note are headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from obsidian_agent.vault.markdown_lines import HEADING, UNDERLINE, Line

_NO_PARAGRAPH = re.compile(r"[#>|]|[-*+][ \t]|[0-9]{1,9}[.)][ \t]")


def headings_of(lines: Sequence[Line]) -> Iterator[tuple[str, int, Line, Line]]:
    """The headings among the lines of a note: text, level, first and last line."""
    for position, line in enumerate(lines):
        if line.hidden or line.quotes or line.indent > 3 or not line.body:
            continue
        if line.body[0] == "#" and (mark := HEADING.match(line.body)):
            yield (mark["text"] or "").strip(), len(mark["marks"]), line, line
        elif line.body[0] in "=-" and (title := _underlined(lines, position)):
            yield title.body, 1 if line.body[0] == "=" else 2, title, line


def _underlined(lines: Sequence[Line], position: int) -> Line | None:
    """The line that an underline makes a heading: a paragraph of one line, as Obsidian has it."""
    if position == 0 or not UNDERLINE.match(lines[position].body):
        return None
    title = lines[position - 1]
    if title.hidden or title.quotes or title.indent > 3 or not title.body or title.depth is not None or _NO_PARAGRAPH.match(title.body):
        return None
    above = lines[position - 2] if position > 1 else None
    alone = above is None or above.hidden or not above.body or HEADING.match(above.body) is not None
    return title if alone else None
