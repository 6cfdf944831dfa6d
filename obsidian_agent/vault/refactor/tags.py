"""A tag under another name, or taken out, in the properties and the text of a note; nothing else in the note differs.

Only what Obsidian reads as a tag is touched, at the very place where it stands. Tags nested below a renamed one follow; with one that goes
goes a blank beside it, or the whole line where nothing else stands in it. The new bytes are scanned again: the tags must be the old ones with
the new names, or without those that go, else the note is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ToolError, VaultError
from obsidian_agent.vault.frontmatter.properties import edit_properties
from obsidian_agent.vault.index.index import tag_key, tag_within
from obsidian_agent.vault.markdown.model import NoteTag
from obsidian_agent.vault.markdown.note import scan, scan_text
from obsidian_agent.vault.text import Edit, apply, decode

_OPENS_TAG = frozenset(b"\"'#")


@dataclass(frozen=True, slots=True)
class TagRename:
    """One tag's old and new name, without `#`."""

    old: str
    new: str

    @classmethod
    def parse(cls, old: str, new: str) -> TagRename:
        """From what a person or a model wrote. ToolError ARGUMENT_INVALID when Obsidian would not read one of them as a tag."""
        return cls(_bare(old), _bare(new))

    def new_name(self, name: str) -> str | None:
        """What a tag is called then; None for another tag."""
        if not tag_within(tag_key(name), tag_key(self.old)):
            return None
        below = name.rstrip("/").split("/")[self.old.count("/") + 1 :]
        return "/".join([self.new, *below])


def _bare(tag: str) -> str:
    name = tag.strip().removeprefix("#").rstrip("/")
    if [found.name for found in scan_text(f"#{name}").tags] != [name] or not all(name.split("/")):
        hint = "A tag has letters, digits, _, - and /, no blanks, and is not a number."
        raise ToolError(f"{tag!r} is not something that Obsidian reads as a tag.", hint=hint)
    return name


def retag(data: bytes, rename: TagRename, path: str = "the note") -> tuple[bytes, int]:
    """The bytes of a note with a tag renamed, and how many times it was there under a name that changes.

    A list of tags that had both names keeps the new one once. Raises VaultError: NOT_TEXT when the note is not UTF-8,
    FRONTMATTER_INVALID when it cannot be changed so that it says just this.
    """
    old = scan(data, path).tags
    found = [
        (tag, new)
        for tag in old
        if (new := rename.new_name(tag.name)) is not None and new != tag.name
    ]
    if not found:
        return data, 0
    listed = {
        tag_key(tag.name) for tag in old if tag.in_properties and rename.new_name(tag.name) is None
    }
    placed = [
        (tag, new)
        for tag, new in found
        if _is_placed(data, tag) and not (tag.in_properties and tag_key(new) in listed)
    ]
    rest = [(tag, new) for tag, new in found if (tag, new) not in placed]
    for quoted in (False, True):
        changed = apply(data, [_edit(data, tag, new, quoted=quoted) for tag, new in placed])
        if rest:
            changed = _edit_list(changed, rest, path)
        if _says(scan(changed, path).tags, old, rename):
            return changed, len(found)
    raise VaultError(
        f"The tags of {path} cannot be changed safely.", code="FRONTMATTER_INVALID", path=path
    )


def _is_placed(data: bytes, tag: NoteTag) -> bool:
    """Whether a tag is where it says; a tag in properties that YAML writes in another way is not."""
    return not tag.in_properties or data[tag.start : tag.end] == tag.name.encode()


def _edit(data: bytes, tag: NoteTag, new: str, *, quoted: bool) -> Edit[bytes]:
    if not tag.in_properties:
        return Edit(tag.start, tag.end, f"#{new}".encode())
    bare = data[tag.start - 1] not in _OPENS_TAG
    return Edit(tag.start, tag.end, (f'"{new}"' if quoted and bare else new).encode())


def _edit_list(data: bytes, tags: Iterable[tuple[NoteTag, str]], path: str) -> bytes:
    text = decode(data, path)
    names = list(tags)
    edited = edit_properties(
        text, add_tags=[new for _, new in names], remove_tags=[tag.name for tag, _ in names]
    )
    return edited.encode()


def _says(tags: Iterable[NoteTag], old: Iterable[NoteTag], rename: TagRename) -> bool:
    """Whether a note's tags are the old ones with new names: those of the text in order, those of the properties each at least once."""
    wanted = [tag._replace(name=rename.new_name(tag.name) or tag.name) for tag in old]
    found = list(tags)
    listed, to_list = ({tag.name for tag in some if tag.in_properties} for some in (found, wanted))
    if [tag.name for tag in found if not tag.in_properties] != [
        tag.name for tag in wanted if not tag.in_properties
    ]:
        return False
    return listed <= to_list and {*map(tag_key, listed)} == {*map(tag_key, to_list)}


_BLANKS = b" \t"
_LINE = re.compile(rb"([^\n]*?)(?:\r?\n|\r?\Z)")


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
        changed = edit_properties(decode(changed, path), remove_tags=listed).encode()
    if [tag.name for tag in scan(changed, path).tags] != [
        tag.name for tag in old if tag not in going
    ]:
        raise VaultError(
            f"The tags of {path} cannot be taken out safely.", code="FRONTMATTER_INVALID", path=path
        )
    return changed, len(going)


def _edits(data: bytes, tags: list[NoteTag]) -> Iterator[Edit[bytes]]:
    """What to cut: each tag with the blank before it, or at the start of a line the one behind it; lines of nothing else as a whole."""
    for start, of_line in groupby(tags, key=lambda tag: data.rfind(b"\n", 0, tag.start) + 1):
        line = _LINE.match(data, start)
        assert line is not None
        runs: list[tuple[int, int]] = []
        for tag in of_line:
            # Neighbours with only blanks between them are one.
            if runs and not data[runs[-1][1] : tag.start].strip(_BLANKS):
                runs[-1] = (runs[-1][0], tag.end)
            else:
                runs.append((tag.start, tag.end))
        places = [start, *(place for run in runs for place in run), line.end(1)]
        if not b"".join(
            data[one:other] for one, other in zip(places[::2], places[1::2], strict=True)
        ).strip(_BLANKS):
            yield Edit(start, line.end(), b"")
            continue
        for first, last in runs:
            if first > start and data[first - 1] in _BLANKS:
                yield Edit(first - 1, last, b"")
            else:
                yield Edit(first, last + int(data[last : last + 1] in (b" ", b"\t")), b"")
