"""Save the plan of a run as an action: name, description, and which of its texts are asked for each time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Button, Static

from obsidian_agent import terminal_text
from obsidian_agent.agent.fields import Field
from obsidian_agent.tui.literals import literals
from obsidian_agent.tui.screens.choices import Choice, ChoiceList
from obsidian_agent.tui.screens.modal import Buttons, Modal
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.widgets.entry import LineEntry

if TYPE_CHECKING:
    from obsidian_agent.plan.model import ActionPlan

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class SaveRequest:
    """What is to be saved. `parameters`: name of a new parameter -> the literal text of the plan that it replaces."""

    name: str
    description: str | None
    parameters: Mapping[str, str]


class SaveAction(Modal[SaveRequest]):
    """Dismisses with what to save."""

    BINDINGS = [Binding("ctrl+s", "save", "Save")]
    AUTO_FOCUS = "#name"

    def __init__(self, plan: ActionPlan, problem: str = "") -> None:
        super().__init__("Save as action")
        self._plan = plan
        self._problem = problem
        self._literals: Sequence[str] = literals(plan)
        self._made: dict[str, str] = {}

    def body(self) -> ComposeResult:
        yield Static("Name", classes="label", markup=False)
        yield LineEntry(terminal_text.shortened(self._plan.goal, 80), id="name")
        yield Static("Description (may stay empty)", classes="label", markup=False)
        yield LineEntry(id="description")
        if self._plan.parameters:
            found = ", ".join(terminal_text.line(name) for name in self._plan.parameters)
            yield Static(Content(f"Asks for: {found}"), classes="label", markup=False)
        if self._literals:
            yield Static("Texts of the plan; Enter makes one a parameter that is asked for", classes="label", markup=False)
            yield ChoiceList()
        yield Buttons(Button(Content("Save"), compact=True, id="save"))

    def on_mount(self) -> None:
        if self._literals:
            self._draw()
        self.problem(self._problem)

    def _draw(self) -> None:
        names = {text: name for name, text in self._made.items()}
        choices = [
            Choice(text, text, f"asked as {names[text]}" if text in names else "", "◆" if text in names else "◇") for text in self._literals
        ]
        self.query_one(ChoiceList).set_choices(choices)

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        self.run_flow("parameter", partial(self._toggle, event.list.rows[event.index].key))

    async def _toggle(self, text: str) -> None:
        name = next((name for name, literal in self._made.items() if literal == text), None)
        if name is not None:
            del self._made[name]
            self._draw()
            return
        form = ValuesForm(
            f"Ask for “{terminal_text.shortened(text, 100)}” as", [Field("name", description="letters, digits and _, e.g. folderName")]
        )
        values = await self.app.push_screen_wait(form)
        if not values:
            return
        wanted = values["name"].strip()
        if not _IDENTIFIER.fullmatch(wanted) or wanted in self._made or wanted in self._plan.parameters:
            self.problem(f"“{wanted}” cannot be used: a letter first, then letters, digits and _, and not twice.")
            return
        self.problem("")
        self._made[wanted] = text
        self._draw()

    def on_input_submitted(self) -> None:
        self.action_save()

    def on_button_pressed(self) -> None:
        self.action_save()

    def action_save(self) -> None:
        name = self.query_one("#name", LineEntry).value.strip()
        if not name:
            self.problem("The action needs a name.")
            return
        self.dismiss(SaveRequest(name, self.query_one("#description", LineEntry).value.strip() or None, dict(self._made)))
