"""What can happen to a vault, as data: the changes that tools propose, the operations that the executor carries out, and the net effect on each
path that people and programs see.

A tool proposes `FileChange`s. `OverlayVault` (overlay.py) folds them and yields a `ChangeSet`: the ordered `Operation`s that lead
from the vault on disk to the vault that was shown. Each file's content is written by exactly one `WriteFile`; structure (folders, moves,
trash) is replayed in the order in which the steps did it. The net effect comes from where every file was and what it holds now.

Unified diffs of net changes are exact, and fast enough to make ten thousand of them. Their lines end at "\\n" only, so a "\\r" stays visible as part
of its line. What two texts share at their start and end is cut off before difflib sees the rest; most edits of notes leave a line or two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.vault.filesystem.inventory import Inventory
from obsidian_agent.vault.paths.path import VaultPath


def content_hash(data: bytes) -> str:
    """SHA-256 of the bytes, as hex: the `hash` of the plan language."""
    return hashlib.sha256(data).hexdigest()


# --- what tools propose -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateFile:
    """A new file at a free path. Missing parents are made (and shown) by the overlay."""

    path: VaultPath
    content: bytes


@dataclass(frozen=True, slots=True)
class CursorMark:
    """Where an editor's step leaves the cursor: an index in the text of the new content; whether it used up the run's selection."""

    offset: int
    replaced: bool


@dataclass(frozen=True, slots=True)
class ModifyFile:
    """New content for a file that exists in the view. The tools of the editor also say where the cursor is then."""

    path: VaultPath
    content: bytes
    cursor: CursorMark | None = None


@dataclass(frozen=True, slots=True)
class RenameEntry:
    """A file or folder gets a new path. Missing parents of `new_path` are made. With `overwrite`, a file in the way goes to the trash."""

    path: VaultPath
    new_path: VaultPath
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class DeleteEntry:
    """A file or folder goes to the vault's own `.trash/` under a free name that the overlay picks."""

    path: VaultPath


@dataclass(frozen=True, slots=True)
class MakeFolder:
    """A folder, with the parents it lacks. No change when it exists."""

    path: VaultPath


FileChange = CreateFile | ModifyFile | RenameEntry | DeleteEntry | MakeFolder


# --- what the executor does ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MakeDir:
    """mkdir of one folder whose parent exists."""

    path: VaultPath


@dataclass(frozen=True, slots=True)
class Move:
    """Rename of a file or folder to a free path in an existing folder; with `trash`, into `.trash/`.

    `before_hash` is the content hash of a file (None for a folder, or a file too large to be read): the file must still have it.
    `inventory` is what was at the start in a folder that is moved, or the size and times of such a file: it must still be so.
    """

    path: VaultPath
    new_path: VaultPath
    folder: bool
    before_hash: str | None
    trash: bool = False
    inventory: Inventory | None = None


@dataclass(frozen=True, slots=True)
class WriteFile:
    """The one write of a file: created when `before_hash` is None, else replaced while it still has that hash."""

    path: VaultPath
    before_hash: str | None
    after_hash: str
    content: bytes


Operation = MakeDir | Move | WriteFile


@dataclass(frozen=True, slots=True)
class OwnedOperation:
    """An operation and the index (in the preview's list of instances) of the instance that causes it."""

    operation: Operation
    instance: int


ChangeKind = Literal["create", "modify", "delete", "rename", "mkdir"]


@dataclass(frozen=True, slots=True)
class NetChange:
    """The net effect on one path, as shown and approved.

    `before` is where the old content can be read in the vault as it was (None: there was none), `content` the new content
    (None: unchanged). A renamed and edited file is one rename with content. A folder that goes to the trash is one change; `files` counts
    the files that go with it.
    """

    kind: ChangeKind
    path: VaultPath
    new_path: VaultPath | None = None
    before: VaultPath | None = None
    content: bytes | None = None
    folder: bool = False
    files: int = 0
    before_hash: str | None = None
    """Of the old content, where it was read."""


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Everything a plan does to the vault: `operations` in the order of execution, `changes` as the net effect, sorted by path.

    `joined` are pairs of instances: what the first made of a file reaches the disk only with the operations of the second.
    """

    operations: tuple[OwnedOperation, ...] = ()
    changes: tuple[NetChange, ...] = ()
    joined: frozenset[tuple[int, int]] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class MovedFile:
    """A file that is new, changed or elsewhere: where it is, where it was (None: new), its new bytes (None: as they were)."""

    path: VaultPath
    origin: VaultPath | None
    content: bytes | None


@dataclass(frozen=True, slots=True)
class FolderMove:
    """A folder of the vault at the start, and where it is now."""

    origin: VaultPath
    path: VaultPath

    def after(self, old: VaultPath, new: VaultPath) -> FolderMove:
        """This move, followed by a move of `old` to `new`."""
        if self.path == old:
            return FolderMove(self.origin, new)
        return (
            FolderMove(self.origin, self.path.rebased(old, new)) if self.path.within(old) else self
        )


@dataclass(frozen=True, slots=True)
class Deletion:
    """An entry of the vault at the start that went to the trash; for a folder, `files` counts what went with it."""

    path: VaultPath
    folder: bool
    files: int


def net_changes(
    files: Iterable[MovedFile],
    folders: Iterable[VaultPath],
    moves: Sequence[FolderMove],
    deletions: Iterable[Deletion],
    hash_of: Callable[[VaultPath], str | None],
) -> tuple[NetChange, ...]:
    """The net changes, sorted by path: one a path, and two where something new stands at the place that something else left by a
    rename, or where a deleted folder was: the one that leaves comes first. What a folder's move explains is not listed again, unless
    its content changed too. `hash_of` knows what content was read."""
    gone = {
        each.path.text: NetChange("delete", each.path, folder=True, files=each.files)
        if each.folder
        else NetChange(
            "delete", each.path, before=each.path, files=each.files, before_hash=hash_of(each.path)
        )
        for each in deletions
    }
    leaving = [
        NetChange("rename", m.origin, new_path=m.path, folder=True)
        for m in moves
        if m.origin.text != m.path.text
    ]
    arriving = [NetChange("mkdir", folder, folder=True) for folder in folders]
    for file in files:
        change = _file_change(file, moves, None if file.origin is None else hash_of(file.origin))
        if change is None:
            continue
        replaced = gone.get(change.path.text)
        if change.kind == "create" and replaced is not None and not replaced.folder:
            del gone[change.path.text]
            change = NetChange(
                "modify",
                change.path,
                before=replaced.path,
                content=change.content,
                before_hash=replaced.before_hash,
            )
        (leaving if change.kind == "rename" else arriving).append(change)
    return tuple(sorted([*gone.values(), *leaving, *arriving], key=lambda change: change.path.text))


def _file_change(
    file: MovedFile, moves: Sequence[FolderMove], before_hash: str | None
) -> NetChange | None:
    if file.origin is None:
        return NetChange("create", file.path, content=file.content)
    if file.origin.text == file.path.text:
        if file.content is None:
            return None
        return NetChange(
            "modify", file.path, before=file.origin, content=file.content, before_hash=before_hash
        )
    if file.content is None and _carried(file.origin, moves) == file.path.text:
        return None
    return NetChange(
        "rename",
        file.origin,
        new_path=file.path,
        before=file.origin,
        content=file.content,
        before_hash=before_hash,
    )


def _carried(origin: VaultPath, moves: Sequence[FolderMove]) -> str:
    """Where the folder moves alone would have brought a file: the deepest folder that moved decides."""
    best = max(
        (move for move in moves if origin.within(move.origin)),
        key=lambda move: len(move.origin.text),
        default=None,
    )
    return origin.text if best is None else origin.rebased(best.origin, best.path).text
