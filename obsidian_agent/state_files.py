"""Where things of the person lie (settings, the journal, logs; never in a vault or a synced folder), and how they are written.

Nobody else may look into them, and they are never half written. Reading and writing raise OSError.
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


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for the person alone (0700). One that exists stays as it is."""
    for place in (*reversed(folder.parents), folder):
        if not place.is_dir():
            place.mkdir(mode=0o700, exist_ok=True)


def replace_file(file: Path, *data: bytes | memoryview) -> None:
    """Put these bytes in the place of a file that need not exist: all or nothing, durably, for the person alone (0600)."""
    make_private(file.parent)
    handle, fresh = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(fresh, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise


def append_json(file: Path, entries: Iterable[Mapping[str, Any]], *, durable: bool = False) -> None:
    """Add a line of JSON for each entry, with one write; with `durable` a power loss does not take them. A link is not followed."""
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
    """The entries of such a file, oldest first; a line that a crash cut off is left out, and a file that is not there has none."""
    try:
        lines = file.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict):
                found.append(entry)
    return found


STATE_VARIABLE = "OBSIDIAN_AGENT_STATE_DIR"
CONFIG_VARIABLE = "OBSIDIAN_AGENT_CONFIG"


@dataclass(frozen=True, slots=True)
class Directories:
    """`state` holds the journal and usage counts, one folder a vault; `config` is the settings file; `log` a folder."""

    state: Path
    config: Path
    log: Path


def directories(state_dir: str | None = None, config_file: str | None = None) -> Directories:
    """The person's folders; options win over environment variables, these over the platform's custom."""
    platform = PlatformDirs("obsidian-agent", appauthor=False)
    state = state_dir or os.environ.get(STATE_VARIABLE)
    config = config_file or os.environ.get(CONFIG_VARIABLE)
    state_path = Path(state) if state else platform.user_state_path
    return Directories(
        state=state_path.absolute(),
        config=Path(config).absolute() if config else platform.user_config_path / "config.toml",
        log=state_path.absolute() / "log" if state else platform.user_log_path,
    )
