"""Undo and redo of runs, whole or back to a step, with a preview."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual import work

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.conflicts import (
    ConflictChoices,
    Conflicts,
    HistoryRequest,
    Reversal,
    UndoPreview,
    count_files,
)
from obsidian_agent.tui.screens.dialogs import ChoiceScreen
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.widgets.row_list import Choice
from obsidian_agent.tui.widgets.run_files import run_rows

if TYPE_CHECKING:
    from obsidian_agent.journal.records import StepOutcome, UndoPoint
    from obsidian_agent.journal.undo import UndoResult
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.tui.report_lines import Speaker
    from obsidian_agent.tui.screens.history import History

_MAX_NAMED: Final = 5
"""Number of files that are named in one line."""


class UndoActions(Workspace):
    """Actions that undo and redo runs."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command("history", "Show history", "Undo and redo earlier runs", "history"),
    )

    _is_reversing = False

    def action_history(self) -> None:
        """Show earlier runs."""
        from obsidian_agent.tui.screens.history import History

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
        await self._undo(HistoryRequest("undo"))

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

    async def _undo(self, request: HistoryRequest, to_step: str | None = None) -> None:
        """Undo a run, or some of its files; with `to_step` only the changes after that step."""
        runs, run_id, only = self.session.runs, request.run_id, request.paths

        def undo(force: Collection[str], skip: Collection[str]) -> UndoResult:
            return runs.undo(run_id, force, skip, to_step, only)

        remark = ""
        if only:
            remark = "Only the marked files change. Links to them in other files stay as they are."
        elif request.commands:
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
        await self._restore(reversal)

    async def _restore(self, reversal: Reversal) -> None:
        """Undo or redo once the user agrees to the preview, and preview a pending plan again."""
        planned = await asyncio.to_thread(reversal.preview)
        question = UndoPreview(reversal, planned, plan_waits=self.turn.pending is not None)
        choices = await self.app.push_screen_wait(question)
        if choices is None:
            return
        try:
            await self._restore_all(reversal, choices)
        finally:
            await self._update_result()
            self.keyboard.mark_appeared()  # the key that agreed is also that of a redo
            if (history := self._open_history()) is not None:
                history.reload()
        if self.turn.pending is not None:
            self.turn.preview_again(self.turn.pending)

    def _open_history(self) -> History | None:
        from obsidian_agent.tui.screens.history import History

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
        from obsidian_agent.tui.screens.history import open_file_diff

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

    ONLY_PREVIEWS = True

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
