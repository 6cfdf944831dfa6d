"""What links there are: to and from a note, and those that lead nowhere, in one note or many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pydantic import Field

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.tools.core.lookup import find_file, left_out, unread
from obsidian_agent.tools.core.models import Items, NotesInput, ToolModel
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.links.graph import links_of, unresolved_name
from obsidian_agent.vault.links.resolve import link_key
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.paths.rules import extension
from obsidian_agent.vault.views.view import VaultView


class LinksInput(ToolModel):
    path: PathText = Field(min_length=1)


class LinkItem(ToolModel):
    path: str
    line: int = Field(description="From 1, in the file that links.")
    kind: str = Field(description="wikilink, embed, markdown, markdown-embed, property or canvas.")
    text: str = Field(description="What the link shows.")


def _answer(items: Iterable[LinkItem], warnings: tuple[Problem, ...] = ()) -> Proposal[Items[LinkItem]]:
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
        items += [_item(source.text, link) for link in links if link.target and index.resolve(link.target, source) == path]
    return _answer(items, unread(index))


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


_LEAST_ALIKE: Final = 75.0
_NOT_A_NOTE: Final = frozenset(
    f".{ending}"
    for ending in (
        *("png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "bmp", "pdf", "mp3", "mp4", "mov", "mkv", "webm", "wav", "ogg", "m4a"),
        *("flac", "3gp", "base", "canvas", "csv", "zip", "docx", "xlsx", "pptx", "txt", "json", "excalidraw"),
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
            lost = found.setdefault(link_key(name), _Lost(name, extension(link.target).lower() not in _NOT_A_NOTE))
            lost.sources[source.text] = lost.sources.get(source.text, 0) + 1
    return sorted(found.values(), key=lambda lost: lost.name.casefold())


def dead_links(index: VaultIndex, source: VaultPath, ctx: ToolContext, problems: list[Problem]) -> Iterator[Link]:
    """The links of a note that lead nowhere; why it could not be read goes to `problems`."""
    if not any(target and index.resolve(target, source) is None for target in index.facts(source).targets):
        return
    try:
        links = links_of(source, ctx.view.read(source))
    except VaultError as error:
        problems.append(left_out(source, error))
        return
    yield from (link for link in links if link.target and index.resolve(link.target, source) is None)


class ListUnresolvedInput(NotesInput):
    files_too: bool = Field(default=False, description="Also missing pictures and other files, not only notes.")


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
    path: str = Field(description="The file whose name is most like it.")
    score: float = Field(description="Likeness, from 0 to 100.")
    sources: list[str]


@tool("vault.suggestLinks", Risk.READ_ONLY)
def suggest_links(args: SuggestLinksInput, ctx: ToolContext) -> Proposal[Items[LinkSuggestion]]:
    """For links that lead nowhere, the file whose name is most like theirs; names that nothing resembles are left out."""
    from rapidfuzz import fuzz, process, utils

    problems: list[Problem] = []
    files = list(ctx.view.index.files())
    notes = {path.text: path.stem for path in files if path.is_note}
    others = {path.text: path.name for path in files if not path.is_note}
    items = []
    for lost in _lost(args, ctx, problems):
        wanted = lost.name.rpartition("/")[2]
        best = process.extractOne(
            wanted, notes if lost.note else others, scorer=fuzz.ratio, processor=utils.default_process, score_cutoff=_LEAST_ALIKE
        )
        if best is not None:
            items.append(LinkSuggestion(name=lost.name, path=best[2], score=round(best[1], 1), sources=list(lost.sources)))
    return Proposal(Items.of(items), warnings=tuple(problems))
