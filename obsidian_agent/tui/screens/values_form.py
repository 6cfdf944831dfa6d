"""A form whose fields show, below each text, its meaning or problem, and matching vault names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Static

from obsidian_agent import terminal_text
from obsidian_agent.services.fields import NEEDED, Completion, Field, FieldMessage
from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.screens.dialogs import Buttons, Modal
from obsidian_agent.tui.widgets.prompt import LineEntry, Suggestion, Suggestions

if TYPE_CHECKING:
    from obsidian_agent.services.form import Form

TYPING_PAUSE: Final = 0.15
"""Seconds without a key after which a text is checked."""

_HINT: Final = "Enter: next missing value, then the preview. Tab: next field."
_NAMES_HINT: Final = " ↓: names from the vault; Enter accepts the highlighted one."


class NamedEntry(LineEntry):
    """An entry that completes names of the vault."""

    def __init__(self, field: Field, names: Suggestions, number: int) -> None:
        super().__init__(field.value, placeholder=field.hint, id=f"field-{number}")
        self._names = names

    class Names(Message):
        """A request for all names, whatever the text is."""

    def on_key(self, event: events.Key) -> None:
        if self._names.press_key(event.key, self.value):
            event.stop()
            event.prevent_default()
        elif event.key == "down":
            event.stop()
            self.post_message(self.Names())


class OptionEntry(Widget, can_focus=True):
    """A choice among a few values, all visible; the arrow keys switch."""

    DEFAULT_CSS = """
    OptionEntry { height: auto; padding: 0 1; background: $boost; border-left: outer $panel; }
    OptionEntry:focus { border-left: outer $primary; }
    """
    BINDINGS = bindings("option")

    class Changed(Message):
        """Posted when another value was chosen."""

    class Submitted(Message):
        """Posted when Enter was pressed."""

    def __init__(self, field: Field, number: int) -> None:
        super().__init__(id=f"field-{number}")
        self._options = dict(field.options or {})
        self.value = field.value

    def render(self) -> Content:
        parts: list[tuple[str, str]] = []
        for key, label in self._options.items():
            sign, style = ("●", "$primary") if key == self.value else ("○", "$quiet")
            parts.append((f"{sign} {terminal_text.line(label)}   ", style))
        return Content.assemble(*parts).rstrip()

    def action_switch(self, step: int) -> None:
        keys = list(self._options)
        index = 0 if step > 0 else -1
        if self.value in keys:
            index = (keys.index(self.value) + step) % len(keys)
        self.value = keys[index]
        self.refresh()
        self.post_message(self.Changed())

    def action_submit(self) -> None:
        self.post_message(self.Submitted())


Entry = LineEntry | OptionEntry


class ValuesForm(Modal[Mapping[str, str]]):
    """A form of fields. Dismisses with their texts by name.

    `form` interprets and checks the texts; without one any text is accepted.
    """

    AUTO_FOCUS = None
    BINDINGS = bindings("form")
    ONLY_PREVIEWS = True

    def __init__(self, title: str, fields: Sequence[Field], form: Form | None = None) -> None:
        hint = _HINT if len(fields) > 1 else ""
        if form is not None and any(field.named for field in fields):
            hint = _HINT + _NAMES_HINT
        super().__init__(title, hint)
        self._fields = tuple(fields)
        self._form = form

    def body(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            for number, field in enumerate(self._fields):
                remarks = [terminal_text.shortened(field.description, 200)]
                if field.optional and not field.value:
                    remarks.append("(optional)")
                yield Static(
                    Content.assemble(
                        (terminal_text.line(field.label or field.name), "bold $foreground"),
                        (f"  {' '.join(filter(None, remarks))}", "$quiet"),
                    ),
                    classes="label",
                    markup=False,
                )
                names = Suggestions()
                if field.options:
                    yield OptionEntry(field, number)
                elif field.named and self._form is not None:
                    yield NamedEntry(field, names, number)
                else:
                    yield LineEntry(field.value, placeholder=field.hint, id=f"field-{number}")
                names.id = f"names-{number}"
                yield names
                yield Static("", id=f"remark-{number}", classes="remark", markup=False)
        yield Buttons(Button(Content("Continue"), compact=True, id="go"))

    def on_mount(self) -> None:
        self._entry(next(iter(self._missing()), 0)).focus()
        if self._form is not None:
            self.run_flow("check", partial(self._check, None), exclusive=True)

    @property
    def texts(self) -> dict[str, str]:
        """The texts by name of the field. One that was not edited is the original value.

        An entry displays line ends as symbols, so its text may differ from that value.
        """
        texts: dict[str, str] = {}
        for number, field in enumerate(self._fields):
            text = self._entry(number).value
            texts[field.name] = field.value if text == terminal_text.line(field.value) else text
        return texts

    def _entry(self, number: int) -> Entry:
        entry = self.query_one(f"#field-{number}")
        assert isinstance(entry, LineEntry | OptionEntry)
        return entry

    def _missing(self) -> list[int]:
        """Return the numbers of the fields that need a text and have none."""
        missing = []
        texts = self.texts
        for number, field in enumerate(self._fields):
            text = texts[field.name]
            has_value = bool(text.strip()) or text in (field.options or ())
            if not (field.optional or field.empty or has_value):
                missing.append(number)
        return missing

    @property
    def _focused_number(self) -> int | None:
        focused = self.focused
        if not isinstance(focused, LineEntry | OptionEntry):
            return None
        return int((focused.id or "").removeprefix("field-"))

    # --- while it is filled in --------------------------------------------------------------------

    def on_input_changed(self) -> None:
        self._changed()

    def on_option_entry_changed(self) -> None:
        self._changed()

    def on_named_entry_names(self) -> None:
        check = partial(self._check, self._focused_number, all_names=True)
        self.run_flow("check", check, exclusive=True)

    def on_descendant_blur(self) -> None:
        for names in self.query(Suggestions):
            names.offer([])

    def _changed(self) -> None:
        if self._form is not None and self.is_mounted:
            self.run_flow("check", partial(self._check, self._focused_number), exclusive=True)

    async def _check(self, number: int | None, *, all_names: bool = False) -> None:
        """Show what the texts mean, and suggest names for field `number`, which is being edited.

        With `all_names` names are suggested even for an empty or unedited text.
        """
        form = self._form
        assert form is not None
        await asyncio.sleep(0.0 if all_names else TYPING_PAUSE)
        texts = self.texts
        if number is not None:
            field = self._fields[number]
            typed = texts[field.name]
            edited = bool(typed.strip()) and typed != field.value
            if field.named and (all_names or edited):
                query = "" if all_names and typed == field.value else typed
                completions = await asyncio.to_thread(form.complete, field.name, query, texts)
                if not self.is_attached or self.texts != texts:
                    return
                if self._focused_number == number:
                    self._suggest(number, typed, completions, preselect=all_names or not field.new)
            else:
                self.query_one(f"#names-{number}", Suggestions).offer([])
        remarks = await asyncio.to_thread(form.judge, texts)
        if self.is_attached and self.texts == texts:
            self._show_remarks(remarks, final=False)

    def _suggest(
        self, number: int, typed: str, completions: Sequence[Completion], *, preselect: bool
    ) -> None:
        suggestions = [
            Suggestion(completion.text, len(typed), completion.what) for completion in completions
        ]
        names = self.query_one(f"#names-{number}", Suggestions)
        names.offer(suggestions, typed, preselect=preselect)
        names.scroll_visible()

    def _show_remarks(self, remarks: Mapping[str, FieldMessage], *, final: bool) -> None:
        """Show remarks under their fields; a missing value is reported only if `final`."""
        for number, field in enumerate(self._fields):
            remark = remarks.get(field.name)
            if remark is not None and remark.text == NEEDED and not final:
                remark = None
            text = terminal_text.shortened(remark.text, 300) if remark is not None else ""
            style = "$error" if remark is not None and remark.wrong else "$quiet"
            self.query_one(f"#remark-{number}", Static).update(Content.styled(text, style))

    def on_suggestions_accepted(self, event: Suggestions.Accepted) -> None:
        event.stop()
        focused = self.focused
        if isinstance(focused, NamedEntry):
            focused.value = event.suggestion.insert
            focused.cursor_position = len(focused.value)

    # --- submitting -------------------------------------------------------------------------------

    def on_input_submitted(self) -> None:
        self._advance()

    def on_option_entry_submitted(self) -> None:
        self._advance()

    def on_button_pressed(self) -> None:
        self.action_submit()

    def _advance(self) -> None:
        """Focus the next field with a missing value, or an earlier one; submit if there is none."""
        current = self._focused_number or 0
        missing = [number for number in self._missing() if number != current]
        following = [number for number in missing if number > current] or missing
        if following and current not in self._missing():
            self._entry(following[0]).focus()
        else:
            self.action_submit()

    def action_submit(self) -> None:
        self.run_flow("check", self._submit, exclusive=True)

    async def _submit(self) -> None:
        texts = self.texts
        if self._form is not None:
            remarks: Mapping[str, FieldMessage] = await asyncio.to_thread(self._form.judge, texts)
        else:
            remarks = {
                self._fields[number].name: FieldMessage(NEEDED, wrong=True)
                for number in self._missing()
            }
        if not self.is_attached:
            return
        self._show_remarks(remarks, final=True)
        for number, field in enumerate(self._fields):
            if field.name in remarks and remarks[field.name].wrong:
                self._entry(number).focus()
                return
        if self.texts == texts:
            self.dismiss(texts)


def parameter_fields(names: Sequence[str], declared: Mapping[str, Any]) -> list[Field]:
    """Return fields for parameters of a plan, labelled as the `declared` ones are described."""
    return [
        Field(name, label=(declared[name].description or "") if name in declared else "")
        for name in names
    ]
