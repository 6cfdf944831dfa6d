"""Following a vault while it is open: events of the operating system as hints, looks at the disk as the truth.

Events can be lost: queues overflow, watches run out below the first folder without an error, network disks send none. So whatever is many
or unclear ends in a comparison of the whole vault, a burst in one more when it is over, and so does a quiet while: half a minute where
events are not to be had, five minutes where they are. The thread never holds the vault: it only reads, and it ends when asked to.
"""

from __future__ import annotations

import logging
import os
import threading
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
"""How often the vault is compared where there are no events."""

RECHECK_SECONDS: Final = 300.0
"""How often it is compared where there are: folders beyond the system's number of watches send none, and nobody is told."""

MANY: Final = 100
"""More events at once than this are a burst: the whole vault is compared instead of one path after the other."""

_PATIENCE_SECONDS: Final = 2.0
_DEBOUNCE_SECONDS: Final = 0.2
_QUIET_SECONDS: Final = 1.0


class VaultWatcher:
    """Keeps one keeper's index fresh. `on_change` is called in the watcher's thread after the index has taken in what changed."""

    def __init__(
        self,
        root: str,
        keeper: IndexKeeper,
        on_change: Callable[[], None] = lambda: None,
        *,
        polling: bool = False,
    ) -> None:
        self._root = root
        self._keeper = keeper
        self._on_change = on_change
        self._polling = polling
        self._stop = threading.Event()
        self._woken = threading.Event()
        self._heard = set[str]()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="vault-watcher", daemon=True)
        self._path = PathCache()
        self._comparing = False

    def start(self) -> None:
        """Begin; the first comparison loads or builds the index."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait a little until the thread has: it only reads."""
        self._stop.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE_SECONDS)

    @property
    def polling(self) -> bool:
        """Whether there are no events, so that changes are seen late."""
        return self._polling

    def compare_soon(self) -> None:
        """Compare the whole vault: for a window that gets the focus again, or a run that has ended. Returns at once."""
        if not self._comparing:
            self._comparing = True
            threading.Thread(target=self._compare, name="vault-compare", daemon=True).start()

    def update_paths(self, paths: list[VaultPath]) -> None:
        """Look at a few files of which it is known that they changed."""
        self._keeper.update_paths(paths)
        self._on_change()

    def _run(self) -> None:
        # Watches first: what changes during the first comparison is heard.
        observer = None if self._polling else self._observer()
        self._polling = observer is None
        try:
            self._compare()
            self._follow()
        finally:
            if observer is not None:
                observer.stop()

    def _observer(self) -> BaseObserver | None:
        """Hears of changes in threads of its own; None where the system has no watches left, or none for this disk."""
        from watchdog import events
        from watchdog.observers import Observer

        # It warns of overflows, which are no news here; without a handler Python would print them over the screen.
        logging.getLogger("watchdog").addHandler(logging.NullHandler())
        handler = events.FileSystemEventHandler()
        handler.on_any_event = self._hear  # type: ignore[method-assign]
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

    def _hear(self, event: FileSystemEvent) -> None:
        heard = [
            name
            for name in map(os.fsdecode, (event.src_path, event.dest_path))
            if name and not self._is_hidden(name)
        ]
        if heard:
            with self._lock:
                self._heard.update(heard)
            self._woken.set()

    def _follow(self) -> None:
        """Until it is to end: look at what was heard of, and compare when a burst is over or nothing was heard for long."""
        unsettled = False
        while True:
            heard = self._woken.wait(
                _QUIET_SECONDS if unsettled else POLL_SECONDS if self._polling else RECHECK_SECONDS
            )
            if heard:
                self._stop.wait(_DEBOUNCE_SECONDS)
            if self._stop.is_set():
                return
            if not heard:
                self._compare()
                unsettled = False
                continue
            self._woken.clear()
            with self._lock:
                natives, self._heard = self._heard, set()
            paths = None if len(natives) > MANY else self._files(natives)
            if paths is None:
                unsettled = True
                self._compare()
            elif paths:
                self.update_paths(paths)

    def _files(self, natives: set[str]) -> list[VaultPath] | None:
        """The files behind some events; None when folders are among them, whose files have no events of their own."""
        latest = self._keeper.latest
        found = []
        for native in natives:
            try:
                path = self._path(self._text(native))
            except PathRefused:
                continue
            known = latest is not None and latest.has_file(path)
            if os.path.isdir(native) or not (known or os.path.lexists(native)):
                return None
            found.append(path)
        return found

    def _compare(self) -> None:
        before = self._keeper.latest
        # Whoever asks from here on may have seen what this comparison does not.
        self._comparing = False
        with suppress(ObsidianAgentError):
            if self._keeper.refresh(self._stop.is_set) is not before:
                self._on_change()

    def _text(self, native: str) -> str:
        return os.path.relpath(native, self._root).replace(os.sep, "/")

    def _is_hidden(self, native: str) -> bool:
        return any(part.startswith(".") for part in self._text(native).split("/"))
