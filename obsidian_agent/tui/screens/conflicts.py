"""The preview of an undo or redo, and the choice for each file with a conflict."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, Static

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.bindings import binding, bindings, key_label
from obsidian_agent.tui.diff_lines import parse_diff
from obsidian_agent.tui.screens.dialogs import Buttons, DiffScreen, Modal
from obsidian_agent.tui.widgets.note import OutsideRequested
from obsidian_agent.tui.widgets.row_list import VirtualList
from obsidian_agent.tui.widgets.run import WORD_STYLES, ResultRow

if TYPE_CHECKING:
    from textual.screen import Screen

    from obsidian_agent.journal.undo import UndoConflict, UndoResult

    Restore = Callable[[Collection[str], Collection[str]], UndoResult]


class HistoryRequest(Struct, frozen=True):
    """A request to undo the run `run_id`, or to redo.

    `what` is "undo" for the whole run or only `paths`, "step" for a return to one of its steps.
    `commands` are the Obsidian commands that the run executed, which cannot be undone.
    """

    what: Literal["undo", "step", "redo"]
    run_id: str | None = None
    paths: frozenset[str] = frozenset()
    commands: tuple[str, ...] = ()


class Reversal(Struct, frozen=True, kw_only=True):
    """An undo or redo: how to preview and apply it, and the diff that it makes of a file."""

    verb: str
    """Its name in titles and buttons, such as "Undo"."""
    done: str
    """Its participle, such as "Undone"."""
    preview: Callable[[], UndoResult]
    restore: Restore
    diff: Callable[[str], str]
    subject: str = "this run"
    remark: str = ""
    """A sentence on what it cannot restore."""


def count_files(result: UndoResult) -> str:
    """Return the number of restored files; that of folders if there are no files."""
    if result.folders and not result.files:
        return terminal_text.counted(len(result.folders), "folder")
    return terminal_text.counted(result.files, "file")


class ConflictChoices(Struct, frozen=True):
    """The paths to restore over the current files, and the paths to skip."""

    force: frozenset[str]
    skip: frozenset[str]


class ConflictList(VirtualList["UndoConflict | ResultRow"]):
    """Files with conflicts, one a line, with the choice for each, and other rows."""

    DEFAULT_CSS = "ConflictList { height: auto; min-height: 2; }"
    BINDINGS = [binding("list.choose", "Show diff")]

    def __init__(self, rows: Sequence[UndoConflict | ResultRow]) -> None:
        super().__init__(rows)
        self.forced: frozenset[str] = frozenset()

    @property
    def conflicts(self) -> list[UndoConflict]:
        return [row for row in self.entries if not isinstance(row, ResultRow)]

    def draw_row(self, row: UndoConflict | ResultRow, width: int) -> Content:
        if isinstance(row, ResultRow):
            return Content.assemble(
                (f" {row.word:<16}", WORD_STYLES[row.word]),
                (terminal_text.shortened(row.text, 400), "$foreground"),
            )
        if not row.forcible:
            choice = (" cannot restore  ", "$quiet")
        elif row.path in self.forced:
            choice = (" restore anyway  ", "$error")
        else:
            choice = (" keep mine       ", "$success")
        return Content.assemble(
            choice,
            (terminal_text.shortened(row.path, 300), "$foreground"),
            (f"  {terminal_text.shortened(row.reason, 200)}", "$quiet"),
        )

    def force(self, paths: Collection[str], forced: bool) -> None:
        """Set whether files are restored anyway, as far as that is possible."""
        possible = {row.path for row in self.conflicts if row.forcible and row.path in paths}
        self.forced = self.forced | possible if forced else self.forced - possible
        self.set_rows(self.rows)


class ConflictDialog(Modal[ConflictChoices]):
    """The base of dialogs with conflicts to decide. Current files are kept by default."""

    AUTO_FOCUS = "ConflictList"

    def __init__(
        self,
        title: str,
        rows: Sequence[UndoConflict | ResultRow],
        load_diff: Callable[[str], str],
    ) -> None:
        super().__init__(title)
        self._rows = rows
        self._load_diff = load_diff

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("choose", "choose_all"):
            return any(not isinstance(row, ResultRow) for row in self._rows)
        return True

    def action_choose(self, what: str) -> None:
        listing = self.query_one(ConflictList)
        row = listing.current
        if row is not None and not isinstance(row, ResultRow):
            listing.force({row.path}, what == "force")
            listing.action_cursor(1)

    def action_choose_all(self, what: str) -> None:
        listing = self.query_one(ConflictList)
        listing.force({row.path for row in listing.conflicts}, what == "force")

    def action_outside(self) -> None:
        row = self.query_one(ConflictList).current
        if row is not None and row.path is not None:
            self.post_message(OutsideRequested(row.path))

    def action_apply(self) -> None:
        listing = self.query_one(ConflictList)
        paths = frozenset(conflict.path for conflict in listing.conflicts)
        self.dismiss(ConflictChoices(listing.forced, paths - listing.forced))

    def on_virtual_list_chosen(self, event: ConflictList.Chosen) -> None:
        path = event.row.path
        if path is not None:
            show = partial(show_diff, self, self._load_diff, path)
            self.run_flow("conflict diff", show, exclusive=True)


class UndoPreview(ConflictDialog):
    """A preview of an undo or redo. Dismisses with the choices if the user agrees."""

    BINDINGS = [*bindings("conflicts", without=("conflicts.apply",)), *bindings("confirm")]

    def __init__(self, reversal: Reversal, planned: UndoResult, *, plan_waits: bool) -> None:
        rows: list[UndoConflict | ResultRow] = [*planned.conflicts]
        rows += [ResultRow("error", problem.message) for problem in planned.errors]
        earlier = {new: old for old, new in planned.moved}
        moves = "move back" if reversal.verb == "Undo" else "rename"
        for path in planned.restored:
            if path in earlier:
                rows.append(ResultRow(moves, f"{earlier[path]} → {path}", path))
            elif path in planned.folders:
                rows.append(ResultRow("folder", path, path))
            else:
                word = "remove" if path in planned.removed else "restore"
                rows.append(ResultRow(word, path, path))
        super().__init__(f"{reversal.verb} {reversal.subject}?", rows, reversal.diff)
        self._reversal = reversal
        self._planned = planned
        self._plan_waits = plan_waits

    def _text(self) -> str:
        parts = [f"{self._reversal.verb} restores {count_files(self._planned)}."]
        if self._planned.conflicts:
            changed = terminal_text.counted(len(self._planned.conflicts), "file")
            keep, restore = (
                key_label(self, "conflicts.skip_all"),
                key_label(self, "conflicts.force_all"),
            )
            parts.append(
                f"{changed} changed since: {keep} keeps all of your text, {restore} restores all."
            )
        if self._reversal.remark:
            parts.append(self._reversal.remark)
        if self._plan_waits:
            parts.append("The pending plan is then previewed again.")
        return " ".join(parts)

    def body(self) -> ComposeResult:
        yield Static(Content(terminal_text.block(self._text())), markup=False)
        yield ConflictList(self._rows)
        yield Buttons(
            Button(Content("Cancel"), compact=True, id="no"),
            Button(Content(self._reversal.verb), compact=True, id="yes", variant="error"),
        )

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.action_answer(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        if yes:
            self.action_apply()
        else:
            self.dismiss(None)


class Conflicts(ConflictDialog):
    """The question what to do with conflicts that appeared after the preview."""

    BINDINGS = bindings("conflicts")

    def __init__(self, conflicts: Sequence[UndoConflict], load_diff: Callable[[str], str]) -> None:
        super().__init__("These files changed since the run", conflicts, load_diff)

    def body(self) -> ComposeResult:
        key = key_label(self, "list.choose")
        self.hint = f"All other files were restored. {key} shows what restoring would change."
        yield ConflictList(self._rows)


async def show_diff(screen: Screen[Any], load: Callable[[str], str], path: str) -> None:
    """Show the diff that an undo or redo would apply to the current text of a file."""
    try:
        diff = parse_diff(await asyncio.to_thread(load, path))
    except ObsidianAgentError as error:
        screen.app.push_screen(DiffScreen(path, error.problem().message))
        return
    content = diff if diff.lines else "The text of this file does not change."
    screen.app.push_screen(DiffScreen(path, content))
