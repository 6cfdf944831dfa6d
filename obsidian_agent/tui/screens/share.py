"""May this be sent to the model? What would leave the machine, item by item, before it does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from obsidian_agent.tui import sanitize
from obsidian_agent.tui.keys import bindings
from obsidian_agent.tui.screens.modal import Modal
from obsidian_agent.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from textual.app import App

    from obsidian_agent.agent.sharing import Scope, ShareDecision, ShareItem, ShareRequest

GRACE_SECONDS = 0.5
"""So long after the question appears the keys that allow something do nothing."""

PREVIEW_LINES = 8

_LEVELS = {1: "name only", 2: "some lines", 3: "whole text"}
_TITLES = {
    "files": "Send these notes to the model?",
    "results": "Send what was found to the model?",
    "selection": "Send the selected text to the model?",
    "history": "Send what another model was shown?",
}


class ShareList(VirtualList["ShareItem"]):
    """One item a line, with its switch."""

    DEFAULT_CSS = "ShareList { height: auto; max-height: 40vh; }"

    def __init__(self, rows: Sequence[ShareItem]) -> None:
        super().__init__(rows)
        self.chosen = {item.path.text for item in rows}

    def draw_row(self, row: ShareItem, width: int) -> Content:
        on = row.path.text in self.chosen
        sign = (" ● send ", "$success") if on else (" ○ keep ", "$quiet")
        note = f"  {_LEVELS[row.level]} · about {row.tokens:,} tokens" + (f" · {sanitize.shortened(row.why, 120)}" if row.why else "")
        return Content.assemble(
            sign, (sanitize.shortened(row.path.text, 200) or "(no file)", "$foreground" if on else "$quiet"), (note, "$quiet")
        )

    def choose(self, paths: set[str]) -> None:
        """Other switches."""
        self.chosen = paths
        self.set_rows(self.rows)


class Share(Modal["ShareDecision"]):
    """Dismisses with the decision; closing it is a no."""

    BINDINGS = bindings("share")

    def __init__(self, request: ShareRequest, *, clock: Callable[[], float] = time.monotonic) -> None:
        folder = f"the folder “{sanitize.shortened(request.folder, 120)}”" if request.folder else "the whole vault"
        super().__init__(_TITLES[request.kind], f"f allows {folder}, as much of each file as here, for the rest of the conversation.")
        self._request = request
        self._clock = clock
        self._open_from = clock() + GRACE_SECONDS

    def body(self) -> ComposeResult:
        request = self._request
        count = f"  ({request.number} of {request.total})" if request.total > 1 else ""
        yield Static(
            Content.assemble(
                ("To ", "$quiet"),
                (sanitize.shortened(request.provider, 80), "bold"),
                (f" at {sanitize.shortened(request.address, 120)}{count}\n", "$quiet"),
                (sanitize.shortened(request.purpose, 200), "$foreground"),
                (f"  {sanitize.line(request.tool)}\n", "$quiet"),
            ),
            markup=False,
        )
        yield ShareList(request.items)
        yield Static("", id="share-preview", markup=False)

    def on_mount(self) -> None:
        self.query_one(ShareList).focus()
        self._show(0)

    def on_virtual_list_highlighted(self, event: ShareList.Highlighted) -> None:
        self._show(event.index)

    def _show(self, index: int) -> None:
        """Exactly what would be sent of the highlighted item, as far as there is room."""
        item = self._request.items[index] if 0 <= index < len(self._request.items) else None
        lines = [sanitize.shortened(line, 160) for line in item.previews[:PREVIEW_LINES]] if item is not None else []
        if item is not None and len(item.previews) > PREVIEW_LINES:
            lines.append(f"… {len(item.previews) - PREVIEW_LINES:,} more lines")
        self.query_one("#share-preview", Static).update(Content.styled("\n".join(["", *lines]) if lines else "", "$quiet"))

    # --- switches -------------------------------------------------------------------------------------------------------------

    def action_switch(self) -> None:
        """Send the highlighted item, or keep it."""
        listing = self.query_one(ShareList)
        if listing.current is not None:
            listing.choose(listing.chosen ^ {listing.current.path.text})

    def on_virtual_list_chosen(self) -> None:
        self.action_switch()

    def action_all(self) -> None:
        self.query_one(ShareList).choose({item.path.text for item in self._request.items})

    def action_none(self) -> None:
        self.query_one(ShareList).choose(set())

    # --- answers --------------------------------------------------------------------------------------------------------------

    def action_send(self, scope: Scope) -> None:
        from obsidian_agent.agent.sharing import ShareDecision

        now = self._clock()
        if now < self._open_from:
            self._open_from = now + GRACE_SECONDS
            return
        chosen = frozenset(self.query_one(ShareList).chosen)
        self.dismiss(ShareDecision(scope, chosen))

    def action_close(self) -> None:
        from obsidian_agent.agent.sharing import REFUSED

        self.dismiss(REFUSED)


async def ask(app: App[None], request: ShareRequest) -> ShareDecision:
    """Ask the person and wait. When the turn that asks is cancelled, the question goes away with it."""
    from obsidian_agent.agent.sharing import REFUSED

    answer: asyncio.Future[ShareDecision] = asyncio.get_running_loop().create_future()
    screen = Share(request)

    def answered(decision: ShareDecision | None) -> None:
        if not answer.done():
            answer.set_result(decision or REFUSED)

    app.push_screen(screen, answered)
    try:
        return await answer
    finally:
        if app.screen is screen:
            app.pop_screen()
