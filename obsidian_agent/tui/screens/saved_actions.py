"""Saved actions: run, change, rename, delete, export, import."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.binding import Binding

from obsidian_agent.tui import sanitize
from obsidian_agent.tui.keys import bindings
from obsidian_agent.tui.screens.choices import Choice, ChoiceList
from obsidian_agent.tui.screens.confirm import Confirm
from obsidian_agent.tui.screens.json_editor import JsonEditor
from obsidian_agent.tui.screens.modal import Modal
from obsidian_agent.tui.screens.values_form import Field, ValuesForm

if TYPE_CHECKING:
    from obsidian_agent.tui.bridge import Bridge
    from obsidian_agent.tui.port import Imported, Macro


class SavedList(ChoiceList):
    """The actions; Enter runs one."""

    BINDINGS = [Binding("enter", "choose", "Run", key_display="⏎")]


class SavedActions(Modal[str]):
    """Dismisses with the name of the action to run."""

    BINDINGS = bindings("saved")

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(
            "Saved actions",
            "Running one shows its preview first, like any plan. One that is not trusted is shown whole, and asked about, before that.",
        )
        self._bridge = bridge
        self._macros: Sequence[Macro] = ()

    def body(self) -> ComposeResult:
        yield SavedList(empty=" Nothing is saved yet. After a run, m saves its plan as an action.")

    def on_mount(self) -> None:
        self.query_one(SavedList).focus()
        self.run_flow("saved", self._reload)

    async def _reload(self, keep: str | None = None) -> None:
        self._macros = await self._bridge.call(self._bridge.session.saved.list)
        if self.is_attached:
            width = max((len(_STANDINGS[macro.standing][0]) for macro in self._macros), default=0)
            choices = [_choice(macro, width) for macro in self._macros]
            cursor = next((index for index, choice in enumerate(choices) if choice.key == keep), None)
            self.query_one(SavedList).set_choices(choices, cursor)

    def on_virtual_list_chosen(self, event: SavedList.Chosen) -> None:
        self.dismiss(event.list.rows[event.index].key)

    def action_rename(self) -> None:
        self._with_current(self._rename)

    def action_change(self) -> None:
        self._with_current(self._change)

    def action_delete(self) -> None:
        self._with_current(self._delete)

    def action_export(self) -> None:
        self._with_current(self._export)

    def action_import_file(self) -> None:
        self.problem("")
        self.run_flow("saved", self._import)

    def _with_current(self, work: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        choice = self.query_one(SavedList).current
        if choice is not None:
            self.problem("")
            self.run_flow("saved", partial(work, choice.key))

    async def _rename(self, name: str) -> None:
        values = await self.app.push_screen_wait(ValuesForm("Rename the action", [Field("name", value=name)]))
        new_name = values["name"].strip() if values else name
        if new_name not in (name, sanitize.line(name)):
            await self._bridge.call(self._bridge.session.saved.rename, name, new_name)
            await self._reload(new_name)

    async def _change(self, name: str) -> None:
        macro = next(each for each in self._macros if each.name == name)
        head = "Change the action. What runs is previewed first, as ever; ${name} stands for an input."
        saved = self._bridge.session.saved
        editor = JsonEditor(head, macro.to_json(), kept="The action is as it was.", check=saved.judge)
        document = await self.app.push_screen_wait(editor)
        if document is not None:
            changed = await self._bridge.call(saved.edit, name, document)
            await self._reload(changed.name)

    async def _delete(self, name: str) -> None:
        text = f"“{sanitize.shortened(name, 200)}” is deleted. The notes it made stay."
        if await self.app.push_screen_wait(Confirm("Delete this action?", text, "Delete")):
            await self._bridge.call(self._bridge.session.saved.delete, name)
            await self._reload()

    async def _export(self, name: str) -> None:
        field = Field("file", description="A path on this computer; an existing file is not replaced")
        values = await self.app.push_screen_wait(ValuesForm("Export the action", [field]))
        if values:
            await self._bridge.call(self._bridge.session.saved.export, name, values["file"].strip())
            self.app.notify(f"Exported to {sanitize.shortened(values['file'], 200)}", markup=False)

    async def _import(self) -> None:
        field = Field("file", description="A JSON file; it is checked, nothing runs")
        values = await self.app.push_screen_wait(ValuesForm("Import an action", [field]))
        if not values:
            return
        saved = self._bridge.session.saved
        imported = await self._bridge.call(saved.read, values["file"].strip())
        taken = any(macro.name.casefold() == imported.macro.name.casefold() for macro in self._macros)
        question = Confirm("Import this action?", _description(imported, taken), "Replace" if taken else "Import", danger=taken)
        if await self.app.push_screen_wait(question):
            await self._bridge.call(saved.keep, imported, replacing=taken)
            await self._reload(imported.macro.name)


def _description(imported: Imported, taken: bool) -> str:
    """What a person should see before a foreign action is kept. Nothing of it runs by that."""
    plan = imported.macro.plan
    lines = [f"“{sanitize.shortened(imported.macro.name, 120)}”: {sanitize.shortened(plan.goal, 200)}", ""]
    lines += [
        f"{number}. {sanitize.shortened(step.preview or step.tool, 100)}  ({step.tool})" for number, step in enumerate(plan.steps[:8], 1)
    ]
    lines += [f"… {len(plan.steps) - 8} more steps"] if len(plan.steps) > 8 else []
    lines += [f"▲ {sanitize.shortened(warning.message, 200)}" for warning in imported.warnings[:6]]
    return "\n".join([*lines, "", "An action of this name exists and is replaced."] if taken else lines)


_STANDINGS = {"trusted": ("", "$primary"), "new": ("○ not trusted", "$warning"), "changed": ("▲ changed", "$warning")}


def _choice(macro: Macro, width: int) -> Choice:
    inputs = ", ".join(macro.plan.parameters)
    note = " · ".join(part for part in (macro.description or "", f"asks for {inputs}" if inputs else "") if part)
    word, style = _STANDINGS[macro.standing]
    return Choice(macro.name, macro.name, note, word, style, word_width=width)
