"""Rewrite links.

`vault.retargetLinks` changes the target of links, `vault.convertLinks` their form.
`vault.removeLinks` turns them into plain text; `util.linkBullets` and `vault.linkMentions` turn
text into links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.filters import LinkWriter
from obsidian_agent.tools.core.lookup import find_file, skipped_note
from obsidian_agent.tools.core.models import (
    ChangedFile,
    ChangedFiles,
    NotesInput,
    ToolModel,
    path_of,
)
from obsidian_agent.tools.core.tool import LongText, PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.links.links import LinkSource, dead_links, link_edit, new_subpath
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.links.graph import links_of, unresolved_name
from obsidian_agent.vault.links.link_text import (
    Form,
    Shape,
    display_edit,
    link_target,
    markdown_encoded,
    relative_path,
    shape_of,
    target_edit,
)
from obsidian_agent.vault.links.mentions import link_separator, mention_pattern, with_links
from obsidian_agent.vault.links.resolve import LinkResolver, link_key
from obsidian_agent.vault.markdown.canvas import CANVAS
from obsidian_agent.vault.markdown.lines import bullets
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.markdown.note import links_in
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath
from obsidian_agent.vault.text import Edit, apply, decode, encode
from obsidian_agent.vault.views.changes import ModifyFile

_WIKI: Final = frozenset(("wikilink", "embed"))

_UNSAFE_LABEL: Final = re.compile(r"[\[\]\n\r]")

_UNSAFE_WIKI: Final = re.compile(r"[|\[\]\n\r#^]")

_LEAD: Final = re.compile(r"[ \t>]*(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]+\[[^\]\r\n]\])?[ \t]+")


class _LinksInput(NotesInput):
    """The arguments of a tool that changes links in notes."""

    def find(
        self, ctx: ToolContext, target: VaultPath | None, name: str | None, problems: list[Problem]
    ) -> Iterator[tuple[VaultPath, list[Link]]]:
        """Yield the files with their links to `target`, or their unresolved links called `name`.

        With neither, all links to files are selected.
        """
        index = ctx.view.index
        for source in self._sources(ctx, target):
            if name is not None:
                key = link_key(name)
                links = [
                    link
                    for link in dead_links(index, source, ctx, problems)
                    if link_key(unresolved_name(link.target)) == key
                ]
            else:
                links = list(_links_to(index, source, target, ctx, problems))
            if links:
                paths.parse(source.text, PathUse.UPDATE)
                yield source, links

    def _sources(self, ctx: ToolContext, target: VaultPath | None) -> list[VaultPath]:
        """Return the notes to search for links.

        If links to one file are searched in a folder or the vault, canvases are searched as well.
        """
        if target is None or self.path is not None or self.files is not None:
            return self.notes(ctx)
        folder = paths.parse(self.folder, PathUse.FOLDER) if self.folder else ROOT
        within = "" if folder.is_root else f"{folder.text}/"
        self.notes(ctx)  # raises if the folder does not exist
        linking = {target, *ctx.view.index.backlinks(target)}
        return sorted(source for source in linking if source.text.startswith(within))


def _links_to(
    index: VaultIndex,
    source: VaultPath,
    target: VaultPath | None,
    ctx: ToolContext,
    problems: list[Problem],
) -> Iterator[Link]:
    try:
        data = ctx.view.read(source)
        decode(data, source.text)
    except VaultError as error:
        problems.append(skipped_note(source, error))
        return
    for link in links_of(source, data):
        file = index.resolve(link.target, source) if link.target else None
        if file is not None and (target is None or file == target):
            yield link


def _proposal(
    changes: list[ModifyFile], counts: list[ChangedFile], problems: list[Problem], nothing: Problem
) -> Proposal[ChangedFiles]:
    if not counts:
        problems.append(nothing)
    return Proposal(ChangedFiles.of(counts), tuple(changes), tuple(problems))


class RetargetLinksInput(_LinksInput):
    name: str | None = Field(
        default=None,
        min_length=1,
        description="The name in unresolved links, without .md, as in vault.listUnresolved.",
    )
    from_: PathText | None = Field(
        default=None,
        alias="from",
        min_length=1,
        description="The file that the links lead to now, instead of name.",
    )
    to: PathText = Field(min_length=1, description="The file that they will lead to.")
    keep_text: bool = Field(
        default=False, description="Links without a display text keep showing the old name."
    )
    by_path: bool = Field(
        default=False, description="Write the path of the file even where its name is enough."
    )
    heading: LongText | None = Field(
        default=None,
        min_length=1,
        description="A heading of the target file, for unresolved links that name none.",
    )

    @model_validator(mode="after")
    def _one_target(self) -> RetargetLinksInput:
        if (self.name is None) == (self.from_ is None):
            raise ValueError("give exactly one of name and from")
        return self


@tool("vault.retargetLinks", Risk.WRITES)
def retarget_links(args: RetargetLinksInput, ctx: ToolContext) -> Proposal[ChangedFiles]:
    """Point links to another file: the links to a file, or the unresolved links with a name.

    Headings and display texts of the links do not change.
    """
    target = find_file(ctx.view, args.to)
    before = find_file(ctx.view, args.from_) if args.from_ is not None else None
    if before == target and not args.by_path:
        raise ToolError(f"The links already lead to {target}.", path=target.text)
    index = ctx.view.index
    problems: list[Problem] = []
    counts: list[ChangedFile] = []
    changes: list[ModifyFile] = []
    for source, links in args.find(ctx, before, args.name, problems):
        data = ctx.view.read(source)
        context = LinkSource(source, index, ctx.run.link_style)
        edits: list[Edit[bytes]] = []
        for link in links:
            edit = _retarget(data, link, before, target, context, by_path=args.by_path)
            if args.heading is not None and before is None and not link.subpath:
                edit = edit._replace(new=edit.new + new_subpath(link, args.heading).encode())
            edits.append(_with_text(data, link, edit) if args.keep_text else edit)
            label = (
                display_edit(data, link, before, target, canvas=source.suffix == CANVAS)
                if before is not None
                else None
            )
            edits += [label] if label is not None else []
        counts.append(ChangedFile(path=source.text, count=len(links)))
        changes.append(ModifyFile(source, apply(data, edits)))
        ctx.show(changes)
        problems += _warnings(links, before, target, source)
    links_text = f"unresolved link to “{args.name}”" if before is None else f"link to {before}"
    nothing = f"There is no {links_text}, so nothing is changed."
    return _proposal(changes, counts, problems, Problem("TEXT_NOT_FOUND", nothing, path=args.path))


def _retarget(
    data: bytes,
    link: Link,
    before: VaultPath | None,
    target: VaultPath,
    source: LinkSource,
    *,
    by_path: bool,
) -> Edit[bytes]:
    """Return the edit that points a link to the target and keeps the form of the link.

    An unresolved link gets the form of new links, by default a bare name. Raise ToolError if the
    target cannot be written in a link of that form.
    """
    if before is not None and link.kind != "canvas":
        shape = shape_of(link.target, before, source.path, source.style)
        shape = Shape(shape.form, shape.extension or not target.is_note, shape.dotted, shape.depth)
    else:
        form: Form = "name" if source.style.format == "shortest" else source.style.format
        shape = Shape(form, extension=link.is_markdown or not target.is_note)
    if by_path:
        shape = Shape("absolute", shape.extension)
    canvas = source.path.suffix == CANVAS
    if link.kind == "canvas":
        edit = target_edit(data, link, target.text, canvas=canvas)
    else:
        edit = link_edit(data, link, shape, target, source, canvas=canvas)
    if edit is not None:
        return edit
    message = (
        f"The link {link.target!r} in {source.path} (line {link.line}) "
        f"cannot be changed to lead to {target}."
    )
    raise ToolError(message, path=source.path.text)


def _with_text(data: bytes, link: Link, edit: Edit[bytes]) -> Edit[bytes]:
    """Return the edit with the old target as display text if a wikilink has no display text."""
    if link.kind != "wikilink" or link.display is not None or link.subpath:
        return edit
    separator = "\\|" if _is_in_table(data, link) else "|"
    return edit._replace(new=edit.new + f"{separator}{link.target}".encode())


def _is_in_table(data: bytes, link: Link) -> bool:
    """Return whether a pipe in a wikilink would end the cell of a table."""
    end = data.find(b"\n", link.end)
    if b"|" not in data[data.rfind(b"\n", 0, link.start) + 1 : end if end >= 0 else len(data)]:
        return False
    piped = apply(data, [Edit(link.target_end, link.target_end, b"|x")])
    return not any(other.start == link.start and other.target for other in links_in(piped))


def _warnings(
    links: list[Link], before: VaultPath | None, target: VaultPath, source: VaultPath
) -> Iterator[Problem]:
    """Yield warnings for the user to check.

    The new file may lack the headings and blocks of the links, and their display texts may name the
    old file.
    """
    subpaths = sorted({link.subpath for link in links if link.subpath})
    if subpaths and target.is_note:
        yield Problem(
            "LINK_PLACE",
            f"Links in {source} still lead to {', '.join(subpaths)}; "
            f"check that {target} has that heading or block.",
            path=source.text,
        )
    names = (before.name, before.stem) if before is not None else ()
    displays = sorted(
        {
            link.display.strip()
            for link in links
            if link.display and link.display.strip() not in names
        }
    )
    if displays and before is not None:
        texts = ", ".join(f"“{text}”" for text in displays)
        yield Problem(
            "LINK_TEXT", f"Links in {source} to {target} still show {texts}.", path=source.text
        )


class RemoveLinksInput(_LinksInput):
    to: PathText | None = Field(
        default=None,
        min_length=1,
        description="Only links to this file. Without to and name: all links to files.",
    )
    name: str | None = Field(
        default=None, min_length=1, description="Only unresolved links with this name."
    )

    @model_validator(mode="after")
    def _one_target(self) -> RemoveLinksInput:
        if self.name is not None and self.to is not None:
            raise ValueError("give only one of name and to")
        return self


@tool("vault.removeLinks", Risk.WRITES)
def remove_links(args: RemoveLinksInput, ctx: ToolContext) -> Proposal[ChangedFiles]:
    """Turn links into the text that they show.

    Selects links to a file, unresolved links with a name, or all links to files. Embeds and links
    to the web stay.
    """
    target = find_file(ctx.view, args.to) if args.to is not None else None
    problems: list[Problem] = []
    counts: list[ChangedFile] = []
    changes: list[ModifyFile] = []
    for source, links in args.find(ctx, target, args.name, problems):
        data = ctx.view.read(source)
        texts = [link for link in links if link.kind in ("wikilink", "markdown", "property")]
        if len(texts) < len(links):
            message = f"{len(links) - len(texts)} embeds in {source} stay unchanged."
            problems.append(Problem("LINKS_LEFT", message, path=source.text))
        if texts:
            content = apply(data, [_plain(data, link) for link in texts])
            _check_others_stay(data, content, texts, source)
            counts.append(ChangedFile(path=source.text, count=len(texts)))
            changes.append(ModifyFile(source, content))
            ctx.show(changes)
    scope = f" to {target or args.name}" if target or args.name else ""
    return _proposal(
        changes,
        counts,
        problems,
        Problem(
            "TEXT_NOT_FOUND", f"There is no link{scope}, so nothing is changed.", path=args.path
        ),
    )


def _plain(data: bytes, link: Link) -> Edit[bytes]:
    """Return the edit that replaces the link by its text; the quotes around a property stay."""
    if link.is_markdown:
        start, end = (
            data.find(b"[", link.start, link.target_start) + 1,
            data.rfind(b"](", link.start, link.target_start),
        )
        return Edit(link.start, link.end, data[start:end])
    opening = data.rfind(b"[[", link.start, link.target_start)
    closing = data.find(b"]]", link.target_end, link.end) + 2
    pipe = data.find(b"|", link.target_end, closing)
    if pipe >= 0:
        return Edit(opening, closing, data[pipe + 1 : closing - 2].strip())
    whole = data[link.target_start : closing - 2].strip()
    return Edit(
        opening,
        closing,
        whole if not link.subpath else b" > ".join(part for part in whole.split(b"#") if part),
    )


def _check_others_stay(before: bytes, after: bytes, removed: list[Link], source: VaultPath) -> None:
    """Raise ToolError if the plain texts create another link, or remove one."""
    removed_starts = {link.start for link in removed}
    remaining = [
        (link.kind, link.target, link.subpath)
        for link in links_in(before)
        if link.start not in removed_starts
    ]
    if [(link.kind, link.target, link.subpath) for link in links_in(after)] != remaining:
        raise ToolError(
            f"The links in {source} cannot be turned into text without changing other links.",
            path=source.text,
        )


class ConvertLinksInput(ToolModel):
    path: PathText = Field(min_length=1)
    to: Literal["wikilinks", "markdown"] = Field(
        description="The form of all links in the note's text; links in properties stay."
    )


class ConvertLinksOutput(ToolModel):
    path: str
    count: int = Field(description="The number of rewritten links.")


@tool("vault.convertLinks", Risk.WRITES)
def convert_links(args: ConvertLinksInput, ctx: ToolContext) -> Proposal[ConvertLinksOutput]:
    """Write the links of a note as wikilinks or as Markdown links; their targets stay the same."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    data = ctx.view.read(path)
    decode(data, path.text)
    converter = _Converter(path, ctx.view.index, LinkWriter(ctx.view))
    edits: list[Edit[bytes]] = []
    unchanged: list[str] = []
    for link in links_in(data):
        if link.kind in _WIKI if args.to == "markdown" else link.is_markdown:
            written = (
                converter.markdown(link)
                if args.to == "markdown"
                else converter.wiki(link, link_separator(_line_before(data, link)))
            )
            if written is None or link.form == "table":
                unchanged.append(link.display_text)
            else:
                edits.append(Edit(link.start, link.end, written.encode()))
    content = apply(data, edits)
    if edits:
        converter.check_targets(data, content)
    warnings = (
        (
            Problem(
                "LINKS_LEFT", f"These links stay unchanged: {', '.join(unchanged)}.", path=path.text
            ),
        )
        if unchanged
        else ()
    )
    return Proposal(
        ConvertLinksOutput(path=path.text, count=len(edits)),
        (ModifyFile(path, content),) if edits else (),
        warnings,
    )


class _Converter:
    """A converter of the links of one note between wikilinks and Markdown links."""

    def __init__(self, source: VaultPath, index: VaultIndex, writer: LinkWriter) -> None:
        self._source = source
        self._index = index
        self._writer = writer

    def markdown(self, link: Link) -> str | None:
        """Return the link as `[text](destination)`, or `None` if its text does not fit into one."""
        label = link.display if link.display is not None else link.display_text
        if _UNSAFE_LABEL.search(label):
            return None
        file = self._index.resolve(link.target, self._source) if link.target else None
        if file is not None:
            target = self._relative(file)
        else:
            target = link.target and (
                link.target if link.target.lower().endswith(".md") else f"{link.target}.md"
            )
        destination = _destination(target + link.subpath)
        return (
            None
            if destination is None
            else f"{'!' if link.kind == 'embed' else ''}[{label}]({destination})"
        )

    def wiki(self, link: Link, separator: str) -> str | None:
        """Return the link as `[[target|text]]`, or `None` if its target or text does not fit."""
        file = self._index.resolve(link.target, self._source) if link.target else None
        target = self._writer.target(file) if file is not None else link.target.removesuffix(".md")
        label = (link.display or "").strip()
        if _UNSAFE_WIKI.search(target) or _UNSAFE_LABEL.search(label) or "|" in label:
            return None
        whole = target + link.subpath
        display = (
            ""
            if label
            in ("", whole, target.rpartition("/")[2], " > ".join(filter(None, whole.split("#"))))
            else f"{separator}{label}"
        )
        return f"{'!' if link.kind == 'markdown-embed' else ''}[[{whole}{display}]]"

    def check_targets(self, before: bytes, after: bytes) -> None:
        """Raise ToolError unless every link is still present and keeps its target."""
        old, new = (
            [
                (self._index.resolve(link.target, self._source), link.subpath)
                for link in links_in(data)
                if link.target or link.subpath
            ]
            for data in (before, after)
        )
        if old != new:
            raise ToolError(
                f"The links of {self._source} cannot all be written in that form.",
                path=self._source.text,
            )

    def _relative(self, file: VaultPath) -> str:
        """Return a destination that leads to the file both in Obsidian and in other programs.

        It is relative to the note's folder, unless that leads to another file.
        """
        for text in (
            relative_path(file.text, self._source),
            f"./{relative_path(file.text, self._source)}",
            file.text,
            f"/{file.text}",
        ):
            if self._index.resolve(text, self._source) == file:
                return text
        return file.text


def _line_before(data: bytes, link: Link) -> str:
    return data[data.rfind(b"\n", 0, link.start) + 1 : link.start].decode()


def _destination(text: str) -> str | None:
    written = (
        markdown_encoded(text)
        .replace("<", "%3C")
        .replace(">", "%3E")
        .replace("(", "%28")
        .replace(")", "%29")
    )
    return None if re.search(r"[\n\r\\]", written) else written


class LinkBulletsInput(ToolModel):
    text: LongText = Field(description="The list, for example the selection.")
    notes: list[Any] = Field(
        description="For each item of util.parseMarkdownBullets, in its order: "
        "an object with path (an output of vault.createFile), "
        "a path, or null for an item that stays unchanged."
    )


class LinkBulletsOutput(ToolModel):
    text: str
    count: int = Field(description="The number of items that became links.")


@tool("util.linkBullets", Risk.READ_ONLY)
def link_bullets(args: LinkBulletsInput, ctx: ToolContext) -> Proposal[LinkBulletsOutput]:
    """Turn the items of a list into links to notes.

    Markers, checkboxes and all other lines stay.
    """
    items = bullets(args.text)
    if len(items) != len(args.notes):
        raise ToolError(
            f"The text has {len(items)} list items, but there are {len(args.notes)} notes.",
            code="COUNT_MISMATCH",
            hint="Give one note, or null, for each item.",
        )
    link = LinkWriter(ctx.view)
    parts: list[str] = []
    at = count = 0
    for bullet, note in zip(items, args.notes, strict=True):
        start = _line_start(args.text, bullet.raw, at)
        parts.append(args.text[at:start])
        parts.append(
            bullet.raw
            if note is None
            else _link_bullet(bullet.raw, bullet.text, link(path_of(note)))
        )
        count += note is not None
        at = start + len(bullet.raw)
    return Proposal(LinkBulletsOutput(text="".join([*parts, args.text[at:]]), count=count))


def _line_start(text: str, line: str, start: int) -> int:
    """Return the index of the next line that is exactly `line`."""
    while True:
        index = text.index(line, start)
        after = index + len(line)
        if (index == 0 or text[index - 1] in "\r\n") and (
            after == len(text) or text[after] in "\r\n"
        ):
            return index
        start = index + 1


def _link_bullet(line: str, text: str, link: str) -> str:
    lead = _LEAD.match(line)
    start = line.index(text, lead.end() if lead is not None else 0)
    return line[:start] + link + line[start + len(text) :]


class LinkMentionsInput(NotesInput):
    to: PathText = Field(
        min_length=1,
        description="The note that is mentioned by its name or by one of its aliases.",
    )
    occurrences: Literal["all", "first"] = Field(
        default="all", description="first: only the first mention in each note."
    )
    aliases: bool = Field(default=True, description="Whether its aliases count as its name.")
    text: str = Field(
        default="", description="Only this text, in this case, is a mention; by default any name."
    )


@tool("vault.linkMentions", Risk.WRITES)
def link_mentions(args: LinkMentionsInput, ctx: ToolContext) -> Proposal[ChangedFiles]:
    """Turn mentions of a note by its name or an alias into links; headings, code and tags stay."""
    target = find_file(ctx.view, args.to)
    names = [target.stem, *(ctx.view.index.facts(target).aliases if args.aliases else ())]
    if args.text.strip():
        pattern = mention_pattern([args.text], ignore_case=False)
    else:
        pattern = mention_pattern([name for name in names if name.strip()])
    resolver = LinkResolver(entry.path for entry in ctx.view.walk(ROOT) if entry.kind == "file")
    style = ctx.run.link_style
    problems: list[Problem] = []
    counts: list[ChangedFile] = []
    changes: list[ModifyFile] = []
    for source, text in args.texts(ctx, problems):
        if source == target or not pattern.search(text):
            continue
        name = link_target(resolver, target, source, style)
        first = args.occurrences == "first"
        content, count = with_links(text, pattern, name, first=first, markdown=style.markdown)
        if count:
            paths.parse(source.text, PathUse.UPDATE)
            counts.append(ChangedFile(path=source.text, count=count))
            changes.append(ModifyFile(source, encode(content)))
            ctx.show(changes)
    nothing = f"Nothing mentions {target} without a link, so nothing is changed."
    return _proposal(changes, counts, problems, Problem("TEXT_NOT_FOUND", nothing, path=args.path))
