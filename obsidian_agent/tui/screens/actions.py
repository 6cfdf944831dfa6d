"""All actions by subject, the person's own among them: find one and run it; change, rename, delete, export and import one's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input

from obsidian_agent import terminal_text
from obsidian_agent.services.fields import Field
from obsidian_agent.tui.action_search import Action, ranked
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.screens.dialogs import Confirm, Finder
from obsidian_agent.tui.screens.json_editor import JsonEditor
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.widgets.prompt import LineEntry
from obsidian_agent.tui.widgets.row_list import Choice, ChoiceList

if TYPE_CHECKING:
    from obsidian_agent.offline.recipe import Recipe
    from obsidian_agent.services.macro import Imported, Macro
    from obsidian_agent.services.session import Session


SAVED = "Saved"
"""The subject of the person's own actions."""

MOST_RECENT = 3
"""Recent actions in the list."""

Row = Choice | str
"""An action, or the heading of a subject."""

MACRO = "macro:"
"""Before the name of an action of the person's, in what is chosen."""


class ActionList(ChoiceList):
    """The actions by subject; Enter opens the form of one, or its preview."""

    def can_stop(self, row: Row) -> bool:
        return not isinstance(row, str)

    def draw_row(self, row: Row, width: int) -> Content:
        return (
            Content.styled(row, "bold $quiet")
            if isinstance(row, str)
            else super().draw_row(row, width)
        )


class Actions(Finder):
    """Dismisses with the name of the action to run: that of a recipe, or `macro:NAME`."""

    BINDINGS = bindings("saved")

    def __init__(self, session: Session, query: str = "", recent: Sequence[str] = ()) -> None:
        super().__init__(
            "Actions",
            "Nothing runs before you have seen its preview. In the list (Tab) your own can be renamed, changed, deleted, exported.",
        )
        self._session = session
        self._query = query
        self._recent = recent
        self._recipes: Sequence[Recipe] = ()
        self._macros: Sequence[Macro] = ()

    def body(self) -> ComposeResult:
        yield LineEntry(self._query, placeholder="A few letters", compact=False)
        yield ActionList([], empty=" No action holds these words. Say it in the message instead.")

    def on_mount(self) -> None:
        self.run_flow("saved", self._load)

    async def _load(self) -> None:
        self._recipes = await asyncio.to_thread(self._session.recipes)
        await self._reload()

    async def _reload(self, keep: str | None = None) -> None:
        self._macros = await asyncio.to_thread(self._session.saved.list)
        if self.is_attached:
            self._show(f"{MACRO}{keep}" if keep is not None else None)

    def _show(self, keep: str | None = None) -> None:
        """Show the actions that hold what was typed, best first; all by subject without it."""
        width = max((len(_STANDINGS[macro.standing][0]) for macro in self._macros), default=0)
        choices = {
            each.name: Choice(each.name, each.title, each.description) for each in self._recipes
        }
        choices |= {f"{MACRO}{each.name}": _choice(each, width) for each in self._macros}
        actions = [_recipe_action(each) for each in self._recipes if each.subject != SAVED]
        actions += map(_macro_action, self._macros)
        if self._query.strip():
            rows: list[Row] = [
                choices[each.key] for each in ranked(self._query, actions, self._recent)
            ]
        else:
            rows = self._by_subject(actions, choices)
        cursor = next(
            (at for at, row in enumerate(rows) if isinstance(row, Choice) and row.key == keep), 0
        )
        self.query_one(ActionList).set_rows(rows, cursor)  # type: ignore[arg-type]

    def _by_subject(self, actions: Sequence[Action], choices: Mapping[str, Choice]) -> list[Row]:
        """All actions below their subjects: the recent ones and the user's own first."""
        from obsidian_agent.offline.recipe import SUBJECTS

        rows: list[Row] = []
        if recent := [key for key in self._recent if key in choices][:MOST_RECENT]:
            rows += ["Recent", *(choices[key] for key in recent)]
        own_first = sorted(SUBJECTS, key=lambda each: each != SAVED) if self._macros else SUBJECTS
        for subject in own_first:
            found = [choices[each.key] for each in actions if each.subject == subject]
            rows += [subject, *found] if found else []
        if not self._macros:
            hint = f" Nothing is saved yet. After a run, {key_label(self, 'result.save')} saves its plan as an action."
            rows += [SAVED, hint]
        return rows

    def on_input_changed(self, event: Input.Changed) -> None:
        self._query = event.value
        self._show()

    def action_search(self) -> None:
        self.query_one(LineEntry).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Letters are letters while they are typed."""
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
        self.problem("")
        self.run_flow("saved", self._import)

    def _with_current(self, work: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        choice: Row | None = self.query_one(ActionList).current
        if isinstance(choice, Choice) and choice.key.startswith(MACRO):
            self.problem("")
            self.run_flow("saved", partial(work, choice.key.removeprefix(MACRO)))
        else:
            self.problem(
                f"This one comes with the program. Those that you save ({key_label(self, 'result.save')} after a run) can be changed."
            )

    async def _rename(self, name: str) -> None:
        values = await self.app.push_screen_wait(
            ValuesForm("Rename the action", [Field("name", value=name)])
        )
        new_name = values["name"].strip() if values else name
        if new_name not in (name, terminal_text.line(name)):
            await asyncio.to_thread(self._session.saved.rename, name, new_name)
            await self._reload(new_name)

    async def _change(self, name: str) -> None:
        macro = next(each for each in self._macros if each.name == name)
        head = (
            "Change the action. What runs is previewed first, as ever; ${name} stands for an input."
        )
        saved = self._session.saved
        editor = JsonEditor(
            head, macro.to_json(), kept="The action is as it was.", check=saved.judge
        )
        document = await self.app.push_screen_wait(editor)
        if document is not None:
            changed = await asyncio.to_thread(saved.edit, name, document)
            await self._reload(changed.name)

    async def _delete(self, name: str) -> None:
        text = f"“{terminal_text.shortened(name, 200)}” is deleted. The notes it made stay."
        if await self.app.push_screen_wait(Confirm("Delete this action?", text, "Delete")):
            await asyncio.to_thread(self._session.saved.delete, name)
            await self._reload()

    async def _export(self, name: str) -> None:
        field = Field(
            "file", description="A path on this computer; an existing file is not replaced"
        )
        values = await self.app.push_screen_wait(ValuesForm("Export the action", [field]))
        if values:
            await asyncio.to_thread(self._session.saved.export, name, values["file"].strip())
            self.app.notify(
                f"Exported to {terminal_text.shortened(values['file'], 200)}", markup=False
            )

    async def _import(self) -> None:
        field = Field("file", description="A JSON file; it is checked, nothing runs")
        values = await self.app.push_screen_wait(ValuesForm("Import an action", [field]))
        if not values:
            return
        saved = self._session.saved
        imported = await asyncio.to_thread(saved.read, values["file"].strip())
        taken = any(
            macro.name.casefold() == imported.macro.name.casefold() for macro in self._macros
        )
        question = Confirm(
            "Import this action?",
            _description(imported, taken),
            "Replace" if taken else "Import",
            danger=taken,
        )
        if await self.app.push_screen_wait(question):
            await asyncio.to_thread(saved.keep, imported, replacing=taken)
            await self._reload(imported.macro.name)


def _description(imported: Imported, taken: bool) -> str:
    """What a person should see before a foreign action is kept. Nothing of it runs by that."""
    plan = imported.macro.plan
    lines = [
        f"“{terminal_text.shortened(imported.macro.name, 120)}”: {terminal_text.shortened(plan.goal, 200)}",
        "",
    ]
    lines += [
        f"{number}. {terminal_text.shortened(step.title, 100)}  ({step.tool})"
        for number, step in enumerate(plan.steps[:8], 1)
    ]
    lines += (
        [f"… {terminal_text.counted(len(plan.steps) - 8, 'more step')}"]
        if len(plan.steps) > 8
        else []
    )
    lines += [
        f"▲ {terminal_text.shortened(warning.message, 200)}" for warning in imported.warnings[:6]
    ]
    return "\n".join(
        [*lines, "", "An action of this name exists and is replaced."] if taken else lines
    )


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


def _deletes(tools: Iterable[str]) -> bool:
    from obsidian_agent.tools.registry import TOOLS

    return any(tool in TOOLS and TOOLS[tool].deletes for tool in tools)


_STANDINGS = {
    "trusted": ("", "$primary"),
    "new": ("○ not trusted", "$warning"),
    "changed": ("▲ changed", "$warning"),
}


def _choice(macro: Macro, width: int) -> Choice:
    inputs = ", ".join(macro.plan.parameters)
    note = " · ".join(
        part for part in (macro.description or "", f"asks for {inputs}" if inputs else "") if part
    )
    word, style = _STANDINGS[macro.standing]
    return Choice(f"{MACRO}{macro.name}", macro.name, note, word, style, word_width=width)
