"""Keeping up with what the person looks at in Obsidian, while they look at this program.

A request waits in Obsidian until something changes there (a long poll). Where Obsidian serves one request at a time that would keep all others
waiting, so it is asked once a second instead; which it is, is found out when it first answers. Without an Obsidian there is a look for its socket every few
seconds, and no thread waits for anything while nobody looks.
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
POLL_SECONDS: Final = 1.0
"""Until an Obsidian that did not answer is asked again, and between two questions to one that cannot wait."""
_TRIAL_SECONDS: Final = 0.8


class Watcher:
    """Calls `tell`, in a thread, with what the person looks at whenever that changes; None while no companion answers."""

    def __init__(
        self, open_obsidian: Callable[[], Obsidian], tell: Callable[[LiveContext | None], None]
    ) -> None:
        self._open_obsidian = open_obsidian
        self._tell = tell
        self._looking = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._serial: bool | None = None

    def set_active(self, active: bool) -> None:
        """Whether somebody looks at this program; without that Obsidian is not asked. Does not block."""
        if not active:
            self._looking.clear()
            return
        self._looking.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="obsidian-watcher")
            self._thread.start()

    def stop(self) -> None:
        """End it. Does not block: a request that waits ends by itself."""
        self._stopped.set()
        self._looking.set()

    def _run(self) -> None:
        known: LiveContext | None = None
        while self._looking.wait() and not self._stopped.is_set():
            try:
                # Before anything is imported for it.
                find_transport()
                found: LiveContext | None = self._next(self._open_obsidian().companion(), known)
            except ObsidianError:
                found, self._serial = None, None
            if found != known and not self._stopped.is_set():
                known = found
                self._tell(found)
            if found is None:
                self._stopped.wait(RETRY_SECONDS)

    def _next(self, companion: CompanionClient, known: LiveContext | None) -> LiveContext:
        """What is to be seen now, or when it changes."""
        if known is None:
            return companion.context()
        if self._serial is None:
            self._serial = _is_serial(companion, known.version)
        if not self._serial:
            return companion.watch(known.version)
        self._stopped.wait(POLL_SECONDS)
        return companion.context()


def _is_serial(companion: CompanionClient, version: int) -> bool:
    """Whether a request has to wait for one that waits."""

    def hold() -> None:
        with suppress(ObsidianError):
            companion.watch(version, _TRIAL_SECONDS * 2)

    holding = threading.Thread(target=hold, daemon=True, name="obsidian-trial")
    holding.start()
    time.sleep(0.05)
    started = time.monotonic()
    companion.context()
    return time.monotonic() - started > _TRIAL_SECONDS
