"""The plan as JSON, to edit. Text that is no JSON stays in the editor with a message; the plan stays as it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from obsidian_agent.tui import sanitize
from obsidian_agent.tui.keys import bindings
from obsidian_agent.tui.widgets.entry import TextEntry


class PlanEditor(ModalScreen[Mapping[str, Any] | None]):
    """Dismisses with the edited document, or None when nothing is to change."""

    BINDINGS = bindings("editor")

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__()
        self._document = document

    def compose(self) -> ComposeResult:
        yield Static("Edit the plan. It is checked and previewed again before anything can be approved.", id="head", markup=False)
        yield TextEntry(editable(self._document), show_line_numbers=True, tab_behavior="indent")
        yield Static("", id="problem", markup=False)
        yield Footer(show_command_palette=False)

    def action_save(self) -> None:
        try:
            document = json.loads(self.query_one(TextEntry).text)
        except json.JSONDecodeError as error:
            self._say(f"This is not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}. The plan is as it was.")
            self.query_one(TextEntry).move_cursor((error.lineno - 1, max(error.colno - 1, 0)))
            return
        except RecursionError:
            self._say("This JSON is nested too deeply. The plan is as it was.")
            return
        if not isinstance(document, dict):
            self._say("A plan is a JSON object: { … }. The plan is as it was.")
        elif document == self._document:
            self.dismiss(None)
        else:
            self.dismiss(document)

    def action_close(self) -> None:
        self.dismiss(None)

    def _say(self, text: str) -> None:
        problem = self.query_one("#problem", Static)
        problem.update(Content(sanitize.block(text)))
        problem.display = True


def editable(document: Mapping[str, Any]) -> str:
    """JSON in which every character that a terminal would obey or hide is written as an escape."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    return "".join(char if char == "\n" or sanitize.line(char) == char else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1] if ord(char) != 0x7F else "\\u007f"
