"""The state folder of a vault, also after the vault was renamed or moved, and the writer lock.

The folder is named after the vault's real path. Vault and folder share an id, created by the first
run that changes something: `.obsidian-agent/vault.json` in the vault, and `vault.json` in the
folder with the path of the vault. A vault at another path than its id was last seen at was moved,
or copied if a vault with that id still exists at the old path. A copy gets a new id.

The folder also holds the writer lock of the vault, which ends with its process. It consists of two
locks: one on a file in the state folder, which also names the holder, and where the system allows
it one on the vault's folder, so that programs with different state folders, or that opened the
vault by another path, exclude each other too. Nothing is written to the vault for the lock.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from obsidian_agent.dataclass import asdict, dataclass
from obsidian_agent.errors import JournalError, ObsidianAgentError, VaultError
from obsidian_agent.journal import db, integrity
from obsidian_agent.state_files import make_private
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.filesystem.walk import close_quietly
from obsidian_agent.vault.paths.path import APP_FOLDER, clean_component, custom_path

JOURNAL_FILE: Final = "journal.db"
ID_FILE: Final = "vault.json"
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
_ID_LIMIT: Final = 4096
"""Bytes read of an id file."""
_TRIES: Final = 5
_PAUSE: Final = 0.01
_BUSY: Final = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK})


@dataclass(frozen=True, slots=True)
class Label:
    """The owner of a state folder.

    `inode` belongs to the vault's folder; it distinguishes successive folders at one path.
    """

    id: str
    path: str
    inode: int


@dataclass(frozen=True, slots=True)
class MovedVault:
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
    ours = label is None or label.id == mine or label.inode == _inode(store)
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
        new = Label(identity, store.real_path, _inode(store))
        if current == new and mine is not None:
            return
        others = [other for other, _ in _labels(folder.parent, identity)]
        if any(_exists(other) for other in others if other.path != store.real_path):
            new = Label(uuid.uuid4().hex, new.path, new.inode)
        if new.id != mine:
            _store_id(store, new.id)
        _write_label(folder, new)


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
        _write_label(folder, Label(identity, store.real_path, _inode(store)))
        (moved.folder / ID_FILE).unlink(missing_ok=True)
    return moved


def assign_new_id(store: VaultStore) -> None:
    """Give a vault a new id, so that the state of its old id is not offered again.

    Raise VaultError.
    """
    _store_id(store, uuid.uuid4().hex)


def _store_id(store: VaultStore, identity: str) -> None:
    path = custom_path(APP_FOLDER, ID_FILE)
    store.make_folder(path.parent)
    store.write_atomic(path, (json.dumps({"id": identity}) + "\n").encode())


def _merge(source: Path, target: Path) -> None:
    for entry in source.iterdir():
        destination = target / entry.name
        if entry.name in _NOT_MERGED:
            continue
        if not destination.exists():
            entry.rename(destination)
        elif entry.is_dir() and destination.is_dir():
            _merge(entry, destination)


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


def _write_label(folder: Path, new: Label) -> None:
    draft = folder / f"{ID_FILE}.new"
    draft.write_text(json.dumps(asdict(new)), encoding="utf-8", errors="surrogatepass")
    draft.chmod(0o600)
    draft.replace(folder / ID_FILE)


def _id(data: bytes) -> str | None:
    try:
        document: Any = json.loads(data)
        return uuid.UUID(document["id"]).hex
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _inode(store: VaultStore) -> int:
    try:
        return (os.fstat(store.root_fd) if store.root_fd >= 0 else os.stat(store.real_path)).st_ino
    except OSError:
        return 0


@contextlib.contextmanager
def vault_lock(file: Path, vault_fd: int) -> Iterator[None]:
    """Hold the lock of a vault. The lock file stays afterwards.

    Raise JournalError (VAULT_BUSY), which names the holder, if another process holds it.
    """
    fd = os.open(
        file,
        os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0),
        0o600,
    )
    try:
        if not _lock(fd):
            raise _busy(_holder(fd))
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        with _folder_lock(vault_fd):
            yield
    finally:
        close_quietly(fd)


def is_locked(file: Path) -> bool:
    """Return True if a process holds the lock of this file."""
    try:
        fd = os.open(file, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return False
    try:
        return not _try_lock(fd)
    finally:
        close_quietly(fd)


def wait_for_lock(fd: int, seconds: float = 10.0) -> None:
    """Lock an open file until it is closed.

    Raise OSError (EAGAIN) if another process holds the lock for all that time.
    """
    end = time.monotonic() + seconds
    while not _try_lock(fd):
        if time.monotonic() > end:
            raise OSError(errno.EAGAIN, "another process holds it")
        time.sleep(_PAUSE)


@contextlib.contextmanager
def _folder_lock(vault_fd: int) -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return
    fd = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=vault_fd)
    try:
        if not _lock(fd):
            raise _busy(None)
        yield
    finally:
        close_quietly(fd)


def _lock(fd: int) -> bool:
    """Try to acquire the lock several times, because `is_locked` holds it for a moment."""
    for _ in range(_TRIES):
        if _try_lock(fd):
            return True
        time.sleep(_PAUSE)
    return False


def _holder(fd: int) -> str | None:
    os.lseek(fd, 0, os.SEEK_SET)
    text = os.read(fd, 32).strip()
    return text.decode() if text.isdigit() else None


def _busy(holder: str | None) -> JournalError:
    process = f"process {holder}" if holder else "another process"
    return JournalError(
        f"The vault is being changed by {process}, and only one process may change it at a time.",
        code="VAULT_BUSY",
        hint="Wait until it has finished, or close it.",
        retryable=True,
    )


if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        # A byte far behind the text, because other processes must be able to read the text.
        os.lseek(fd, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            raise
        finally:
            os.lseek(fd, 0, os.SEEK_SET)
        return True
else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        """Try to acquire the lock. Always succeeds on file systems without locks."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in _BUSY
        return True
