"""Following a vault while it is open: its index is loaded or built behind the screen, and kept as the vault is.

Nothing here blocks the caller, and nothing heavy is imported before the thread has started. Scanning many files is left to processes: the
screen would have to wait for Python's one lock otherwise.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from obsidian_agent.errors import PathRefused
from obsidian_agent.journal import state_folder
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.keeper import IndexKeeper
from obsidian_agent.vault.paths.path import PathUse, parse

if TYPE_CHECKING:
    from obsidian_agent.journal.records import Effects
    from obsidian_agent.vault.index.keeper import IndexKeeper, IndexStatus
    from obsidian_agent.vault.index.watcher import VaultWatcher
    from obsidian_agent.vault.paths.path import VaultPath


def open_index(store: VaultStore, state: Path, progress: Callable[[int, int], None] | None = None) -> IndexKeeper:
    """The keeper of a vault's index, in the vault's folder of the state; nothing is read or written yet.

    `progress` is told how many files of how many are scanned.
    """
    return IndexKeeper(store, state_folder.find(state, store) / "index", progress=progress)


TELL_SECONDS: Final = 0.2
"""Progress is told no more often than this."""

FEW: Final = 500
"""With more changed files than this the whole vault is compared instead."""


class IndexFollower:
    """One vault's index kept fresh. `tell` is called in threads, whenever the status is another one."""

    def __init__(self, root: str, keeper: Callable[[], IndexKeeper], tell: Callable[[IndexStatus], None]) -> None:
        self._root = root
        self._make_keeper = keeper
        self._tell = tell
        self._told = 0.0
        self._lock = threading.Lock()
        self._stopped = False
        self._watcher: VaultWatcher | None = None

    def start(self) -> None:
        """Begin, in a thread of its own."""
        threading.Thread(target=self._begin, name="vault-following", daemon=True).start()

    def stop(self) -> None:
        """End. What is being scanned is given up; nothing is lost by that."""
        with self._lock:
            self._stopped = True
        if self._watcher is not None:
            self._watcher.stop()

    def look_again(self) -> None:
        """Compare the whole vault: the window has the focus again, or much has changed. Returns at once."""
        if self._watcher is not None:
            self._watcher.compare_soon()

    def learn(self, effects: Effects) -> None:
        """Take in what a run of our own did, without waiting for events. May block for as long as it takes to read those files."""
        watcher = self._watcher
        if watcher is None:
            return
        paths = _files(effects)
        if paths is None:
            watcher.compare_soon()
        else:
            watcher.take_in(paths)

    def _begin(self) -> None:
        from obsidian_agent.vault.index.watcher import VaultWatcher

        keeper = self._make_keeper()
        keeper.use_process(lambda *_: self._tell_sometimes(keeper.status))
        with self._lock:
            if self._stopped:
                return
            self._watcher = VaultWatcher(self._root, keeper, lambda: self._tell(keeper.status))
            self._watcher.start()

    def _tell_sometimes(self, status: IndexStatus) -> None:
        now = time.monotonic()
        if now - self._told >= TELL_SECONDS:
            self._told = now
            self._tell(status)


def _files(effects: Effects) -> list[VaultPath] | None:
    """The files that a run has touched; None when these are many, or folders are among them."""
    texts = [*effects.created, *effects.modified, *effects.deleted, *(text for pair in effects.renamed for text in pair)]
    if effects.folders or len(texts) > FEW or any("." not in text.rpartition("/")[2] for text in texts):
        return None
    try:
        return [parse(text, PathUse.READ) for text in texts]
    except PathRefused:
        return None
