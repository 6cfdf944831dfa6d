"""The vault behind the app, opened in a thread while the first frame is already on screen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from pathlib import Path

    from obsidian_agent.app_services import AppServices
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.services.session import Session
    from obsidian_agent.threads.manager import ThreadManager


class BackendParts(Struct, frozen=True, kw_only=True):
    """An open vault with its conversations, reports and settings.

    `proposals` is the socket on which other programs propose plans.
    """

    session: Session
    threads: ThreadManager
    services: AppServices
    settings: LiveSettings
    proposals: Path | None = None


class Backend:
    """Opens a vault once. A key pressed before waits for the parts it needs and is not lost."""

    def __init__(self, vault: str, opening: Callable[[], BackendParts]) -> None:
        """`vault` is its name. `opening` may block; `open` and `parts` raise its errors."""
        self.vault = vault
        self._opening = opening
        self._opened: Future[BackendParts] = Future()
        self._has_started = False

    @property
    def is_open(self) -> bool:
        """True once the vault was opened without an error."""
        return self._opened.done() and self._opened.exception() is None

    async def open(self) -> None:
        """Open the vault without blocking the event loop."""
        await asyncio.wrap_future(self._start())

    @property
    def parts(self) -> BackendParts:
        """The open parts; blocks until the vault is open."""
        return self._start().result()

    def _start(self) -> Future[BackendParts]:
        if not self._has_started:
            self._has_started = True
            # A caller that is cancelled must not cancel the opening for the others.
            self._opened.set_running_or_notify_cancel()
            threading.Thread(target=self._open, name="opening", daemon=True).start()
        return self._opened

    def _open(self) -> None:
        try:
            self._opened.set_result(self._opening())
        except BaseException as error:
            self._opened.set_exception(error)
