"""Review and trust the vault's agents, skills and instructions. Untrusted ones have no effect."""

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
from obsidian_agent.tui.screens.dialogs import ListScreen, Modal, ReportList
from obsidian_agent.tui.screens.share import readable_size
from obsidian_agent.tui.widgets.row_list import VirtualList

if TYPE_CHECKING:
    from obsidian_agent.services.vault_agents.library import Library, VaultAgentEntry, VaultAgents

_STANDINGS = {
    "trusted": ("✓ trusted", "$success"),
    "new": ("○ new    ", "$quiet"),
    "changed": ("▲ changed", "$warning"),
}


_MAX_PROBLEMS = 6


class VaultFileList(VirtualList["VaultAgentEntry"]):
    """The files, one a line, with their standing."""

    DEFAULT_CSS = "VaultFileList { height: auto; min-height: 2; max-height: 40vh; }"
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


class Trust(ListScreen["VaultAgentEntry", None]):
    """The list of files. A file can only be trusted from the screen that shows its text."""

    BINDINGS = bindings("trust", without=("trust.trust",))

    def __init__(self, vault_agents: VaultAgents) -> None:
        super().__init__(
            "Agents, skills and instructions of this vault",
            "Trusted files are sent to the model. A changed file must be trusted again.",
        )
        self._vault_agents = vault_agents
        self._problems = Content("")

    def body(self) -> ComposeResult:
        yield VaultFileList(empty=" This vault has no agents, skills or instructions.")
        yield Static("", id="file-problems", markup=False)

    def load(self) -> Sequence[VaultAgentEntry]:
        library = self._vault_agents.library()
        self._problems = _problems(library)
        return library.files

    async def reload(self) -> None:
        await super().reload()
        if self.is_attached:
            self.query_one("#file-problems", Static).update(self._problems)

    def on_virtual_list_chosen(self, event: VaultFileList.Chosen) -> None:
        self.show_problem("")
        self.run_flow("file", partial(self._read, event.row))

    def action_distrust(self) -> None:
        if self.row is not None and self.row.standing != "new":
            self.run_flow("file", partial(self._distrust, self.row.path))

    async def _read(self, row: VaultAgentEntry) -> None:
        text, sha256 = await asyncio.to_thread(self._vault_agents.show, row.path)
        lines: list[Line] = [
            (line, "$foreground") for line in terminal_text.block(text).split("\n")
        ]
        trusted = row.standing == "trusted" and row.sha256 == sha256
        if await self.app.push_screen_wait(Reading(row.path, lines, trusted=trusted)):
            await asyncio.to_thread(self._vault_agents.trust, row.path, sha256)
        await self.reload()

    async def _distrust(self, path: str) -> None:
        await asyncio.to_thread(self._vault_agents.distrust, path)
        await self.reload()


class Reading(Modal[bool]):
    """The text of one file. Dismisses with True if the user trusts it."""

    BINDINGS = bindings("trust", without=("trust.distrust",))

    def __init__(self, path: str, lines: Sequence[Line], *, trusted: bool, hint: str = "") -> None:
        if trusted:
            hint = "You trust this file."
        elif not hint:
            hint = "Trust it only if you would give the model all of these instructions yourself."
        super().__init__(terminal_text.shortened(path, 200), hint)
        self._lines = lines
        self._trusted = trusted

    def body(self) -> ComposeResult:
        yield ReportList(self._lines)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not self._trusted if action == "trust" else True

    def action_trust(self) -> None:
        if not self._trusted:
            self.dismiss(True)


def _problems(library: Library) -> Content:
    problems = library.problems
    if not problems:
        return Content("")
    lines = [""]
    for problem in problems[:_MAX_PROBLEMS]:
        lines.append(f"▲ {terminal_text.block(problem.message)}")
    if len(problems) > _MAX_PROBLEMS:
        lines.append(f"… and {len(problems) - _MAX_PROBLEMS} more")
    return Content.styled("\n".join(lines), "$warning")
