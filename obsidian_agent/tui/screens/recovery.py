"""A run that a crash left half done: roll it back or finish it. Asked at the start, before anything else changes the vault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Button, Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.screens.modal import Buttons, Modal

if TYPE_CHECKING:
    from obsidian_agent.tui.port import InterruptedRun

RecoveryChoice = Literal["finish", "back"]


class Recovery(Modal[RecoveryChoice]):
    """Dismisses with the choice, or None for later."""

    BINDINGS = [Binding("b", "pick('back')", "Roll back"), Binding("f", "pick('finish')", "Finish"), Binding("escape", "close", "Later")]

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
                (f"\n{terminal_text.line(run.kind)} of {when} · {len(run.paths):,} files · {terminal_text.line(run.run_id)}", "$quiet"),
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
