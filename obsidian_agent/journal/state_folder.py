"""The state folder of a vault, also after the vault was renamed or moved.

The folder is named after the vault's real path. Vault and folder share an id, created by the first
run that changes something: `.obsidian-agent/vault.json` in the vault, and `vault.json` in the
folder with the path of the vault. A vault at another path than its id was last seen at was moved,
or copied if a vault with that id still exists at the old path. A copy gets a new id.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from obsidian_agent.errors import ObsidianAgentError, VaultError
from obsidian_agent.state_files import replace_file
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import APP_FOLDER, clean_component, custom_path

JOURNAL_FILE: Final = "journal.db"
ID_FILE: Final = "vault.json"
_ID_LIMIT: Final = 4096
"""Bytes read of an id file."""


class Label(Struct, frozen=True):
    """The owner of a state folder.

    `inode` belongs to the vault's folder; it distinguishes successive folders at one path.
    """

    id: str
    path: str
    inode: int


class MovedVault(Struct, frozen=True):
    """The previous path of a vault, and the state folder with its history."""

    path: str
    folder: Path


def vault_key(real_path: str) -> str:
    """Return the readable and unique name of a vault's folder below the state folder."""
    digest = hashlib.sha256(os.fsencode(real_path)).hexdigest()[:12]
    return f"{digest}-{clean_component(os.path.basename(real_path))[:40]}"


def find(state: Path, store: VaultStore) -> Path:
    """Return the state folder of a vault. It may not exist yet."""
    folder = state / "vaults" / vault_key(store.real_path)
    label, mine = _label(folder), vault_id(store)
    if mine is None:
        return folder
    # Another vault may have been at this path before, unless the id or the inode is the same.
    own = folder.with_name(f"{folder.name}-{mine[:8]}")
    ours = label is None or label.id == mine or label.inode == inode_of(store)
    return folder if ours and _label(own) is None else own


def index_folder(state: Path, store: VaultStore) -> Path:
    """Return the index folder of a vault. It may not exist yet."""
    return find(state, store) / "index"


def vault_id(store: VaultStore) -> str | None:
    """Return the id stored in a vault, or None if there is none or it is unreadable."""
    try:
        return _id(store.read(custom_path(APP_FOLDER, ID_FILE), _ID_LIMIT))
    except ObsidianAgentError:
        return None


def label(folder: Path, store: VaultStore) -> None:
    """Give a vault and its state folder a common id.

    If that fails, a later move is not recognised; nothing else is lost.
    """
    with suppress(OSError, VaultError):
        current, mine = _label(folder), vault_id(store)
        identity = mine or (current.id if current else uuid.uuid4().hex)
        new = Label(identity, store.real_path, inode_of(store))
        if current == new and mine is not None:
            return
        others = [other for other, _ in _labels(folder.parent, identity)]
        if any(_exists(other) for other in others if other.path != store.real_path):
            new = Label(uuid.uuid4().hex, new.path, new.inode)
        if new.id != mine:
            _store_id(store, new.id)
        write_label(folder, new)


def find_moved(folder: Path, store: VaultStore) -> MovedVault | None:
    """Return the previous location of a vault, or None.

    That is a path for which a history is stored and where the vault no longer exists.
    """
    mine = vault_id(store)
    if not mine:
        return None
    for other, other_folder in _labels(folder.parent, mine):
        if (
            other_folder != folder
            and other.path != store.real_path
            and not _exists(other)
            and (other_folder / JOURNAL_FILE).exists()
        ):
            return MovedVault(other.path, other_folder)
    return None


def assign_new_id(store: VaultStore) -> None:
    """Give a vault a new id, so that the state of its old id is not offered again.

    Raise VaultError.
    """
    _store_id(store, uuid.uuid4().hex)


def _store_id(store: VaultStore, identity: str) -> None:
    path = custom_path(APP_FOLDER, ID_FILE)
    store.make_folder(path.parent)
    store.write_atomic(path, (json.dumps({"id": identity}) + "\n").encode())


def _labels(vaults: Path, identity: str | None) -> list[tuple[Label, Path]]:
    """Return the state folders with an id."""
    labels = [(_label(file.parent), file.parent) for file in vaults.glob(f"*/{ID_FILE}")]
    return [
        (label, folder) for label, folder in labels if label is not None and label.id == identity
    ]


def _exists(label: Label) -> bool:
    """Return True if the vault of a label exists at its path, or if that is unknown."""
    try:
        return _id((Path(label.path) / APP_FOLDER / ID_FILE).read_bytes()) == label.id
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _label(folder: Path) -> Label | None:
    try:
        document: Any = json.loads((folder / ID_FILE).read_bytes())
        return Label(str(document["id"]), str(document["path"]), int(document["inode"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_label(folder: Path, new: Label) -> None:
    """Store the owner of a state folder."""
    replace_file(folder / ID_FILE, json.dumps(asdict(new)).encode("ascii"))


def _id(data: bytes) -> str | None:
    try:
        document: Any = json.loads(data)
        return uuid.UUID(document["id"]).hex
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def inode_of(store: VaultStore) -> int:
    """Return the inode of a vault's folder, or 0 if it is unknown."""
    try:
        return (os.fstat(store.root_fd) if store.root_fd >= 0 else os.stat(store.real_path)).st_ino
    except OSError:
        return 0
