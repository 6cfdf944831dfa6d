"""Renaming and removal of tags in the properties and the text of a note.

Only what Obsidian reads as a tag is changed, in place. Tags nested below a renamed one are renamed
as well. A tag is removed with an adjacent blank, or with its whole line if nothing else is in it.
The new bytes are scanned again: the note is refused unless its tags are the old ones with the new
names, or without the removed ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from obsidian_agent.errors import ToolError, VaultError
from obsidian_agent.vault.frontmatter.properties import edit_properties
from obsidian_agent.vault.index.index import tag_key, tag_within
from obsidian_agent.vault.markdown.model import NoteTag
from obsidian_agent.vault.markdown.note import scan, scan_text
from obsidian_agent.vault.text import Edit, apply, decode

_BEFORE_QUOTED_TAG = frozenset(b"\"'#")
"""Characters directly before a tag in a quoted string."""
_BLANKS = b" \t"
_LINE = re.compile(rb"([^\n]*?)(?:\r?\n|\r?\Z)")


class TagRename(Struct, frozen=True):
    """The old and the new name of a tag, without `#`."""

    old: str
    new: str

    @classmethod
    def parse(cls, old: str, new: str) -> TagRename:
        """Create a rename from input. Raises ToolError ARGUMENT_INVALID if one is not a tag."""
        return cls(_tag_name(old), _tag_name(new))

    def new_name(self, name: str) -> str | None:
        """Return the name of a tag after the rename, or None for another tag."""
        if not tag_within(tag_key(name), tag_key(self.old)):
            return None
        below = name.rstrip("/").split("/")[self.old.count("/") + 1 :]
        return "/".join([self.new, *below])


def retag(data: bytes, rename: TagRename, path: str = "the note") -> tuple[bytes, int]:
    """Rename a tag in a note. Return the new bytes, and the number of tags that changed.

    A list of tags that had both names has the new one once. Raises VaultError: NOT_TEXT if the note
    is not UTF-8, FRONTMATTER_INVALID if it cannot be changed safely.
    """
    old = scan(data, path).tags
    renames: list[tuple[NoteTag, str]] = []
    unchanged: set[str] = set()
    for tag in old:
        new = rename.new_name(tag.name)
        if new is None and tag.in_properties:
            unchanged.add(tag_key(tag.name))
        elif new is not None and new != tag.name:
            renames.append((tag, new))
    if not renames:
        return data, 0
    in_place: list[tuple[NoteTag, str]] = []
    in_list: list[tuple[NoteTag, str]] = []
    for tag, new in renames:
        is_duplicate = tag.in_properties and tag_key(new) in unchanged
        if _is_verbatim(data, tag) and not is_duplicate:
            in_place.append((tag, new))
        else:
            in_list.append((tag, new))
    for quoted in (False, True):
        content = apply(data, [_edit(data, tag, new, quoted=quoted) for tag, new in in_place])
        if in_list:
            content = _edit_list(content, in_list, path)
        if _are_renamed(scan(content, path).tags, old, rename):
            return content, len(renames)
    raise VaultError(
        f"The tags of {path} cannot be changed safely.", code="FRONTMATTER_INVALID", path=path
    )


def untag(data: bytes, names: Iterable[str] | None, path: str = "the note") -> tuple[bytes, int]:
    """Remove tags from a note, or all tags if `names` is None. Nested tags are different ones.

    Return the new bytes, and the number of removed tags. Raises VaultError: NOT_TEXT if the note is
    not UTF-8, FRONTMATTER_INVALID if it cannot be changed safely.
    """
    keys = None if names is None else {tag_key(name) for name in names}
    old = scan(data, path).tags
    removed = [tag for tag in old if keys is None or tag_key(tag.name) in keys]
    if not removed:
        return data, 0
    content = apply(data, _removals(data, [tag for tag in removed if not tag.in_properties]))
    listed = [tag.name for tag in removed if tag.in_properties]
    if listed:
        content = edit_properties(decode(content, path), remove_tags=listed).encode()
    remaining = [tag.name for tag in old if tag not in removed]
    if [tag.name for tag in scan(content, path).tags] != remaining:
        raise VaultError(
            f"The tags of {path} cannot be removed safely.", code="FRONTMATTER_INVALID", path=path
        )
    return content, len(removed)


def _tag_name(tag: str) -> str:
    name = tag.strip().removeprefix("#").rstrip("/")
    if [scanned.name for scanned in scan_text(f"#{name}").tags] == [name] and all(name.split("/")):
        return name
    raise ToolError(
        f"{tag!r} is not a tag in Obsidian.",
        hint="A tag has letters, digits, _, - and /, no blanks, and is not a number.",
    )


def _is_verbatim(data: bytes, tag: NoteTag) -> bool:
    """Return True if a tag is in the note as it is named, not in another notation of YAML."""
    return not tag.in_properties or data[tag.start : tag.end] == tag.name.encode()


def _edit(data: bytes, tag: NoteTag, new: str, *, quoted: bool) -> Edit[bytes]:
    if not tag.in_properties:
        return Edit(tag.start, tag.end, f"#{new}".encode())
    if quoted and data[tag.start - 1] not in _BEFORE_QUOTED_TAG:
        new = f'"{new}"'
    return Edit(tag.start, tag.end, new.encode())


def _edit_list(data: bytes, renames: Sequence[tuple[NoteTag, str]], path: str) -> bytes:
    edited = edit_properties(
        decode(data, path),
        add_tags=[new for _, new in renames],
        remove_tags=[tag.name for tag, _ in renames],
    )
    return edited.encode()


def _are_renamed(tags: Iterable[NoteTag], old: Iterable[NoteTag], rename: TagRename) -> bool:
    """Return True if the tags of a note are the old ones with new names.

    Those of the text must be in order, those of the properties must each occur at least once.
    """
    expected = [tag._replace(name=rename.new_name(tag.name) or tag.name) for tag in old]
    actual = list(tags)
    if _names_in_text(actual) != _names_in_text(expected):
        return False
    listed = {tag.name for tag in actual if tag.in_properties}
    expected_list = {tag.name for tag in expected if tag.in_properties}
    return listed <= expected_list and {*map(tag_key, listed)} == {*map(tag_key, expected_list)}


def _names_in_text(tags: Iterable[NoteTag]) -> list[str]:
    return [tag.name for tag in tags if not tag.in_properties]


def _removals(data: bytes, tags: list[NoteTag]) -> Iterator[Edit[bytes]]:
    """Yield the edits that remove tags from the text.

    A tag is removed with the blank before it, or at the start of a line with the one after it. A
    line of nothing else is removed as a whole.
    """
    for start, of_line in groupby(tags, key=lambda tag: data.rfind(b"\n", 0, tag.start) + 1):
        line = _LINE.match(data, start)
        assert line is not None
        runs: list[tuple[int, int]] = []
        for tag in of_line:
            # Tags with only blanks between them are one run.
            if runs and not data[runs[-1][1] : tag.start].strip(_BLANKS):
                runs[-1] = (runs[-1][0], tag.end)
            else:
                runs.append((tag.start, tag.end))
        removals = [Edit(first - start, last - start, b"") for first, last in runs]
        rest = apply(data[start : line.end(1)], removals)
        if not rest.strip(_BLANKS):
            yield Edit(start, line.end(), b"")
            continue
        for first, last in runs:
            if first > start and data[first - 1] in _BLANKS:
                yield Edit(first - 1, last, b"")
            else:
                yield Edit(first, last + int(data[last : last + 1] in (b" ", b"\t")), b"")
