"""The user's own files (settings, journal, logs): their locations, writing and locking them.

The files are private to the user and never partially written. They lie outside vaults and synced
folders. Reading and writing raise OSError.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from platformdirs import PlatformDirs

STATE_VARIABLE = "OBSIDIAN_AGENT_STATE_DIR"
CONFIG_VARIABLE = "OBSIDIAN_AGENT_CONFIG"

_LOCK_PAUSE = 0.01
"""Seconds between two tries to acquire a lock."""
_BUSY = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK})


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700. Existing folders are unchanged."""
    for path in (*reversed(folder.parents), folder):
        if not path.is_dir():
            path.mkdir(mode=0o700, exist_ok=True)


def replace_file(file: Path, *data: bytes | memoryview) -> None:
    """Replace or create a file atomically and durably, with mode 0600."""
    make_private(file.parent)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`, also if the system accepts only a part at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def open_append(file: Path, *, create: bool = True) -> int:
    """Open a private file to append to and to read from. Symbolic links are not followed.

    With `create` a missing file is created, and its folder too.
    """
    flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    if create:
        make_private(file.parent)
        flags |= os.O_CREAT
    return os.open(file, flags, 0o600)


def append(file: Path, data: bytes, *, create: bool = True, durable: bool = False) -> int:
    """Append complete lines to a file opened by `open_append`, and return its new size.

    A line that a crash truncated stays a line of its own. With `durable` the data survives a power
    loss.
    """
    fd = open_append(file, create=create)
    try:
        if os.lseek(fd, 0, os.SEEK_END):
            os.lseek(fd, -1, os.SEEK_END)
            if os.read(fd, 1) != b"\n":
                data = b"\n" + data
        write_all(fd, data)
        if durable:
            os.fsync(fd)
        return os.fstat(fd).st_size
    finally:
        os.close(fd)


def append_json(file: Path, entries: Iterable[Mapping[str, Any]], *, durable: bool = False) -> None:
    """Append one line of JSON per entry, as `append` does."""
    text = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries)
    append(file, text.encode("utf-8", "backslashreplace"), durable=durable)


def json_lines(file: Path) -> list[dict[str, Any]]:
    """Return the entries of a file of JSON lines, oldest first.

    Lines that a crash truncated are skipped. A missing file has no entries.
    """
    try:
        lines = file.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    entries = []
    for line in lines:
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict):
                entries.append(entry)
    return entries


class Directories(Struct, frozen=True):
    """The locations of the user's own files."""

    state: Path
    """Folder of the journal and usage counts, with one subfolder per vault."""
    config: Path
    """The settings file."""
    log: Path
    """Folder of the log files."""


def directories(state_dir: str | None = None, config_file: str | None = None) -> Directories:
    """Return the user's directories.

    Arguments take precedence over environment variables, and these over the platform's defaults.
    """
    platform = PlatformDirs("obsidian-agent", appauthor=False)
    state = state_dir or os.environ.get(STATE_VARIABLE)
    config = config_file or os.environ.get(CONFIG_VARIABLE)
    state_path = Path(state) if state else platform.user_state_path
    return Directories(
        state=state_path.absolute(),
        config=Path(config).absolute() if config else platform.user_config_path / "config.toml",
        log=state_path.absolute() / "log" if state else platform.user_log_path,
    )


def sample_vault_folder() -> Path:
    """Return the folder of the user's sample vault, which need not exist."""
    return PlatformDirs("obsidian-agent", appauthor=False).user_data_path / "Sample vault"


# --- locks ---


@contextlib.contextmanager
def file_lock(file: Path, seconds: float = 10.0) -> Iterator[None]:
    """Hold the lock of a file, which is created if needed and stays.

    Raise OSError (EAGAIN) if another process holds the lock for all that time.
    """
    fd = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        if not wait_for_lock(fd, seconds):
            raise OSError(errno.EAGAIN, "another process holds it")
        yield
    finally:
        os.close(fd)


def wait_for_lock(fd: int, seconds: float) -> bool:
    """Lock an open file until it is closed. Return False if another process holds the lock."""
    end = time.monotonic() + seconds
    while not try_lock(fd):
        if time.monotonic() > end:
            return False
        time.sleep(_LOCK_PAUSE)
    return True


if sys.platform == "win32":
    import msvcrt

    _LOCKED_BYTE = (1 << 31) - 2
    """A byte far behind the text, because other processes must be able to read the text."""

    def try_lock(fd: int) -> bool:
        position = os.lseek(fd, 0, os.SEEK_CUR)
        os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            raise
        finally:
            os.lseek(fd, position, os.SEEK_SET)
        return True
else:
    import fcntl

    def try_lock(fd: int) -> bool:
        """Try to lock an open file. Always succeeds on file systems without locks."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in _BUSY
        return True
