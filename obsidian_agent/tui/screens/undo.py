"""Undo and redo of runs, whole or back to a step, with a preview; recovery of crashed runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, Static

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.bindings import binding, bindings, key_label
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.dialogs import Buttons, Confirm, Modal
from obsidian_agent.tui.screens.history import FileRows, History, HistoryRequest, show_diff
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.widgets.note import OutsideRequested
from obsidian_agent.tui.widgets.row_list import Choice, ChoiceList, VirtualList
from obsidian_agent.tui.widgets.run import ResultRow

if TYPE_CHECKING:
    from obsidian_agent.journal.records import UndoPoint
    from obsidian_agent.journal.recovery import InterruptedRun
    from obsidian_agent.journal.undo import UndoConflict, UndoResult
    from obsidian_agent.plan.model import ActionPlan

    Restore = Callable[[Collection[str], Collection[str]], UndoResult]

RecoveryChoice = Literal["finish", "back"]

_MAX_NAMED: Final = 5
"""Number of files that are named in one line."""


class UndoActions(Workspace):
    """Actions that undo and redo runs, and that recover interrupted ones."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command("history", "Show history", "Undo and redo earlier runs", "history"),
    )

    def action_history(self) -> None:
        """Show earlier runs."""
        self.app.push_screen(History(self.session.runs), self.change_history)

    def change_history(self, request: HistoryRequest | None) -> None:
        """Undo an earlier run, whole or back to a step that the user chooses, or redo."""
        if request is None:
            return
        if self.turn.phase == "running":
            self.show_hint("A plan is being applied. Try again when it is done.")
            return
        match request.what:
            case "undo":
                self.undo(request.run_id)
            case "step" if request.run_id is not None:
                self._undo_to_step(request.run_id)
            case _:
                self._redo()

    @work(group="undo", exit_on_error=False)
    async def undo(self, run_id: str | None) -> None:
        """Undo a run (None: the last)."""
        await self._undo(run_id)

    @work(group="undo", exit_on_error=False)
    async def undo_last(self) -> None:
        """Undo the last run once the user confirms it."""
        await self._undo(None, ask=True)

    @work(group="undo", exit_on_error=False)
    async def _undo_to_step(self, run_id: str) -> None:
        undo_points = await asyncio.to_thread(self.session.runs.undo_points, run_id)
        plan = await asyncio.to_thread(self.session.runs.plan_of, run_id)
        step = await self.app.push_screen_wait(Steps(plan, undo_points))
        if step is not None:
            await self._undo(run_id, step)

    @work(group="undo", exit_on_error=False)
    async def _redo(self) -> None:
        runs = self.session.runs
        await self._restore(
            Reversal(
                verb="Redo",
                done="Redone",
                preview=partial(runs.undo_preview, None, redoing=True),
                restore=runs.redo,
                diff=partial(runs.conflict_diff, None, redoing=True),
            )
        )

    async def _undo(
        self, run_id: str | None, to_step: str | None = None, *, ask: bool = False
    ) -> None:
        """Undo a run; with `to_step` only the changes after that step."""
        runs = self.session.runs

        def undo(force: Collection[str], skip: Collection[str]) -> UndoResult:
            return runs.undo(run_id, force, skip, to_step)

        reversal = Reversal(
            verb="Undo",
            done="Undone",
            preview=partial(runs.undo_preview, run_id, to_step=to_step),
            restore=undo,
            diff=partial(runs.conflict_diff, run_id),
        )
        await self._restore(reversal, ask=ask)

    async def _restore(self, reversal: Reversal, *, ask: bool = False) -> None:
        """Restore files without conflicts, then ask about the others. Preview a pending plan again.

        A preview is shown first if `ask` is true, or if several files or a conflict are involved.
        """
        planned = await asyncio.to_thread(reversal.preview)
        if ask or planned.conflicts or planned.files + len(planned.errors) > 1:
            waits = self.turn.pending is not None
            question = UndoPreview(reversal, planned, plan_waits=waits)
            if not await self.app.push_screen_wait(question):
                return
        try:
            await self._restore_all(reversal)
        finally:
            await self._update_result()
        if self.turn.pending is not None:
            self.turn.preview_again(self.turn.pending)

    async def _update_result(self) -> None:
        """Show in the result pane which steps of its run are in effect now."""
        result = self.panes.work.result.result
        if result is not None and result.run_id is not None:
            steps = await asyncio.to_thread(self.session.runs.step_outcomes, result.run_id)
            self.panes.work.result.update_steps(steps)

    async def _restore_all(self, reversal: Reversal) -> None:
        report = await asyncio.to_thread(reversal.restore, (), ())
        self._show_report(reversal.done, report)
        if not report.conflicts:
            return
        choices = await self.app.push_screen_wait(Conflicts(report.conflicts, reversal.diff))
        if choices is not None and choices.force:
            report = await asyncio.to_thread(reversal.restore, choices.force, choices.skip)
            self._show_report(reversal.done, report)
        skipped = {conflict.path for conflict in report.conflicts}
        if choices is not None:
            skipped |= choices.skip
        if skipped:
            names = ", ".join(sorted(skipped)[:_MAX_NAMED])
            if len(skipped) > _MAX_NAMED:
                names += f" and {len(skipped) - _MAX_NAMED:,} more"
            self.add_entry("note", f"Skipped: {names}.")

    def _show_report(self, done: str, report: UndoResult) -> None:
        self.vault_changed()
        files = terminal_text.counted(len(report.restored), "file or folder", "files and folders")
        self.add_entry("good", f"{done}: {files}.")
        for problem in report.errors:
            self.add_entry("bad", problem.message)
        for warning in report.warnings:
            self.add_entry("note", warning.message)

    # --- at the start -----------------------------------------------------------------------------

    async def resolve_history(self) -> None:
        """Ask about the history of a moved vault, and about runs that a crash interrupted."""
        try:
            await self._adopt_history()
            for run in await asyncio.to_thread(self.session.runs.interrupted):
                choice = await self.app.push_screen_wait(RecoveryDialog(run))
                if choice is not None:
                    await self._recover(run, finish=choice == "finish")
        except ObsidianAgentError as error:
            self.add_entry("bad", error.problem().message)

    async def _adopt_history(self) -> None:
        moved = await asyncio.to_thread(self.session.runs.moved)
        if moved is None:
            return
        text = (
            f"This vault was at {moved.path} before. Its runs, conversations and statistics are "
            "stored for that path. Move them here to be able to undo earlier runs."
        )
        question = Confirm("This vault was moved", text, "Move them", "Not now", danger=False)
        if await self.app.push_screen_wait(question):
            await asyncio.to_thread(self.session.runs.adopt)
            self.add_entry("good", "The history of this vault was moved to its new path.")

    async def _recover(self, run: InterruptedRun, *, finish: bool) -> None:
        try:
            recoveries = await asyncio.to_thread(self.session.runs.recover, run.run_id, finish)
        except ObsidianAgentError as error:
            # Reported here, so that the user is still asked about the other runs.
            self.add_entry("bad", error.problem().message)
            return
        for recovery in recoveries:
            for problem in recovery.problems:
                self.add_entry("bad", problem.message)
            for warning in recovery.warnings:
                self.add_entry("note", warning.message)
        outcome = "finished" if finish else "rolled back"
        self.add_entry("good", f"The interrupted run was {outcome}.")
        self.vault_changed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """An undo or redo: how to preview and apply it, and the diff that it makes of a file."""

    verb: str
    """Its name in titles and buttons, such as "Undo"."""
    done: str
    """Its participle, such as "Undone"."""
    preview: Callable[[], UndoResult]
    restore: Restore
    diff: Callable[[str], str]


class UndoPreview(Confirm):
    """A preview of an undo or redo. Dismisses with True if the user agrees."""

    AUTO_FOCUS = "FileRows"

    def __init__(self, reversal: Reversal, planned: UndoResult, *, plan_waits: bool) -> None:
        restored, conflicts = len(planned.restored), len(planned.conflicts)
        files = terminal_text.counted(restored, "file or folder", "files and folders")
        parts = [f"{reversal.verb} restores {files}."]
        if conflicts:
            changed = terminal_text.counted(conflicts, "file")
            parts.append(f"{changed} changed since. You decide about each of these afterwards.")
        if plan_waits:
            parts.append("The pending plan is then previewed again.")
        super().__init__(f"{reversal.verb} this run?", " ".join(parts), reversal.verb)
        self._reversal = reversal
        self._planned = planned

    def body(self) -> ComposeResult:
        text, buttons = super().body()
        yield text
        yield FileRows()
        yield buttons

    def on_mount(self) -> None:
        planned = self._planned
        rows = [
            ResultRow("changed", f"{conflict.path}  {conflict.reason}", conflict.path)
            for conflict in planned.conflicts
        ]
        rows += [ResultRow("error", problem.message) for problem in planned.errors]
        rows += [ResultRow("restore", path, path) for path in planned.restored]
        self.query_one(FileRows).set_rows(rows, 0)

    def on_virtual_list_chosen(self, event: FileRows.Chosen) -> None:
        path = event.list.rows[event.index].path
        if path is not None:
            show = partial(show_diff, self, self._reversal.diff, path)
            self.run_flow("undo diff", show, exclusive=True)


@dataclass(frozen=True, slots=True)
class ConflictChoices:
    """The paths to restore over the current files, and the paths to skip."""

    force: frozenset[str]
    skip: frozenset[str]


class ConflictList(VirtualList["UndoConflict"]):
    """The files with conflicts, one a line, with the choice for each."""

    DEFAULT_CSS = "ConflictList { height: auto; min-height: 2; }"
    BINDINGS = [binding("list.choose", "Show diff")]

    def __init__(self, rows: Sequence[UndoConflict]) -> None:
        super().__init__(rows)
        self.forced: frozenset[str] = frozenset()

    def draw_row(self, row: UndoConflict, width: int) -> Content:
        if not row.forcible:
            choice = (" cannot be restored ", "$quiet")
        elif row.path in self.forced:
            choice = (" restore anyway ", "$error")
        else:
            choice = (" keep mine      ", "$success")
        return Content.assemble(
            choice,
            (terminal_text.shortened(row.path, 300), "$foreground"),
            (f"  {terminal_text.shortened(row.reason, 200)}", "$quiet"),
        )

    def force(self, path: str, forced: bool) -> None:
        """Set whether one file is restored anyway."""
        self.forced = self.forced | {path} if forced else self.forced - {path}
        self.set_rows(self.rows)


class Conflicts(Modal[ConflictChoices]):
    """The question what to do with conflicts. Current files are kept by default."""

    BINDINGS = bindings("conflicts")

    def __init__(self, conflicts: Sequence[UndoConflict], load_diff: Callable[[str], str]) -> None:
        super().__init__("These files changed since the run")
        self._conflicts = tuple(conflicts)
        self._load_diff = load_diff

    def body(self) -> ComposeResult:
        key = key_label(self, "list.choose")
        self.hint = f"All other files were restored. {key} shows what restoring would change."
        yield ConflictList(self._conflicts)

    def on_mount(self) -> None:
        self.query_one(ConflictList).focus()

    def action_choose(self, what: str) -> None:
        listing = self.query_one(ConflictList)
        if listing.current is not None:
            listing.force(listing.current.path, what == "force" and listing.current.forcible)
            listing.action_cursor(1)

    def action_outside(self) -> None:
        if (row := self.query_one(ConflictList).current) is not None:
            self.post_message(OutsideRequested(row.path))

    def action_apply(self) -> None:
        forced = self.query_one(ConflictList).forced
        paths = frozenset(conflict.path for conflict in self._conflicts)
        self.dismiss(ConflictChoices(forced, paths - forced))

    def on_virtual_list_chosen(self, event: ConflictList.Chosen) -> None:
        path = self._conflicts[event.index].path
        show = partial(show_diff, self, self._load_diff, path)
        self.run_flow("conflict diff", show, exclusive=True)


class RecoveryDialog(Modal[RecoveryChoice]):
    """The question what to do with an interrupted run. Dismisses with None for later."""

    BINDINGS = bindings("recovery")

    def __init__(self, run: InterruptedRun) -> None:
        super().__init__(
            "A run was interrupted",
            "Roll back restores every file that the run changed. "
            "Finish applies the remaining approved changes.",
        )
        self._run = run

    def body(self) -> ComposeResult:
        run = self._run
        details = [
            f"{run.kind} of {run.time[:16].replace('T', ' ')}",
            terminal_text.counted(len(run.paths), "file"),
            run.run_id,
        ]
        yield Static(
            Content.assemble(
                (terminal_text.folded(run.goal, 4), "bold"),
                (f"\n{terminal_text.line(' · '.join(details))}", "$quiet"),
            ),
            markup=False,
        )
        yield Buttons(
            Button(Content("Roll back"), compact=True, id="back"),
            Button(Content("Finish"), compact=True, id="finish"),
            Button(Content("Later"), compact=True, id="later"),
        )

    def on_mount(self) -> None:
        self.query_one("#back").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        match event.button.id:
            case "back":
                self.dismiss("back")
            case "finish":
                self.dismiss("finish")
            case _:
                self.dismiss(None)

    def action_pick(self, choice: RecoveryChoice) -> None:
        self.dismiss(choice)


class Steps(Modal[str]):
    """The steps of a run to go back to. Dismisses with the id of the chosen one."""

    def __init__(self, plan: ActionPlan, undo_points: Sequence[UndoPoint]) -> None:
        super().__init__(
            "Undo back to which step?",
            "Changes up to and including this step stay. Later changes are undone.",
        )
        self._titles = {step.id: step.title for step in plan.steps}
        self._points = undo_points[:-1]

    def body(self) -> ComposeResult:
        rows = []
        for number, point in enumerate(self._points, 1):
            title = self._titles.get(point.step, point.step)
            note = "" if point.clean else "later steps changed the same files"
            rows.append(Choice(point.step, title, note, f"{number}"))
        listing = ChoiceList(
            [],
            empty=" This run has only one step, or its steps were not recorded.",
        )
        listing.set_choices(rows, 0 if rows else None)
        yield listing

    def on_mount(self) -> None:
        self.query_one(ChoiceList).focus()

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        point = self._points[event.index]
        if point.clean:
            self.dismiss(point.step)
        else:
            self.show_problem(
                "You cannot go back to this step. Later steps changed the same files, "
                "and only their final text was written."
            )
