"""Recipes and macros: the form of one, what is asked before its preview, and the plan of a run saved as a macro."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, Static

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.services.fields import Field
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.actions import MACRO, Actions
from obsidian_agent.tui.screens.dialogs import Buttons, Modal
from obsidian_agent.tui.screens.trust import Reading
from obsidian_agent.tui.screens.values_form import ValuesForm, plain
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.widgets.prompt import LineEntry
from obsidian_agent.tui.widgets.row_list import Choice, ChoiceList

if TYPE_CHECKING:
    from obsidian_agent.agent.events import Candidate, NeedsInput
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.services.macro import Macro


class MacroActions(Workspace):
    """Actions of the menu, the person's own among them, are chosen, filled in and previewed."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command(
            "actions",
            "Show all actions",
            "Yours among them: find, run, change, delete, import",
            "actions",
            "[WORDS]",
        ),
    )

    _recent_actions: Sequence[str] = ()
    """The actions that were chosen since the program started, the last one first."""

    def action_actions(self, query: str = "") -> None:
        """All actions."""
        self.app.push_screen(Actions(self.session, query, self._recent_actions), self.run_named)

    def run_named(self, name: str | None) -> None:
        """The form of an action of the menu, or its preview where it takes nothing; `macro:NAME` is one of the person's."""
        if name is None or not self.is_not_writing():
            return
        self._recent_actions = [name, *(each for each in self._recent_actions if each != name)]
        if name.startswith(MACRO):
            self.run_macro(name.removeprefix(MACRO))
        else:
            self._run_recipe(name)

    @work(group="saved", exclusive=True, exit_on_error=False)
    async def run_macro(self, name: str) -> None:
        """Ask for the values of a macro, then preview it. One that is not trusted is shown before anything else."""
        macros = await asyncio.to_thread(self.session.saved.list)
        macro = next((macro for macro in macros if macro.name == name), None)
        if macro is None:
            self.say("bad", f"There is no saved action “{name}” any more.")
            return
        if macro.standing != "trusted" and not await self._accepted(macro):
            self.say("note", f"“{terminal_text.line(name)}” is not trusted. Nothing was run.")
            return
        self.freeze_focus()
        values = await self._filled(f"{MACRO}{name}", {}) if macro.plan.parameters else {}
        if values is None:
            return
        self.say("you", f"Run saved action: {name}")
        self.turn.forget_plan(macro=macro.name)
        self.turn.start(self.session.run_macro(name, values), "Computing the preview")

    @work(group="saved", exclusive=True, exit_on_error=False)
    async def _run_recipe(self, name: str) -> None:
        self.freeze_focus()
        values = await self._filled(name, {})
        if values is not None:
            recipe = next(
                each for each in await asyncio.to_thread(self.session.recipes) if each.name == name
            )
            self._start_recipe(recipe.title, name, values, None)

    async def fill_in(self, candidate: Candidate, said: str) -> None:
        """The form of an action that a message which is still in the box may mean; going on sends it."""
        values = await self._filled(candidate.recipe, candidate.values)
        if values is not None:
            self.panes.chat.prompt.accept(said)
            self._start_recipe(said, candidate.recipe, values, said)

    def _start_recipe(
        self, said: str, recipe: str, values: Mapping[str, str], message: str | None
    ) -> None:
        # The focus stays the one of the form: the open note is the one that it displayed.
        if not self.is_idle():
            return
        self.say("you", said)
        self.turn.forget_plan(
            macro=recipe.removeprefix(MACRO) if recipe.startswith(MACRO) else None, message=message
        )
        self.turn.start(self.session.run_recipe(recipe, values, message), "Computing the preview")

    async def _filled(
        self, name: str, values: Mapping[str, str], *, always: bool = True
    ) -> Mapping[str, str] | None:
        """The values of an action as the person gives them; None when they left, or something must be there first.

        `values` stand in the form. Without `always` it is shown only where something is missing.
        """
        form = await asyncio.to_thread(self.session.form, name)
        if form.unmet is not None:
            self.say("note", form.unmet)
            return None
        fields = form.fields(values)
        if not fields or (not always and all(field.optional or field.value for field in fields)):
            return dict(values)
        return await self.app.push_screen_wait(ValuesForm(form.title, fields, form))

    async def _accepted(self, macro: Macro) -> bool:
        """Show a macro whole, and trust it as it was shown if the person wants that."""
        changed, new = (
            "It has changed since you trusted it.",
            "It came with the vault; you have not trusted it here.",
        )
        hint = f"{changed if macro.standing == 'changed' else new} Nothing runs by that."
        text = terminal_text.block(json.dumps(macro.to_json(), ensure_ascii=False, indent=2))
        lines = [(line, "$foreground") for line in text.split("\n")]
        if not await self.app.push_screen_wait(
            Reading(macro.name, lines, trusted=False, hint=hint)
        ):
            return False
        await asyncio.to_thread(self.session.saved.accept, macro.name, macro.sha256)
        return True

    @work(group="save", exit_on_error=False)
    async def save_macro(self, run_id: str, plan: ActionPlan) -> None:
        """Save the plan of a run; what is refused is asked again."""
        problem = ""
        while wanted := await self.app.push_screen_wait(SaveMacro(plan, problem)):
            try:
                await asyncio.to_thread(
                    self.session.saved.save,
                    run_id,
                    wanted.name,
                    wanted.description,
                    wanted.parameters,
                )
            except ObsidianAgentError as error:
                problem = error.problem().message
                continue
            self.say(
                "good",
                f"Saved as “{terminal_text.line(wanted.name)}”. {self.key('main.saved')} shows all actions.",
            )
            return

    # --- what a message lacks ---------------------------------------------------------------------------------------------------

    @work(group="ask", exit_on_error=False)
    async def ask(self, event: NeedsInput) -> None:
        """Let the person choose among candidates and give what is missing, then go on."""
        chosen, change = await self._chosen(event)
        if chosen is None and event.candidates:
            self.say("note", "Nothing was chosen. Nothing was changed.")
            return
        missing = chosen.missing if chosen is not None else event.missing
        if chosen is None and not missing:
            self.say("note", event.message)
            return
        values: Mapping[str, str] | None = {}
        if chosen is not None and chosen.recipe:
            values = await self._filled(chosen.recipe, chosen.values, always=change)
            chosen = replace(chosen, values={})
        elif missing:
            declared = (
                chosen.plan.parameters if chosen is not None and chosen.plan is not None else {}
            )
            values = await self.app.push_screen_wait(
                ValuesForm(chosen.title if chosen else event.message, plain(missing, declared))
            )
        if values is None:
            self.say("note", "Nothing was changed.")
            return
        self.turn.forget_plan(macro=self.turn.macro, client=self.turn.client)
        self.turn.start(self.session.fill(chosen, values), "Computing the preview")

    async def _chosen(self, event: NeedsInput) -> tuple[Candidate | None, bool]:
        """The candidate that is meant, and whether its values shall be looked at. A single one that only lacks values needs no choice."""
        if not event.candidates:
            return None, False
        first = event.candidates[0]
        if len(event.candidates) == 1 and first.missing and not first.doubt and first.recipe:
            return first, True
        picked = await self.app.push_screen_wait(Candidates(event.message, event.candidates))
        return (picked.candidate, picked.change) if picked is not None else (None, False)


_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class SaveRequest:
    """What is to be saved. `parameters`: name of a new parameter -> the literal text of the plan that it replaces."""

    name: str
    description: str | None
    parameters: Mapping[str, str]


class SaveMacro(Modal[SaveRequest]):
    """Dismisses with what to save."""

    BINDINGS = bindings("saving")
    AUTO_FOCUS = "#name"

    def __init__(self, plan: ActionPlan, problem: str = "") -> None:
        from obsidian_agent.services.macro import literals

        super().__init__("Save as action")
        self._plan = plan
        self._problem = problem
        self._literals = [each for each in literals(plan) if isinstance(each, str)]
        self._made: dict[str, str] = {}

    def body(self) -> ComposeResult:
        yield Static("Name", classes="label", markup=False)
        yield LineEntry(terminal_text.shortened(self._plan.goal, 80), id="name")
        yield Static("Description (may stay empty)", classes="label", markup=False)
        yield LineEntry(id="description")
        if self._plan.parameters:
            found = ", ".join(terminal_text.line(name) for name in self._plan.parameters)
            yield Static(Content(f"Asks for: {found}"), classes="label", markup=False)
        if self._literals:
            yield Static(
                "Texts of the plan; Enter makes one a parameter that is asked for",
                classes="label",
                markup=False,
            )
            yield ChoiceList()
        yield Buttons(Button(Content("Save"), compact=True, id="save"))

    def on_mount(self) -> None:
        if self._literals:
            self._draw()
        self.problem(self._problem)

    def _draw(self) -> None:
        names = {text: name for name, text in self._made.items()}
        choices = [
            Choice(
                text,
                text,
                f"asked as {names[text]}" if text in names else "",
                "◆" if text in names else "◇",
            )
            for text in self._literals
        ]
        self.query_one(ChoiceList).set_choices(choices)

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        self.run_flow("parameter", partial(self._toggle, event.list.rows[event.index].key))

    async def _toggle(self, text: str) -> None:
        name = next((name for name, literal in self._made.items() if literal == text), None)
        if name is not None:
            del self._made[name]
            self._draw()
            return
        form = ValuesForm(
            f"Ask for “{terminal_text.shortened(text, 100)}” as",
            [Field("name", description="letters, digits and _, e.g. folderName")],
        )
        values = await self.app.push_screen_wait(form)
        if not values:
            return
        wanted = values["name"].strip()
        if (
            not _IDENTIFIER.fullmatch(wanted)
            or wanted in self._made
            or wanted in self._plan.parameters
        ):
            self.problem(
                f"“{wanted}” cannot be used: a letter first, then letters, digits and _, and not twice."
            )
            return
        self.problem("")
        self._made[wanted] = text
        self._draw()

    def on_input_submitted(self) -> None:
        self.action_save()

    def on_button_pressed(self) -> None:
        self.action_save()

    def action_save(self) -> None:
        name = self.query_one("#name", LineEntry).value.strip()
        if not name:
            self.problem("The action needs a name.")
            return
        self.dismiss(
            SaveRequest(
                name,
                self.query_one("#description", LineEntry).value.strip() or None,
                dict(self._made),
            )
        )


SHOWN = 3


@dataclass(frozen=True, slots=True)
class Picked:
    """What was chosen; `change`: its values shall be looked at, though none is missing."""

    candidate: Candidate
    change: bool = False


class Candidates(Modal[Picked]):
    """Dismisses with what was picked. Picking runs nothing: a form or a preview follows."""

    BINDINGS = bindings("candidates")

    def __init__(self, message: str, candidates: Sequence[Candidate]) -> None:
        super().__init__(
            "What did you mean?",
        )
        self._message = message
        self._candidates = tuple(candidates[:SHOWN])

    def body(self) -> ComposeResult:
        leave = f"{key_label(self, 'dialog.close')}, then {key_label(self, 'main.saved')} has everything."
        self.hint = f"Nothing runs yet: what is missing is asked, then the plan is previewed. None of these? {leave}"
        if self._message:
            yield Static(Content(terminal_text.folded(self._message, 4)), markup=False)
        yield ChoiceList(
            [_choice(number, candidate) for number, candidate in enumerate(self._candidates, 1)]
        )
        yield Static("", id="slots", markup=False)

    def on_virtual_list_highlighted(self, event: ChoiceList.Highlighted) -> None:
        if event.index >= 0:
            self._show_slots(event.index)

    def on_mount(self) -> None:
        self.query_one(ChoiceList).focus()
        self._show_slots(0)

    def _show_slots(self, index: int) -> None:
        candidate = self._candidates[index]
        parts: list[tuple[str, str]] = [("\n", "")]
        for name, value in candidate.values.items():
            parts += [
                (f" {terminal_text.line(name)}  ", "$quiet"),
                (f"{terminal_text.shortened(str(value), 200)}\n", "$foreground"),
            ]
        if candidate.doubt:
            parts.append((f" {terminal_text.shortened(candidate.doubt, 300)}\n", "$warning"))
        for name in candidate.missing:
            parts += [
                (f" {terminal_text.line(name)}  ", "$quiet"),
                ("missing, asked next\n", "$warning"),
            ]
        self.query_one("#slots", Static).update(Content.assemble(*parts).rstrip())

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        self.dismiss(Picked(self._candidates[event.index]))

    def action_pick(self, index: int) -> None:
        if index < len(self._candidates):
            self.dismiss(Picked(self._candidates[index]))

    def action_change(self) -> None:
        self.dismiss(Picked(self._candidates[self.query_one(ChoiceList).cursor], change=True))


def _choice(number: int, candidate: Candidate) -> Choice:
    slots = ", ".join(f"{name}: {value}" for name, value in candidate.values.items())
    return Choice(str(number), candidate.title, slots, word=str(number))
