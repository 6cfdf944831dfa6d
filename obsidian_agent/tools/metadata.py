"""`vault.getMetadata`: everything that is to be known of one file without reading it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from obsidian_agent.errors import Problem
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.moments import made_ms
from obsidian_agent.tools.notes import SparseOutput, find_file
from obsidian_agent.vault.changes import content_hash
from obsidian_agent.vault.index import VaultIndex, index_of
from obsidian_agent.vault.index_facts import note_facts
from obsidian_agent.vault.linkgraph import links_of
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.scan import Link, ScannedNote, names_of, scan_lossy


class MetadataInput(ToolModel):
    path: PathText = Field(min_length=1)


class MetadataHeading(ToolModel):
    text: str
    level: int
    line: int


class MetadataLink(ToolModel):
    target: str = Field(description="As the link has it, without heading.")
    subpath: str = Field(description="#heading, #^block or nothing.")
    text: str
    kind: str
    line: int
    path: str | None = Field(description="The file that it leads to; null when there is none.")


class MetadataTask(ToolModel):
    text: str
    status: str = Field(description="The character in the checkbox.")
    line: int


class MetadataOutput(SparseOutput):
    path: str
    frontmatter: dict[str, Any]
    tags: list[str]
    aliases: list[str]
    headings: list[MetadataHeading]
    links: list[MetadataLink]
    tasks: list[MetadataTask]
    size: int = Field(description="In bytes.")
    mtime_ms: float
    created_ms: float = Field(description="By its property created where that is a date, else by the file's own time.")
    hash: str


def _get_metadata(args: MetadataInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path)
    data = ctx.view.read(path)
    note = scan_lossy(data) if path.is_note else scan_lossy(b"")
    links = note.links if path.is_note else links_of(path, data)
    facts = note_facts(names_of(note), data)
    index = index_of(ctx.view)
    output = MetadataOutput(
        path=path.text,
        frontmatter=dict(facts.properties),
        tags=list(facts.tags),
        aliases=list(facts.aliases),
        headings=[MetadataHeading(text=heading.text, level=heading.level, line=heading.line) for heading in note.headings],
        links=[_link(index, path, link) for link in links],
        tasks=[MetadataTask(text=task.text, status=task.status, line=task.line) for task in note.tasks],
        size=len(data),
        mtime_ms=ctx.view.stat(path).mtime_ms,
        created_ms=made_ms(path, facts.properties, ctx),
        hash=content_hash(data),
    )
    return Proposal(output, warnings=_warnings(path, note))


def _link(index: VaultIndex, source: VaultPath, link: Link) -> MetadataLink:
    target = index.resolve(link.target, source)
    return MetadataLink(
        target=link.target,
        subpath=link.subpath,
        text=link.shown,
        kind=link.kind,
        line=link.line,
        path=None if target is None else target.text,
    )


def _warnings(path: VaultPath, note: ScannedNote) -> tuple[Problem, ...]:
    found = []
    if note.lossy:
        found.append(Problem("NOT_TEXT", f"{path} is not UTF-8; what could be read of it is told.", path=path.text))
    if note.properties_broken:
        found.append(Problem("FRONTMATTER_INVALID", f"The properties of {path} are no YAML, so they count as none.", path=path.text))
    return tuple(found)


GET_METADATA = Tool(
    name="vault.getMetadata",
    summary="Properties, tags, aliases, headings, links, tasks, size, time and hash of a file.",
    risk=Risk.READ_ONLY,
    input=MetadataInput,
    output=MetadataOutput,
    propose=_get_metadata,
    aliases=("get_file_metadata", "obsidian.get_note_metadata"),
)
