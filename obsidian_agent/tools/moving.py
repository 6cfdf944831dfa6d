"""Tools that change where things are: `vault.rename` and `vault.delete`."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import Field

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.notes import find_entry, new_path
from obsidian_agent.tools.renaming import links_left, links_lost, update_links
from obsidian_agent.vault import paths
from obsidian_agent.vault.changes import DeleteEntry, RenameEntry
from obsidian_agent.vault.paths import PathUse, VaultPath
from obsidian_agent.vault.view import Entry, VaultView

# --- vault.rename -------------------------------------------------------------------------------------------------------------


class RenameInput(ToolModel):
    from_: PathText = Field(alias="from", min_length=1)
    to: PathText = Field(min_length=1, description="The full new path with name and extension, never a folder to move into.")
    update_links: bool = Field(default=True, description="Rewrite the links that lead there.")
    overwrite: bool = Field(default=False, description="A file in the way goes to the trash, where deletes are allowed.")


class RenameOutput(ToolModel):
    from_: str = Field(alias="from")
    to: str
    path: str = Field(description="The same as to.")
    links_updated: int


def _rename(args: RenameInput, ctx: ToolContext) -> Proposal:
    entry = find_entry(ctx.view, args.from_)
    use = PathUse.MAKE_FOLDER if entry.kind == "folder" else PathUse.CREATE
    target = _in_existing_spelling(ctx.view, new_path(ctx.view, args.to, use, moved_from=entry.path))
    if target.text == entry.path.text:
        return Proposal(_renamed(entry.path, target, 0))
    _refuse_bad_target(entry, target, args.overwrite, ctx.view)
    rename = RenameEntry(entry.path, target, overwrite=args.overwrite)
    if not args.update_links:
        return Proposal(_renamed(entry.path, target, 0), (rename,), links_left(ctx, entry, target))
    links = update_links(ctx, entry, target)
    return Proposal(_renamed(entry.path, target, links.count), (rename, *links.changes), links.warnings)


def _in_existing_spelling(view: VaultView, path: VaultPath) -> VaultPath:
    """The path below its folders as the vault spells them: a name in another Unicode form is the same folder."""
    if path.is_root:
        return path
    folder = view.locate(path.parent)
    parent = folder.path if folder is not None else _in_existing_spelling(view, path.parent)
    return path.rebased(path.parent, parent)


def _renamed(old: VaultPath, new: VaultPath, count: int) -> RenameOutput:
    return RenameOutput(from_=old.text, to=new.text, path=new.text, links_updated=count)


def _refuse_bad_target(entry: Entry, target: VaultPath, overwrite: bool, view: VaultView) -> None:
    if target.within(entry.path):
        raise ToolError(f"{entry.path} cannot be moved into itself.", path=target.text)
    twin = view.twin(target)
    if twin is None or twin.text == entry.path.text:
        return
    in_way = view.locate(twin)
    if in_way is not None and in_way.kind == "folder":
        hint = f"to is the full new path: did you mean {f'{twin}/{entry.path.name}'!r}?"
        raise ToolError(f"{twin} is a folder that exists.", code="FILE_EXISTS", path=target.text, hint=hint)
    if not overwrite or entry.kind == "folder":
        raise ToolError(f"{twin} already exists.", code="FILE_EXISTS", path=target.text, hint="Choose another name.")


RENAME = Tool(
    name="vault.rename",
    summary="Rename or move a file or folder; links to it keep working.",
    risk=Risk.WRITES,
    input=RenameInput,
    output=RenameOutput,
    propose=_rename,
)

# --- vault.delete -------------------------------------------------------------------------------------------------------------


class DeleteInput(ToolModel):
    path: PathText = Field(min_length=1)
    recursive: bool = Field(default=False, description="Needed for a folder that is not empty.")


class DeleteOutput(ToolModel):
    path: str
    deleted: bool
    trash_path: str = Field(description="Where it is now, inside the vault's own .trash/.")


def _delete(args: DeleteInput, ctx: ToolContext) -> Proposal:
    entry = find_entry(ctx.view, args.path)
    if entry.kind == "folder" and not args.recursive and ctx.view.children(entry.path):
        raise ToolError(
            f"The folder {entry.path} is not empty.", code="FOLDER_NOT_EMPTY", path=entry.path.text, hint="Say recursive: true."
        )
    trash = _trash_target(ctx.view, entry.path)
    output = DeleteOutput(path=entry.path.text, deleted=True, trash_path=trash.text)
    return Proposal(output, (DeleteEntry(entry.path),), links_lost(ctx, entry))


def _trash_target(view: VaultView, path: VaultPath) -> VaultPath:
    """The name in the trash: an overlay knows which ones are taken, a bare disk is only asked in tests and look-ups."""
    target: Callable[[VaultPath], VaultPath] | None = getattr(view, "trash_target", None)
    return paths.trash_path(path.name) if target is None else target(path)


DELETE = Tool(
    name="vault.delete",
    summary="Move a file or folder into the vault's own .trash/.",
    risk=Risk.WRITES,
    input=DeleteInput,
    output=DeleteOutput,
    propose=_delete,
    deletes=True,
)
