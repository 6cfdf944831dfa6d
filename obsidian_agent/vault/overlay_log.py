"""What a plan does to the structure of a vault, in order, and what became of the folders and entries that were there at the start."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from obsidian_agent.vault.changes import MakeDir, Move, Operation, OwnedOperation
from obsidian_agent.vault.net import Deletion, FolderMove
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.view import Entry


@dataclass(frozen=True, slots=True)
class LogMark:
    """How far a log had come: its lists, and how many of their entries there were."""

    operations: tuple[list[OwnedOperation], int]
    folder_moves: tuple[list[FolderMove], int]
    deletions: tuple[list[Deletion], int]


class StructureLog:
    """Moves, deletions and new folders as they happen. Contents are not in here: they are written once, at the end."""

    def __init__(self) -> None:
        self._operations: list[OwnedOperation] = []
        self._folder_moves: list[FolderMove] = []
        self._deletions: list[Deletion] = []

    @property
    def operations(self) -> Sequence[OwnedOperation]:
        """In the order in which they were folded."""
        return self._operations

    @property
    def folder_moves(self) -> Sequence[FolderMove]:
        """The folders of the start that are elsewhere now."""
        return self._folder_moves

    @property
    def deletions(self) -> Sequence[Deletion]:
        """The entries of the start that are in the trash now; one inside a deleted folder is not listed again."""
        return self._deletions

    def mark(self) -> LogMark:
        """How far the log has come. Lists only grow or are replaced by others, so this is enough to come back."""
        moves, deletions = self._folder_moves, self._deletions
        return LogMark((self._operations, len(self._operations)), (moves, len(moves)), (deletions, len(deletions)))

    def rewind(self, mark: LogMark) -> None:
        """Forget what came after a mark."""
        self._operations, self._folder_moves, self._deletions = mark.operations[0], mark.folder_moves[0], mark.deletions[0]
        for entries, count in (mark.operations, mark.folder_moves, mark.deletions):
            del entries[count:]

    def add(self, operation: Operation, instance: int) -> None:
        """One more operation, of instance number `instance`."""
        self._operations.append(OwnedOperation(operation, instance))

    def folder_moved(self, path: VaultPath, target: VaultPath, origin: VaultPath | None) -> None:
        """A folder went from `path` to `target`; `origin` is where it was at the start, None when the plan made it."""
        self._folder_moves = [move.after(path, target) for move in self._folder_moves]
        if origin is not None and not any(move.origin.nfc == origin.nfc for move in self._folder_moves):
            self._folder_moves.append(FolderMove(origin, target))

    def deleted(self, entries: Iterable[tuple[Entry, VaultPath | None]], files: int) -> None:
        """An entry went to the trash: itself first, then what is below it, each with where it was at the start (None: new);
        `files` of them are files. What had been moved into it from elsewhere goes with it and is noted by its old path."""
        noted: list[VaultPath] = []
        for number, (entry, origin) in enumerate(entries):
            if number == 0:
                self._forget_moves_into(entry.path)
            if origin is None or any(origin.within(folder) for folder in noted):
                continue
            self._deletions.append(Deletion(origin, entry.kind == "folder", files if number == 0 else 0))
            if entry.kind == "folder":
                noted.append(origin)

    def went_through(self, folder: VaultPath) -> bool:
        """Whether any move had the folder, or something in it, as its start or its end."""
        moves = (owned.operation for owned in self._operations if isinstance(owned.operation, Move))
        return any(path == folder or path.within(folder) for move in moves for path in (move.path, move.new_path))

    def forget_folders(self, folders: Collection[VaultPath]) -> None:
        """The plan does not make these folders after all."""
        gone = {path.nfc for path in folders}
        kept = [o for o in self._operations if not (isinstance(o.operation, MakeDir) and o.operation.path.nfc in gone)]
        self._operations = kept

    def _forget_moves_into(self, gone: VaultPath) -> None:
        self._folder_moves = [move for move in self._folder_moves if move.path.nfc != gone.nfc and not move.path.within(gone)]
