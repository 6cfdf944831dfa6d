"""Recovery at the start: runs that a crash interrupted, and the history of a moved vault."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, Static

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.screens.dialogs import Buttons, Confirm, Modal
from obsidian_agent.tui.screens.workspace import Workspace

if TYPE_CHECKING:
    from obsidian_agent.journal.recovery import InterruptedRun

RecoveryChoice = Literal["finish", "back"]


class RecoveryActions(Workspace):
    """Actions that recover what an earlier start of the program left."""

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
