"""The overview of the vault at the start of a conversation."""

from __future__ import annotations

import asyncio

from textual import work

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.screens.workspace import Workspace


class OverviewActions(Workspace):
    """Loads the overview for the introduction."""

    @work(group="overview", exclusive=True, exit_on_error=False)
    async def load_overview(self) -> None:
        """Show the overview of the vault in the introduction, if there still is one."""
        from obsidian_agent.services.overview import overview

        if not self.panes.chat.is_new:
            return
        try:
            content = await asyncio.to_thread(overview, self.session, self.services.waiting)
        except ObsidianAgentError:
            return  # the same error is reported by the first message
        self.panes.chat.show_overview(content)
