"""An editor for a JSON object, such as a plan, that returns only valid ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import HELP, bindings
from obsidian_agent.tui.screens.dialogs import STYLES, Confirm
from obsidian_agent.tui.widgets.footer import KeyFooter
from obsidian_agent.tui.widgets.prompt import TextEntry

if TYPE_CHECKING:
    from obsidian_agent.errors import Problem


Check = Callable[[Mapping[str, Any]], "Sequence[Problem]"]
"""Returns the problems of a document; must not block."""

MAX_PROBLEMS = 4


def _accept(document: Mapping[str, Any]) -> Sequence[Problem]:
    return ()


class JsonEditor(ModalScreen[Mapping[str, Any] | None]):
    """An editor on the whole screen. Dismisses with the edited document; None: no change.

    `unchanged` is the sentence that follows every problem, such as "Plan unchanged.".
    """

    CSS_PATH = STYLES
    BINDINGS = [*bindings("editor"), HELP]

    def __init__(
        self, head: str, document: Mapping[str, Any], *, unchanged: str, check: Check = _accept
    ) -> None:
        super().__init__()
        self._head = head
        self._document = document
        self._unchanged = unchanged
        self._check = check

    def compose(self) -> ComposeResult:
        yield Static(Content(self._head), id="head", markup=False)
        yield TextEntry(editable(self._document), show_line_numbers=True, tab_behavior="indent")
        yield Static("", id="problem", markup=False)
        yield KeyFooter(show_command_palette=False)

    def action_save(self) -> None:
        try:
            document = json.loads(self.query_one(TextEntry).text)
        except json.JSONDecodeError as error:
            self._show_problem(
                f"Invalid JSON in line {error.lineno}, column {error.colno}: {error.msg}."
            )
            self.query_one(TextEntry).move_cursor((error.lineno - 1, max(error.colno - 1, 0)))
            return
        except (RecursionError, ValueError):
            self._show_problem("This JSON is nested too deeply or contains a number too long.")
            return
        if not isinstance(document, dict):
            self._show_problem("The text must be a JSON object: { … }.")
            return
        if document == self._document:
            self.dismiss(None)
            return
        problems = self._check(document)
        if problems:
            self._show_problem(" ".join(problem.message for problem in problems[:MAX_PROBLEMS]))
        else:
            self.dismiss(document)

    def action_close(self) -> None:
        """Close the editor; ask first if there are edits to discard."""
        if self.query_one(TextEntry).text == editable(self._document):
            self.dismiss(None)
            return
        question = Confirm(
            "Discard your changes?",
            f"Your edits will be lost. {self._unchanged}",
            "Discard",
            "Keep editing",
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self.dismiss(None)

        self.app.push_screen(question, answered)

    def _show_problem(self, text: str) -> None:
        problem = self.query_one("#problem", Static)
        problem.update(Content(terminal_text.block(f"{text} {self._unchanged}")))
        problem.display = True


def editable(document: Mapping[str, Any]) -> str:
    """Serialize to JSON; control and invisible characters are escaped."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    return "".join(
        char if char == "\n" or terminal_text.line(char) == char else _escaped(char)
        for char in text
    )


def _escaped(char: str) -> str:
    if ord(char) == 0x7F:  # json.dumps leaves it as it is
        return "\\u007f"
    return json.dumps(char)[1:-1]


class PlanEditor(JsonEditor):
    """The editor of a plan. Saving one of the right form computes a new preview."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        head = "Edit the plan. It is checked and previewed again before you can approve it."
        super().__init__(
            head,
            document,
            unchanged="Plan unchanged.",
            check=plan_problems,
        )


def plan_problems(document: Mapping[str, Any]) -> Sequence[Problem]:
    """Return what is wrong with the form of a plan; its preview checks the rest."""
    from obsidian_agent.plan.validate import shape

    return shape(document).problems
