"""Files and folders of the person's state, which nobody else may look into: private, and never half written. All of it raises OSError."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


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
    data = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries).encode("utf-8", "backslashreplace")
    make_private(file.parent)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
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
