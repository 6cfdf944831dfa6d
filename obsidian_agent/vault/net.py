"""The net effect of a plan on each path, from where every file came and what it holds now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from obsidian_agent.vault.changes import NetChange
from obsidian_agent.vault.paths import VaultPath


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
        if self.path.nfc == old.nfc:
            return FolderMove(self.origin, new)
        return FolderMove(self.origin, self.path.rebased(old, new)) if self.path.within(old) else self


@dataclass(frozen=True, slots=True)
class Deletion:
    """An entry of the vault at the start that went to the trash; for a folder, `files` counts what went with it."""

    path: VaultPath
    folder: bool
    files: int


def net_changes(
    files: Iterable[MovedFile], folders: Iterable[VaultPath], moves: Sequence[FolderMove], deletions: Iterable[Deletion]
) -> tuple[NetChange, ...]:
    """The net changes, sorted by path: one a path, and two where something new stands at the place that something else left by a
    rename, or where a deleted folder was: the one that leaves comes first. What a folder's move explains is not listed again, unless
    its content changed too."""
    gone = {
        deletion.path.nfc: NetChange(
            "delete", deletion.path, before=None if deletion.folder else deletion.path, folder=deletion.folder, files=deletion.files
        )
        for deletion in deletions
    }
    leaving = [NetChange("rename", m.origin, new_path=m.path, folder=True) for m in moves if m.origin.text != m.path.text]
    arriving = [NetChange("mkdir", folder, folder=True) for folder in folders]
    for file in files:
        change = _file_change(file, moves)
        if change is None:
            continue
        replaced = gone.get(change.path.nfc)
        if change.kind == "create" and replaced is not None and not replaced.folder:
            del gone[change.path.nfc]
            change = NetChange("modify", change.path, before=replaced.path, content=change.content)
        (leaving if change.kind == "rename" else arriving).append(change)
    return tuple(sorted([*gone.values(), *leaving, *arriving], key=lambda change: change.path.text))


def _file_change(file: MovedFile, moves: Sequence[FolderMove]) -> NetChange | None:
    if file.origin is None:
        return NetChange("create", file.path, content=file.content)
    if file.origin.text == file.path.text:
        return None if file.content is None else NetChange("modify", file.path, before=file.origin, content=file.content)
    if file.content is None and _carried(file.origin, moves) == file.path.text:
        return None
    return NetChange("rename", file.origin, new_path=file.path, before=file.origin, content=file.content)


def _carried(origin: VaultPath, moves: Sequence[FolderMove]) -> str:
    """Where the folder moves alone would have brought a file: the deepest folder that moved decides."""
    best = max((move for move in moves if origin.within(move.origin)), key=lambda move: len(move.origin.text), default=None)
    return origin.text if best is None else origin.rebased(best.origin, best.path).text
