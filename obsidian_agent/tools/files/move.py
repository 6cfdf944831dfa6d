"""Move and delete files and folders: `vault.rename`, `vault.delete`.

Also the effects on links and queries, including those of new files: a rename rewrites or reports
them. A deletion, and a rename that updates no links, only report links of bases (`.base`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from msgspec import Struct
from pydantic import Field

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.lookup import find_entry, new_path
from obsidian_agent.tools.core.models import ToolModel
from obsidian_agent.tools.core.query_updates import update_queries
from obsidian_agent.tools.core.tool import PathMark, PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.links.resolve import file_name
from obsidian_agent.vault.markdown.bases import base_links
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.refactor.query_renames import move_in_queries
from obsidian_agent.vault.refactor.rename_links import (
    FileMoves,
    LinkChanges,
    LinksAfter,
    moves_of_delete,
    moves_of_rename,
    relink,
)
from obsidian_agent.vault.views.changes import DeleteEntry, FileChange, ModifyFile, RenameEntry
from obsidian_agent.vault.views.overlay import OverlayVault
from obsidian_agent.vault.views.view import VaultEntry, VaultView, find_conflict

NAMED_IN_A_WARNING = 10
"""The number of files that a warning names; it only counts the others."""


def find_broken_bases(
    view: VaultView, index: VaultIndex, moves: FileMoves, entry: VaultEntry
) -> Iterator[VaultPath]:
    """Yield the bases with a link that the moves would break or redirect.

    A base that refers to the folder `entry` by its path counts as well.
    """
    after = LinksAfter(index, moves)
    folder = (
        re.compile(rb"inFolder\([\"'\\]*+%s[/\"'\\]" % re.escape(entry.path.text.encode()))
        if entry.kind == "folder"
        else None
    )
    for base in index.bases():
        path = moves.after(base)
        if path is None:
            continue
        try:
            data = view.read(base)
        except VaultError:
            continue
        if (folder is not None and folder.search(data)) or any(
            _is_broken(link.target, base, index, moves, after) for link in base_links(data)
        ):
            yield path


def _is_broken(
    target: str, base: VaultPath, index: VaultIndex, moves: FileMoves, after: LinksAfter
) -> bool:
    before, path = index.resolve(target, base) if target else None, moves.after(base)
    if before is None or path is None:
        return False
    moved = moves.after(before)
    return moved is None or after.resolve(target, path) != moved


class LinkUpdates(Struct, frozen=True):
    """The effect of a rename on links.

    These are the changes to apply after it, the number of links that they rewrite, and warnings.
    """

    changes: tuple[FileChange, ...] = ()
    count: int = 0
    warnings: tuple[Problem, ...] = ()


def update_links(ctx: ToolContext, entry: VaultEntry, target: VaultPath) -> LinkUpdates:
    """Return the updates that keep the meaning of links and queries when `entry` is `target`.

    Raise ToolError if a link cannot keep its meaning.
    """
    index = ctx.view.index
    moves = moves_of_rename(ctx.view, entry, target)
    done = relink(ctx.view, index, moves, ctx.run.link_style, ctx.run.vault_name)
    changes = [ModifyFile(file.path, file.content) for file in done.files]
    rename = move_in_queries(index, moves, entry, target, ctx.run.link_style)
    queries = update_queries(ctx, rename, changes, moves)
    return LinkUpdates(
        changes=tuple(sorted(queries.changes, key=lambda change: change.path)),
        count=done.links + sum(queries.counts.values()),
        warnings=(*done.problems, *queries.warnings, *_unread(index)),
    )


def rename_warnings(ctx: ToolContext, entry: VaultEntry, target: VaultPath) -> tuple[Problem, ...]:
    """Return the warnings for a rename that updates no links."""
    moves = moves_of_rename(ctx.view, entry, target)
    return (*_warnings(ctx, moves, entry.path), *_bases(ctx, moves, entry))


def delete_warnings(ctx: ToolContext, entry: VaultEntry) -> tuple[Problem, ...]:
    """Return the warnings for a deletion."""
    moves = moves_of_delete(ctx.view, entry)
    return (*_warnings(ctx, moves, entry.path), *_bases(ctx, moves, entry))


def new_file_warnings(ctx: ToolContext, path: VaultPath) -> tuple[Problem, ...]:
    """Return the warnings for a new file whose name captures links that now lead to another file.

    Obsidian resolves them so.
    """
    if not ctx.base.index.files_named(file_name(path)):
        return ()
    return _warnings(ctx, FileMoves(added=(path,)), path)


def _warnings(ctx: ToolContext, moves: FileMoves, path: VaultPath) -> tuple[Problem, ...]:
    index = ctx.view.index
    changes = LinkChanges(index, moves)
    lost: list[str] = []
    redirected: list[str] = []
    for source in changes.sources():
        redirects = changes.of_source(source).values()
        where = (moves.moved.get(source) or source).text
        if any(change.unedited is None for change in redirects):
            lost.append(where)
        if any(
            change.unedited is not None and change.unedited != change.after for change in redirects
        ):
            redirected.append(where)
    problems = []
    if lost:
        problems.append(
            Problem(
                "LINKS_UNRESOLVED", f"Links in {_listed(lost)} will lead nowhere.", path=path.text
            )
        )
    if redirected:
        problems.append(
            Problem(
                "LINKS_REDIRECTED",
                f"Links in {_listed(redirected)} will lead to another file.",
                path=path.text,
            )
        )
    return (*problems, *_unread(index))


def _bases(ctx: ToolContext, moves: FileMoves, entry: VaultEntry) -> Iterable[Problem]:
    names = [path.text for path in find_broken_bases(ctx.view, ctx.view.index, moves, entry)]
    if names:
        message = (
            f"Links in {_listed(names)} will lead elsewhere or nowhere: bases are not changed."
        )
        yield Problem("BASE_NOT_UPDATED", message, path=names[0])


def _unread(index: VaultIndex) -> Iterable[Problem]:
    names = sorted(index.problems)
    if names:
        yield Problem(
            index.problems[names[0]].code,
            f"Links in {_listed(names)} are unknown because of a read error.",
            path=names[0],
        )


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    names_shown = ", ".join(names[:NAMED_IN_A_WARNING])
    more = len(names) - NAMED_IN_A_WARNING
    return f"{len(names)} files ({names_shown}{f' and {more} more' if more > 0 else ''})"


class RenameInput(ToolModel):
    from_: PathText = Field(alias="from", min_length=1)
    to: Annotated[str, PathMark(moved_from="from")] = Field(
        min_length=1,
        description="The full new path with name and extension, never a folder to move into.",
    )
    update_links: bool = Field(default=True, description="Rewrite the links to it.")
    overwrite: bool = Field(
        default=False,
        description="Move an existing file at the new path to the trash, if deletes are allowed.",
    )


class RenameOutput(ToolModel):
    from_: str = Field(alias="from")
    to: str
    path: str = Field(description="The same as to.")
    links_updated: int


@tool("vault.rename", Risk.WRITES)
def rename(args: RenameInput, ctx: ToolContext) -> Proposal[RenameOutput]:
    """Rename or move a file or folder; links to it keep working."""
    entry = find_entry(ctx.view, args.from_)
    use = PathUse.MAKE_FOLDER if entry.kind == "folder" else PathUse.CREATE
    target = _in_existing_spelling(
        ctx.view, new_path(ctx.view, args.to, use, moved_from=entry.path)
    )
    if target.text == entry.path.text:
        return Proposal(_rename_output(entry.path, target, 0))
    _refuse_bad_target(entry, target, args.overwrite, ctx.view)
    rename = RenameEntry(entry.path, target, overwrite=args.overwrite)
    if not args.update_links:
        return Proposal(
            _rename_output(entry.path, target, 0), (rename,), rename_warnings(ctx, entry, target)
        )
    links = update_links(ctx, entry, target)
    return Proposal(
        _rename_output(entry.path, target, links.count), (rename, *links.changes), links.warnings
    )


def _in_existing_spelling(view: VaultView, path: VaultPath) -> VaultPath:
    """Return the path with its folders spelled as in the vault.

    A name in another Unicode form is the same folder.
    """
    if path.is_root:
        return path
    folder = view.locate(path.parent)
    parent = folder.path if folder is not None else _in_existing_spelling(view, path.parent)
    return path.rebased(path.parent, parent)


def _rename_output(old: VaultPath, new: VaultPath, count: int) -> RenameOutput:
    return RenameOutput(from_=old.text, to=new.text, path=new.text, links_updated=count)


def _refuse_bad_target(
    entry: VaultEntry, target: VaultPath, overwrite: bool, view: VaultView
) -> None:
    if target.within(entry.path):
        raise ToolError(f"{entry.path} cannot be moved into itself.", path=target.text)
    twin = find_conflict(view, target, entry.path)
    if twin is None:
        return
    in_way = view.locate(twin)
    if in_way is not None and in_way.kind == "folder":
        hint = f"to is the full new path: did you mean {f'{twin}/{entry.path.name}'!r}?"
        raise ToolError(
            f"{twin} is an existing folder.", code="FILE_EXISTS", path=target.text, hint=hint
        )
    if not overwrite or entry.kind == "folder":
        raise ToolError(
            f"{twin} already exists.",
            code="FILE_EXISTS",
            path=target.text,
            hint="Choose another name.",
        )


class DeleteInput(ToolModel):
    path: PathText = Field(min_length=1)
    recursive: bool = Field(default=False, description="Needed for a folder that is not empty.")


class DeleteOutput(ToolModel):
    path: str
    deleted: bool
    trash_path: str = Field(description="Its new path inside the vault's own .trash/.")


@tool("vault.delete", Risk.WRITES, deletes=True)
def delete(args: DeleteInput, ctx: ToolContext) -> Proposal[DeleteOutput]:
    """Move a file or folder into the vault's own .trash/."""
    entry = find_entry(ctx.view, args.path)
    if entry.kind == "folder" and not args.recursive and ctx.view.children(entry.path):
        raise ToolError(
            f"The folder {entry.path} is not empty.",
            code="FOLDER_NOT_EMPTY",
            path=entry.path.text,
            hint="Set recursive: true.",
        )
    trash = _trash_target(ctx.view, entry.path)
    output = DeleteOutput(path=entry.path.text, deleted=True, trash_path=trash.text)
    return Proposal(output, (DeleteEntry(entry.path),), delete_warnings(ctx, entry))


def _trash_target(view: VaultView, path: VaultPath) -> VaultPath:
    """Return the name in the trash.

    Only an overlay knows which names are in use; a bare disk is asked only in tests and look-ups.
    """
    return (
        view.trash_target(path) if isinstance(view, OverlayVault) else paths.trash_path(path.name)
    )
