"""Links that lead nowhere in many notes: `vault.listUnresolved`, `vault.suggestLinks`, `vault.retargetLinks`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pydantic import Field
from rapidfuzz import fuzz, process, utils

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.notes import find_file
from obsidian_agent.tools.sources import NotesInput
from obsidian_agent.vault import paths
from obsidian_agent.vault.changes import ModifyFile
from obsidian_agent.vault.index import VaultIndex, index_of
from obsidian_agent.vault.linkgraph import links_of, unresolved_name
from obsidian_agent.vault.linktext import LinkStyle
from obsidian_agent.vault.names import extension
from obsidian_agent.vault.paths import PathUse, VaultPath
from obsidian_agent.vault.relink_shape import Shape, spellings
from obsidian_agent.vault.relink_text import Edit, apply, target_edit
from obsidian_agent.vault.resolve import link_key
from obsidian_agent.vault.scan_model import Link

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
    index = index_of(ctx.view)
    found: dict[str, _Lost] = {}
    for source in args.notes(ctx):
        for link in _dead_links(index, source, ctx, problems):
            name = unresolved_name(link.target)
            lost = found.setdefault(link_key(name), _Lost(name, extension(link.target).lower() not in _NOT_A_NOTE))
            lost.sources[source.text] = lost.sources.get(source.text, 0) + 1
    return sorted(found.values(), key=lambda lost: lost.name.casefold())


def _dead_links(index: VaultIndex, source: VaultPath, ctx: ToolContext, problems: list[Problem]) -> Iterator[Link]:
    if not any(target and index.resolve(target, source) is None for target in index.facts(source).targets):
        return
    try:
        links = links_of(source, ctx.view.read(source))
    except VaultError as error:
        problems.append(Problem(error.code, f"{source} is left out: {error.message}", path=source.text))
        return
    yield from (link for link in links if link.target and index.resolve(link.target, source) is None)


# --- vault.listUnresolved -----------------------------------------------------------------------------------------------------


class ListUnresolvedInput(NotesInput):
    files_too: bool = Field(default=False, description="Also missing pictures and other files, not only notes.")


class UnresolvedName(ToolModel):
    name: str = Field(description="What the links say, without .md.")
    count: int = Field(description="The number of links.")
    sources: list[str] = Field(description="The notes that link to it.")


class ListUnresolvedOutput(ToolModel):
    items: list[UnresolvedName]
    count: int


def _list_unresolved(args: ListUnresolvedInput, ctx: ToolContext) -> Proposal:
    problems: list[Problem] = []
    items = [
        UnresolvedName(name=lost.name, count=sum(lost.sources.values()), sources=list(lost.sources))
        for lost in _lost(args, ctx, problems)
        if lost.note or args.files_too
    ]
    return Proposal(ListUnresolvedOutput(items=items, count=len(items)), warnings=tuple(problems))


LIST_UNRESOLVED = Tool(
    name="vault.listUnresolved",
    summary="The names that links in a note, some notes or a folder ask for and no file has, each once, in alphabetical order.",
    risk=Risk.READ_ONLY,
    input=ListUnresolvedInput,
    output=ListUnresolvedOutput,
    propose=_list_unresolved,
)

# --- vault.suggestLinks -------------------------------------------------------------------------------------------------------


class SuggestLinksInput(NotesInput):
    pass


class LinkSuggestion(ToolModel):
    name: str = Field(description="What the links say.")
    path: str = Field(description="The file whose name is most like it.")
    score: float = Field(description="Likeness, from 0 to 100.")
    sources: list[str]


class SuggestLinksOutput(ToolModel):
    items: list[LinkSuggestion]
    count: int


def _suggest_links(args: SuggestLinksInput, ctx: ToolContext) -> Proposal:
    problems: list[Problem] = []
    files = list(index_of(ctx.view).files())
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
    return Proposal(SuggestLinksOutput(items=items, count=len(items)), warnings=tuple(problems))


SUGGEST_LINKS = Tool(
    name="vault.suggestLinks",
    summary="For links that lead nowhere, the file whose name is most like theirs; names that nothing resembles are left out.",
    risk=Risk.READ_ONLY,
    input=SuggestLinksInput,
    output=SuggestLinksOutput,
    propose=_suggest_links,
)

# --- vault.retargetLinks ------------------------------------------------------------------------------------------------------


class RetargetLinksInput(NotesInput):
    name: str = Field(min_length=1, description="What the links that lead nowhere say, without .md, as vault.listUnresolved tells it.")
    to: PathText = Field(min_length=1, description="The file that they shall mean.")


class RetargetedFile(ToolModel):
    path: str
    count: int


class RetargetLinksOutput(ToolModel):
    files: list[RetargetedFile]
    total: int


def _retarget_links(args: RetargetLinksInput, ctx: ToolContext) -> Proposal:
    target = find_file(ctx.view, args.to)
    index = index_of(ctx.view)
    wanted = link_key(args.name)
    problems: list[Problem] = []
    files: list[RetargetedFile] = []
    changes: list[ModifyFile] = []
    for source in args.notes(ctx):
        links = [link for link in _dead_links(index, source, ctx, problems) if link_key(unresolved_name(link.target)) == wanted]
        if not links:
            continue
        paths.parse(source.text, PathUse.UPDATE)
        data = ctx.view.read(source)
        content = apply(data, [_edit(data, link, target, source, index, ctx.run.link_style) for link in links])
        files.append(RetargetedFile(path=source.text, count=len(links)))
        changes.append(ModifyFile(source, content))
    if not files:
        problems.append(Problem("TEXT_NOT_FOUND", f"No link to “{args.name}” leads nowhere, so nothing is changed.", path=args.path))
    output = RetargetLinksOutput(files=files, total=sum(file.count for file in files))
    return Proposal(output, tuple(changes), tuple(problems))


def _edit(data: bytes, link: Link, target: VaultPath, source: VaultPath, index: VaultIndex, style: LinkStyle) -> Edit:
    """The link with a target that means the file, bare names before paths. ToolError when none can stand there."""
    shape = Shape("name", extension=link.is_markdown or not target.is_note)
    for spelling in spellings(shape, target, source, style):
        if index.resolve(spelling.text, source) == target and not (spelling.unique and len(index.named(link_key(target.stem))) > 1):
            edit = target_edit(data, link, spelling.text, canvas=False)
            if edit is not None:
                return edit
    message = f"The link {link.target!r} in {source} (line {link.line}) cannot be written so that it means {target}."
    raise ToolError(message, path=source.text)


RETARGET_LINKS = Tool(
    name="vault.retargetLinks",
    summary="Let links that lead nowhere mean a file that exists; their headings and display texts stay.",
    risk=Risk.WRITES,
    input=RetargetLinksInput,
    output=RetargetLinksOutput,
    propose=_retarget_links,
)
