"""What the app shows: opened in a thread while its first frame is looked at already."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from obsidian_agent.dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from obsidian_agent.app_services import AppServices
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.services.session import Session
    from obsidian_agent.threads.manager import ThreadManager


@dataclass(frozen=True, slots=True)
class BackendParts:
    """A vault's session and threads, what the program can tell of itself, the person's settings, and the socket for others' proposals."""

    session: Session
    threads: ThreadManager
    services: AppServices
    settings: LiveSettings
    proposals: Path | None = None


class Backend:
    """Opens a vault once. A key that needs a part of it earlier waits for it and is not lost."""

    def __init__(self, vault: str, opening: Callable[[], BackendParts]) -> None:
        """`vault`: its name. `opening` may block; what it raises is raised to everybody who needs a part."""
        self.vault = vault
        self._opening = opening
        self._opened: Future[BackendParts] = Future()
        self._begun = False

    @property
    def is_open(self) -> bool:
        """Whether nobody has to wait any more."""
        return self._opened.done() and self._opened.exception() is None

    async def open(self) -> None:
        """Open it, without blocking."""
        await asyncio.wrap_future(self._begin())

    @property
    def parts(self) -> BackendParts:
        """Everything; waits until it is open."""
        return self._begin().result()

    def _begin(self) -> Future[BackendParts]:
        if not self._begun:
            self._begun = True
            self._opened.set_running_or_notify_cancel()  # who stops waiting does not cancel it for all
            threading.Thread(target=self._open, name="opening", daemon=True).start()
        return self._opened

    def _open(self) -> None:
        try:
            self._opened.set_result(self._opening())
        except BaseException as error:
            self._opened.set_exception(error)
