"""The work pane: nothing, a plan, a run or a result; one at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from obsidian_agent.tui.widgets.plan import PlanPane
from obsidian_agent.tui.widgets.progress import ProgressPane
from obsidian_agent.tui.widgets.result import ResultPane

if TYPE_CHECKING:
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.vault.views.changes import NetChange

Stage = Literal["idle", "plan", "run", "result"]


class Idle(Static):
    """What the empty pane says."""

    DEFAULT_CSS = "Idle { height: 1fr; padding: 2 3; color: $quiet; background: $surface; }"

    def on_mount(self) -> None:
        self.update(
            Content.assemble(
                ("No plan yet", "bold $foreground"),
                "\n\nSay in the message what should change.\nHere you then see every file and every line of it,\n",
                "before anything is written.\n\n",
                ("a", "$primary bold"),
                "  approves and applies it\n",
                ("u", "$primary bold"),
                "  undoes it afterwards",
            )
        )


class WorkPane(Vertical):
    """Switches between its four stages."""

    DEFAULT_CSS = "WorkPane { background: $surface; } WorkPane > * { height: 1fr; }"

    def __init__(
        self, load_diff: Callable[[Preview, NetChange], Awaitable[str]], appeared: Callable[[], None], *, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self.stage: Stage = "idle"
        self._load_diff = load_diff
        self._appeared = appeared

    def compose(self) -> ComposeResult:
        yield Idle("", id="idle", markup=False)
        yield PlanPane(self._load_diff)
        yield ProgressPane()
        yield ResultPane()

    def on_mount(self) -> None:
        self.show("idle")

    @property
    def plan(self) -> PlanPane:
        return self.query_one(PlanPane)

    @property
    def progress(self) -> ProgressPane:
        return self.query_one(ProgressPane)

    @property
    def result(self) -> ResultPane:
        return self.query_one(ResultPane)

    def show(self, stage: Stage) -> None:
        """Bring a stage to the front, or what is new in it: its keys answer nothing for a moment."""
        self._appeared()
        self.stage = stage
        for child in self.children:
            child.display = child.id == stage
