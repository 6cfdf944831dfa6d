"""Read files and folders: texts, listings, metadata and word counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from obsidian_agent.errors import ObsidianAgentError, Problem, ToolError
from obsidian_agent.tools.core.lookup import (
    find_file,
    find_folder,
    page,
    without_properties,
    word_count,
)
from obsidian_agent.tools.core.models import NotesInput, SparseOutput, ToolModel, Whole
from obsidian_agent.tools.core.moment import created_ms
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.vault.index.index import VaultIndex, note_facts
from obsidian_agent.vault.links.graph import links_of
from obsidian_agent.vault.markdown.model import Link, ScannedNote
from obsidian_agent.vault.markdown.note import names_of, scan_lossy
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.text import BOM, decode
from obsidian_agent.vault.views.changes import content_hash
from obsidian_agent.vault.views.view import VaultEntry, VaultView


class ReadFileInput(ToolModel):
    path: PathText = Field(min_length=1)
    max_bytes: Whole | None = Field(default=None, ge=1, description="The maximum number of bytes.")
    offset: Whole = Field(
        default=0, ge=0, description="Start at this byte: nextOffset of the page before."
    )


class ReadFileOutput(SparseOutput):
    path: str
    content: str
    hash: str
    mtime_ms: float
    truncated: bool
    next_offset: int | None = None


@tool("vault.readFile", Risk.READ_ONLY, aliases=("read_vault_file", "obsidian.read_note"))
def read_file(args: ReadFileInput, ctx: ToolContext) -> Proposal[ReadFileOutput]:
    """Read a file, whole or a page of it, with its hash."""
    path = find_file(ctx.view, args.path)
    data = ctx.view.read(path)
    content = decode(data, path.text)
    end = len(data)
    if args.offset or args.max_bytes is not None:
        start = _forward(data, args.offset)
        end = start + args.max_bytes if args.max_bytes is not None else len(data)
        end = _page_end(data, start, end)
        content = data[start:end].decode()
    truncated = end < len(data)
    output = ReadFileOutput(
        path=path.text,
        content=content,
        hash=content_hash(data),
        mtime_ms=ctx.view.stat(path).mtime_ms,
        truncated=truncated,
        next_offset=end if truncated else None,
    )
    return Proposal(output)


def _forward(data: bytes, index: int) -> int:
    """Return the next index at or after `index` where a UTF-8 character starts."""
    index = min(index, len(data))
    while index < len(data) and data[index] & 0xC0 == 0x80:
        index += 1
    return index


def _page_end(data: bytes, start: int, end: int) -> int:
    """Return the last index at or before `end` where a character starts.

    It is at least one character after `start`, so that paging always advances.
    """
    if end >= len(data):
        return len(data)
    while end > start and data[end] & 0xC0 == 0x80:
        end -= 1
    return end if end > start else _forward(data, start + 1)


class ReadFilesInput(ToolModel):
    file_paths: list[PathText]


class ReadFilesEntry(SparseOutput):
    path: str
    content: str | None = None
    size: int | None = Field(default=None, description="In bytes.")
    error: str | None = None


class ReadFilesOutput(ToolModel):
    files: list[ReadFilesEntry]


@tool("vault.readFiles", Risk.READ_ONLY, aliases=("file_read",))
def read_files(args: ReadFilesInput, ctx: ToolContext) -> Proposal[ReadFilesOutput]:
    """Read several files; a file that cannot be read has an error instead of a content."""
    return Proposal(ReadFilesOutput(files=[_read_one(ctx.view, text) for text in args.file_paths]))


def _read_one(view: VaultView, text: str) -> ReadFilesEntry:
    try:
        path = find_file(view, text)
        data = view.read(path)
        return ReadFilesEntry(path=path.text, content=decode(data, path.text), size=len(data))
    except ObsidianAgentError as error:
        problem = error.problem()
        return ReadFilesEntry(path=text, error=f"{problem.code}: {problem.message}")


class ListFilesInput(ToolModel):
    folder: PathText | None = Field(default=None, description="By default the whole vault.")
    recursive: bool = True
    extension: str | None = Field(default=None, description="Without the dot, such as md.")
    limit: Whole | None = Field(
        default=None, ge=0, description="The maximum number of files; by default all."
    )
    offset: Whole = Field(default=0, ge=0)


class ListedFile(ToolModel):
    path: str
    name: str = Field(description="Without folder and extension.")
    size: int = Field(description="In bytes.")
    mtime_ms: float


class ListFilesOutput(ToolModel):
    files: list[ListedFile]
    folders: list[str]
    count: int = Field(description="The number of files in this answer.")
    has_more: bool


@tool("vault.listFiles", Risk.READ_ONLY, aliases=("list_vault_files", "obsidian.list_notes"))
def list_files(args: ListFilesInput, ctx: ToolContext) -> Proposal[ListFilesOutput]:
    """List the files and folders below a folder, sorted by path."""
    folder = find_folder(ctx.view, args.folder)
    entries = list(ctx.view.walk(folder) if args.recursive else ctx.view.children(folder))
    paths, more = page(list(_with_extension(entries, args.extension)), args.limit, args.offset)
    files = [_listed(ctx.view, path) for path in paths]
    folders = [entry.path.text for entry in entries if entry.kind == "folder"]
    return Proposal(ListFilesOutput(files=files, folders=folders, count=len(files), has_more=more))


def _with_extension(entries: Iterable[VaultEntry], extension: str | None) -> Iterable[VaultPath]:
    files = (entry.path for entry in entries if entry.kind == "file")
    if extension is None:
        return files
    if "/" in extension or "*" in extension:
        raise ToolError(
            f"{extension!r} is not a file extension.",
            hint="Give it without dot and wildcard, such as md.",
        )
    suffix = f".{extension.lstrip('.').lower()}"
    return (path for path in files if path.suffix == suffix)


def _listed(view: VaultView, path: VaultPath) -> ListedFile:
    stat = view.stat(path)
    return ListedFile(path=path.text, name=path.stem, size=stat.size, mtime_ms=stat.mtime_ms)


class MetadataInput(ToolModel):
    path: PathText = Field(min_length=1)


class MetadataHeading(ToolModel):
    text: str
    level: int
    line: int


class MetadataLink(ToolModel):
    target: str = Field(description="As written in the link, without heading.")
    subpath: str = Field(description="#heading, #^block or empty.")
    text: str
    kind: str
    line: int
    path: str | None = Field(description="The file that it leads to, or null.")


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
    created_ms: float = Field(
        description="The property created if that is a date, else the file's own time."
    )
    hash: str


@tool(
    "vault.getMetadata", Risk.READ_ONLY, aliases=("get_file_metadata", "obsidian.get_note_metadata")
)
def get_metadata(args: MetadataInput, ctx: ToolContext) -> Proposal[MetadataOutput]:
    """Return the metadata of a file: properties, tags, links and more.

    Also aliases, headings, tasks, size, time and hash.
    """
    path = find_file(ctx.view, args.path)
    data = ctx.view.read(path)
    note = scan_lossy(data) if path.is_note else scan_lossy(b"")
    links = note.links if path.is_note else links_of(path, data)
    facts = note_facts(names_of(note), data)
    index = ctx.view.index
    output = MetadataOutput(
        path=path.text,
        frontmatter=dict(facts.properties),
        tags=list(facts.tags),
        aliases=list(facts.aliases),
        headings=[
            MetadataHeading(text=heading.text, level=heading.level, line=heading.line)
            for heading in note.headings
        ],
        links=[_link(index, path, link) for link in links],
        tasks=[
            MetadataTask(text=task.text, status=task.status, line=task.line) for task in note.tasks
        ],
        size=len(data),
        mtime_ms=ctx.view.stat(path).mtime_ms,
        created_ms=created_ms(path, facts.properties, ctx),
        hash=content_hash(data),
    )
    return Proposal(output, warnings=_warnings(path, note))


def _link(index: VaultIndex, source: VaultPath, link: Link) -> MetadataLink:
    target = index.resolve(link.target, source)
    return MetadataLink(
        target=link.target,
        subpath=link.subpath,
        text=link.display_text,
        kind=link.kind,
        line=link.line,
        path=None if target is None else target.text,
    )


def _warnings(path: VaultPath, note: ScannedNote) -> tuple[Problem, ...]:
    problems = []
    if note.lossy:
        problems.append(
            Problem(
                "NOT_TEXT",
                f"{path} is not UTF-8; only the readable part of it is reported.",
                path=path.text,
            )
        )
    if note.properties_broken:
        problems.append(
            Problem(
                "FRONTMATTER_INVALID",
                f"The properties of {path} are not valid YAML, so they are ignored.",
                path=path.text,
            )
        )
    return tuple(problems)


class CountedNote(ToolModel):
    path: str
    words: int
    characters: int = Field(description="Including spaces and line breaks.")


class CountWordsOutput(ToolModel):
    files: list[CountedNote]
    words: int
    characters: int
    count: int = Field(description="The number of notes.")


@tool("vault.countWords", Risk.READ_ONLY)
def count_words(args: NotesInput, ctx: ToolContext) -> Proposal[CountWordsOutput]:
    """Count the words and characters of a note, some notes or a folder, without properties."""
    problems: list[Problem] = []
    files = []
    for path, text in args.texts(ctx, problems):
        body = without_properties(text).removeprefix(BOM)
        files.append(CountedNote(path=path.text, words=word_count(body), characters=len(body)))
    output = CountWordsOutput(
        files=files,
        words=sum(file.words for file in files),
        characters=sum(file.characters for file in files),
        count=len(files),
    )
    return Proposal(output, warnings=tuple(problems))
