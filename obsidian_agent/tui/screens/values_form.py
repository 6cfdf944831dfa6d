"""A form for values that are missing: one field each, described by the plan's parameters where they are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from obsidian_agent.tui import sanitize
from obsidian_agent.tui.screens.modal import Buttons, Modal
from obsidian_agent.tui.widgets.entry import LineEntry

_HINTS = {
    "date": "YYYY-MM-DD",
    "number": "a number",
    "boolean": "true or false",
    "path": "a path in the vault",
    "list": "values with commas between them",
    "text": "",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One value to ask for. `type` is a parameter type of the plan language; `value` stands in the field at first."""

    name: str
    type: str = "text"
    description: str | None = None
    value: str = ""
    optional: bool = False
    """Whether nothing is answered for it when it is left as it was, or empty."""
    empty: bool = False
    """Whether an empty text is a value of its own."""


class ValuesForm(Modal[Mapping[str, Any]]):
    """Dismisses with the values by name; Enter goes on to the next field, and from the last one submits."""

    AUTO_FOCUS = "LineEntry"

    def __init__(self, title: str, fields: Sequence[Field]) -> None:
        super().__init__(title)
        self._fields = tuple(fields)

    def body(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            for index, field in enumerate(self._fields):
                label = Content.assemble(
                    (sanitize.line(field.name), "bold $foreground"), (f"  {sanitize.shortened(field.description or '', 200)}", "$quiet")
                )
                yield Static(label, classes="label", markup=False)
                yield LineEntry(field.value, placeholder=_HINTS.get(field.type, ""), id=f"field-{index}")
        yield Buttons(Button(Content("Go on"), compact=True, id="go"))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        index = int((event.input.id or "field-0").removeprefix("field-"))
        if index + 1 < len(self._fields):
            self.query_one(f"#field-{index + 1}").focus()
        else:
            self._submit()

    def on_button_pressed(self) -> None:
        self._submit()

    def _submit(self) -> None:
        values: dict[str, Any] = {}
        for index, field in enumerate(self._fields):
            entry = self.query_one(f"#field-{index}", LineEntry)
            if field.optional and entry.value.strip() in ("", field.value.strip()):
                continue
            if field.empty and not entry.value.strip():
                values[field.name] = ""
                continue
            try:
                values[field.name] = converted(entry.value, field.type)
            except ValueError as error:
                self.problem(f"{field.name}: {error}")
                entry.focus()
                return
        self.dismiss(values)


def converted(text: str, type_: str) -> Any:
    """The value of a field by its type. ValueError says what is wrong in words for a person."""
    stripped = text.strip()
    if not stripped:
        raise ValueError("a value is needed.")
    match type_:
        case "number":
            try:
                return int(stripped)
            except ValueError:
                pass
            try:
                return float(stripped)
            except ValueError:
                raise ValueError(f"“{stripped}” is not a number.") from None
        case "boolean":
            word = stripped.lower()
            if word in ("true", "yes", "1", "on"):
                return True
            if word in ("false", "no", "0", "off"):
                return False
            raise ValueError(f"“{stripped}” is neither true nor false.")
        case "list":
            return [part.strip() for part in stripped.split(",") if part.strip()]
        case _:
            return text
