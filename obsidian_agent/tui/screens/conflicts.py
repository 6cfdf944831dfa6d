"""Files that changed since a run: keep each as it is, or restore it anyway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content

from obsidian_agent import terminal_text
from obsidian_agent.tui import diff_model
from obsidian_agent.tui.keys import bindings
from obsidian_agent.tui.screens.diff import DiffScreen
from obsidian_agent.tui.screens.modal import Modal
from obsidian_agent.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from obsidian_agent.tui.port import UndoConflict


@dataclass(frozen=True, slots=True)
class ConflictChoices:
    """Paths to restore over what is there now, and paths to leave alone."""

    force: frozenset[str]
    skip: frozenset[str]


class ConflictList(VirtualList["UndoConflict"]):
    """One file a line, with what happens to it."""

    DEFAULT_CSS = "ConflictList { height: auto; min-height: 2; }"
    BINDINGS = [Binding("enter", "choose", "Show diff", key_display="⏎")]

    def __init__(self, rows: Sequence[UndoConflict]) -> None:
        super().__init__(rows)
        self.forced: frozenset[str] = frozenset()

    def draw_row(self, row: UndoConflict, width: int) -> Content:
        word = (" restore anyway ", "$error") if row.path in self.forced else (" keep mine      ", "$success")
        if not row.forcible:
            word = (" cannot be restored ", "$quiet")
        return Content.assemble(
            word, (terminal_text.shortened(row.path, 300), "$foreground"), (f"  {terminal_text.shortened(row.reason, 200)}", "$quiet")
        )

    def force(self, path: str, forced: bool) -> None:
        """Choose for one file."""
        self.forced = self.forced | {path} if forced else self.forced - {path}
        self.set_rows(self.rows)


class Conflicts(Modal[ConflictChoices]):
    """Dismisses with the choices; everything is kept unless the person says otherwise."""

    BINDINGS = bindings("conflicts")

    def __init__(self, conflicts: Sequence[UndoConflict], load_diff: Callable[[str], Awaitable[str]]) -> None:
        super().__init__("These files changed since the run", "Everything else was restored. Enter shows what restoring would change.")
        self._conflicts = tuple(conflicts)
        self._load_diff = load_diff

    def body(self) -> ComposeResult:
        yield ConflictList(self._conflicts)

    def on_mount(self) -> None:
        self.query_one(ConflictList).focus()

    def action_choose(self, what: str) -> None:
        listing = self.query_one(ConflictList)
        if listing.current is not None:
            listing.force(listing.current.path, what == "force" and listing.current.forcible)
            listing.action_cursor(1)

    def action_apply(self) -> None:
        forced = self.query_one(ConflictList).forced
        self.dismiss(ConflictChoices(forced, frozenset(conflict.path for conflict in self._conflicts) - forced))

    def on_virtual_list_chosen(self, event: ConflictList.Chosen) -> None:
        self.run_flow("conflict diff", partial(self._show, self._conflicts[event.index].path), exclusive=True)

    async def _show(self, path: str) -> None:
        diff = diff_model.parse(await self._load_diff(path))
        self.app.push_screen(DiffScreen(path, diff if diff.lines else "There are no lines to compare."))
