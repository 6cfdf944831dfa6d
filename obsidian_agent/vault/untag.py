"""Tags taken out of a note, from its properties and its text; nothing else in the note differs.

Only what Obsidian reads as a tag goes, with one blank beside it, or the whole line where nothing else stands in it. The new bytes are
scanned again: the tags must be the old ones without those that go, else the note is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from obsidian_agent.errors import VaultError
from obsidian_agent.vault import frontmatter
from obsidian_agent.vault.index_facts import tag_key
from obsidian_agent.vault.relink_text import Edit, apply
from obsidian_agent.vault.scan import NoteTag, scan
from obsidian_agent.vault.text import decode

_BLANKS = b" \t"
_ENDS = b"\r\n"


def untag(data: bytes, names: Iterable[str] | None, path: str = "the note") -> tuple[bytes, int]:
    """The bytes of a note without the named tags (None: without any), and how many were taken out; nested tags are others.

    Raises VaultError: NOT_TEXT when the note is not UTF-8, FRONTMATTER_INVALID when it cannot be changed so that it says just this.
    """
    wanted = None if names is None else {tag_key(name) for name in names}
    old = scan(data, path).tags
    going = [tag for tag in old if wanted is None or tag_key(tag.name) in wanted]
    if not going:
        return data, 0
    changed = apply(data, _edits(data, [tag for tag in going if not tag.in_properties]))
    listed = [tag.name for tag in going if tag.in_properties]
    if listed:
        changed = frontmatter.edit(decode(changed, path), remove_tags=listed).encode()
    if [tag.name for tag in scan(changed, path).tags] != [tag.name for tag in old if tag not in going]:
        raise VaultError(f"The tags of {path} cannot be taken out safely.", code="FRONTMATTER_INVALID", path=path)
    return changed, len(going)


def _edits(data: bytes, tags: list[NoteTag]) -> list[Edit]:
    """Where to cut: each tag with the blank before it, or at the start of a line the one behind it; lines of nothing else as a whole."""
    found: list[Edit] = []
    for start, tags_of in _by_line(data, tags).items():
        end = _line_end(data, start)
        rest = bytearray(data[start:end])
        for tag in reversed(tags_of):
            del rest[tag.start - start : tag.end - start]
        if not rest.strip(_BLANKS):
            found.append(Edit(start, _behind(data, end), b""))
            continue
        found.extend(Edit(*_with_blank(data, first, last, start), b"") for first, last in _runs(data, tags_of))
    return found


def _runs(data: bytes, tags: list[NoteTag]) -> list[tuple[int, int]]:
    """Neighbours with only blanks between them as one."""
    runs: list[tuple[int, int]] = []
    for tag in tags:
        if runs and not data[runs[-1][1] : tag.start].strip(_BLANKS):
            runs[-1] = (runs[-1][0], tag.end)
        else:
            runs.append((tag.start, tag.end))
    return runs


def _by_line(data: bytes, tags: list[NoteTag]) -> dict[int, list[NoteTag]]:
    lines: dict[int, list[NoteTag]] = {}
    for tag in tags:
        lines.setdefault(data.rfind(b"\n", 0, tag.start) + 1, []).append(tag)
    return lines


def _line_end(data: bytes, start: int) -> int:
    found = data.find(b"\n", start)
    end = len(data) if found < 0 else found
    return end - 1 if data[end - 1 : end] == b"\r" and end > start else end


def _behind(data: bytes, end: int) -> int:
    """Behind the line's end."""
    while end < len(data) and data[end] in _ENDS:
        end += 1
        if data[end - 1 : end] == b"\n":
            break
    return end


def _with_blank(data: bytes, start: int, end: int, line: int) -> tuple[int, int]:
    if start > line and data[start - 1] in _BLANKS:
        return start - 1, end
    return start, end + int(end < len(data) and data[end] in _BLANKS)
