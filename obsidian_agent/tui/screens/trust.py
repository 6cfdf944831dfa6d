"""What in the vault wants to tell the agent something: read it, then trust it, or don't. Untrusted, it has no effect at all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import binding, bindings
from obsidian_agent.tui.report_lines import Line
from obsidian_agent.tui.screens.dialogs import Modal, ReportList, wrap_lines
from obsidian_agent.tui.screens.share import readable_size
from obsidian_agent.tui.widgets.row_list import VirtualList

if TYPE_CHECKING:
    from obsidian_agent.services.vault_agents.library import Library, VaultAgentEntry, VaultAgents

_STANDINGS = {
    "trusted": ("✓ trusted", "$success"),
    "new": ("○ new    ", "$quiet"),
    "changed": ("▲ changed", "$warning"),
}


class CustomList(VirtualList["VaultAgentEntry"]):
    """One file a line."""

    DEFAULT_CSS = "CustomList { height: auto; min-height: 2; max-height: 40vh; }"
    BINDINGS = [binding("list.choose", "Read")]

    def draw_row(self, row: VaultAgentEntry, width: int) -> Content:
        word, style = _STANDINGS[row.standing]
        return Content.assemble(
            (f" {word} ", style),
            (f"{terminal_text.line(row.kind):<12} ", "$quiet"),
            (terminal_text.shortened(row.path, 160), "$foreground"),
            (f"  {readable_size(row.size)}", "$quiet"),
            (
                f"  {terminal_text.shortened(row.description, 160)}" if row.description else "",
                "$quiet",
            ),
        )


class Trust(Modal[None]):
    """Everything is read before it can be trusted: trusting is done on the screen that shows the text."""

    BINDINGS = bindings("trust", without=("trust.trust",))

    def __init__(self, vault_agents: VaultAgents) -> None:
        super().__init__(
            "Agents, skills and instructions of this vault",
            "What you trust is told to the model. A file that changes by one byte has to be trusted again.",
        )
        self._customs = vault_agents

    def body(self) -> ComposeResult:
        yield CustomList(empty=" This vault has none.")
        yield Static("", id="custom-problems", markup=False)

    def on_mount(self) -> None:
        self.query_one(CustomList).focus()
        self.run_flow("customs", self._reload)

    async def _reload(self) -> None:
        library = await asyncio.to_thread(self._customs.library)
        if self.is_attached:
            listing = self.query_one(CustomList)
            listing.set_rows(library.files, listing.cursor)
            self.query_one("#custom-problems", Static).update(_problems(library))

    def on_virtual_list_chosen(self, event: CustomList.Chosen) -> None:
        self.show_problem("")
        self.run_flow("custom", partial(self._read, event.list.rows[event.index]))

    def action_distrust(self) -> None:
        row = self.query_one(CustomList).current
        if row is not None and row.standing != "new":
            self.run_flow("custom", partial(self._distrust, row.path))

    async def _read(self, row: VaultAgentEntry) -> None:
        text, sha256 = await asyncio.to_thread(self._customs.show, row.path)
        lines: list[Line] = [
            (line, "$foreground") for line in terminal_text.block(text).split("\n")
        ]
        trusted = row.standing == "trusted" and row.sha256 == sha256
        if await self.app.push_screen_wait(Reading(row.path, lines, trusted=trusted)):
            await asyncio.to_thread(self._customs.trust, row.path, sha256)
        await self._reload()

    async def _distrust(self, path: str) -> None:
        await asyncio.to_thread(self._customs.distrust, path)
        await self._reload()


class Reading(Modal[bool]):
    """The text of one file; dismisses with True when it is to be trusted."""

    BINDINGS = bindings("trust", without=("trust.distrust",))

    def __init__(self, path: str, lines: Sequence[Line], *, trusted: bool, hint: str = "") -> None:
        untrusted = hint or "Trust it only if you would tell the model all of this yourself."
        super().__init__(
            terminal_text.shortened(path, 200), "You trust this file." if trusted else untrusted
        )
        self._lines = lines
        self._trusted = trusted

    def body(self) -> ComposeResult:
        yield ReportList(())

    def on_mount(self) -> None:
        listing = self.query_one(ReportList)
        listing.focus()
        listing.set_rows(
            wrap_lines(self._lines, max(30, min(100, self.app.size.width * 94 // 100 - 10))), 0
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not self._trusted if action == "trust" else True

    def action_trust(self) -> None:
        if not self._trusted:
            self.dismiss(True)


def _problems(library: Library) -> Content:
    told = [f"▲ {terminal_text.block(problem.message)}" for problem in library.problems[:6]]
    more = [f"… and {len(library.problems) - 6} more"] if len(library.problems) > 6 else []
    return Content.styled("\n".join(["", *told, *more]) if told else "", "$warning")
