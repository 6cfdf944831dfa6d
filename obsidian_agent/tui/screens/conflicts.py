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
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.diff_lines import parse_diff
from obsidian_agent.tui.screens.dialogs import Buttons, DiffScreen, Modal
from obsidian_agent.tui.widgets.note import OutsideRequested
from obsidian_agent.tui.widgets.run_files import RunFile, RunFiles, RunGroup

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


class ConflictList(RunFiles):
    """Files with conflicts, one a line, with the choice for each, and the files without."""

    DEFAULT_CSS = "ConflictList { height: auto; min-height: 2; }"
    WORD_WIDTH = 14

    def __init__(self, conflicts: Sequence[UndoConflict], files: Sequence[RunFile] = ()) -> None:
        super().__init__()
        self.conflicts = conflicts
        self.forced: frozenset[str] = frozenset()
        self._files = files
        self.rows = self._rows()

    def _rows(self) -> list[RunFile | RunGroup]:
        return [*map(self._conflict_row, self.conflicts), *super()._rows()]

    def _conflict_row(self, conflict: UndoConflict) -> RunFile:
        word = "restore anyway" if conflict.path in self.forced else "keep mine"
        return RunFile(
            word=word if conflict.forcible else "cannot restore",
            text=conflict.path,
            paths=(conflict.path,),
            state=conflict.reason,
        )

    def force(self, paths: Collection[str], forced: bool) -> None:
        """Set whether files are restored anyway, as far as that is possible."""
        possible = {row.path for row in self.conflicts if row.forcible and row.path in paths}
        self.forced = self.forced | possible if forced else self.forced - possible
        self.set_rows(self._rows())


class ConflictDialog(Modal[ConflictChoices]):
    """The base of dialogs with conflicts to decide. Current files are kept by default."""

    AUTO_FOCUS = "ConflictList"

    def __init__(
        self,
        title: str,
        conflicts: Sequence[UndoConflict],
        load_diff: Callable[[str], str],
        files: Sequence[RunFile] = (),
    ) -> None:
        super().__init__(title)
        self._conflicts = conflicts
        self._files = files
        self._load_diff = load_diff

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("choose", "choose_all"):
            return bool(self._conflicts)
        return True

    def action_choose(self, what: str) -> None:
        listing = self.query_one(ConflictList)
        if listing.path in {conflict.path for conflict in self._conflicts}:
            listing.force({listing.path}, what == "force")
            listing.action_cursor(1)

    def action_choose_all(self, what: str) -> None:
        listing = self.query_one(ConflictList)
        listing.force({conflict.path for conflict in self._conflicts}, what == "force")

    def action_outside(self) -> None:
        path = self.query_one(ConflictList).path
        if path is not None:
            self.post_message(OutsideRequested(path))

    def action_apply(self) -> None:
        listing = self.query_one(ConflictList)
        paths = frozenset(conflict.path for conflict in self._conflicts)
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
        rows = [RunFile(word="error", text=problem.message) for problem in planned.errors]
        earlier = {new: old for old, new in planned.moved}
        moves = "move back" if reversal.verb == "Undo" else "rename"
        for path in planned.restored:
            if path in earlier:
                pair = (earlier[path], path)
                rows.append(RunFile(word=moves, text=" → ".join(pair), paths=pair))
            elif path in planned.folders:
                rows.append(RunFile(word="folder", text=path, paths=(path,)))
            else:
                word = "remove" if path in planned.removed else "restore"
                rows.append(RunFile(word=word, text=path, paths=(path,)))
        title = f"{reversal.verb} {reversal.subject}?"
        super().__init__(title, planned.conflicts, reversal.diff, rows)
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
        yield ConflictList(self._conflicts, self._files)
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
        yield ConflictList(self._conflicts, self._files)


async def show_diff(screen: Screen[Any], load: Callable[[str], str], path: str) -> None:
    """Show the diff that an undo or redo would apply to the current text of a file."""
    try:
        diff = parse_diff(await asyncio.to_thread(load, path))
    except ObsidianAgentError as error:
        screen.app.push_screen(DiffScreen(path, error.problem().message))
        return
    content = diff if diff.lines else "The text of this file does not change."
    screen.app.push_screen(DiffScreen(path, content))
