"""A watcher of the active file and selection in Obsidian, while the user looks at this program.

A request waits in Obsidian until something changes there (a long poll). If Obsidian handles only
one request at a time, that would block all others, so it is polled once a second instead; the first
request determines which. Without a running Obsidian the watcher checks for its socket every few
seconds. While it is inactive, its thread only waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from obsidian_agent.errors import ObsidianError
from obsidian_agent.obsidian.transport import find_transport

if TYPE_CHECKING:
    from obsidian_agent.obsidian.companion_client import CompanionClient, LiveContext
    from obsidian_agent.obsidian.live import Obsidian

RETRY_SECONDS: Final = 3.0
"""Seconds until the next attempt if Obsidian did not answer."""
POLL_SECONDS: Final = 1.0
"""Seconds between two requests to an Obsidian that handles one at a time."""
_TRIAL_SECONDS: Final = 0.8


class Watcher:
    """A thread that calls `report` whenever the context in Obsidian changes.

    The context is None while no companion answers.
    """

    def __init__(
        self, open_obsidian: Callable[[], Obsidian], report: Callable[[LiveContext | None], None]
    ) -> None:
        self._open_obsidian = open_obsidian
        self._report = report
        self._active = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._serial: bool | None = None
        """True if Obsidian handles one request at a time; None if that is unknown."""

    def set_active(self, active: bool) -> None:
        """Start or pause watching. An inactive watcher sends no requests. Does not block."""
        if not active:
            self._active.clear()
            return
        self._active.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="obsidian-watcher")
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread. Does not block: a waiting request ends by itself."""
        self._stopped.set()
        self._active.set()

    def _run(self) -> None:
        previous: LiveContext | None = None
        while self._active.wait() and not self._stopped.is_set():
            try:
                # Without a transport, nothing else has to be imported.
                find_transport()
                companion = self._open_obsidian().companion()
                context: LiveContext | None = self._next(companion, previous)
            except ObsidianError:
                context, self._serial = None, None
            if context != previous and not self._stopped.is_set():
                previous = context
                self._report(context)
            if context is None:
                self._stopped.wait(RETRY_SECONDS)

    def _next(self, companion: CompanionClient, previous: LiveContext | None) -> LiveContext:
        """Return the current context. If `previous` is set, wait for a change first."""
        if previous is None:
            return companion.context()
        if self._serial is None:
            self._serial = _is_serial(companion, previous.version)
        if not self._serial:
            return companion.watch(previous.version)
        self._stopped.wait(POLL_SECONDS)
        return companion.context()


def _is_serial(companion: CompanionClient, version: int) -> bool:
    """Return True if a waiting request blocks another one."""

    def watch() -> None:
        with suppress(ObsidianError):
            companion.watch(version, _TRIAL_SECONDS * 2)

    thread = threading.Thread(target=watch, daemon=True, name="obsidian-trial")
    thread.start()
    time.sleep(0.05)
    started = time.monotonic()
    companion.context()
    return time.monotonic() - started > _TRIAL_SECONDS
