"""Earlier runs; undo and redo of them, previewed first, as a whole or back to a step; and the runs that a crash left half done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, Static

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import JournalError, ObsidianAgentError
from obsidian_agent.tui.bindings import binding, bindings, key_label
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.dialogs import Buttons, Confirm, DiffScreen, Modal
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.widgets.diff import parse_diff
from obsidian_agent.tui.widgets.note import OutsideRequested
from obsidian_agent.tui.widgets.row_list import Choice, ChoiceList, VirtualList
from obsidian_agent.tui.widgets.run import ResultList, ResultRow, file_rows, step_rows

if TYPE_CHECKING:
    from textual.screen import Screen

    from obsidian_agent.agent.events import Effects
    from obsidian_agent.journal.records import HistoryEntry
    from obsidian_agent.services.runs import Runs


_SHOWN_PROBLEMS = 5
_STYLES = {
    "done": "$success",
    "recovered": "$success",
    "failed": "$error",
    "stopped": "$error",
    "conflict": "$warning",
    "cancelled": "$warning",
    "partly undone": "$warning",
}


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """Undo the run `run_id`, whole or back to a step of it, or redo."""

    what: Literal["undo", "step", "redo"]
    run_id: str | None = None


class HistoryList(VirtualList["HistoryEntry"]):
    """One line a run."""

    BINDINGS = [binding("list.choose", "Show")]
    DEFAULT_CSS = "HistoryList { height: auto; min-height: 3; }"

    def draw_row(self, row: HistoryEntry, width: int) -> Content:
        undone = row.undone and row.effects.anything
        status = row.current_status
        style = _STYLES.get(status, "$quiet")
        return Content.assemble(
            (f" {terminal_text.line(row.time[:16].replace('T', ' '))} ", "$quiet"),
            (f"{terminal_text.line(status):<14}", style),
            (
                terminal_text.shortened(row.goal, 200),
                "$foreground" if not undone else "$quiet strike",
            ),
            (f"  {effects_in_words(row.effects)}", "$quiet"),
        )


class FileRows(ResultList):
    """Steps and files in a dialog."""

    DEFAULT_CSS = "FileRows { height: auto; min-height: 3; max-height: 50vh; }"
    BINDINGS = [binding("list.choose", "Show diff")]


class History(Modal[HistoryRequest]):
    """Dismisses with what to do; the screen below does it, so conflicts and results are shown in one way."""

    BINDINGS = bindings("history")

    def __init__(self, runs: Runs) -> None:
        super().__init__(
            "History",
            "Undo restores what a run changed; files that changed since are never overwritten unasked.",
        )
        self._runs = runs
        self._entries: Sequence[HistoryEntry] = ()

    def body(self) -> ComposeResult:
        yield HistoryList(empty=" No runs yet.")

    def on_mount(self) -> None:
        self.query_one(HistoryList).focus()
        self.run_flow("history", self._reload)

    async def _reload(self) -> None:
        self._entries = await asyncio.to_thread(self._runs.history)
        if not self.is_attached:
            return
        listing = self.query_one(HistoryList)
        listing.set_rows(self._entries, 0)
        self.refresh_bindings()
        wrong = await asyncio.to_thread(self._runs.examine)
        if wrong and self.is_attached:
            self.show_problem(
                terminal_text.folded(
                    "\n".join(problem.message for problem in wrong), _SHOWN_PROBLEMS
                )
            )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("undo", "step"):
            return True if self._entries else None
        return True

    def on_virtual_list_chosen(self, event: HistoryList.Chosen) -> None:
        entry = self._entries[event.index]
        self.app.push_screen(RunOutcome(self._runs, entry), self._leave_for)

    def _leave_for(self, request: HistoryRequest | None) -> None:
        if request is not None:
            self.dismiss(request)

    def action_undo(self) -> None:
        self._request("undo")

    def action_step(self) -> None:
        self._request("step")

    def _request(self, what: Literal["undo", "step"]) -> None:
        entry = self.query_one(HistoryList).current
        if entry is None:
            return
        if reason := reason_against_undo(entry):
            self.show_problem(reason)
        else:
            self.dismiss(HistoryRequest(what, entry.run_id))

    def action_redo(self) -> None:
        self.dismiss(HistoryRequest("redo"))


def reason_against_undo(entry: HistoryEntry) -> str:
    """Return why a run cannot be undone; "" when it can."""
    if entry.undone:
        return "Nothing of this run is left to undo."
    return "" if entry.undoable else "This run cannot be undone."


class RunOutcome(Modal[HistoryRequest]):
    """One run of the history: the outcome of each step, and the files it changed."""

    BINDINGS = bindings("outcome")

    def __init__(self, runs: Runs, entry: HistoryEntry) -> None:
        when = entry.time[:16].replace("T", " ")
        super().__init__(entry.goal, f"{when} · {entry.current_status}")
        self._runs = runs
        self._entry = entry

    def body(self) -> ComposeResult:
        yield FileRows()

    def on_mount(self) -> None:
        self.query_one(FileRows).focus()
        self.run_flow("outcome", self._load)

    async def _load(self) -> None:
        rows = file_rows(self._entry.effects)
        try:
            steps = await asyncio.to_thread(self._runs.step_outcomes, self._entry.run_id)
        except JournalError as error:
            steps = []
            self.show_problem(error.message)
        if self.is_attached:
            self.query_one(FileRows).set_rows([*step_rows(steps), *rows], 0)

    def on_virtual_list_chosen(self, event: FileRows.Chosen) -> None:
        row = event.list.rows[event.index]
        if row.path is not None:
            load = partial(self._runs.conflict_diff, self._entry.run_id)
            self.run_flow("diff", partial(show_diff, self, load, row.path), exclusive=True)

    def action_undo(self) -> None:
        self._request("undo")

    def action_step(self) -> None:
        self._request("step")

    def _request(self, what: Literal["undo", "step"]) -> None:
        if reason := reason_against_undo(self._entry):
            self.show_problem(reason)
        else:
            self.dismiss(HistoryRequest(what, self._entry.run_id))


async def show_diff(screen: Screen[Any], load: Callable[[str], str], path: str) -> None:
    """Show the diff from a file as it is now to what an undo or redo would put there."""
    try:
        diff = parse_diff(await asyncio.to_thread(load, path))
    except ObsidianAgentError as error:
        screen.app.push_screen(DiffScreen(path, error.problem().message))
        return
    lines = diff if diff.lines else "The text of this file does not change."
    screen.app.push_screen(DiffScreen(path, lines))


def effects_in_words(effects: Effects) -> str:
    """`10 new · 1 edited`."""
    parts = (
        (effects.deleted, "deleted"),
        (effects.renamed, "renamed"),
        (effects.modified, "edited"),
        (effects.created, "new"),
    )
    return " · ".join(f"{len(items):,} {word}" for items, word in parts if items)


if TYPE_CHECKING:
    from obsidian_agent.journal.records import Cut
    from obsidian_agent.journal.recovery import InterruptedRun
    from obsidian_agent.journal.undo import UndoConflict, UndoResult
    from obsidian_agent.plan.model import ActionPlan

    _Restore = Callable[[Collection[str], Collection[str]], UndoResult]


_NAMED: Final = 5
"""Files that are named in one line."""


class UndoActions(Workspace):
    """What was done is taken back, or done again."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command("history", "Show history", "Undo and redo earlier runs", "history"),
    )

    def action_history(self) -> None:
        """Earlier runs."""
        self.app.push_screen(History(self.session.runs), self.change_history)

    def change_history(self, request: HistoryRequest | None) -> None:
        """Undo a run of the past, whole or back to a step that the person chooses, or redo."""
        if request is None:
            return
        if self.turn.phase == "running":
            self.show_hint("A plan is being applied. Undo waits until it is done.")
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
                done="Done again",
                preview=partial(runs.undo_preview, None, redoing=True),
                restore=runs.redo,
                diff=partial(runs.conflict_diff, None, redoing=True),
            )
        )

    async def _undo(
        self, run_id: str | None, to_step: str | None = None, *, ask: bool = False
    ) -> None:
        """Undo a run, with `to_step` only what came after that step."""
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
        """Restore what can be restored, ask about the rest, and force what the user chooses. A plan that waits is previewed again.

        The user is asked first when `ask` says so, or more than one file or a conflict is involved.
        """
        planned = await asyncio.to_thread(reversal.preview)
        if ask or planned.conflicts or len(planned.restored) + len(planned.errors) > 1:
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
        self._say_report(reversal.done, report)
        if not report.conflicts:
            return
        choices = await self.app.push_screen_wait(Conflicts(report.conflicts, reversal.diff))
        if choices is not None and choices.force:
            report = await asyncio.to_thread(reversal.restore, choices.force, choices.skip)
            self._say_report(reversal.done, report)
        kept = {conflict.path for conflict in report.conflicts} | (
            set(choices.skip) if choices is not None else set()
        )
        if kept:
            more = f" and {len(kept) - _NAMED:,} more" if len(kept) > _NAMED else ""
            self.add_entry("note", f"Skipped: {', '.join(sorted(kept)[:_NAMED])}{more}.")

    def _say_report(self, verb: str, report: UndoResult) -> None:
        self.vault_changed()
        count = len(report.restored)
        self.add_entry(
            "good",
            f"{verb}: {terminal_text.counted(count, 'file or folder', 'files and folders')}.",
        )
        for problem in report.errors:
            self.add_entry("bad", problem.message)
        for warning in report.warnings:
            self.add_entry("note", warning.message)

    # --- at the start -----------------------------------------------------------------------------------------------------------

    async def resolve_history(self) -> None:
        """What is to be decided before anything else: the history of a vault that was moved, and runs that a crash left half done."""
        try:
            await self._take_history_along()
            for run in await asyncio.to_thread(self.session.runs.interrupted):
                choice = await self.app.push_screen_wait(RecoveryDialog(run))
                if choice is not None:
                    await self._recover(run, finish=choice == "finish")
        except ObsidianAgentError as error:
            self.add_entry("bad", error.problem().message)

    async def _take_history_along(self) -> None:
        moved = await asyncio.to_thread(self.session.runs.moved)
        if moved is None:
            return
        text = f"It was at {moved.path}. Its earlier runs, conversations and counts are kept for that place; without them they cannot be undone here."
        if await self.app.push_screen_wait(
            Confirm("This vault was moved", text, "Take them along", "Not now", danger=False)
        ):
            await asyncio.to_thread(self.session.runs.adopt)
            self.add_entry("good", "The history of this vault is here now.")

    async def _recover(self, run: InterruptedRun, *, finish: bool) -> None:
        try:
            ended = await asyncio.to_thread(self.session.runs.recover, run.run_id, finish)
        except ObsidianAgentError as error:
            self.add_entry(
                "bad", error.problem().message
            )  # the other runs are asked about all the same
            return
        for one in ended:
            for problem in one.problems:
                self.add_entry("bad", problem.message)
            for warning in one.warnings:
                self.add_entry("note", warning.message)
        self.add_entry(
            "good",
            "The interrupted run is finished." if finish else "The interrupted run is rolled back.",
        )
        self.vault_changed()


@dataclass(frozen=True, slots=True)
class Reversal:
    """An undo or redo: how it is previewed and done, and what it would make of a file."""

    verb: str
    done: str
    preview: Callable[[], UndoResult]
    restore: _Restore
    diff: Callable[[str], str]


class UndoPreview(Confirm):
    """Shows what an undo or redo would do. Dismisses with True when the user agrees."""

    AUTO_FOCUS = "FileRows"

    def __init__(self, reversal: Reversal, planned: UndoResult, *, plan_waits: bool) -> None:
        restored, conflicts = len(planned.restored), len(planned.conflicts)
        files = terminal_text.counted(restored, "file or folder", "files and folders")
        parts = [f"{reversal.verb} restores {files}."]
        if conflicts:
            changed = terminal_text.counted(conflicts, "file")
            parts.append(f"{changed} changed since; what happens to these you decide afterwards.")
        if plan_waits:
            parts.append("The plan on the screen is computed again afterwards.")
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
    """Paths to restore over what is there now, and paths to leave alone."""

    force: frozenset[str]
    skip: frozenset[str]


class ConflictList(VirtualList["UndoConflict"]):
    """One file a line, with what happens to it."""

    DEFAULT_CSS = "ConflictList { height: auto; min-height: 2; }"
    BINDINGS = [binding("list.choose", "Show diff")]

    def __init__(self, rows: Sequence[UndoConflict]) -> None:
        super().__init__(rows)
        self.forced: frozenset[str] = frozenset()

    def draw_row(self, row: UndoConflict, width: int) -> Content:
        word = (
            (" restore anyway ", "$error")
            if row.path in self.forced
            else (" keep mine      ", "$success")
        )
        if not row.forcible:
            word = (" cannot be restored ", "$quiet")
        return Content.assemble(
            word,
            (terminal_text.shortened(row.path, 300), "$foreground"),
            (f"  {terminal_text.shortened(row.reason, 200)}", "$quiet"),
        )

    def force(self, path: str, forced: bool) -> None:
        """Choose for one file."""
        self.forced = self.forced | {path} if forced else self.forced - {path}
        self.set_rows(self.rows)


class Conflicts(Modal[ConflictChoices]):
    """Dismisses with the choices; everything is kept unless the person says otherwise."""

    BINDINGS = bindings("conflicts")

    def __init__(self, conflicts: Sequence[UndoConflict], load_diff: Callable[[str], str]) -> None:
        super().__init__("These files changed since the run")
        self._conflicts = tuple(conflicts)
        self._load_diff = load_diff

    def body(self) -> ComposeResult:
        self.hint = f"Everything else was restored. {key_label(self, 'list.choose')} shows what restoring would change."
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
        self.dismiss(
            ConflictChoices(
                forced, frozenset(conflict.path for conflict in self._conflicts) - forced
            )
        )

    def on_virtual_list_chosen(self, event: ConflictList.Chosen) -> None:
        path = self._conflicts[event.index].path
        show = partial(show_diff, self, self._load_diff, path)
        self.run_flow("conflict diff", show, exclusive=True)


RecoveryChoice = Literal["finish", "back"]


class RecoveryDialog(Modal[RecoveryChoice]):
    """Dismisses with the choice, or None for later."""

    BINDINGS = bindings("recovery")

    def __init__(self, run: InterruptedRun) -> None:
        super().__init__(
            "A run was interrupted",
            "Rolling back restores every file the run had changed. Finishing does what was approved and is still missing.",
        )
        self._run = run

    def body(self) -> ComposeResult:
        run = self._run
        when = terminal_text.line(run.time[:16].replace("T", " "))
        yield Static(
            Content.assemble(
                (terminal_text.folded(run.goal, 4), "bold"),
                (
                    f"\n{terminal_text.line(run.kind)} of {when} · {terminal_text.counted(len(run.paths), 'file')} · {terminal_text.line(run.run_id)}",
                    "$quiet",
                ),
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


_HINT = "What the run did up to the end of this step stays; what came after it is undone."
_JOINED = "later steps changed its files further"


class Steps(Modal[str]):
    """Dismisses with the id of the chosen step."""

    def __init__(self, plan: ActionPlan, undo_points: Sequence[Cut]) -> None:
        super().__init__("Back to which step?", _HINT)
        self._words = {step.id: step.title for step in plan.steps}
        self._cuts = undo_points[:-1]

    def body(self) -> ComposeResult:
        rows = [
            Choice(
                cut.step,
                self._words.get(cut.step, cut.step),
                "" if cut.clean else _JOINED,
                f"{number}",
            )
            for number, cut in enumerate(self._cuts, 1)
        ]
        listing = ChoiceList(
            [],
            empty=" This run has one step only, or is older than this program's record of steps.",
        )
        listing.set_choices(rows, 0 if rows else None)
        yield listing

    def on_mount(self) -> None:
        self.query_one(ChoiceList).focus()

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        cut = self._cuts[event.index]
        if cut.clean:
            self.dismiss(cut.step)
        else:
            self.show_problem(
                "What its files held at the end of this step is not kept: later steps changed them before they were written."
            )
