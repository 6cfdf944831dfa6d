"""`vault.convertLinks`: the links of a note as wikilinks or as Markdown links, each meaning what it meant."""

from __future__ import annotations

import re
from typing import Final, Literal

from pydantic import Field

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.linktext import LinkWriter
from obsidian_agent.tools.notes import find_file
from obsidian_agent.vault.changes import ModifyFile
from obsidian_agent.vault.index import VaultIndex, index_of
from obsidian_agent.vault.linktext import markdown_encoded
from obsidian_agent.vault.paths import PathUse, VaultPath
from obsidian_agent.vault.relink_shape import relative_path
from obsidian_agent.vault.relink_text import Edit, apply
from obsidian_agent.vault.scan import links_in
from obsidian_agent.vault.scan_model import Link
from obsidian_agent.vault.text import decode

_WIKI: Final = frozenset(("wikilink", "embed"))
_UNSAFE_LABEL: Final = re.compile(r"[\[\]\n\r]")
_UNSAFE_WIKI: Final = re.compile(r"[|\[\]\n\r#^]")


class ConvertLinksInput(ToolModel):
    path: PathText = Field(min_length=1)
    to: Literal["wikilinks", "markdown"] = Field(description="The form that all links of the note's text get; those in properties stay.")


class ConvertLinksOutput(ToolModel):
    path: str
    count: int = Field(description="How many links were written anew.")


def _convert_links(args: ConvertLinksInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    data = ctx.view.read(path)
    decode(data, path.text)
    converter = _Converter(path, index_of(ctx.view), LinkWriter(ctx.view))
    edits: list[Edit] = []
    left: list[str] = []
    for link in links_in(data):
        if link.kind in _WIKI if args.to == "markdown" else link.is_markdown:
            written = converter.markdown(link) if args.to == "markdown" else converter.wiki(link)
            if written is None or link.form == "table":
                left.append(link.shown)
            else:
                edits.append(Edit(link.start, link.end, written.encode()))
    content = apply(data, edits)
    if edits:
        converter.prove(data, content)
    warnings = (Problem("LINKS_LEFT", f"These links stay as they are: {', '.join(left)}.", path=path.text),) if left else ()
    return Proposal(ConvertLinksOutput(path=path.text, count=len(edits)), (ModifyFile(path, content),) if edits else (), warnings)


class _Converter:
    """Writes the links of one note anew."""

    def __init__(self, source: VaultPath, index: VaultIndex, writer: LinkWriter) -> None:
        self._source = source
        self._index = index
        self._writer = writer

    def markdown(self, link: Link) -> str | None:
        """The link as `[text](destination)`; None when its text cannot stand in one."""
        label = link.display if link.display is not None else link.shown
        if _UNSAFE_LABEL.search(label):
            return None
        file = self._index.resolve(link.target, self._source) if link.target else None
        if file is not None:
            target = self._relative(file)
        else:
            target = link.target and (link.target if link.target.lower().endswith(".md") else f"{link.target}.md")
        destination = _destination(target + link.subpath)
        return None if destination is None else f"{'!' if link.kind == 'embed' else ''}[{label}]({destination})"

    def wiki(self, link: Link) -> str | None:
        """The link as `[[target|text]]`; None when its target or text cannot stand in one."""
        file = self._index.resolve(link.target, self._source) if link.target else None
        target = self._writer.target(file) if file is not None else link.target.removesuffix(".md")
        label = (link.display or "").strip()
        if _UNSAFE_WIKI.search(target) or _UNSAFE_LABEL.search(label) or "|" in label:
            return None
        whole = target + link.subpath
        shown = "" if label in ("", whole, target.rpartition("/")[2], " > ".join(filter(None, whole.split("#")))) else f"|{label}"
        return f"{'!' if link.kind == 'markdown-embed' else ''}[[{whole}{shown}]]"

    def prove(self, before: bytes, after: bytes) -> None:
        """Every link is still there and leads where it did. ToolError when one does not."""
        old, new = (
            [(self._index.resolve(link.target, self._source), link.subpath) for link in links_in(data) if link.target or link.subpath]
            for data in (before, after)
        )
        if old != new:
            raise ToolError(f"The links of {self._source} cannot all be written in that form.", path=self._source.text)

    def _relative(self, file: VaultPath) -> str:
        """A destination that means the file in Obsidian and in other programs: seen from the note's folder, unless that means another."""
        for text in (relative_path(file.text, self._source), f"./{relative_path(file.text, self._source)}", file.text, f"/{file.text}"):
            if self._index.resolve(text, self._source) == file:
                return text
        return file.text


def _destination(text: str) -> str | None:
    written = markdown_encoded(text).replace("<", "%3C").replace(">", "%3E").replace("(", "%28").replace(")", "%29")
    return None if re.search(r"[\n\r\\]", written) else written


CONVERT_LINKS = Tool(
    name="vault.convertLinks",
    summary="Write the links of a note as wikilinks or as Markdown links; each leads where it did.",
    risk=Risk.WRITES,
    input=ConvertLinksInput,
    output=ConvertLinksOutput,
    propose=_convert_links,
)
