"""Undo and redo of runs, whole or back to a step, with a preview; recovery of crashed runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from msgspec import Struct
from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, Static

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.bindings import binding, bindings, key_label
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.dialogs import Buttons, ChoiceScreen, Confirm, Modal
from obsidian_agent.tui.screens.history import (
    History,
    HistoryRequest,
    open_file_diff,
    run_rows,
    show_diff,
)
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.widgets.note import OutsideRequested
from obsidian_agent.tui.widgets.row_list import Choice, VirtualList
from obsidian_agent.tui.widgets.run import WORD_STYLES, ResultRow

if TYPE_CHECKING:
    from obsidian_agent.journal.records import StepOutcome, UndoPoint
    from obsidian_agent.journal.recovery import InterruptedRun
    from obsidian_agent.journal.undo import UndoConflict, UndoResult
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.tui.report_lines import Speaker

    Restore = Callable[[Collection[str], Collection[str]], UndoResult]

RecoveryChoice = Literal["finish", "back"]

_MAX_NAMED: Final = 5
"""Number of files that are named in one line."""


class UndoActions(Workspace):
    """Actions that undo and redo runs, and that recover interrupted ones."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command("history", "Show history", "Undo and redo earlier runs", "history"),
    )

    _is_reversing = False

    def action_history(self) -> None:
        """Show earlier runs."""
        self.app.push_screen(History(self.session.runs, self.change_history))

    def change_history(self, request: HistoryRequest) -> None:
        """Undo a run, whole, in part or back to a step that the user chooses, or redo."""
        if self.turn.phase == "running":
            self.show_hint("A plan is being applied. Try again when it is done.")
            self._show_in_history("bad", "A plan is being applied. Try again when it is done.")
        elif not self._is_reversing:
            self._is_reversing = True
            self._change_history(request)

    @work(group="undo", exit_on_error=False)
    async def _change_history(self, request: HistoryRequest) -> None:
        try:
            match request.what:
                case "undo":
                    await self._undo(request)
                case "step" if request.run_id is not None:
                    await self._undo_to_step(request, request.run_id)
                case _:
                    await self._redo(request.run_id)
        except ObsidianAgentError as error:
            self._add_outcome("bad", error.problem().message)
        finally:
            self._is_reversing = False

    @work(group="undo", exit_on_error=False)
    async def undo_last(self) -> None:
        """Undo the last run once the user confirms it."""
        await self._undo(HistoryRequest("undo"), ask=True)

    async def _undo_to_step(self, request: HistoryRequest, run_id: str) -> None:
        runs = self.session.runs
        undo_points = await asyncio.to_thread(runs.undo_points, run_id)
        outcomes = await asyncio.to_thread(runs.step_outcomes, run_id)
        points = possible_points(undo_points, outcomes)
        if not points:
            self._add_outcome(
                "note",
                "This run has no step to go back to: it has only one step in effect, or its "
                "later steps changed the same files. Undo the whole run, or mark files.",
            )
            return
        plan = await asyncio.to_thread(runs.plan_of, run_id)
        step = await self.app.push_screen_wait(Steps(plan, points))
        if step is not None:
            await self._undo(request, step)

    async def _redo(self, run_id: str | None) -> None:
        """Redo the last undone run; with `run_id` only if it is that one."""
        runs = self.session.runs
        preview = partial(runs.undo_preview, None, redoing=True)
        if run_id is not None and (await asyncio.to_thread(preview)).run_id != run_id:
            self._add_outcome(
                "note",
                "Another run was undone after this one. Redo that one first: "
                f"{self.key('main.history')}, then {self.key('history.redo')}.",
            )
            return
        await self._restore(
            Reversal(
                verb="Redo",
                done="Redone",
                preview=preview,
                restore=runs.redo,
                diff=partial(runs.conflict_diff, None, redoing=True),
                subject="this run" if run_id is not None else "the last undone run",
            )
        )

    async def _undo(
        self, request: HistoryRequest, to_step: str | None = None, *, ask: bool = False
    ) -> None:
        """Undo a run, or some of its files; with `to_step` only the changes after that step."""
        runs, run_id, only = self.session.runs, request.run_id, request.paths

        def undo(force: Collection[str], skip: Collection[str]) -> UndoResult:
            return runs.undo(run_id, force, skip, to_step, only)

        remark = ""
        if request.commands and not only:
            commands = terminal_text.counted(len(request.commands), "command")
            remark = f"The run also executed {commands} of Obsidian, which cannot be undone."
        reversal = Reversal(
            verb="Undo",
            done="Undone",
            preview=partial(runs.undo_preview, run_id, to_step=to_step, only=only),
            restore=undo,
            diff=partial(runs.conflict_diff, run_id),
            subject="the marked files" if only else "this run",
            remark=remark,
        )
        await self._restore(reversal, ask=ask)

    async def _restore(self, reversal: Reversal, *, ask: bool = False) -> None:
        """Undo or redo, and preview a pending plan again.

        A preview is shown first if `ask` is true, or if several files, a conflict or a command are
        involved.
        """
        planned = await asyncio.to_thread(reversal.preview)
        choices: ConflictChoices | None = ConflictChoices(frozenset(), frozenset())
        is_large = planned.files + len(planned.errors) > 1
        if ask or planned.conflicts or is_large or reversal.remark:
            waits = self.turn.pending is not None
            question = UndoPreview(reversal, planned, plan_waits=waits)
            choices = await self.app.push_screen_wait(question)
        if choices is None:
            return
        try:
            await self._restore_all(reversal, choices)
        finally:
            await self._update_result()
            if (history := self._open_history()) is not None:
                history.reload()
        if self.turn.pending is not None:
            self.turn.preview_again(self.turn.pending)

    def _open_history(self) -> History | None:
        screens = self.app.screen_stack
        return next((screen for screen in screens if isinstance(screen, History)), None)

    def _show_in_history(self, speaker: Speaker, text: str) -> None:
        if (history := self._open_history()) is not None:
            history.show_outcome(speaker, text)

    def _add_outcome(self, speaker: Speaker, text: str) -> None:
        """Add an entry to the conversation, and show it in the history if that is open."""
        self.add_entry(speaker, text)
        self._show_in_history(speaker, text)

    @work(group="run diff", exclusive=True, exit_on_error=False)
    async def show_run_diff(self, run_id: str, path: str) -> None:
        """Show what a run changed in a file."""
        run = await asyncio.to_thread(self.session.runs.show, run_id)
        for row in run_rows(run, (), {}):
            if path in row.paths:
                await open_file_diff(self, row)
                return

    async def _update_result(self) -> None:
        """Show in the result pane which steps of its run are in effect now."""
        result = self.panes.work.result.result
        if result is not None and result.run_id is not None:
            steps = await asyncio.to_thread(self.session.runs.step_outcomes, result.run_id)
            self.panes.work.result.update_steps(steps)

    async def _restore_all(self, reversal: Reversal, choices: ConflictChoices) -> None:
        report = await asyncio.to_thread(reversal.restore, choices.force, choices.skip)
        self._show_report(reversal.done, report)
        skipped = choices.skip
        if report.conflicts:
            # These appeared after the preview.
            late = await self.app.push_screen_wait(Conflicts(report.conflicts, reversal.diff))
            skipped |= {conflict.path for conflict in report.conflicts}
            if late is not None and late.force:
                report = await asyncio.to_thread(
                    reversal.restore, late.force, late.skip | choices.skip
                )
                self._show_report(reversal.done, report)
                skipped -= late.force
        if skipped:
            names = ", ".join(sorted(skipped)[:_MAX_NAMED])
            if len(skipped) > _MAX_NAMED:
                names += f" and {len(skipped) - _MAX_NAMED:,} more"
            self._add_outcome("note", f"Skipped: {names}.")

    def _show_report(self, done: str, report: UndoResult) -> None:
        self.vault_changed()
        if report.restored:
            self._add_outcome("good", f"{done}: {count_files(report)}.")
        else:
            self._add_outcome("note", "No file was restored.")
        for problem in report.errors:
            self._add_outcome("bad", problem.message)
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
        return [row for row in self.rows if not isinstance(row, ResultRow)]

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
        path = event.list.rows[event.index].path
        if path is not None:
            show = partial(show_diff, self, self._load_diff, path)
            self.run_flow("conflict diff", show, exclusive=True)


class UndoPreview(ConflictDialog):
    """A preview of an undo or redo. Dismisses with the choices if the user agrees."""

    BINDINGS = [*bindings("conflicts", without=("conflicts.apply",)), *bindings("confirm")]

    def __init__(self, reversal: Reversal, planned: UndoResult, *, plan_waits: bool) -> None:
        rows: list[UndoConflict | ResultRow] = [*planned.conflicts]
        rows += [ResultRow("error", problem.message) for problem in planned.errors]
        rows += [
            ResultRow("folder" if path in planned.folders else "restore", path, path)
            for path in planned.restored
        ]
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


def possible_points(
    undo_points: Sequence[UndoPoint], outcomes: Sequence[StepOutcome]
) -> list[UndoPoint]:
    """Return the points that undo can go back to.

    They are clean, and have changes in effect before and after them.
    """
    in_effect = {outcome.step for outcome in outcomes if outcome.in_effect}
    is_changed = [point.step in in_effect for point in undo_points]
    return [
        point
        for end, point in enumerate(undo_points, 1)
        if point.clean and any(is_changed[:end]) and any(is_changed[end:])
    ]


class Steps(ChoiceScreen):
    """The steps of a run to go back to. Dismisses with the id of the chosen one."""

    def __init__(self, plan: ActionPlan, points: Sequence[UndoPoint]) -> None:
        steps = {step.id: (str(number), step.title) for number, step in enumerate(plan.steps, 1)}
        rows = []
        for point in points:
            number, title = steps.get(point.step, ("", point.step))
            rows.append(Choice(point.step, title, word=number))
        super().__init__(
            "Undo back to which step?",
            rows,
            hint="Changes up to and including this step stay. Later changes are undone.",
        )
