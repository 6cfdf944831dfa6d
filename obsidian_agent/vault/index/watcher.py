"""The watcher, which keeps the index current while a vault is open.

Events of the operating system are hints; comparisons with the disk decide. Events can be lost:
queues overflow, the watches of deep folders run out without an error, and network disks send none.
So the whole vault is compared if there are many or unclear events, once more after a burst, and
regularly in quiet times. The thread never locks the vault: it only reads.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from obsidian_agent.errors import ObsidianAgentError, PathRefused
from obsidian_agent.vault.index.index import PathCache
from obsidian_agent.vault.index.keeper import IndexKeeper
from obsidian_agent.vault.paths.path import VaultPath

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

POLL_SECONDS: Final = 30.0
"""Interval of comparisons where the system sends no events."""

RECHECK_SECONDS: Final = 300.0
"""Interval of comparisons where it does.

Folders beyond the system's number of watches send no events, without an error.
"""

BURST_EVENTS: Final = 100
"""Number of events at once that counts as a burst: then the whole vault is compared."""

_STOP_SECONDS: Final = 2.0
_DEBOUNCE_SECONDS: Final = 0.2
_QUIET_SECONDS: Final = 1.0

_REST: Final = 4
"""Times the last comparison that a burst waits for the next, which others compete with."""


class VaultWatcher:
    """A thread that keeps the index of one keeper current."""

    def __init__(
        self,
        root: str,
        keeper: IndexKeeper,
        on_change: Callable[[], None] = lambda: None,
        *,
        polling: bool = False,
    ) -> None:
        """Create a watcher. `on_change` is called in its thread after the index has changed."""
        self._root = root
        self._keeper = keeper
        self._on_change = on_change
        self._polling = polling
        self._stop = threading.Event()
        self._woken = threading.Event()
        self._changed = set[str]()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="vault-watcher", daemon=True)
        self._vault_path = PathCache()
        self._comparison_pending = False
        self._compared = False
        self._comparing = 0.0
        """Seconds of the last comparison."""

    def start(self) -> None:
        """Start the thread. Its first comparison loads or builds the index."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for it, but not for long: it only reads."""
        self._stop.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    @property
    def polling(self) -> bool:
        """True if there are no events, so that changes are noticed late."""
        return self._polling

    @property
    def is_following(self) -> bool:
        """True if events keep the index current, so that a change is known after a second."""
        return self._compared and not self._polling

    def compare_soon(self) -> None:
        """Compare the whole vault in the background.

        For a window that gets the focus again, or a finished run.
        """
        if not self._comparison_pending:
            self._comparison_pending = True
            threading.Thread(target=self._compare, name="vault-compare", daemon=True).start()

    def update_paths(self, paths: list[VaultPath]) -> None:
        """Compare a few files that are known to have changed."""
        self._keeper.update_paths(paths)
        self._on_change()

    def _run(self) -> None:
        # The observer first: it notices changes during the first comparison.
        observer = None if self._polling else self._start_observer()
        self._polling = observer is None
        try:
            self._compare()
            self._compared = True
            self._follow()
        finally:
            self._compared = False
            if observer is not None:
                observer.stop()

    def _start_observer(self) -> BaseObserver | None:
        """Start an observer, which has its own threads.

        Return None if the system has no watches left, or none for this disk.
        """
        from watchdog import events
        from watchdog.observers import Observer

        # It warns of overflows, which are expected here. Without a handler Python would print the
        # warnings over the screen.
        logging.getLogger("watchdog").addHandler(logging.NullHandler())
        handler = events.FileSystemEventHandler()
        handler.on_any_event = self._on_event  # type: ignore[method-assign]
        files = (
            events.FileCreatedEvent,
            events.FileModifiedEvent,
            events.FileMovedEvent,
            events.FileDeletedEvent,
        )
        folders = (events.DirCreatedEvent, events.DirMovedEvent, events.DirDeletedEvent)
        observer = Observer()
        try:
            observer.schedule(handler, self._root, recursive=True, event_filter=[*files, *folders])
            observer.start()
        except (OSError, RuntimeError):
            return None
        return observer

    def _on_event(self, event: FileSystemEvent) -> None:
        changed = [
            name
            for name in map(os.fsdecode, (event.src_path, event.dest_path))
            if name and not self._is_hidden(name)
        ]
        if changed:
            with self._lock:
                self._changed.update(changed)
            self._woken.set()

    def _follow(self) -> None:
        """Process events until `stop`. After a burst and in quiet times, compare the vault."""
        after_burst = False
        while True:
            if after_burst:
                timeout = _QUIET_SECONDS
            else:
                timeout = POLL_SECONDS if self._polling else RECHECK_SECONDS
            has_events = self._woken.wait(timeout)
            if has_events:
                self._stop.wait(
                    max(_DEBOUNCE_SECONDS, self._comparing * _REST if after_burst else 0)
                )
            if self._stop.is_set():
                return
            if not has_events:
                self._compare()
                after_burst = False
                continue
            self._woken.clear()
            with self._lock:
                natives, self._changed = self._changed, set()
            paths = None if len(natives) > BURST_EVENTS else self._changed_files(natives)
            if paths is None:
                after_burst = True
                self._compare()
            elif paths:
                self.update_paths(paths)

    def _changed_files(self, natives: set[str]) -> list[VaultPath] | None:
        """Return the changed files, or None if there are folders among them.

        The files in a changed folder have no events of their own.
        """
        latest = self._keeper.latest
        files = []
        for native in natives:
            try:
                path = self._vault_path(self._text(native))
            except PathRefused:
                continue
            known = latest is not None and latest.has_file(path)
            if os.path.isdir(native) or not (known or os.path.lexists(native)):
                return None
            files.append(path)
        return files

    def _compare(self) -> None:
        before = self._keeper.latest
        # From here on, a change may be missed by this comparison, so `compare_soon` must start
        # another one.
        self._comparison_pending = False
        started = time.monotonic()
        with suppress(ObsidianAgentError):
            index = self._keeper.refresh(self._stop.is_set)
            self._comparing = time.monotonic() - started
            if index is not before:
                self._on_change()
                # It may take long, and changes are followed meanwhile.
                threading.Thread(
                    target=self._keeper.prepare_words,
                    args=(self._stop.is_set,),
                    name="vault-words",
                    daemon=True,
                ).start()

    def _text(self, native: str) -> str:
        return os.path.relpath(native, self._root).replace(os.sep, "/")

    def _is_hidden(self, native: str) -> bool:
        return any(part.startswith(".") for part in self._text(native).split("/"))
