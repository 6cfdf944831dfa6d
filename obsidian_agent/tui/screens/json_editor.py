"""A JSON object to edit, such as a plan. Text that is no such thing stays in the editor with a message, and nothing changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import HELP, bindings
from obsidian_agent.tui.screens.dialogs import STYLES, Confirm
from obsidian_agent.tui.widgets.prompt import TextEntry

if TYPE_CHECKING:
    from obsidian_agent.errors import Problem


Check = Callable[[Mapping[str, Any]], "Sequence[Problem]"]


def _accept(document: Mapping[str, Any]) -> Sequence[Problem]:
    return ()


class JsonEditor(ModalScreen[Mapping[str, Any] | None]):
    """Dismisses with the edited document, or None when nothing is to change. `check` finds what is wrong with one; it must not block."""

    CSS_PATH = STYLES
    BINDINGS = [*bindings("editor"), HELP]

    def __init__(
        self, head: str, document: Mapping[str, Any], *, kept: str, check: Check = _accept
    ) -> None:
        super().__init__()
        self._head = head
        self._document = document
        self._kept = kept
        self._check = check

    def compose(self) -> ComposeResult:
        yield Static(Content(self._head), id="head", markup=False)
        yield TextEntry(editable(self._document), show_line_numbers=True, tab_behavior="indent")
        yield Static("", id="problem", markup=False)
        yield Footer(show_command_palette=False)

    def action_save(self) -> None:
        try:
            document = json.loads(self.query_one(TextEntry).text)
        except json.JSONDecodeError as error:
            self._say(
                f"This is not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}."
            )
            self.query_one(TextEntry).move_cursor((error.lineno - 1, max(error.colno - 1, 0)))
            return
        except (RecursionError, ValueError):
            self._say("This JSON is nested too deeply, or holds a number that is too long.")
            return
        if not isinstance(document, dict):
            self._say("A JSON object is wanted: { … }.")
        elif document == self._document:
            self.dismiss(None)
        elif problems := self._check(document):
            self._say(" ".join(problem.message for problem in problems[:4]))
        else:
            self.dismiss(document)

    def action_close(self) -> None:
        """Leave; what was edited is thrown away only when the person says so."""
        if self.query_one(TextEntry).text == editable(self._document):
            self.dismiss(None)
            return
        question = Confirm(
            "Leave the editor?",
            f"What you edited here is thrown away. {self._kept}",
            "Throw it away",
            "Go on editing",
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self.dismiss(None)

        self.app.push_screen(question, answered)

    def _say(self, text: str) -> None:
        problem = self.query_one("#problem", Static)
        problem.update(Content(terminal_text.block(f"{text} {self._kept}")))
        problem.display = True


def editable(document: Mapping[str, Any]) -> str:
    """JSON in which every character that a terminal would obey or hide is written as an escape."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    return "".join(
        char if char == "\n" or terminal_text.line(char) == char else _escaped(char)
        for char in text
    )


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1] if ord(char) != 0x7F else "\\u007f"


class PlanEditor(JsonEditor):
    """An edited plan is checked by its preview."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        head = "Edit the plan. It is checked and previewed again before anything can be approved."
        super().__init__(head, document, kept="The plan is as it was.")
