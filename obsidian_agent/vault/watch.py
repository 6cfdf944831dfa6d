"""Following a vault while it is open: events of the operating system as hints, looks at the disk as the truth.

Events can be lost (queues overflow, network disks send none), so whatever is many or unclear ends in a comparison of the whole vault, and
so does a quiet half minute where events are not to be had. The thread never holds the vault: it only reads, and it ends when asked to.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from obsidian_agent.errors import ObsidianAgentError, PathRefused
from obsidian_agent.vault.index_keeper import IndexKeeper
from obsidian_agent.vault.index_paths import KnownPaths
from obsidian_agent.vault.paths import VaultPath

POLL_SECONDS: Final = 30.0
"""How often the vault is compared where there are no events."""

MANY: Final = 100
"""More events at once than this are a burst: the whole vault is compared instead of one path after the other."""

_PATIENCE_SECONDS: Final = 2.0
_STEP_MS: Final = 50
_DEBOUNCE_MS: Final = 200


class VaultWatcher:
    """Keeps one keeper's index fresh. `on_change` is called in the watcher's thread after the index has taken in what changed."""

    def __init__(self, root: str, keeper: IndexKeeper, on_change: Callable[[], None] = lambda: None, *, polling: bool = False) -> None:
        self._root = root
        self._keeper = keeper
        self._on_change = on_change
        self._polling = polling
        self._stop = threading.Event()
        self._look = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vault-watcher", daemon=True)
        self._path = KnownPaths()
        self._comparing = False

    def start(self) -> None:
        """Begin; the first comparison loads or builds the index."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait a little until the thread has: it only reads."""
        self._stop.set()
        self._look.set()
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

    def take_in(self, paths: list[VaultPath]) -> None:
        """Look at a few files of which it is known that they changed."""
        self._keeper.look_at(paths)
        self._on_change()

    def _run(self) -> None:
        self._compare()
        if not self._polling:
            try:
                self._follow()
            except (OSError, RuntimeError):
                # No more watches to be had, or none on this disk.
                self._polling = True
        while self._polling and not self._look.wait(POLL_SECONDS):
            self._compare()

    def _follow(self) -> None:
        from watchfiles import watch

        for events in watch(
            self._root,
            watch_filter=lambda _, path: not self._is_hidden(path),
            stop_event=self._stop,
            step=_STEP_MS,
            debounce=_DEBOUNCE_MS,
            rust_timeout=60_000,
            raise_interrupt=False,
            ignore_permission_denied=True,
        ):
            self._take_in({path for _, path in events})

    def _take_in(self, natives: set[str]) -> None:
        paths = None if len(natives) > MANY else self._files(natives)
        if paths is None:
            self._compare()
            return
        if paths:
            self.take_in(paths)

    def _files(self, natives: set[str]) -> list[VaultPath] | None:
        """The files behind some events; None when folders are among them, whose files have no events of their own."""
        latest = self._keeper.latest
        found = []
        for native in natives:
            try:
                path = self._path(self._text(native))
            except PathRefused:
                continue
            known = latest is not None and latest.knows(path)
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
