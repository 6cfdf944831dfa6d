"""The links of notes: to and from them, those that lead nowhere, and keeping those that lead to a heading or block, or stand in text, that moves.

Text that goes to another note still links to what it did, and links to its headings and blocks follow it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import Final

from pydantic import Field

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.expression import unicode_expression
from obsidian_agent.tools.core.lookup import find_file, skipped_note, unread_warnings
from obsidian_agent.tools.core.models import Items, NotesInput, ToolModel
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.links.graph import links_of, unresolved_name
from obsidian_agent.vault.links.link_text import (
    LinkStyle,
    Shape,
    markdown_encoded,
    shape_of,
    spellings,
    target_edit,
)
from obsidian_agent.vault.links.resolve import file_name, link_key
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.markdown.note import scan_text
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.paths.rules import extension
from obsidian_agent.vault.text import Edit, apply, decode
from obsidian_agent.vault.views.changes import ModifyFile
from obsidian_agent.vault.views.view import VaultView


class LinksInput(ToolModel):
    path: PathText = Field(min_length=1)


class LinkItem(ToolModel):
    path: str
    line: int = Field(description="From 1, in the file that links.")
    kind: str = Field(description="wikilink, embed, markdown, markdown-embed, property or canvas.")
    text: str = Field(description="What the link shows.")


def _answer(
    items: Iterable[LinkItem], warnings: tuple[Problem, ...] = ()
) -> Proposal[Items[LinkItem]]:
    found = sorted(items, key=lambda item: (item.path, item.line))
    return Proposal(Items.of(found), warnings=warnings)


def _item(path: str, link: Link) -> LinkItem:
    return LinkItem(path=path, line=link.line, kind=link.kind, text=link.shown)


def _links(view: VaultView, path: VaultPath) -> tuple[Link, ...]:
    return links_of(path, view.read(path))


@tool("vault.getBacklinks", Risk.READ_ONLY, aliases=("get_file_backlinks",))
def get_backlinks(args: LinksInput, ctx: ToolContext) -> Proposal[Items[LinkItem]]:
    """The links to a file: path is the note that links."""
    path = find_file(ctx.view, args.path)
    index = ctx.view.index
    items: list[LinkItem] = []
    for source in index.linking(path):
        try:
            links = _links(ctx.view, source)
        except VaultError:
            continue
        items += [
            _item(source.text, link)
            for link in links
            if link.target and index.resolve(link.target, source) == path
        ]
    return _answer(items, unread_warnings(index))


@tool("vault.getOutgoingLinks", Risk.READ_ONLY, aliases=("get_outgoing_links",))
def get_outgoing_links(args: LinksInput, ctx: ToolContext) -> Proposal[Items[LinkItem]]:
    """The links of a note that lead to files: path is the file."""
    path = find_file(ctx.view, args.path)
    index = ctx.view.index
    resolved = ((index.resolve(link.target, path), link) for link in _links(ctx.view, path))
    return _answer(_item(target.text, link) for target, link in resolved if target is not None)


@tool("vault.getUnresolvedLinks", Risk.READ_ONLY)
def get_unresolved_links(args: LinksInput, ctx: ToolContext) -> Proposal[Items[LinkItem]]:
    """The links of a note that lead nowhere: path is the name that is missing, as the link has it."""
    path = find_file(ctx.view, args.path)
    index = ctx.view.index
    lost = (link for link in _links(ctx.view, path) if index.resolve(link.target, path) is None)
    return _answer(_item(unresolved_name(link.target), link) for link in lost)


_NOT_A_NOTE: Final = frozenset(
    f".{ending}"
    for ending in (
        *(
            "png",
            "jpg",
            "jpeg",
            "gif",
            "svg",
            "webp",
            "avif",
            "bmp",
            "pdf",
            "mp3",
            "mp4",
            "mov",
            "mkv",
            "webm",
            "wav",
            "ogg",
            "m4a",
        ),
        *(
            "flac",
            "3gp",
            "base",
            "canvas",
            "csv",
            "zip",
            "docx",
            "xlsx",
            "pptx",
            "txt",
            "json",
            "excalidraw",
        ),
    )
)
"""Endings of what is no note."""


@dataclass(slots=True)
class _Lost:
    """A name that nothing has, and the notes that link to it."""

    name: str
    note: bool
    sources: dict[str, int] = field(default_factory=dict)


def _lost(args: NotesInput, ctx: ToolContext, problems: list[Problem]) -> list[_Lost]:
    """The names without a file, each once whatever its case, sorted."""
    index = ctx.view.index
    found: dict[str, _Lost] = {}
    for source in args.notes(ctx):
        for link in dead_links(index, source, ctx, problems):
            name = unresolved_name(link.target)
            lost = found.setdefault(
                link_key(name), _Lost(name, extension(link.target).lower() not in _NOT_A_NOTE)
            )
            lost.sources[source.text] = lost.sources.get(source.text, 0) + 1
    return sorted(found.values(), key=lambda lost: lost.name.casefold())


def dead_links(
    index: VaultIndex, source: VaultPath, ctx: ToolContext, problems: list[Problem]
) -> Iterator[Link]:
    """The links of a note that lead nowhere; why it could not be read goes to `problems`."""
    if not any(
        target and index.resolve(target, source) is None for target in index.facts(source).targets
    ):
        return
    try:
        links = links_of(source, ctx.view.read(source))
    except VaultError as error:
        problems.append(skipped_note(source, error))
        return
    yield from (
        link for link in links if link.target and index.resolve(link.target, source) is None
    )


class ListUnresolvedInput(NotesInput):
    files_too: bool = Field(
        default=False, description="Also missing pictures and other files, not only notes."
    )


class UnresolvedName(ToolModel):
    name: str = Field(description="What the links say, without .md.")
    count: int = Field(description="The number of links.")
    sources: list[str] = Field(description="The notes that link to it.")


@tool("vault.listUnresolved", Risk.READ_ONLY)
def list_unresolved(args: ListUnresolvedInput, ctx: ToolContext) -> Proposal[Items[UnresolvedName]]:
    """The names that links in a note, some notes or a folder ask for and no file has, each once, in alphabetical order."""
    problems: list[Problem] = []
    items = [
        UnresolvedName(name=lost.name, count=sum(lost.sources.values()), sources=list(lost.sources))
        for lost in _lost(args, ctx, problems)
        if lost.note or args.files_too
    ]
    return Proposal(Items.of(items), warnings=tuple(problems))


class SuggestLinksInput(NotesInput):
    pass


class LinkSuggestion(ToolModel):
    name: str = Field(description="What the links say.")
    path: str = Field(description="The one file of that name in another spelling.")
    score: float = Field(description="Likeness, from 0 to 100.")
    sources: list[str]


@tool("vault.suggestLinks", Risk.READ_ONLY)
def suggest_links(args: SuggestLinksInput, ctx: ToolContext) -> Proposal[Items[LinkSuggestion]]:
    """For links that lead nowhere, the one file with their name but for case, blanks, punctuation and Unicode form."""
    problems: list[Problem] = []
    files: dict[tuple[bool, str], list[VaultPath]] = {}
    for path in ctx.view.index.files():
        key = _spelling_key(path.stem if path.is_note else path.name)
        files.setdefault((path.is_note, key), []).append(path)
    items = []
    for lost in _lost(args, ctx, problems):
        key = _spelling_key(lost.name.rpartition("/")[2])
        matches = files.get((lost.note, key), []) if key else []
        if len(matches) == 1:
            items.append(
                LinkSuggestion(
                    name=lost.name,
                    path=matches[0].text,
                    score=100.0,
                    sources=list(lost.sources),
                )
            )
    return Proposal(Items.of(items), warnings=tuple(problems))


_SEPARATORS: Final = unicode_expression(r"[\s\p{P}\p{Z}]+")
_BETWEEN_DIGITS: Final = unicode_expression(r"(?<=\p{N})[\s\p{P}\p{Z}]+(?=\p{N})")


def _spelling_key(name: str) -> str:
    """Return the name without case, blanks, punctuation and Unicode form.

    Between digits a separator counts: `1.2` is not `12`.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return str(_SEPARATORS.sub("", _BETWEEN_DIGITS.sub("\0", folded)))


_NOT_IN_LINKS: Final = re.compile(r"[#|^\[\]\\%]+|:(?=\s|$)")
_IGNORED: Final = re.compile(r"[!\"#$%&()*+,.:;<=>?@^`{|}~/\[\]\\\s]+")


def heading_key(text: str) -> str:
    """What Obsidian compares of headings: words without case and marks."""
    return _IGNORED.sub(" ", text).strip().casefold()


def link_heading(text: str) -> str:
    """A heading as it may stand in a link: what would end the link is left out, Obsidian finds it all the same."""
    return " ".join(_NOT_IN_LINKS.sub(" ", text).split())


def subpath_keys(subpath: str) -> list[str]:
    """The headings of `#A#B` as they are compared; a block stays `^id`."""
    return [
        part if part.startswith("^") else heading_key(part)
        for part in subpath.split("#")
        if part.strip()
    ]


def subpath_edit(data: bytes, link: Link, subpath: str) -> Edit[bytes] | None:
    """The edit that gives a link another place (`#Heading`); None where the old one cannot be found."""
    start = data.find(b"#", link.target_end, link.end)
    if start < 0:
        return None
    if link.is_markdown:
        end = min(
            (
                at
                for mark in (b">" if link.form == "angle" else b" ", b")")
                if (at := data.find(mark, start, link.end)) >= 0
            ),
            default=-1,
        )
        written = (
            subpath
            if link.form == "angle"
            else markdown_encoded(subpath).replace("(", "%28").replace(")", "%29")
        )
    else:
        ends = (
            data.find(b"\\|", start, link.end),
            data.find(b"|", start, link.end),
            data.find(b"]]", start, link.end),
        )
        end = min((at for at in ends if at >= 0), default=-1)
        written = (
            subpath.replace("'", "''")
            if link.form == "single-quoted"
            else subpath.replace('"', " ")
            if link.form == "double-quoted"
            else subpath
        )
    return None if end < 0 else Edit(start, end, written.encode())


def link_edit(
    data: bytes,
    link: Link,
    shape: Shape,
    target: VaultPath,
    source: VaultPath,
    index: VaultIndex,
    style: LinkStyle,
    *,
    canvas: bool = False,
) -> Edit[bytes] | None:
    """The edit that lets a link mean a file, written as `shape` wants it if it can be; None when no text that means it can stand there.

    Of a file that is yet to be made, the text that will mean it.
    """
    named = index.named(file_name(target))
    there = target in named
    for spelling in spellings(shape, target, source, style):
        if spelling.unique and len(named) > there:
            continue
        found = index.resolve(spelling.text, source)
        if found == target or (not there and (found is None or "/" in spelling.text)):
            edit = target_edit(data, link, spelling.text, canvas=canvas)
            if edit is not None:
                return edit
    return None


@dataclass(frozen=True, slots=True)
class LinkDestination:
    """Where links to a place shall lead: to a note, and a place in it (`#Heading`)."""

    note: VaultPath
    subpath: str


def redirect_links(
    ctx: ToolContext,
    note: VaultPath,
    change: Callable[[str], LinkDestination | None],
    problems: list[Problem],
) -> dict[VaultPath, tuple[bytes, int]]:
    """The files whose links to places of a note change, with their new bytes and the number of links; `change` gets the subpath."""
    index = ctx.view.index
    made: dict[VaultPath, tuple[bytes, int]] = {}
    for source in sorted({note, *index.linking(note)}):
        if not source.is_note:
            continue
        try:
            data = ctx.view.read(source)
            decode(data, source.text)
        except VaultError as error:
            problems.append(skipped_note(source, error))
            continue
        content, count = redirect_in_file(data, source, note, change, index, ctx.run.link_style)
        if count:
            made[source] = content, count
    return made


def redirect_in_file(
    data: bytes,
    source: VaultPath,
    note: VaultPath,
    change: Callable[[str], LinkDestination | None],
    index: VaultIndex,
    style: LinkStyle,
) -> tuple[bytes, int]:
    """The bytes of one file with its links to places of `note` changed, and how many there were."""
    edits: list[Edit[bytes]] = []
    count = 0
    for link in links_of(source, data):
        if (
            not link.subpath
            or (index.resolve(link.target, source) if link.target else source) != note
        ):
            continue
        place = change(link.subpath)
        if place is None:
            continue
        found = list(_place_edits(data, link, source, note, place, index, style))
        edits += found
        count += bool(found)
    return (apply(data, edits), count) if edits else (data, 0)


def _place_edits(
    data: bytes,
    link: Link,
    source: VaultPath,
    note: VaultPath,
    place: LinkDestination,
    index: VaultIndex,
    style: LinkStyle,
) -> Iterator[Edit[bytes]]:
    there = subpath_edit(data, link, place.subpath) if place.subpath != link.subpath else None
    if place.note != note:
        shape = (
            shape_of(link.target, note, source, style)
            if link.target
            else Shape("name", extension=link.is_markdown)
        )
        edit = link_edit(data, link, shape, place.note, source, index, style)
        if edit is None:
            return
        yield edit
    if there is not None:
        yield there


@dataclass(frozen=True, slots=True)
class MovedText:
    """The text as it must stand in the other note, the rest of the note it came from, and the other notes whose links follow."""

    text: str
    rest: str
    changes: tuple[ModifyFile, ...] = ()
    problems: tuple[Problem, ...] = ()


def find_destination(into: str | None, ctx: ToolContext) -> VaultPath | None:
    """The note that `into` names; it need not exist yet. What leads out of the vault is refused."""
    if into is None:
        return None
    path = paths.parse(into, PathUse.READ)
    entry = ctx.view.locate(path)
    return path if entry is None else entry.path


def copy_text(text: str, source: VaultPath, target: VaultPath | None, ctx: ToolContext) -> str:
    """A part of a note as it must stand in another note, while the first one keeps it."""
    if target is None or target == source:
        return text
    return _with_links_adjusted(text, source, target, ctx, here=_places(text))


def move_text(
    text: str,
    rest: str,
    source: VaultPath,
    target: VaultPath | None,
    ctx: ToolContext,
    title: str | None = None,
) -> MovedText:
    """A part of a note that leaves it for another one; `rest` is what remains. Links to the heading `title` lead to the other note itself."""
    if target is None or target == source:
        return MovedText(text, rest)
    gone = _places(text) - _places(rest)
    problems: list[Problem] = []

    def follow(subpath: str) -> LinkDestination | None:
        keys = subpath_keys(subpath)
        if not keys or keys[-1] not in gone:
            return None
        return LinkDestination(
            target,
            ""
            if title is not None and keys[-1] == heading_key(title)
            else _subpath_within(subpath, gone),
        )

    index = ctx.view.index
    left, _ = redirect_in_file(rest.encode(), source, source, follow, index, ctx.run.link_style)
    files = redirect_links(ctx, source, follow, problems) if gone else {}
    changes = tuple(ModifyFile(path, data) for path, (data, _) in files.items() if path != source)
    moved = _with_links_adjusted(text, source, target, ctx, here=_places(text))
    if gone:
        moved = redirect_in_file(moved.encode(), target, source, follow, index, ctx.run.link_style)[
            0
        ].decode()
    return MovedText(moved, left.decode(), changes, tuple(problems))


def _subpath_within(subpath: str, places: set[str]) -> str:
    """`#A#B` without the headings over a part of a note that has only these places."""
    parts = [part for part in subpath.split("#") if part.strip()]
    kept = list(
        takewhile(lambda part: heading_key(part) in places or part in places, reversed(parts))
    )
    return subpath if len(kept) == len(parts) else "".join(f"#{part}" for part in reversed(kept))


def _places(text: str) -> set[str]:
    """The headings and blocks of a text, as links to them are compared."""
    scanned = scan_text(text)
    return {heading_key(heading.text) for heading in scanned.headings} | {
        f"^{block.name}" for block in scanned.blocks
    }


def _with_links_adjusted(
    text: str, source: VaultPath, target: VaultPath, ctx: ToolContext, here: set[str]
) -> str:
    """The text with those links written anew that would mean something else in the other note."""
    data = text.encode()
    edits = [
        edit
        for link in scan_text(text).links
        if (edit := _link_edit(data, link, source, target, ctx, here)) is not None
    ]
    return apply(data, edits).decode() if edits else text


def _link_edit(
    data: bytes, link: Link, source: VaultPath, target: VaultPath, ctx: ToolContext, here: set[str]
) -> Edit[bytes] | None:
    index, style = ctx.view.index, ctx.run.link_style
    if not link.target:
        keys = subpath_keys(link.subpath)
        if not keys:
            return None
        if keys[-1] in here:
            within = _subpath_within(link.subpath, here)
            return subpath_edit(data, link, within) if within != link.subpath else None
        meant, shape = source, Shape("name", extension=link.is_markdown)
    else:
        found = index.resolve(link.target, source)
        if found is None or index.resolve(link.target, target) == found:
            return None
        meant, shape = found, shape_of(link.target, found, source, style)
    return link_edit(data, link, shape, meant, target, index, style)
