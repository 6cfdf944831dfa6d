"""Undo and redo as a person meets them: ask once, restore, then settle the files that changed since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.screens.confirm import Confirm
from obsidian_agent.tui.screens.conflicts import Conflicts
from obsidian_agent.tui.screens.recovery import Recovery

if TYPE_CHECKING:
    from collections.abc import Callable

    from obsidian_agent.tui.port import UndoReport
    from obsidian_agent.tui.screens.desk import Desk


class Undoing:
    """Runs in workers of the main screen."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def back_to_step(self, run_id: str) -> None:
        """Let the person choose a step of a run, and undo what came after it."""
        from obsidian_agent.tui.screens.steps import Steps

        bridge = self._desk.bridge
        try:
            cuts = await bridge.call(bridge.session.runs.cuts, run_id)
            plan = await bridge.call(bridge.session.runs.plan_of, run_id)
        except ObsidianAgentError as error:
            self._desk.say("bad", error.problem().message)
            return
        step = await self._desk.app.push_screen_wait(Steps(plan, cuts))
        if step is not None:
            await self.undo(run_id, step)

    async def undo(self, run_id: str | None, to_step: str | None = None) -> None:
        """Undo a run (None: the last), with `to_step` what came after it. Files that changed since are asked about one by one."""
        bridge = self._desk.bridge
        report = await self._try(lambda: bridge.session.runs.undo(run_id, to_step=to_step))
        if report is None:
            return
        self._say("Undone", report)
        if not report.conflicts:
            self._mark(run_id, to_step)
            return

        async def load(path: str) -> str:
            return await bridge.call(bridge.session.runs.conflict_diff, run_id, path)

        choices = await self._desk.app.push_screen_wait(Conflicts(report.conflicts, load))
        if choices is None or not choices.force:
            count = len(report.conflicts)
            self._desk.say(
                "note", f"{count} file{'s' if count != 1 else ''} that changed since the run {'were' if count != 1 else 'was'} left alone."
            )
            return
        report = await self._try(lambda: bridge.session.runs.undo(run_id, choices.force, choices.skip, to_step))
        if report is not None:
            self._say("Undone", report)
            if not report.conflicts:
                self._mark(run_id, to_step)

    async def redo(self) -> None:
        """Redo what was undone last."""
        report = await self._try(self._desk.bridge.session.runs.redo)
        if report is not None:
            self._say("Done again", report)

    async def settle(self) -> None:
        """What is to be decided before anything else: the history of a vault that was moved, and runs that a crash left half done."""
        try:
            await self._take_history_along()
            await self._recover()
        except ObsidianAgentError as error:
            self._desk.say("bad", error.problem().message)

    async def _take_history_along(self) -> None:
        bridge = self._desk.bridge
        moved = await bridge.call(bridge.session.runs.moved)
        if moved is None:
            return
        text = f"It was at {moved.path}. Its earlier runs, conversations and counts are kept for that place; without them they cannot be undone here."
        if await self._desk.app.push_screen_wait(Confirm("This vault was moved", text, "Take them along", "Not now", danger=False)):
            await bridge.call(bridge.session.runs.adopt)
            self._desk.say("good", "The history of this vault is here now.")

    async def _recover(self) -> None:
        bridge = self._desk.bridge
        for run in await bridge.call(bridge.session.runs.interrupted):
            choice = await self._desk.app.push_screen_wait(Recovery(run))
            if choice is None:
                continue
            try:
                ended = await bridge.call(bridge.session.runs.recover, run.run_id, choice == "finish")
            except ObsidianAgentError as error:
                self._desk.say("bad", error.problem().message)
                continue
            for problem in (problem for one in ended for problem in one.problems):
                self._desk.say("bad", problem.message)
            self._desk.say("good", "The interrupted run is finished." if choice == "finish" else "The interrupted run is rolled back.")
            self._desk.vault_changed()

    def _mark(self, run_id: str | None, to_step: str | None) -> None:
        result = self._desk.panes.work.result
        if to_step is None and result.result is not None and run_id in (None, result.result.run_id):
            result.mark_undone()

    async def _try(self, function: Callable[[], UndoReport]) -> UndoReport | None:
        try:
            report = await self._desk.bridge.call(function)
        except ObsidianAgentError as error:
            self._desk.say("bad", error.problem().message)
            return None
        self._desk.vault_changed()
        return report

    def _say(self, verb: str, report: UndoReport) -> None:
        count = len(report.restored)
        what = "files and folders" if count != 1 else "file or folder"
        self._desk.say("good", f"{verb}: {count:,} {what}.")
        for problem in report.errors:
            self._desk.say("bad", problem.message)
