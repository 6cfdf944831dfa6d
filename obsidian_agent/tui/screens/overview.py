"""The overview of the vault at the start of a conversation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import work

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.screens.workspace import Workspace

if TYPE_CHECKING:
    from obsidian_agent.services.overview import Overview


class OverviewActions(Workspace):
    """Loads the overview for the introduction."""

    @work(group="overview", exclusive=True, exit_on_error=False)
    async def load_overview(self) -> None:
        """Show the overview of the vault in the introduction, if there still is one."""
        if not self.panes.chat.is_new:
            return
        try:
            content = await asyncio.to_thread(self._overview)
        except ObsidianAgentError:
            return  # the same error is reported by the first message
        self.panes.chat.show_overview(content)

    def _overview(self) -> Overview:
        from obsidian_agent.services.overview import overview

        services = self.services
        return overview(self.session, services.waiting, services.health.record.trend())
