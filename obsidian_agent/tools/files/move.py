"""Files and folders that get another place: `vault.rename`, `vault.delete`.

What that means for links, and what making a file does: links are rewritten or warned of; bases (`.base`) are read as text and never changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from pydantic import Field

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.lookup import find_entry, new_path
from obsidian_agent.tools.core.models import ToolModel
from obsidian_agent.tools.core.tool import PathMark, PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.links.resolve import file_name
from obsidian_agent.vault.markdown.canvas import base_links
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse, VaultPath
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
from obsidian_agent.vault.views.view import Entry, VaultView, in_the_way


def find_broken_bases(
    view: VaultView, index: VaultIndex, moves: FileMoves, entry: Entry
) -> Iterator[VaultPath]:
    """The bases with a link whose meaning the moves change, or that ask for the folder `entry` by its path."""
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
            _is_broken(link.target, base, path, index, moves, after) for link in base_links(data)
        ):
            yield path


def _is_broken(
    target: str,
    base: VaultPath,
    path: VaultPath,
    index: VaultIndex,
    moves: FileMoves,
    after: LinksAfter,
) -> bool:
    before = index.resolve(target, base) if target else None
    return before is not None and (
        moves.after(before) is None or after.resolve(target, path) != moves.after(before)
    )


NAMED_IN_A_WARNING = 10
"""Files that a warning names; of the others it says how many there are."""


@dataclass(frozen=True, slots=True)
class LinkUpdates:
    """What a rename means for links: the changes to fold after it, the number of links they rewrite, and what to warn of."""

    changes: tuple[FileChange, ...] = ()
    count: int = 0
    warnings: tuple[Problem, ...] = ()


def update_links(ctx: ToolContext, entry: Entry, target: VaultPath) -> LinkUpdates:
    """The updates that keep the meaning of every link when `entry` becomes `target`. ToolError when a link cannot keep it."""
    index = ctx.view.index
    moves = moves_of_rename(ctx.view, entry, target)
    done = relink(ctx.view, index, moves, ctx.run.link_style, ctx.run.vault_name)
    changes = tuple(ModifyFile(file.path, file.content) for file in done.files)
    return LinkUpdates(
        changes, done.links, (*done.problems, *_bases(ctx, moves, entry), *_unread(index))
    )


def rename_warnings(ctx: ToolContext, entry: Entry, target: VaultPath) -> tuple[Problem, ...]:
    """Warnings for a rename that updates no links."""
    moves = moves_of_rename(ctx.view, entry, target)
    return (*_warnings(ctx, moves, entry.path), *_bases(ctx, moves, entry))


def delete_warnings(ctx: ToolContext, entry: Entry) -> tuple[Problem, ...]:
    """Warnings for a deletion."""
    moves = moves_of_delete(ctx.view, entry)
    return (*_warnings(ctx, moves, entry.path), *_bases(ctx, moves, entry))


def new_file_warnings(ctx: ToolContext, path: VaultPath) -> tuple[Problem, ...]:
    """Warnings for a new file whose name draws links to it that lead to another file now, as Obsidian lets it."""
    if not ctx.base.index.named(file_name(path)):
        return ()
    return _warnings(ctx, FileMoves(added=(path,)), path)


def _warnings(ctx: ToolContext, moves: FileMoves, path: VaultPath) -> tuple[Problem, ...]:
    index = ctx.view.index
    changes = LinkChanges(index, moves)
    lost: list[str] = []
    redirected: list[str] = []
    for source in changes.sources():
        found = changes.of_source(source).values()
        where = (moves.moved.get(source) or source).text
        if any(change.now is None for change in found):
            lost.append(where)
        if any(change.now is not None and change.now != change.wanted for change in found):
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


def _bases(ctx: ToolContext, moves: FileMoves, entry: Entry) -> Iterable[Problem]:
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
            f"Links in {_listed(names)} are not known, as that cannot be read.",
            path=names[0],
        )


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    shown = ", ".join(names[:NAMED_IN_A_WARNING])
    more = len(names) - NAMED_IN_A_WARNING
    return f"{len(names)} files ({shown}{f' and {more} more' if more > 0 else ''})"


class RenameInput(ToolModel):
    from_: PathText = Field(alias="from", min_length=1)
    to: Annotated[str, PathMark(moved_from="from")] = Field(
        min_length=1,
        description="The full new path with name and extension, never a folder to move into.",
    )
    update_links: bool = Field(default=True, description="Rewrite the links that lead there.")
    overwrite: bool = Field(
        default=False, description="A file in the way goes to the trash, where deletes are allowed."
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
    """The path below its folders as the vault spells them: a name in another Unicode form is the same folder."""
    if path.is_root:
        return path
    folder = view.locate(path.parent)
    parent = folder.path if folder is not None else _in_existing_spelling(view, path.parent)
    return path.rebased(path.parent, parent)


def _rename_output(old: VaultPath, new: VaultPath, count: int) -> RenameOutput:
    return RenameOutput(from_=old.text, to=new.text, path=new.text, links_updated=count)


def _refuse_bad_target(entry: Entry, target: VaultPath, overwrite: bool, view: VaultView) -> None:
    if target.within(entry.path):
        raise ToolError(f"{entry.path} cannot be moved into itself.", path=target.text)
    twin = in_the_way(view, target, entry.path)
    if twin is None:
        return
    in_way = view.locate(twin)
    if in_way is not None and in_way.kind == "folder":
        hint = f"to is the full new path: did you mean {f'{twin}/{entry.path.name}'!r}?"
        raise ToolError(
            f"{twin} is a folder that exists.", code="FILE_EXISTS", path=target.text, hint=hint
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
    trash_path: str = Field(description="Where it is now, inside the vault's own .trash/.")


@tool("vault.delete", Risk.WRITES, deletes=True)
def delete(args: DeleteInput, ctx: ToolContext) -> Proposal[DeleteOutput]:
    """Move a file or folder into the vault's own .trash/."""
    entry = find_entry(ctx.view, args.path)
    if entry.kind == "folder" and not args.recursive and ctx.view.children(entry.path):
        raise ToolError(
            f"The folder {entry.path} is not empty.",
            code="FOLDER_NOT_EMPTY",
            path=entry.path.text,
            hint="Say recursive: true.",
        )
    trash = _trash_target(ctx.view, entry.path)
    output = DeleteOutput(path=entry.path.text, deleted=True, trash_path=trash.text)
    return Proposal(output, (DeleteEntry(entry.path),), delete_warnings(ctx, entry))


def _trash_target(view: VaultView, path: VaultPath) -> VaultPath:
    """The name in the trash: an overlay knows which ones are taken, a bare disk is only asked in tests and look-ups."""
    return (
        view.trash_target(path) if isinstance(view, OverlayVault) else paths.trash_path(path.name)
    )
