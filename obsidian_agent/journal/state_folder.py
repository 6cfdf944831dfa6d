"""Which folder of the person's state belongs to a vault, also when the vault was renamed or moved.

The folder is named after the vault's real path. Vault and folder share an id, made with the first run that changes something: in the vault
`.obsidian-agent/vault.json`, in the folder `vault.json` with the path for which it was made. A vault that lies at another path than its id
was last seen at was moved, if there is no vault with that id at the old path any more, and was copied otherwise: a copy gets an id of its own.

It also holds the lock of one writer per vault, which dies with its process. The lock is held twice: on a file in the state folder, which also
names the holder for the others, and where the system can on the vault's folder itself, so that programs with different state folders, or that
came by another path, exclude each other too. Nothing is written to the vault for it.
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
_NOT_TAKEN: Final = frozenset(
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


@dataclass(frozen=True, slots=True)
class Label:
    """Whose a state folder is. `inode` is that of the vault's folder: it tells two folders at one path apart."""

    id: str
    path: str
    inode: int


@dataclass(frozen=True, slots=True)
class MovedVault:
    """Where a vault was, and the folder that keeps its history."""

    path: str
    folder: Path


def vault_key(real_path: str) -> str:
    """The name of a vault's folder in the state folder: readable, and unlike that of every other path."""
    digest = hashlib.sha256(os.fsencode(real_path)).hexdigest()[:12]
    return f"{digest}-{clean_component(os.path.basename(real_path))[:40]}"


def find(state: Path, store: VaultStore) -> Path:
    """The state folder of a vault, whether it is there yet or not."""
    folder = state / "vaults" / vault_key(store.real_path)
    label, mine = _label(folder), vault_id(store)
    if mine is None:
        return folder
    # Another vault may have been at this path before. An id that is equal, or a folder that is the same, says that it was this one.
    own = folder.with_name(f"{folder.name}-{mine[:8]}")
    ours = label is None or label.id == mine or label.inode == _inode(store)
    return folder if ours and _label(own) is None else own


def index_folder(state: Path, store: VaultStore) -> Path:
    """Where the index of a vault is kept, whether it is there yet or not."""
    return find(state, store) / "index"


def vault_id(store: VaultStore) -> str | None:
    """The id that lies in a vault, None when there is none or it cannot be read."""
    try:
        return _id(store.read(custom_path(APP_FOLDER, ID_FILE), _ID_LIMIT))
    except ObsidianAgentError:
        return None


def label(folder: Path, store: VaultStore) -> None:
    """Give a vault and its state folder a common id. Where that cannot be, a move will not be recognised, and nothing else is lost."""
    with suppress(OSError, VaultError):
        known, mine = _label(folder), vault_id(store)
        wanted = Label(
            mine or (known.id if known else uuid.uuid4().hex), store.real_path, _inode(store)
        )
        if known == wanted and mine is not None:
            return
        if any(
            _lives(other)
            for other, _ in _labels(folder.parent, wanted.id)
            if other.path != store.real_path
        ):
            wanted = Label(uuid.uuid4().hex, wanted.path, wanted.inode)
        if wanted.id != mine:
            _give_id(store, wanted.id)
        _write_label(folder, wanted)


def find_moved(folder: Path, store: VaultStore) -> MovedVault | None:
    """Where a vault was before, if its history is kept for that place and there is no such vault there any more."""
    mine = vault_id(store)
    for other, place in _labels(folder.parent, mine) if mine else ():
        if (
            place != folder
            and other.path != store.real_path
            and not _lives(other)
            and (place / JOURNAL_FILE).exists()
        ):
            return MovedVault(other.path, place)
    return None


def adopt(state: Path, store: VaultStore) -> MovedVault | None:
    """Take what is kept for a moved vault along to where it is now; None when there is nothing to take. JournalError when it cannot be.

    What is there already stays; the journal goes last, so that this can be repeated when it is interrupted.
    """
    folder = find(state, store)
    found = None if (folder / JOURNAL_FILE).exists() else find_moved(folder, store)
    if found is None:
        return None
    database = found.folder / JOURNAL_FILE
    with db.journal_errors(database), vault_lock(found.folder / "lock", store.root_fd):
        db.belongs_to(database, store.real_path)
        make_private(folder)
        _merge(found.folder, folder)
        for name in (integrity.REGISTER_FILE, f"{JOURNAL_FILE}-wal", JOURNAL_FILE):
            with suppress(FileNotFoundError):
                (found.folder / name).rename(folder / name)
        identity = vault_id(store)
        assert identity is not None
        _write_label(folder, Label(identity, store.real_path, _inode(store)))
        (found.folder / ID_FILE).unlink(missing_ok=True)
    return found


def assign_new_id(store: VaultStore) -> None:
    """Give a vault a new id, so that what is kept under its old one is not offered again. VaultError."""
    _give_id(store, uuid.uuid4().hex)


def _give_id(store: VaultStore, identity: str) -> None:
    path = custom_path(APP_FOLDER, ID_FILE)
    store.make_folder(path.parent)
    store.write_atomic(path, (json.dumps({"id": identity}) + "\n").encode())


def _merge(source: Path, target: Path) -> None:
    for entry in source.iterdir():
        place = target / entry.name
        if entry.name in _NOT_TAKEN:
            continue
        if not place.exists():
            entry.rename(place)
        elif entry.is_dir() and place.is_dir():
            _merge(entry, place)


def _labels(vaults: Path, identity: str | None) -> list[tuple[Label, Path]]:
    """The state folders with an id."""
    found = [(_label(file.parent), file.parent) for file in vaults.glob(f"*/{ID_FILE}")]
    return [
        (label, folder) for label, folder in found if label is not None and label.id == identity
    ]


def _lives(known: Label) -> bool:
    """Whether there is a vault with this id at the path that a label names; also when that cannot be found out."""
    try:
        return _id((Path(known.path) / APP_FOLDER / ID_FILE).read_bytes()) == known.id
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


def _write_label(folder: Path, wanted: Label) -> None:
    draft = folder / f"{ID_FILE}.new"
    draft.write_text(json.dumps(asdict(wanted)), encoding="utf-8", errors="surrogatepass")
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


_TRIES = 5
_PAUSE = 0.01
_BUSY = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK})


@contextlib.contextmanager
def vault_lock(file: Path, vault_fd: int) -> Iterator[None]:
    """Hold the lock of a vault. JournalError (VAULT_BUSY) that names the holder when it is taken. The lock file stays, unlocked."""
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
    """Whether a process holds the lock of this file just now."""
    try:
        fd = os.open(file, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return False
    try:
        return not _try_lock(fd)
    finally:
        close_quietly(fd)


def wait_for_lock(fd: int, seconds: float = 10.0) -> None:
    """Hold a lock on an open file, which lasts until it is closed. Raises OSError (EAGAIN) when somebody else holds it all that time."""
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
    """Take the lock; somebody who only asks `is_locked` holds it for a moment, which is waited for."""
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
    who = f"process {holder}" if holder else "another process"
    return JournalError(
        f"The vault is being changed by {who}, and only one may at a time.",
        code="VAULT_BUSY",
        hint="Wait until it has finished, or close it.",
        retryable=True,
    )


if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        # A byte far behind the text, which others must be able to read.
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
        """Whether the lock is ours now. A file system that knows no locks counts as unlocked."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in _BUSY
        return True
