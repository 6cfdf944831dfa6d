"""Flows that need what the program knows of itself, which is not there in every app."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from obsidian_agent.agent.app_services import AppServices
    from obsidian_agent.tui.screens.desk import Desk

NOT_HERE = "This is not known here."


class Informed:
    """Runs flows with the `insight`, one at a time; where there is none it says so."""

    def __init__(self, desk: Desk, insight: AppServices | None) -> None:
        self._desk = desk
        self.insight = insight

    def run(self, work: Callable[[AppServices], Coroutine[Any, Any, None]]) -> None:
        """Run a flow in the background."""
        if self.insight is None:
            self._desk.panes.chat.hint(NOT_HERE)
        else:
            self._desk.run(partial(work, self.insight), "telling", exclusive=True)
