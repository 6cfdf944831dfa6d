"""The history of a vault that was moved: its way to the state folder of the new path."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from obsidian_agent.journal import db, integrity
from obsidian_agent.journal.lock import vault_lock
from obsidian_agent.journal.state_folder import (
    ID_FILE,
    JOURNAL_FILE,
    Label,
    MovedVault,
    find,
    find_moved,
    inode_of,
    vault_id,
    write_label,
)
from obsidian_agent.state_files import make_private
from obsidian_agent.vault.filesystem.store import VaultStore

_NOT_MERGED: Final = frozenset(
    {
        ID_FILE,
        "lock",
        JOURNAL_FILE,
        f"{JOURNAL_FILE}-wal",
        f"{JOURNAL_FILE}-shm",
        integrity.REGISTER_FILE,
    }
)


def adopt(state: Path, store: VaultStore) -> MovedVault | None:
    """Move the state of a moved vault to the folder of its new path.

    Existing files there are not replaced. The journal is moved last, so an interrupted call can be
    repeated. Return None if there is nothing to move. Raise JournalError.
    """
    folder = find(state, store)
    moved = None if (folder / JOURNAL_FILE).exists() else find_moved(folder, store)
    if moved is None:
        return None
    database = moved.folder / JOURNAL_FILE
    with db.journal_errors(database), vault_lock(moved.folder / "lock", store.root_fd):
        db.set_vault(database, store.real_path)
        make_private(folder)
        _merge(moved.folder, folder)
        for name in (integrity.REGISTER_FILE, f"{JOURNAL_FILE}-wal", JOURNAL_FILE):
            with suppress(FileNotFoundError):
                (moved.folder / name).rename(folder / name)
        identity = vault_id(store)
        assert identity is not None
        write_label(folder, Label(identity, store.real_path, inode_of(store)))
        (moved.folder / ID_FILE).unlink(missing_ok=True)
    return moved


def _merge(source: Path, target: Path) -> None:
    for entry in source.iterdir():
        destination = target / entry.name
        if entry.name in _NOT_MERGED:
            continue
        if not destination.exists():
            entry.rename(destination)
        elif entry.is_dir() and destination.is_dir():
            _merge(entry, destination)
