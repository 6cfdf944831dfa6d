"""Other programs as children: reading, finding and ending them on each system, and their logs.

`platform` is `sys.platform` and is an argument so that each system's behaviour is tested on any.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from obsidian_agent.state_files import open_append, write_all

LARGEST_LOG: Final = 1 << 20
"""Bytes of a log file; output beyond that is dropped."""


def split_command(line: str, platform: str = sys.platform) -> tuple[str, ...]:
    """Split a command line into its words. Raise ValueError for an open quote.

    On Windows a backslash separates folders; elsewhere it escapes, as in a shell.
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    if platform == "win32":
        lexer.escape = ""
    return tuple(lexer)


def runnable(command: Sequence[str], platform: str = sys.platform) -> tuple[str, ...]:
    """Return the command with `~` expanded and its program as the system can start it.

    Windows starts `agent.cmd`, which npm installs, by its full name only.
    """
    program, *arguments = command
    program = os.path.expanduser(program)
    if platform == "win32" and not Path(program).suffix:
        endings = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").lower().split(os.pathsep)
        named = (shutil.which(f"{program}{ending}") for ending in endings)
        program = next(filter(None, named), program)
    return (program, *arguments)


def end_group(pid: int, *, force: bool, platform: str = sys.platform) -> None:
    """End a process that leads a group of its own, and the processes it started.

    Without `force` they are asked to end, which Windows has no way to do.
    """
    if platform == "win32":
        if force:
            with contextlib.suppress(OSError):
                subprocess.run(
                    ["taskkill", "/F", "/T", "/PID", str(pid)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    check=False,
                )
        return
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL if force else signal.SIGTERM)


class ProcessLog(Struct, frozen=True):
    """A log file of a program's errors, starts and ends, private to the user and limited in size.

    Write errors are ignored.
    """

    file: Path

    def begin(self, text: str) -> None:
        """Rotate the file if it is more than half full, and write."""
        with contextlib.suppress(OSError):
            if self.file.stat().st_size > LARGEST_LOG // 2:
                os.replace(self.file, self.file.with_name(f"{self.file.name}.1"))
        self.write(text)

    def write(self, text: str) -> None:
        """Append to the file as far as there is room."""
        with contextlib.suppress(OSError):
            handle = open_append(self.file)
            try:
                room = max(0, LARGEST_LOG - os.fstat(handle).st_size)
                write_all(handle, text.encode("utf-8", "replace")[:room])
            finally:
                os.close(handle)
