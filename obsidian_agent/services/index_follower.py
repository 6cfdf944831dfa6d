"""The index of an open vault, loaded or built in the background and kept up to date.

No caller is blocked, and nothing heavy is imported before the thread has started. Child processes
scan many files: in this process the screen would wait for the interpreter's lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from obsidian_agent.errors import PathRefused
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse

if TYPE_CHECKING:
    from obsidian_agent.journal.records import Effects
    from obsidian_agent.vault.index.keeper import IndexKeeper, IndexStatus
    from obsidian_agent.vault.index.watcher import VaultWatcher

PROGRESS_SECONDS: Final = 0.5
"""Seconds between two reports of progress."""
MAX_CHANGED_FILES: Final = 500
"""With more changed files the whole vault is compared."""


class IndexFollower:
    """Keeps the index of a vault up to date. Calls `report` in threads when the status changes."""

    def __init__(
        self, root: str, keeper: Callable[[], IndexKeeper], report: Callable[[IndexStatus], None]
    ) -> None:
        self._root = root
        self._make_keeper = keeper
        self._report = report
        self._reported = 0.0
        self._lock = threading.Lock()
        self._stopped = False
        self._watcher: VaultWatcher | None = None

    def start(self) -> None:
        """Start in a thread of its own."""
        threading.Thread(target=self._begin, name="vault-following", daemon=True).start()

    def stop(self) -> None:
        """Stop. A scan that runs is abandoned; its results are not needed."""
        with self._lock:
            self._stopped = True
        if self._watcher is not None:
            self._watcher.stop()

    @property
    def is_following(self) -> bool:
        """True if file events keep the index current."""
        return self._watcher is not None and self._watcher.is_following

    def refresh_soon(self) -> None:
        """Compare the whole vault in the background, after the window got the focus or similar."""
        if self._watcher is not None:
            self._watcher.compare_soon()

    def learn(self, effects: Effects) -> None:
        """Index the effects of a run without waiting for file events.

        Blocks for as long as reading those files takes.
        """
        watcher = self._watcher
        if watcher is None:
            return
        paths = _changed_files(effects)
        if paths is None:
            watcher.compare_soon()
        else:
            watcher.update_paths(paths)

    def _begin(self) -> None:
        from obsidian_agent.vault.index.watcher import VaultWatcher

        keeper = self._make_keeper()
        keeper.use_process(lambda *_: self._report_progress(keeper.status))
        with self._lock:
            if self._stopped:
                return
            self._watcher = VaultWatcher(self._root, keeper, lambda: self._report(keeper.status))
            self._watcher.start()

    def _report_progress(self, status: IndexStatus) -> None:
        """Report the status at most every `PROGRESS_SECONDS`, and always at the end."""
        now = time.monotonic()
        if not status.total or now - self._reported >= PROGRESS_SECONDS:
            self._reported = now
            self._report(status)


def _changed_files(effects: Effects) -> list[VaultPath] | None:
    """Return the files that a run changed; `None` for many, or if folders are among them."""
    texts = [
        *effects.created,
        *effects.modified,
        *effects.deleted,
        *(text for pair in effects.renamed for text in pair),
    ]
    has_folders = effects.folders or any("." not in text.rpartition("/")[2] for text in texts)
    if has_folders or len(texts) > MAX_CHANGED_FILES:
        return None
    try:
        return [parse(text, PathUse.READ) for text in texts]
    except PathRefused:
        return None
