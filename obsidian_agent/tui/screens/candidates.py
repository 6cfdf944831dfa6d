"""A message that may mean several things: the person picks one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.keys import bindings
from obsidian_agent.tui.screens.choices import Choice, ChoiceList
from obsidian_agent.tui.screens.modal import Modal

if TYPE_CHECKING:
    from obsidian_agent.agent.events import Candidate

SHOWN = 3


@dataclass(frozen=True, slots=True)
class Picked:
    """What was chosen; `change`: its values shall be looked at, though none is missing."""

    candidate: Candidate
    change: bool = False


class Candidates(Modal[Picked]):
    """Dismisses with what was picked. Picking runs nothing: a form or a preview follows."""

    BINDINGS = bindings("candidates")

    def __init__(self, message: str, candidates: Sequence[Candidate]) -> None:
        super().__init__(
            "What did you mean?",
            "Nothing runs yet: what is missing is asked, then the plan is previewed. None of these? Esc, then F2 has everything.",
        )
        self._message = message
        self._candidates = tuple(candidates[:SHOWN])

    def body(self) -> ComposeResult:
        if self._message:
            yield Static(Content(terminal_text.folded(self._message, 4)), markup=False)
        yield ChoiceList([_choice(number, candidate) for number, candidate in enumerate(self._candidates, 1)])
        yield Static("", id="slots", markup=False)

    def on_virtual_list_highlighted(self, event: ChoiceList.Highlighted) -> None:
        if event.index >= 0:
            self._show_slots(event.index)

    def on_mount(self) -> None:
        self.query_one(ChoiceList).focus()
        self._show_slots(0)

    def _show_slots(self, index: int) -> None:
        candidate = self._candidates[index]
        parts: list[tuple[str, str]] = [("\n", "")]
        for name, value in candidate.values.items():
            parts += [(f" {terminal_text.line(name)}  ", "$quiet"), (f"{terminal_text.shortened(str(value), 200)}\n", "$foreground")]
        if candidate.doubt:
            parts.append((f" {terminal_text.shortened(candidate.doubt, 300)}\n", "$warning"))
        for name in candidate.missing:
            parts += [(f" {terminal_text.line(name)}  ", "$quiet"), ("missing, asked next\n", "$warning")]
        self.query_one("#slots", Static).update(Content.assemble(*parts).rstrip())

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        self.dismiss(Picked(self._candidates[event.index]))

    def action_pick(self, index: int) -> None:
        if index < len(self._candidates):
            self.dismiss(Picked(self._candidates[index]))

    def action_change(self) -> None:
        self.dismiss(Picked(self._candidates[self.query_one(ChoiceList).cursor], change=True))


def _choice(number: int, candidate: Candidate) -> Choice:
    slots = ", ".join(f"{name}: {value}" for name, value in candidate.values.items())
    return Choice(str(number), candidate.title, slots, word=str(number))
