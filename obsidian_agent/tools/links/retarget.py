"""Links to one file, or to a name that no file has, as a whole: `vault.retargetLinks`, `vault.removeLinks`."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field, model_validator

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.lookup import find_file, left_out
from obsidian_agent.tools.core.models import NotesInput, ToolModel
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.links.anchors import link_edit
from obsidian_agent.tools.links.links import dead_links
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.links.graph import links_of, unresolved_name
from obsidian_agent.vault.links.link_text import LinkStyle, Shape, display_edit, shape_of, target_edit
from obsidian_agent.vault.links.resolve import link_key
from obsidian_agent.vault.markdown.canvas import CANVAS
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.markdown.note import links_in
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath
from obsidian_agent.vault.text import Edit, apply, decode
from obsidian_agent.vault.views.changes import ModifyFile


class ChangedLinks(ToolModel):
    path: str
    count: int


class ChangedLinksOutput(ToolModel):
    files: list[ChangedLinks]
    total: int


class _LinksInput(NotesInput):
    """Which links are meant, and in which notes."""

    def find(
        self, ctx: ToolContext, target: VaultPath | None, name: str | None, problems: list[Problem]
    ) -> Iterator[tuple[VaultPath, list[Link]]]:
        """The files with the links in them that lead to `target`, or that lead nowhere and say `name`; both None: those to any file."""
        index = ctx.view.index
        for source in self._sources(ctx, target):
            if name is not None:
                wanted = link_key(name)
                links = [link for link in dead_links(index, source, ctx, problems) if link_key(unresolved_name(link.target)) == wanted]
            else:
                links = list(_links_to(index, source, target, ctx, problems))
            if links:
                paths.parse(source.text, PathUse.UPDATE)
                yield source, links

    def _sources(self, ctx: ToolContext, target: VaultPath | None) -> list[VaultPath]:
        """The notes; of a file's links in a folder or the vault also the canvases that show it."""
        if target is None or self.path is not None or self.files is not None:
            return self.notes(ctx)
        folder = paths.parse(self.folder, PathUse.FOLDER) if self.folder else ROOT
        within = "" if folder.is_root else f"{folder.text}/"
        self.notes(ctx)  # says so when there is no such folder
        linking = {target, *ctx.view.index.linking(target)}
        return sorted(source for source in linking if source.text.startswith(within))


def _links_to(index: VaultIndex, source: VaultPath, target: VaultPath | None, ctx: ToolContext, problems: list[Problem]) -> Iterator[Link]:
    try:
        data = ctx.view.read(source)
        decode(data, source.text)
    except VaultError as error:
        problems.append(left_out(source, error))
        return
    for link in links_of(source, data):
        found = index.resolve(link.target, source) if link.target else None
        if found is not None and (target is None or found == target):
            yield link


def _answer(
    changes: list[ModifyFile], counts: list[ChangedLinks], problems: list[Problem], nothing: Problem
) -> Proposal[ChangedLinksOutput]:
    if not counts:
        problems.append(nothing)
    return Proposal(ChangedLinksOutput(files=counts, total=sum(file.count for file in counts)), tuple(changes), tuple(problems))


class RetargetLinksInput(_LinksInput):
    name: str | None = Field(
        default=None, min_length=1, description="What links that lead nowhere say, without .md, as vault.listUnresolved tells it."
    )
    from_: PathText | None = Field(
        default=None, alias="from", min_length=1, description="The file that the links mean now, instead of name."
    )
    to: PathText = Field(min_length=1, description="The file that they shall mean.")

    @model_validator(mode="after")
    def _one_target(self) -> RetargetLinksInput:
        if (self.name is None) == (self.from_ is None):
            raise ValueError("give exactly one of name and from")
        return self


@tool("vault.retargetLinks", Risk.WRITES)
def retarget_links(args: RetargetLinksInput, ctx: ToolContext) -> Proposal[ChangedLinksOutput]:
    """Let the links to a file, or those that lead nowhere and say a name, mean another file; headings and display texts stay."""
    target = find_file(ctx.view, args.to)
    before = find_file(ctx.view, args.from_) if args.from_ is not None else None
    if before == target:
        raise ToolError(f"The links to {target} mean it already.", path=target.text)
    index = ctx.view.index
    problems: list[Problem] = []
    counts: list[ChangedLinks] = []
    changes: list[ModifyFile] = []
    for source, links in args.find(ctx, before, args.name, problems):
        data = ctx.view.read(source)
        edits: list[Edit[bytes]] = []
        for link in links:
            edits.append(_retarget(data, link, before, target, source, index, ctx.run.link_style))
            label = display_edit(data, link, before, target, canvas=source.suffix == CANVAS) if before is not None else None
            edits += [label] if label is not None else []
        counts.append(ChangedLinks(path=source.text, count=len(links)))
        changes.append(ModifyFile(source, apply(data, edits)))
        problems += _warnings(links, before, target, source)
    said = f"“{args.name}” leads nowhere" if before is None else f"{before} is there"
    return _answer(changes, counts, problems, Problem("TEXT_NOT_FOUND", f"No link to {said}, so nothing is changed.", path=args.path))


def _retarget(
    data: bytes, link: Link, before: VaultPath | None, target: VaultPath, source: VaultPath, index: VaultIndex, style: LinkStyle
) -> Edit[bytes]:
    """The link with a target that means the file, written as it was; a new one with bare names before paths. ToolError when none can
    stand there."""
    if before is not None and link.kind != "canvas":
        shape = shape_of(link.target, before, source, style)
        shape = Shape(shape.form, shape.extension or not target.is_note, shape.dotted, shape.depth)
    else:
        shape = Shape("name", extension=link.is_markdown or not target.is_note)
    canvas = source.suffix == CANVAS
    if link.kind == "canvas":
        edit = target_edit(data, link, target.text, canvas=canvas)
    else:
        edit = link_edit(data, link, shape, target, source, index, style, canvas=canvas)
    if edit is not None:
        return edit
    message = f"The link {link.target!r} in {source} (line {link.line}) cannot be written so that it means {target}."
    raise ToolError(message, path=source.text)


def _warnings(links: list[Link], before: VaultPath | None, target: VaultPath, source: VaultPath) -> Iterator[Problem]:
    """What a person should look at: headings and blocks that the new file may not have, and texts that still name the old one."""
    places = sorted({link.subpath for link in links if link.subpath})
    if places and target.is_note:
        yield Problem(
            "LINK_PLACE", f"Links in {source} to {', '.join(places)} keep that place; see whether {target} has it.", path=source.text
        )
    names = (before.name, before.stem) if before is not None else ()
    shown = sorted({link.display.strip() for link in links if link.display and link.display.strip() not in names})
    if shown and before is not None:
        said = ", ".join(f"“{text}”" for text in shown)
        yield Problem("LINK_TEXT", f"Links in {source} to {target} still show {said}.", path=source.text)


class RemoveLinksInput(_LinksInput):
    to: PathText | None = Field(
        default=None, min_length=1, description="Only links to this file; all links to files when neither is given."
    )
    name: str | None = Field(default=None, min_length=1, description="Only links that lead nowhere and say this name.")

    @model_validator(mode="after")
    def _one_target(self) -> RemoveLinksInput:
        if self.name is not None and self.to is not None:
            raise ValueError("give only one of name and to")
        return self


@tool("vault.removeLinks", Risk.WRITES)
def remove_links(args: RemoveLinksInput, ctx: ToolContext) -> Proposal[ChangedLinksOutput]:
    """Turn links into the text that they show: those to a file, those of a name that no file has, or all; embeds and links to the web stay."""
    target = find_file(ctx.view, args.to) if args.to is not None else None
    problems: list[Problem] = []
    counts: list[ChangedLinks] = []
    changes: list[ModifyFile] = []
    for source, links in args.find(ctx, target, args.name, problems):
        data = ctx.view.read(source)
        texts = [link for link in links if link.kind in ("wikilink", "markdown", "property")]
        if len(texts) < len(links):
            left = f"{len(links) - len(texts)} embeds in {source} stay as they are."
            problems.append(Problem("LINKS_LEFT", left, path=source.text))
        if texts:
            content = apply(data, [_plain(data, link) for link in texts])
            _check_others_stay(data, content, texts, source)
            counts.append(ChangedLinks(path=source.text, count=len(texts)))
            changes.append(ModifyFile(source, content))
    said = f" to {target or args.name}" if target or args.name else ""
    return _answer(changes, counts, problems, Problem("TEXT_NOT_FOUND", f"There is no link{said}, so nothing is changed.", path=args.path))


def _plain(data: bytes, link: Link) -> Edit[bytes]:
    """The link as the text that it shows; the quotes around a property stay."""
    if link.is_markdown:
        start, end = data.find(b"[", link.start, link.target_start) + 1, data.rfind(b"](", link.start, link.target_start)
        return Edit(link.start, link.end, data[start:end])
    opening = data.rfind(b"[[", link.start, link.target_start)
    closing = data.find(b"]]", link.target_end, link.end) + 2
    pipe = data.find(b"|", link.target_end, closing)
    if pipe >= 0:
        return Edit(opening, closing, data[pipe + 1 : closing - 2].strip())
    whole = data[link.target_start : closing - 2].strip()
    return Edit(opening, closing, whole if not link.subpath else b" > ".join(part for part in whole.split(b"#") if part))


def _check_others_stay(before: bytes, after: bytes, removed: list[Link], source: VaultPath) -> None:
    """The other links are all still there. ToolError when the plain texts make another one, or take one with them."""
    gone = {link.start for link in removed}
    kept = [(link.kind, link.target, link.subpath) for link in links_in(before) if link.start not in gone]
    if [(link.kind, link.target, link.subpath) for link in links_in(after)] != kept:
        raise ToolError(f"The links in {source} cannot be turned into plain text one by one.", path=source.text)
