"""Locations of the user's own files (settings, journal, logs), and writing them.

The files are private to the user and never partially written. They lie outside vaults and synced
folders. Reading and writing raise OSError.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from platformdirs import PlatformDirs

from obsidian_agent.dataclass import dataclass

STATE_VARIABLE = "OBSIDIAN_AGENT_STATE_DIR"
CONFIG_VARIABLE = "OBSIDIAN_AGENT_CONFIG"


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


def append_json(file: Path, entries: Iterable[Mapping[str, Any]], *, durable: bool = False) -> None:
    """Append one line of JSON per entry with a single write. Symbolic links are not followed.

    With `durable` the entries survive a power loss.
    """
    data = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries).encode(
        "utf-8", "backslashreplace"
    )
    make_private(file.parent)
    flags = (
        os.O_WRONLY
        | os.O_APPEND
        | os.O_CREAT
        | getattr(os, "O_NOFOLLOW", 0)
        | getattr(os, "O_BINARY", 0)
    )
    fd = os.open(file, flags, 0o600)
    try:
        while data:
            data = data[os.write(fd, data) :]
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


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


@dataclass(frozen=True, slots=True)
class Directories:
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
