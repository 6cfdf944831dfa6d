"""Create files and folders, and replace whole files."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from obsidian_agent.errors import Conflict, Problem, ToolError
from obsidian_agent.tools.core.lookup import content_change, new_path, now_ms
from obsidian_agent.tools.core.models import ToolModel
from obsidian_agent.tools.core.tool import LongText, PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.files.move import new_file_warnings
from obsidian_agent.vault.frontmatter.properties import edit_properties
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.paths.rules import with_mark
from obsidian_agent.vault.text import decode, encode
from obsidian_agent.vault.views.changes import CreateFile, MakeFolder, content_hash
from obsidian_agent.vault.views.overlay import OverlayVault
from obsidian_agent.vault.views.view import VaultView

_TRIED_ONE_BY_ONE = 50
"""The numbers that are tried in turn.

Beyond them the search doubles its steps, so that thousands of equal names stay quick.
"""


class EnsureFolderInput(ToolModel):
    path: PathText


class EnsureFolderOutput(ToolModel):
    path: str
    created: bool


@tool("vault.ensureFolder", Risk.WRITES)
def ensure_folder(args: EnsureFolderInput, ctx: ToolContext) -> Proposal[EnsureFolderOutput]:
    """Create a folder, with its missing parents, unless it exists."""
    existing = ctx.view.twin(paths.parse(args.path, PathUse.FOLDER))
    if existing is None:
        path = new_path(ctx.view, args.path, PathUse.MAKE_FOLDER)
        return Proposal(EnsureFolderOutput(path=path.text, created=True), (MakeFolder(path),))
    if not _is_folder(ctx.view, existing):
        raise ToolError(
            f"{existing} is a file, so it cannot be a folder.",
            code="NOT_A_FOLDER",
            path=existing.text,
        )
    return Proposal(EnsureFolderOutput(path=existing.text, created=False))


class CreateFileInput(ToolModel):
    path: PathText = Field(
        min_length=1,
        description="Path of the new file with its extension; missing folders are created.",
    )
    content: LongText
    if_not_exists: bool = Field(
        default=True,
        description="true: an existing file is unchanged, with a warning; false: it is an error.",
    )
    frontmatter: dict[str, Any] | None = Field(
        default=None, description="Properties, merged into the frontmatter that content may have."
    )
    on_conflict: Literal["suffix"] | None = Field(
        default=None, description="suffix: use the next free name instead, such as 'Note 2.md'."
    )


class CreateFileOutput(ToolModel):
    path: str
    created: bool
    hash: str
    mtime_ms: float | None = None


@tool("vault.createFile", Risk.WRITES, aliases=("obsidian.create_note",))
def create_file(args: CreateFileInput, ctx: ToolContext) -> Proposal[CreateFileOutput]:
    """Create a new file. An existing file is never overwritten."""
    path = new_path(ctx.view, args.path)
    is_made_here = _is_made_by_plan(ctx.view, path)
    twin = ctx.view.twin(path)
    if args.on_conflict == "suffix":
        if is_made_here or twin is not None:
            path = _free_name(path, ctx.view)
    elif is_made_here:
        raise ToolError(
            f"Another step of this plan already creates {twin or path}.",
            code="DUPLICATE_PATH",
            path=path.text,
            hint="Give each file its own name.",
            advice='Or set onConflict: "suffix".',
        )
    elif twin is not None:
        return _existing_file(args, ctx, path, twin)
    text = edit_properties(args.content, set=args.frontmatter) if args.frontmatter else args.content
    data = encode(text)
    output = CreateFileOutput(
        path=path.text, created=True, hash=content_hash(data), mtime_ms=now_ms(ctx.run)
    )
    return Proposal(output, (CreateFile(path, data),), new_file_warnings(ctx, path))


def _existing_file(
    args: CreateFileInput, ctx: ToolContext, path: VaultPath, twin: VaultPath
) -> Proposal[CreateFileOutput]:
    if _is_folder(ctx.view, twin):
        raise ToolError(
            f"{twin} is a folder.", code="FILE_EXISTS", path=path.text, hint="Choose another name."
        )
    if not args.if_not_exists:
        raise ToolError(
            f"{twin} already exists.",
            code="FILE_EXISTS",
            path=path.text,
            hint="Choose another name.",
            advice="Or edit it with vault.updateFile.",
        )
    stat = ctx.view.stat(twin)
    output = CreateFileOutput(
        path=twin.text,
        created=False,
        hash=content_hash(ctx.view.read(twin)),
        mtime_ms=stat.mtime_ms,
    )
    return Proposal(
        output,
        warnings=(
            Problem("FILE_EXISTS", f"{twin} already exists and is unchanged.", path=twin.text),
        ),
    )


def _is_made_by_plan(view: VaultView, path: VaultPath) -> bool:
    """Return whether an earlier step created this path, which only an overlay knows."""
    return isinstance(view, OverlayVault) and view.was_created_here(path)


def _free_name(path: VaultPath, view: VaultView) -> VaultPath:
    """Return the path with the smallest free number, or any free number after many used ones."""
    folder = path.text[: len(path.text) - len(path.name)]

    def numbered(number: int) -> VaultPath | None:
        candidate = new_path(view, folder + with_mark(path.name, f" {number}"))
        return candidate if view.twin(candidate) is None else None

    for number in range(2, _TRIED_ONE_BY_ONE):
        if free := numbered(number):
            return free
    used, step = _TRIED_ONE_BY_ONE - 1, 1
    while (free := numbered(used + step)) is None:
        used, step = used + step, step * 2
    while step > 1:
        step //= 2
        if nearer := numbered(used + step):
            free = nearer
        else:
            used += step
    return free


class WriteFileInput(ToolModel):
    path: PathText = Field(min_length=1)
    content: LongText = Field(
        description="The whole new content, which replaces the old one. "
        "Only text can be replaced, not a picture."
    )
    if_match: str | None = Field(
        default=None, description="Write only while the file has this hash."
    )


class WriteFileOutput(ToolModel):
    path: str
    created: bool
    bytes: int
    hash: str
    mtime_ms: float


@tool("vault.writeFile", Risk.WRITES)
def write_file(args: WriteFileInput, ctx: ToolContext) -> Proposal[WriteFileOutput]:
    """Replace the whole content of a file, or create it."""
    path, before = _target(args.path, ctx.view)
    if before is not None:
        decode(before, path.text)
    if args.if_match is not None and (
        before is None or content_hash(before) != args.if_match.lower()
    ):
        state = "does not exist" if before is None else "does not match the hash in ifMatch"
        raise Conflict(
            f"{path} {state}.", path=path.text, hint="Read the file again and use its hash."
        )
    data = encode(args.content)
    changes = content_change(path, before, data)
    mtime = now_ms(ctx.run) if changes else ctx.view.stat(path).mtime_ms
    return Proposal(
        WriteFileOutput(
            path=path.text,
            created=before is None,
            bytes=len(data),
            hash=content_hash(data),
            mtime_ms=mtime,
        ),
        changes,
        new_file_warnings(ctx, path) if before is None else (),
    )


def _target(text: str, view: VaultView) -> tuple[VaultPath, bytes | None]:
    """Return the file to write and its bytes, `None` for a new file.

    A file that exists in another spelling is never written instead of the named one.
    """
    path = paths.parse(text, PathUse.UPDATE)
    entry = view.locate(path)
    if entry is not None:
        return entry.path, view.read(entry.path)
    return new_file(text, view), None


def new_file(text: str, view: VaultView) -> VaultPath:
    """Return the path of a file to create. Raise FILE_EXISTS if it exists in another spelling."""
    path = new_path(view, text)
    twin = view.twin(path)
    if twin is not None:
        raise ToolError(
            f"{twin} exists in another spelling.",
            code="FILE_EXISTS",
            path=path.text,
            hint=f"Use {twin.text!r}.",
        )
    return path


def _is_folder(view: VaultView, path: VaultPath) -> bool:
    entry = view.locate(path)
    return entry is not None and entry.kind == "folder"
