"""Undo and redo as a person meets them: ask once, restore, then settle the files that changed since."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.screens.confirm import Confirm
from obsidian_agent.tui.screens.conflicts import Conflicts
from obsidian_agent.tui.screens.recovery import Recovery

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from obsidian_agent.tui.port import UndoReport
    from obsidian_agent.tui.screens.desk import Desk

    _Restore = Callable[[Collection[str], Collection[str]], UndoReport]


_NAMED: Final = 5
"""Files that are named in one line."""


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
        runs = self._desk.bridge.session.runs

        def undo(force: Collection[str], skip: Collection[str]) -> UndoReport:
            return runs.undo(run_id, force, skip, to_step)

        if await self._restore("Undone", undo, partial(runs.conflict_diff, run_id)):
            self._mark(run_id, to_step)

    async def redo(self) -> None:
        """Redo what was undone last. Files that changed since are asked about as for an undo."""
        runs = self._desk.bridge.session.runs
        await self._restore("Done again", runs.redo, partial(runs.conflict_diff, None, redoing=True))

    async def _restore(self, verb: str, restore: _Restore, diff: Callable[[str], str]) -> bool:
        """Restore what can be restored, ask about the rest, and force what the person says; whether nothing was left."""
        report = await self._try(lambda: restore((), ()))
        if report is None:
            return False
        self._say(verb, report)
        if not report.conflicts:
            return not report.errors

        async def load(path: str) -> str:
            return await self._desk.bridge.call(diff, path)

        choices = await self._desk.app.push_screen_wait(Conflicts(report.conflicts, load))
        if choices is not None and choices.force:
            report = await self._try(lambda: restore(choices.force, choices.skip))
            if report is None:
                return False
            self._say(verb, report)
        kept = {conflict.path for conflict in report.conflicts} | (set(choices.skip) if choices is not None else set())
        if kept:
            more = f" and {len(kept) - _NAMED:,} more" if len(kept) > _NAMED else ""
            self._desk.say("note", f"Left alone: {', '.join(sorted(kept)[:_NAMED])}{more}.")
        return not kept and not report.errors

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
            for warning in (warning for one in ended for warning in one.warnings):
                self._desk.say("note", warning.message)
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
        for warning in report.warnings:
            self._desk.say("note", warning.message)
