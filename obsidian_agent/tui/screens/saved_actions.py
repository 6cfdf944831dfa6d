"""Saved actions: run, rename, delete, export, import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui import sanitize
from obsidian_agent.tui.keys import bindings
from obsidian_agent.tui.screens.choices import Choice, ChoiceList
from obsidian_agent.tui.screens.confirm import Confirm
from obsidian_agent.tui.screens.modal import Modal
from obsidian_agent.tui.screens.values_form import Field, ValuesForm

if TYPE_CHECKING:
    from obsidian_agent.tui.bridge import Bridge
    from obsidian_agent.tui.port import MacroInfo


class SavedList(ChoiceList):
    """The actions; Enter runs one."""

    BINDINGS = [Binding("enter", "choose", "Run", key_display="⏎")]


class SavedActions(Modal[str]):
    """Dismisses with the name of the action to run."""

    BINDINGS = bindings("saved")

    def __init__(self, bridge: Bridge) -> None:
        super().__init__("Saved actions", "Running one shows its preview first, like any plan.")
        self._bridge = bridge
        self._macros: Sequence[MacroInfo] = ()

    def body(self) -> ComposeResult:
        yield SavedList(empty=" Nothing is saved yet. After a run, m saves its plan as an action.")

    def on_mount(self) -> None:
        self.query_one(SavedList).focus()
        self._reload()

    @work(group="saved")
    async def _reload(self, keep: str | None = None) -> None:
        self._macros = await self._bridge.call(self._bridge.session.macros)
        choices = [_choice(macro) for macro in self._macros]
        cursor = next((index for index, choice in enumerate(choices) if choice.key == keep), None)
        self.query_one(SavedList).set_choices(choices, cursor)

    def on_virtual_list_chosen(self, event: SavedList.Chosen) -> None:
        self.dismiss(event.list.rows[event.index].key)

    def _current(self) -> str | None:
        choice = self.query_one(SavedList).current
        return choice.key if choice is not None else None

    @work(group="saved")
    async def action_rename(self) -> None:
        name = self._current()
        if name is None:
            return
        values = await self.app.push_screen_wait(ValuesForm("Rename the action", [Field("name", value=name)]))
        if values and values["name"].strip() != name:
            new_name = values["name"].strip()
            if await self._try(self._bridge.session.rename_macro, name, new_name):
                self._reload(new_name)

    @work(group="saved")
    async def action_delete(self) -> None:
        name = self._current()
        if name is None:
            return
        text = f"“{sanitize.shortened(name, 200)}” is deleted. The notes it made stay."
        if await self.app.push_screen_wait(Confirm("Delete this action?", text, "Delete")) and await self._try(self._bridge.session.delete_macro, name):
            self._reload()

    @work(group="saved")
    async def action_export(self) -> None:
        name = self._current()
        if name is None:
            return
        field = Field("file", description="A path on this computer; an existing file is not replaced")
        values = await self.app.push_screen_wait(ValuesForm("Export the action", [field]))
        if values and await self._try(self._bridge.session.export_macro, name, values["file"].strip()):
            self.app.notify(f"Exported to {sanitize.shortened(values['file'], 200)}", markup=False)

    @work(group="saved")
    async def action_import_file(self) -> None:
        values = await self.app.push_screen_wait(ValuesForm("Import an action", [Field("file", description="A JSON file; it is checked, nothing runs")]))
        if not values:
            return
        try:
            name = await self._bridge.call(self._bridge.session.import_macro, values["file"].strip())
        except ObsidianAgentError as error:
            self.problem(error.message)
            return
        self.problem("")
        self._reload(name)

    async def _try(self, function: object, *args: str) -> bool:
        self.problem("")
        try:
            await self._bridge.call(function, *args)  # type: ignore[arg-type]
        except ObsidianAgentError as error:
            self.problem(error.message)
            return False
        return True


def _choice(macro: MacroInfo) -> Choice:
    inputs = ", ".join(macro.parameters)
    note = " · ".join(part for part in (macro.description or "", f"asks for {inputs}" if inputs else "") if part)
    return Choice(macro.name, macro.name, note)
