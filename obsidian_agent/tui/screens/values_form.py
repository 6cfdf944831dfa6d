"""A form: its fields, with the meaning or the fault of a text below it, and names of the vault."""

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
"""Seconds without a key after which a text is looked at."""

_HINT: Final = "Enter goes to what is still missing, then on to the preview. Tab: the next field."
_NAMES: Final = " ↓: names of the vault."


class NamedEntry(LineEntry):
    """A line that the vault has names for."""

    def __init__(self, field: Field, names: Suggestions, number: int) -> None:
        super().__init__(field.value, placeholder=field.hint, id=f"field-{number}")
        self._names = names

    class Names(Message):
        """Names are wanted, whatever was typed."""

    def on_key(self, event: events.Key) -> None:
        if self._names.take(event.key, self.value):
            event.stop()
            event.prevent_default()
        elif event.key == "down":
            event.stop()
            self.post_message(self.Names())


class OptionEntry(Widget, can_focus=True):
    """One of a few values, all of them in sight; the arrows switch."""

    DEFAULT_CSS = """
    OptionEntry { height: auto; padding: 0 1; background: $boost; border-left: outer $panel; }
    OptionEntry:focus { border-left: outer $primary; }
    """
    BINDINGS = bindings("option")

    class Changed(Message):
        """Another one was chosen."""

    class Submitted(Message):
        """Enter was pressed."""

    def __init__(self, field: Field, number: int) -> None:
        super().__init__(id=f"field-{number}")
        self._options = dict(field.options or {})
        self.value = field.value

    def render(self) -> Content:
        parts: list[tuple[str, str]] = []
        for key, label in self._options.items():
            here = key == self.value
            parts.append(
                (
                    f"{'●' if here else '○'} {terminal_text.line(label)}   ",
                    "$primary" if here else "$quiet",
                )
            )
        return Content.assemble(*parts).rstrip()

    def action_switch(self, step: int) -> None:
        keys = list(self._options)
        at = keys.index(self.value) + step if self.value in keys else (0 if step > 0 else -1)
        self.value = keys[at % len(keys)]
        self.refresh()
        self.post_message(self.Changed())

    def action_submit(self) -> None:
        self.post_message(self.Submitted())


Entry = LineEntry | OptionEntry


class ValuesForm(Modal[Mapping[str, str]]):
    """Dismisses with the displayed texts by name. `form` reads them; without one any text is accepted."""

    AUTO_FOCUS = None
    BINDINGS = bindings("form")

    def __init__(self, title: str, fields: Sequence[Field], form: Form | None = None) -> None:
        named = form is not None and any(field.named for field in fields)
        super().__init__(
            title, _HINT + (_NAMES if named else "") if len(fields) > 1 or named else ""
        )
        self._fields = tuple(fields)
        self._form = form

    def body(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            for number, field in enumerate(self._fields):
                described = terminal_text.shortened(field.description, 200)
                told = (
                    f"{described}, if any"
                    if field.optional and not field.value and described
                    else described
                )
                yield Static(
                    Content.assemble(
                        (terminal_text.line(field.name), "bold $foreground"),
                        (f"  {told}", "$quiet"),
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
        yield Buttons(Button(Content("Go on"), compact=True, id="go"))

    def on_mount(self) -> None:
        self._entry(next(iter(self._missing()), 0)).focus()
        if self._form is not None:
            self.run_flow("look", partial(self._look, None), exclusive=True)

    @property
    def texts(self) -> dict[str, str]:
        """The displayed texts. An unedited one still holds the line ends drawn as symbols."""
        texts: dict[str, str] = {}
        for number, field in enumerate(self._fields):
            text = self._entry(number).value
            texts[field.name] = field.value if text == terminal_text.line(field.value) else text
        return texts

    def _entry(self, number: int) -> Entry:
        found = self.query_one(f"#field-{number}")
        assert isinstance(found, LineEntry | OptionEntry)
        return found

    def _missing(self) -> list[int]:
        """The fields that must have a text and have none."""
        texts = self.texts
        return [
            number
            for number, field in enumerate(self._fields)
            if not (
                field.optional
                or field.empty
                or texts[field.name].strip()
                or texts[field.name] in (field.options or ())
            )
        ]

    @property
    def _here(self) -> int | None:
        focused = self.focused
        return (
            int((focused.id or "").removeprefix("field-"))
            if isinstance(focused, LineEntry | OptionEntry)
            else None
        )

    # --- while it is filled in ------------------------------------------------------------------------------------------------

    def on_input_changed(self) -> None:
        self._changed()

    def on_option_entry_changed(self) -> None:
        self._changed()

    def on_named_entry_names(self) -> None:
        self.run_flow("look", partial(self._look, self._here, whole=True), exclusive=True)

    def on_descendant_blur(self) -> None:
        for names in self.query(Suggestions):
            names.offer([])

    def _changed(self) -> None:
        if self._form is not None and self.is_mounted:
            self.run_flow("look", partial(self._look, self._here), exclusive=True)

    async def _look(self, here: int | None, *, whole: bool = False) -> None:
        """Say what the texts mean, and offer names for the one that is being typed; with `whole` for whatever stands there."""
        form = self._form
        assert form is not None
        await asyncio.sleep(0.0 if whole else TYPING_PAUSE)
        texts = self.texts
        field = self._fields[here] if here is not None else None
        typed = texts[field.name] if field is not None else ""
        found: Sequence[Completion] = ()
        if (
            field is not None
            and here is not None
            and field.named
            and (whole or (typed.strip() and typed != field.value))
        ):
            found = await asyncio.to_thread(
                form.complete, field.name, "" if whole and typed == field.value else typed, texts
            )
            if not self.is_attached or self.texts != texts:
                return
            if self._here == here:
                names = self.query_one(f"#names-{here}", Suggestions)
                names.offer(
                    [Suggestion(each.text, len(typed), each.what) for each in found],
                    typed,
                    chosen=whole or not field.new,
                )
                names.scroll_visible()
        elif here is not None:
            self.query_one(f"#names-{here}", Suggestions).offer([])
        remarks = await asyncio.to_thread(form.judge, texts)
        if self.is_attached and self.texts == texts:
            self._say(remarks, final=False)

    def _say(self, remarks: Mapping[str, FieldMessage], *, final: bool) -> None:
        """Show remarks under their fields; what is missing is no fault before somebody goes on without it."""
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

    # --- going on -------------------------------------------------------------------------------------------------------------

    def on_input_submitted(self) -> None:
        self._go()

    def on_option_entry_submitted(self) -> None:
        self._go()

    def on_button_pressed(self) -> None:
        self.action_submit()

    def _go(self) -> None:
        """To what is missing behind this field, or before it; else on."""
        here = self._here or 0
        missing = [number for number in self._missing() if number != here]
        following = [number for number in missing if number > here] or missing
        if following and here not in self._missing():
            self._entry(following[0]).focus()
        else:
            self.action_submit()

    def action_submit(self) -> None:
        self.run_flow("look", self._submit, exclusive=True)

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
        self._say(remarks, final=True)
        wrong = next(
            (
                number
                for number, field in enumerate(self._fields)
                if field.name in remarks and remarks[field.name].wrong
            ),
            None,
        )
        if wrong is not None:
            self._entry(wrong).focus()
        elif self.texts == texts:
            self.dismiss(texts)


def plain(names: Sequence[str], declared: Mapping[str, Any]) -> list[Field]:
    """Fields for values of a plan that is no recipe, described by its parameters where it has them."""
    return [
        Field(name, (declared[name].description or "") if name in declared else "")
        for name in names
    ]
