"""The links of notes: incoming, outgoing and unresolved ones.

Also updates of links to a heading, block or text that moves: text that moves to another note keeps
the targets of its links, and links to its headings and blocks follow it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import takewhile
from typing import Final

from msgspec import Struct, field
from pydantic import Field

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.tools.core.lookup import find_file, skipped_note, unread_warnings
from obsidian_agent.tools.core.models import Items, NotesInput, ToolModel
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.links.graph import links_of, means_note, unresolved_name
from obsidian_agent.vault.links.link_text import (
    LinkStyle,
    Shape,
    markdown_encoded,
    shape_of,
    spellings,
    target_edit,
)
from obsidian_agent.vault.links.resolve import file_name, link_key
from obsidian_agent.vault.links.spelling import folder_fits, spelling_key
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.markdown.note import scan_text
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.text import Edit, apply, decode
from obsidian_agent.vault.views.changes import ModifyFile
from obsidian_agent.vault.views.view import VaultView

_NOT_IN_LINKS: Final = re.compile(r"[#|^\[\]\\%]+|:(?=\s|$)")

_IGNORED: Final = re.compile(r"[!\"#$%&()*+,.:;<=>?@^`{|}~/\[\]\\\s]+")


class LinksInput(ToolModel):
    path: PathText = Field(min_length=1)


class LinkItem(ToolModel):
    path: str
    line: int = Field(description="From 1, in the file that links.")
    kind: str = Field(description="wikilink, embed, markdown, markdown-embed, property or canvas.")
    text: str = Field(description="The text that the link shows.")


def _sorted_items(
    items: Iterable[LinkItem], warnings: tuple[Problem, ...] = ()
) -> Proposal[Items[LinkItem]]:
    ordered = sorted(items, key=lambda item: (item.path, item.line))
    return Proposal(Items.of(ordered), warnings=warnings)


def _item(path: str, link: Link) -> LinkItem:
    return LinkItem(path=path, line=link.line, kind=link.kind, text=link.display_text)


def _links(view: VaultView, path: VaultPath) -> tuple[Link, ...]:
    return links_of(path, view.read(path))


@tool("vault.getBacklinks", Risk.READ_ONLY, aliases=("get_file_backlinks",))
def get_backlinks(args: LinksInput, ctx: ToolContext) -> Proposal[Items[LinkItem]]:
    """List the links to a file; path is the note that contains the link."""
    path = find_file(ctx.view, args.path)
    index = ctx.view.index
    items: list[LinkItem] = []
    for source in index.backlinks(path):
        with suppress(VaultError):
            items += links_from(source, path, ctx.view)
    return _sorted_items(items, unread_warnings(index))


def links_from(source: VaultPath, path: VaultPath, view: VaultView) -> list[LinkItem]:
    """Return the links of one file to another. Raise VaultError if it cannot be read."""
    return [
        _item(source.text, link)
        for link in _links(view, source)
        if link.target and view.index.resolve(link.target, source) == path
    ]


@tool("vault.getOutgoingLinks", Risk.READ_ONLY, aliases=("get_outgoing_links",))
def get_outgoing_links(args: LinksInput, ctx: ToolContext) -> Proposal[Items[LinkItem]]:
    """List the links of a note that lead to files; path is the file."""
    path = find_file(ctx.view, args.path)
    index = ctx.view.index
    resolved = ((index.resolve(link.target, path), link) for link in _links(ctx.view, path))
    return _sorted_items(
        _item(target.text, link) for target, link in resolved if target is not None
    )


@tool("vault.getUnresolvedLinks", Risk.READ_ONLY)
def get_unresolved_links(args: LinksInput, ctx: ToolContext) -> Proposal[Items[LinkItem]]:
    """List the links of a note that lead nowhere; path is the missing name as written."""
    path = find_file(ctx.view, args.path)
    index = ctx.view.index
    lost = (link for link in _links(ctx.view, path) if index.resolve(link.target, path) is None)
    return _sorted_items(_item(unresolved_name(link.target), link) for link in lost)


class _Lost(Struct):
    """A name without a file, the first note that links to it, and the links of each note."""

    name: str
    note: bool
    source: VaultPath
    sources: dict[str, int] = field(default_factory=dict)


def _lost(args: NotesInput, ctx: ToolContext, problems: list[Problem]) -> list[_Lost]:
    """Return the names without a file, sorted and without duplicates; case is ignored."""
    index = ctx.view.index
    names: dict[str, _Lost] = {}
    for source in args.notes(ctx):
        for link in dead_links(index, source, ctx, problems):
            name = unresolved_name(link.target)
            lost = names.setdefault(link_key(name), _Lost(name, means_note(link.target), source))
            lost.sources[source.text] = lost.sources.get(source.text, 0) + 1
    return sorted(names.values(), key=lambda lost: lost.name.casefold())


def dead_links(
    index: VaultIndex, source: VaultPath, ctx: ToolContext, problems: list[Problem]
) -> Iterator[Link]:
    """Yield the links of a note that lead nowhere.

    A note that cannot be read adds a warning to `problems`.
    """
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
        default=False, description="Include missing pictures and other files, not only notes."
    )


class UnresolvedName(ToolModel):
    name: str = Field(description="The name in the links, without .md.")
    count: int = Field(description="The number of links.")
    sources: list[str] = Field(description="The notes that link to it.")


@tool("vault.listUnresolved", Risk.READ_ONLY)
def list_unresolved(args: ListUnresolvedInput, ctx: ToolContext) -> Proposal[Items[UnresolvedName]]:
    """List the names in links that no file has, in a note, some notes or a folder.

    They are in alphabetical order, without duplicates.
    """
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
    name: str = Field(description="The name in the links.")
    path: str = Field(description="The only file of that name in another spelling.")
    score: float = Field(description="Similarity, from 0 to 100.")
    sources: list[str]


@tool("vault.suggestLinks", Risk.READ_ONLY)
def suggest_links(args: SuggestLinksInput, ctx: ToolContext) -> Proposal[Items[LinkSuggestion]]:
    """Suggest targets for links that lead nowhere.

    A suggestion is the only file whose name differs just in case, spaces, punctuation, emoji or
    Unicode form, and that lies in the folder that the link may name.
    """
    problems: list[Problem] = []
    files: dict[tuple[bool, str], list[VaultPath]] = {}
    for path in ctx.view.index.files():
        key = spelling_key(path.stem if path.is_note else path.name)
        files.setdefault((path.is_note, key), []).append(path)
    items = []
    for lost in _lost(args, ctx, problems):
        key = spelling_key(lost.name.rpartition("/")[2])
        matches = files.get((lost.note, key), []) if key else []
        if len(matches) == 1 and folder_fits(lost.name, lost.source, matches[0]):
            items.append(
                LinkSuggestion(
                    name=lost.name,
                    path=matches[0].text,
                    score=100.0,
                    sources=list(lost.sources),
                )
            )
    return Proposal(Items.of(items), warnings=tuple(problems))


def heading_key(text: str) -> str:
    """Return the form in which Obsidian compares headings: words without case and punctuation."""
    return _IGNORED.sub(" ", text).strip().casefold()


def link_heading(text: str) -> str:
    """Return a heading as a link can hold it.

    Characters that would end the link are dropped; Obsidian finds the heading all the same.
    """
    return " ".join(_NOT_IN_LINKS.sub(" ", text).split())


def subpath_keys(subpath: str) -> list[str]:
    """Return the headings of `#A#B` in their compared form; a block stays `^id`."""
    return [
        part if part.startswith("^") else heading_key(part)
        for part in subpath.split("#")
        if part.strip()
    ]


def subpath_edit(data: bytes, link: Link, subpath: str) -> Edit[bytes] | None:
    """Return the edit that gives a link another subpath (`#Heading`).

    Return `None` if the position of the old subpath is unclear.
    """
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
    else:
        ends = (
            data.find(b"\\|", start, link.end),
            data.find(b"|", start, link.end),
            data.find(b"]]", start, link.end),
        )
        end = min((at for at in ends if at >= 0), default=-1)
    return None if end < 0 else Edit(start, end, _written(link, subpath).encode())


def new_subpath(link: Link, heading: str) -> str:
    """Return the `#Heading` to write behind the target of a link that has no subpath."""
    return _written(link, f"#{link_heading(heading)}")


def _written(link: Link, subpath: str) -> str:
    """Return a subpath with the escapes that it needs in a link."""
    if link.is_markdown and link.form != "angle":
        return markdown_encoded(subpath).replace("(", "%28").replace(")", "%29")
    if link.form == "single-quoted":
        return subpath.replace("'", "''")
    return subpath.replace('"', " ") if link.form == "double-quoted" else subpath


class LinkSource(Struct, frozen=True):
    """A file with links, and the index and settings that decide how they are written."""

    path: VaultPath
    index: VaultIndex
    style: LinkStyle


def link_edit(
    data: bytes,
    link: Link,
    shape: Shape,
    target: VaultPath,
    source: LinkSource,
    *,
    canvas: bool = False,
) -> Edit[bytes] | None:
    """Return the edit that makes a link mean `target`, written as `shape` where possible.

    Return `None` if no text that means it fits there. `target` need not exist yet.
    """
    index = source.index
    named = index.files_named(file_name(target))
    exists = target in named
    for spelling in spellings(shape, target, source.path, source.style):
        if spelling.unique and len(named) > exists:
            continue
        resolved = index.resolve(spelling.text, source.path)
        if resolved == target or (not exists and (resolved is None or "/" in spelling.text)):
            edit = target_edit(data, link, spelling.text, canvas=canvas)
            if edit is not None:
                return edit
    return None


class LinkDestination(Struct, frozen=True):
    """The new destination of links: a note and a subpath in it (`#Heading`)."""

    note: VaultPath
    subpath: str


def redirect_links(
    ctx: ToolContext,
    note: VaultPath,
    change: Callable[[str], LinkDestination | None],
    problems: list[Problem],
) -> dict[VaultPath, tuple[bytes, int]]:
    """Redirect the links to headings and blocks of a note.

    Return the changed files with their new bytes and the number of links. `change` receives the
    subpath.
    """
    index = ctx.view.index
    files: dict[VaultPath, tuple[bytes, int]] = {}
    for source in sorted({note, *index.backlinks(note)}):
        if not source.is_note:
            continue
        try:
            data = ctx.view.read(source)
            decode(data, source.text)
        except VaultError as error:
            problems.append(skipped_note(source, error))
            continue
        context = LinkSource(source, index, ctx.run.link_style)
        content, count = redirect_in_file(data, context, note, change)
        if count:
            files[source] = content, count
    return files


def redirect_in_file(
    data: bytes,
    source: LinkSource,
    note: VaultPath,
    change: Callable[[str], LinkDestination | None],
) -> tuple[bytes, int]:
    """Redirect the links in one file to headings and blocks of `note`.

    Return its new bytes and the number of links.
    """
    edits: list[Edit[bytes]] = []
    count = 0
    for link in links_of(source.path, data):
        if not link.subpath:
            continue
        file = source.index.resolve(link.target, source.path) if link.target else source.path
        destination = change(link.subpath) if file == note else None
        if destination is None:
            continue
        link_edits = list(_redirect_edits(data, link, source, note, destination))
        edits += link_edits
        count += bool(link_edits)
    return (apply(data, edits), count) if edits else (data, 0)


def _redirect_edits(
    data: bytes, link: Link, source: LinkSource, note: VaultPath, destination: LinkDestination
) -> Iterator[Edit[bytes]]:
    if destination.note != note:
        shape = (
            shape_of(link.target, note, source.path, source.style)
            if link.target
            else Shape("name", extension=link.is_markdown)
        )
        edit = link_edit(data, link, shape, destination.note, source)
        if edit is None:
            return
        yield edit
    if destination.subpath != link.subpath:
        edit = subpath_edit(data, link, destination.subpath)
        if edit is not None:
            yield edit


class MovedText(Struct, frozen=True):
    """The result of moving text to another note.

    `text` is the text as it must read in the other note, `rest` the remaining source note,
    `changes` are the other notes whose links follow.
    """

    text: str
    rest: str
    changes: tuple[ModifyFile, ...] = ()
    problems: tuple[Problem, ...] = ()


def find_destination(into: str | None, ctx: ToolContext) -> VaultPath | None:
    """Return the path of the note that `into` names, which need not exist yet.

    Raise VaultError for a path outside the vault.
    """
    if into is None:
        return None
    path = paths.parse(into, PathUse.READ)
    entry = ctx.view.locate(path)
    return path if entry is None else entry.path


def copy_text(text: str, source: VaultPath, target: VaultPath | None, ctx: ToolContext) -> str:
    """Return a part of a note as it must read in another note, while the first one keeps it."""
    if target is None or target == source:
        return text
    return _with_links_adjusted(text, source, target, ctx, here=_anchors(text))


def move_text(
    text: str,
    rest: str,
    source: VaultPath,
    target: VaultPath | None,
    ctx: ToolContext,
    title: str | None = None,
) -> MovedText:
    """Move a part of a note to another note; `rest` is the text that remains.

    Links to the heading `title` will lead to the other note itself.
    """
    if target is None or target == source:
        return MovedText(text, rest)
    moved_anchors = _anchors(text) - _anchors(rest)
    problems: list[Problem] = []

    def follow(subpath: str) -> LinkDestination | None:
        keys = subpath_keys(subpath)
        if not keys or keys[-1] not in moved_anchors:
            return None
        if title is not None and keys[-1] == heading_key(title):
            return LinkDestination(target, "")
        return LinkDestination(target, _subpath_within(subpath, moved_anchors))

    index, style = ctx.view.index, ctx.run.link_style
    remaining, _ = redirect_in_file(rest.encode(), LinkSource(source, index, style), source, follow)
    files = redirect_links(ctx, source, follow, problems) if moved_anchors else {}
    changes = tuple(ModifyFile(path, data) for path, (data, _) in files.items() if path != source)
    moved = _with_links_adjusted(text, source, target, ctx, here=_anchors(text))
    if moved_anchors:
        content, _ = redirect_in_file(
            moved.encode(), LinkSource(target, index, style), source, follow
        )
        moved = content.decode()
    return MovedText(moved, remaining.decode(), changes, tuple(problems))


def _subpath_within(subpath: str, anchors: set[str]) -> str:
    """Return `#A#B` without the headings above a part of a note that has only these anchors."""
    parts = [part for part in subpath.split("#") if part.strip()]
    inner = list(
        takewhile(lambda part: heading_key(part) in anchors or part in anchors, reversed(parts))
    )
    return subpath if len(inner) == len(parts) else "".join(f"#{part}" for part in reversed(inner))


def _anchors(text: str) -> set[str]:
    """Return the headings and blocks of a text, in the form in which links are compared."""
    scanned = scan_text(text)
    return {heading_key(heading.text) for heading in scanned.headings} | {
        f"^{block.name}" for block in scanned.blocks
    }


def _with_links_adjusted(
    text: str, source: VaultPath, target: VaultPath, ctx: ToolContext, here: set[str]
) -> str:
    """Return the text with links rewritten that would mean something else in the other note."""
    data = text.encode()
    edits = [
        edit
        for link in scan_text(text).links
        if (edit := _link_edit(data, link, source, target, ctx, here=here)) is not None
    ]
    return apply(data, edits).decode() if edits else text


def _link_edit(
    data: bytes,
    link: Link,
    source: VaultPath,
    target: VaultPath,
    ctx: ToolContext,
    *,
    here: set[str],
) -> Edit[bytes] | None:
    index, style = ctx.view.index, ctx.run.link_style
    if not link.target:
        keys = subpath_keys(link.subpath)
        if not keys:
            return None
        if keys[-1] in here:
            within = _subpath_within(link.subpath, here)
            return subpath_edit(data, link, within) if within != link.subpath else None
        destination, shape = source, Shape("name", extension=link.is_markdown)
    else:
        file = index.resolve(link.target, source)
        if file is None or index.resolve(link.target, target) == file:
            return None
        destination, shape = file, shape_of(link.target, file, source, style)
    return link_edit(data, link, shape, destination, LinkSource(target, index, style))
