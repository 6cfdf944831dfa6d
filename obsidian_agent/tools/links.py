"""Tools for the links of one note: `vault.getBacklinks`, `vault.getOutgoingLinks`, `vault.getUnresolvedLinks`."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.finding import unread
from obsidian_agent.tools.notes import find_file
from obsidian_agent.vault.index import index_of
from obsidian_agent.vault.linkgraph import links_of, unresolved_name
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.scan import Link
from obsidian_agent.vault.view import VaultView


class LinksInput(ToolModel):
    path: PathText = Field(min_length=1)


class LinkItem(ToolModel):
    path: str
    line: int = Field(description="From 1, in the file that links.")
    kind: str = Field(description="wikilink, embed, markdown, markdown-embed, property or canvas.")
    text: str = Field(description="What the link shows.")


class LinksOutput(ToolModel):
    items: list[LinkItem]
    count: int


def _answer(items: Iterable[LinkItem], warnings: tuple[Problem, ...] = ()) -> Proposal:
    found = sorted(items, key=lambda item: (item.path, item.line))
    return Proposal(LinksOutput(items=found, count=len(found)), warnings=warnings)


def _item(path: str, link: Link) -> LinkItem:
    return LinkItem(path=path, line=link.line, kind=link.kind, text=link.shown)


def _links(view: VaultView, path: VaultPath) -> tuple[Link, ...]:
    return links_of(path, view.read(path))


def _backlinks(args: LinksInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path)
    index = index_of(ctx.view)
    items: list[LinkItem] = []
    for source in index.linking(path):
        try:
            links = _links(ctx.view, source)
        except VaultError:
            continue
        items += [_item(source.text, link) for link in links if link.target and index.resolve(link.target, source) == path]
    return _answer(items, unread(index))


def _outgoing(args: LinksInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path)
    index = index_of(ctx.view)
    resolved = ((index.resolve(link.target, path), link) for link in _links(ctx.view, path))
    return _answer(_item(target.text, link) for target, link in resolved if target is not None)


def _unresolved(args: LinksInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path)
    index = index_of(ctx.view)
    lost = (link for link in _links(ctx.view, path) if index.resolve(link.target, path) is None)
    return _answer(_item(unresolved_name(link.target), link) for link in lost)


GET_BACKLINKS = Tool(
    name="vault.getBacklinks",
    summary="The links to a file: path is the note that links.",
    risk=Risk.READ_ONLY,
    input=LinksInput,
    output=LinksOutput,
    propose=_backlinks,
    aliases=("get_file_backlinks",),
)

GET_OUTGOING_LINKS = Tool(
    name="vault.getOutgoingLinks",
    summary="The links of a note that lead to files: path is the file.",
    risk=Risk.READ_ONLY,
    input=LinksInput,
    output=LinksOutput,
    propose=_outgoing,
    aliases=("get_outgoing_links",),
)

GET_UNRESOLVED_LINKS = Tool(
    name="vault.getUnresolvedLinks",
    summary="The links of a note that lead nowhere: path is the name that is missing, as the link has it.",
    risk=Risk.READ_ONLY,
    input=LinksInput,
    output=LinksOutput,
    propose=_unresolved,
)
