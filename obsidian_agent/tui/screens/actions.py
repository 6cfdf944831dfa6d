"""The menu of actions: built-in recipes and saved macros, by subject.

Any action can be searched and run. Saved ones can also be changed, renamed, deleted, exported and
imported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.widgets import Input

from obsidian_agent import terminal_text
from obsidian_agent.services.fields import Field
from obsidian_agent.tui.action_search import Action, ranked
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.screens.dialogs import Confirm, SearchDialog, SearchEntry
from obsidian_agent.tui.screens.json_editor import JsonEditor
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.widgets.prompt import LineEntry
from obsidian_agent.tui.widgets.row_list import Choice, ChoiceList

if TYPE_CHECKING:
    from obsidian_agent.offline.recipe import Recipe
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.services.macro import Imported, Macro
    from obsidian_agent.services.session import Session
    from obsidian_agent.tui.commands import Command


SAVED = "Macros"
"""The subject of macros."""

MAX_RECENT = 3
"""Number of recent actions in the list."""

Row = Choice | str
"""An action, or the heading of a subject."""

MACRO = "macro:"
"""The prefix of a macro's key; its name follows."""

_PREVIEWED_STEPS = 8
_PREVIEWED_WARNINGS = 6
_STANDINGS = {
    "trusted": ("", "$primary"),
    "new": ("○ not trusted", "$warning"),
    "changed": ("▲ changed", "$warning"),
}


class Actions(SearchDialog[str]):
    """The menu. Dismisses with the key of the action to run: a recipe's name, or `macro:NAME`.

    A query also finds `commands`, whose keys are `/NAME`.
    """

    BINDINGS = bindings("saved")

    def __init__(
        self,
        session: Session,
        query: str = "",
        recent: Sequence[str] = (),
        commands: Sequence[Command] = (),
    ) -> None:
        super().__init__(
            "Actions",
            "Every action shows a preview before it runs. Tab goes to the list, where you can "
            "rename, edit, delete or export your macros.",
        )
        self._session = session
        self._query = query
        self._recent = recent
        self._commands = commands
        self._recipes: Sequence[Recipe] = ()
        self._macros: Sequence[Macro] = ()

    def body(self) -> ComposeResult:
        yield SearchEntry(self._query, placeholder="Type to filter", compact=False)
        yield ChoiceList([], empty=" No matching action. Describe the task in a message instead.")

    def on_mount(self) -> None:
        self.run_flow("saved", self._load)

    async def _load(self) -> None:
        self._recipes = await asyncio.to_thread(self._session.recipes)
        await self._reload()

    async def _reload(self, selected: str | None = None) -> None:
        self._macros = await asyncio.to_thread(self._session.saved.list)
        if self.is_attached:
            self._show(f"{MACRO}{selected}" if selected is not None else None)

    def _show(self, selected: str | None = None) -> None:
        """Show the actions that match the query, best first, or all by subject without one."""
        width = max((len(_STANDINGS[macro.standing][0]) for macro in self._macros), default=0)
        choices = {
            recipe.name: Choice(recipe.name, recipe.title, recipe.description)
            for recipe in self._recipes
        }
        choices |= {f"{MACRO}{macro.name}": _choice(macro, width) for macro in self._macros}
        actions = [_recipe_action(recipe) for recipe in self._recipes if recipe.subject != SAVED]
        actions += map(_macro_action, self._macros)
        if self._query.strip():
            choices |= {
                f"/{command.name}": Choice(f"/{command.name}", command.title, command.help)
                for command in self._commands
            }
            actions += map(_command_action, self._commands)
            rows: list[Row] = [
                choices[action.key] for action in ranked(self._query, actions, self._recent)
            ]
        else:
            rows = self._rows_by_subject(actions, choices)
        cursor = 0
        for index, row in enumerate(rows):
            if isinstance(row, Choice) and row.key == selected:
                cursor = index
                break
        self.query_one(ChoiceList).set_rows(rows, cursor)

    def _rows_by_subject(
        self, actions: Sequence[Action], choices: Mapping[str, Choice]
    ) -> list[Row]:
        """Return all actions below their subjects, recent ones and macros first."""
        from obsidian_agent.offline.recipe import SUBJECTS

        rows: list[Row] = []
        recent = [key for key in self._recent if key in choices][:MAX_RECENT]
        if recent:
            rows += ["Recent", *(choices[key] for key in recent)]
        subjects: Sequence[str] = SUBJECTS
        if self._macros:
            subjects = sorted(SUBJECTS, key=lambda subject: subject != SAVED)
        for subject in subjects:
            members = [choices[action.key] for action in actions if action.subject == subject]
            if members:
                rows += [subject, *members]
        if not self._macros:
            key = key_label(self, "result.save")
            rows += [SAVED, f" No macros yet. After a run, {key} saves its plan as one."]
        return rows

    def on_input_changed(self, event: Input.Changed) -> None:
        self._query = event.value
        self._show()

    def action_search(self) -> None:
        self.query_one(LineEntry).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # A letter that is typed into the query must not trigger its key.
        typing = isinstance(self.focused, LineEntry)
        return not (
            typing and action in ("rename", "change", "delete", "export", "import_file", "search")
        )

    def action_rename(self) -> None:
        self._with_current(self._rename)

    def action_change(self) -> None:
        self._with_current(self._change)

    def action_delete(self) -> None:
        self._with_current(self._delete)

    def action_export(self) -> None:
        self._with_current(self._export)

    def action_import_file(self) -> None:
        self.show_problem("")
        self.run_flow("saved", self._import)

    def _with_current(self, work: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        choice = self.query_one(ChoiceList).current
        if choice is not None and choice.key.startswith(MACRO):
            self.show_problem("")
            self.run_flow("saved", partial(work, choice.key.removeprefix(MACRO)))
        else:
            self.show_problem(
                "This action is built in. Only macros can be edited "
                f"({key_label(self, 'result.save')} after a run saves one)."
            )

    async def _rename(self, name: str) -> None:
        values = await self.app.push_screen_wait(
            ValuesForm("Rename the macro", [Field("name", value=name)])
        )
        new_name = values["name"].strip() if values else name
        if new_name not in (name, terminal_text.line(name)):  # the form displays the latter
            await asyncio.to_thread(self._session.saved.rename, name, new_name)
            await self._reload(new_name)

    async def _change(self, name: str) -> None:
        macro = next(macro for macro in self._macros if macro.name == name)
        head = "Change the macro. ${name} stands for an input. Runs are still previewed first."
        saved = self._session.saved
        editor = JsonEditor(head, macro.to_json(), unchanged="Macro unchanged.", check=saved.judge)
        document = await self.app.push_screen_wait(editor)
        if document is not None:
            changed = await asyncio.to_thread(saved.edit, name, document)
            await self._reload(changed.name)

    async def _delete(self, name: str) -> None:
        text = (
            f"“{terminal_text.shortened(name, 200)}” will be deleted. "
            "Notes that it created or changed are not affected."
        )
        if await self.app.push_screen_wait(Confirm("Delete this macro?", text, "Delete")):
            await asyncio.to_thread(self._session.saved.delete, name)
            await self._reload()

    async def _export(self, name: str) -> None:
        field = Field(
            "file", description="A path on this computer; existing files are not replaced"
        )
        values = await self.app.push_screen_wait(ValuesForm("Export the macro", [field]))
        if values:
            await asyncio.to_thread(self._session.saved.export, name, values["file"].strip())
            self.app.notify(
                f"Exported to {terminal_text.shortened(values['file'], 200)}", markup=False
            )

    async def _import(self) -> None:
        field = Field("file", description="A JSON file. It is only checked, nothing runs")
        values = await self.app.push_screen_wait(ValuesForm("Import a macro", [field]))
        if not values:
            return
        saved = self._session.saved
        imported = await asyncio.to_thread(saved.read, values["file"].strip())
        exists = any(
            macro.name.casefold() == imported.macro.name.casefold() for macro in self._macros
        )
        question = Confirm(
            "Import this macro?",
            _import_summary(imported, exists=exists),
            "Replace" if exists else "Import",
            danger=exists,
        )
        if await self.app.push_screen_wait(question):
            await asyncio.to_thread(saved.keep, imported, replacing=exists)
            await self._reload(imported.macro.name)


def _import_summary(imported: Imported, *, exists: bool) -> str:
    plan = imported.macro.plan
    name = terminal_text.shortened(imported.macro.name, 120)
    lines = [f"“{name}”: {terminal_text.shortened(plan.goal, 200)}", ""]
    for number, step in enumerate(plan.steps[:_PREVIEWED_STEPS], 1):
        lines.append(f"{number}. {terminal_text.shortened(step.title, 100)}  ({step.tool})")
    if len(plan.steps) > _PREVIEWED_STEPS:
        rest = len(plan.steps) - _PREVIEWED_STEPS
        lines.append(f"… {terminal_text.counted(rest, 'more step')}")
    for warning in imported.warnings[:_PREVIEWED_WARNINGS]:
        lines.append(f"▲ {terminal_text.shortened(warning.message, 200)}")
    if exists:
        lines += ["", "This replaces a macro with the same name."]
    return "\n".join(lines)


def _recipe_action(recipe: Recipe) -> Action:
    return Action(
        key=recipe.name,
        title=recipe.title,
        subject=recipe.subject,
        description=recipe.description,
        examples=recipe.examples,
        deletes=_deletes(recipe.tools),
    )


def _macro_action(macro: Macro) -> Action:
    return Action(
        key=f"{MACRO}{macro.name}",
        title=macro.name,
        subject=SAVED,
        description=macro.description or "",
        examples=macro.phrases,
        deletes=_deletes(step.tool for step in macro.plan.steps),
        own=True,
    )


def _command_action(command: Command) -> Action:
    return Action(
        key=f"/{command.name}",
        title=command.title,
        subject="",
        description=command.help,
        examples=(command.name,),
    )


def _deletes(tools: Iterable[str]) -> bool:
    from obsidian_agent.tools.registry import TOOLS

    return any(tool in TOOLS and TOOLS[tool].deletes for tool in tools)


def input_labels(plan: ActionPlan) -> list[str]:
    """Return the inputs of a plan as forms call them."""
    return [spec.description or name for name, spec in plan.parameters.items()]


def _choice(macro: Macro, width: int) -> Choice:
    parts = []
    if macro.description and macro.description != macro.name:
        parts.append(macro.description)
    if macro.plan.parameters:
        parts.append(f"asks for {', '.join(input_labels(macro.plan))}")
    note = " · ".join(parts)
    word, style = _STANDINGS[macro.standing]
    return Choice(f"{MACRO}{macro.name}", macro.name, note, word, style, word_width=width)
