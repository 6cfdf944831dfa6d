"""Refreshing the index of a vault in a process of its own, for a program with a screen to keep alive.

Scanning holds Python's one lock for most of its time; a screen in the same process would wait for it at every key. The process is this
module, started anew, and it writes the same files that the program would have written.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

_LOOK_SECONDS: Final = 0.1
_NICENESS: Final = 5


def refresh_apart(real_path: str, folder: Path, cancelled: Callable[[], bool], progress: Callable[[int, int], None]) -> bool:
    """Refresh what is kept in `folder` for the vault at `real_path`; whether that was done. Ends early when cancelled."""
    command = [sys.executable, "-P", "-m", __name__, real_path, os.fspath(folder)]
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return False
    assert process.stdout is not None
    told = threading.Thread(target=_listen, args=(process.stdout, progress), name="index-progress", daemon=True)
    told.start()
    with process:
        while process.poll() is None:
            if cancelled():
                process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_SECONDS)
        told.join()
    return process.returncode == 0 and not cancelled()


def _listen(lines: Iterable[str], progress: Callable[[int, int], None]) -> None:
    with suppress(ValueError, OSError):
        for line in lines:
            done, total = map(int, line.split())
            progress(done, total)


def _main() -> None:
    from obsidian_agent.vault.filesystem.store import VaultStore
    from obsidian_agent.vault.index.keeper import IndexKeeper

    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    # The pipe on standard input closes when the program that asked is gone, however it went.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with VaultStore.open(sys.argv[1]) as store:
        IndexKeeper(store, Path(sys.argv[2]), progress=_tell).refresh()


def _tell(done: int, total: int) -> None:
    sys.stdout.write(f"{done} {total}\n")
    sys.stdout.flush()


def _end_with_parent() -> None:
    # Not through `sys.stdin`: an interpreter cannot end while a thread waits in there.
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    _main()
