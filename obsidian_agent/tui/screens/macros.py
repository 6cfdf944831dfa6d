"""Recipes and saved macros: filling in their forms, running them, and saving the plan of a run."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from msgspec.structs import replace
from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, Static

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.services.fields import Field
from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.actions import MACRO, Actions, input_labels
from obsidian_agent.tui.screens.dialogs import Buttons, Modal
from obsidian_agent.tui.screens.trust import Reading
from obsidian_agent.tui.screens.values_form import ValuesForm, parameter_fields
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.turn.controller import FilledAction
from obsidian_agent.tui.widgets.prompt import LineEntry
from obsidian_agent.tui.widgets.row_list import Choice, ChoiceList

if TYPE_CHECKING:
    from obsidian_agent.agent.events import ActionsOffered, Candidate, NeedsInput
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.services.macro import Macro
    from obsidian_agent.tui.screens.candidates import Candidates, PickedCandidate
    from obsidian_agent.tui.turn.controller import Pending


_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class MacroActions(Workspace):
    """Actions of the menu, both recipes and macros: choose, fill in, preview, save."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command(
            "actions",
            "Show all actions",
            "Search and run them; change, delete or import your macros",
            "actions",
            "[WORDS]",
        ),
    )

    _choice: Candidates | None = None
    """The choice that is open."""

    _recent_actions: Sequence[str] = ()
    """The names of the actions chosen since the program started, the latest first."""

    def action_actions(self, query: str = "") -> None:
        """Show all actions."""
        commands = [command for command in self.commands() if not command.requires_argument]
        actions = Actions(self.session, query, self._recent_actions, commands)
        self.app.push_screen(actions, self.open_action)

    def open_action(self, name: str | None) -> None:
        """Open the form of an action, or its preview if it has no inputs.

        `name` is that of a recipe, `macro:NAME`, or `/NAME` of a command.
        """
        if name is not None and name.startswith("/"):
            command = next(one for one in self.commands() if name == f"/{one.name}")
            self.run_command(command)
            return
        if name is None or not self.ensure_not_applying():
            return
        self._recent_actions = [name, *(key for key in self._recent_actions if key != name)]
        if name.startswith(MACRO):
            self.run_macro(name.removeprefix(MACRO))
        else:
            self._run_recipe(name)

    @work(group="saved", exclusive=True, exit_on_error=False)
    async def run_macro(self, name: str) -> None:
        """Ask for the values of a macro, then preview it. It must be trusted first."""
        macros = await asyncio.to_thread(self.session.saved.list)
        macro = next((macro for macro in macros if macro.name == name), None)
        if macro is None:
            self.add_entry("bad", f"The macro “{name}” no longer exists.")
            return
        if macro.standing != "trusted" and not await self._ask_for_trust(macro):
            self.add_entry("note", f"“{terminal_text.line(name)}” is not trusted. Nothing was run.")
            return
        self.freeze_focus()
        values: Mapping[str, str] | None = {}
        if macro.plan.parameters:
            values = await self._ask_for_values(f"{MACRO}{name}", {})
        if values is None:
            return
        self.add_entry("you", f"Run macro: {name}")
        self.turn.forget_plan(macro=macro.name, action=FilledAction(f"{MACRO}{name}", values))
        self.turn.start(self.session.run_macro(name, values), "Computing the preview")

    @work(group="saved", exclusive=True, exit_on_error=False)
    async def _run_recipe(self, name: str) -> None:
        self.freeze_focus()
        values = await self._ask_for_values(name, {})
        if values is not None:
            recipes = await asyncio.to_thread(self.session.recipes)
            recipe = next(recipe for recipe in recipes if recipe.name == name)
            self._start_recipe(recipe.title, name, values, None)

    async def fill_in(self, candidate: Candidate, message: str) -> None:
        """Open the form of an action for the unsent message. Submitting also sends the message."""
        values = await self._ask_for_values(candidate.recipe, candidate.values)
        if values is not None:
            self.panes.chat.prompt.accept(message)
            self._start_recipe(message, candidate.recipe, values, message)

    def _start_recipe(
        self, entry: str, recipe: str, values: Mapping[str, str], message: str | None
    ) -> None:
        # The recipe uses the note that was open when the form appeared.
        if not self.ensure_idle():
            return
        self.add_entry("you", entry)
        self._preview_action(FilledAction(recipe, values), message)

    async def _ask_for_values(
        self, name: str, values: Mapping[str, str], *, always: bool = True
    ) -> Mapping[str, str] | None:
        """Return the values that the user enters for an action.

        `values` fill the form initially. Without `always` the form is skipped if no value is
        missing. Return None if the user closes it or the action's precondition is not met.
        """
        form = await asyncio.to_thread(self.session.form, name)
        if form.unmet is not None:
            self.add_entry("note", form.unmet)
            return None
        fields = form.fields(values)
        if not fields or (not always and all(field.optional or field.value for field in fields)):
            return dict(values)
        return await self.app.push_screen_wait(ValuesForm(form.title, fields, form))

    async def _ask_for_trust(self, macro: Macro) -> bool:
        """Show the full text of a macro, and trust exactly that if the user agrees."""
        reason = "It came with the vault and you have not trusted it on this computer."
        if macro.standing == "changed":
            reason = "It has changed since you trusted it."
        hint = f"{reason} Trusting it runs nothing."
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
        """Save the plan of a run as a macro. After an error the form is shown again."""
        problem = ""
        while request := await self.app.push_screen_wait(SaveMacro(plan, problem)):
            try:
                await asyncio.to_thread(
                    self.session.saved.save,
                    run_id,
                    request.name,
                    request.description,
                    request.parameters,
                )
            except ObsidianAgentError as error:
                problem = error.problem().message
                continue
            name = terminal_text.line(request.name)
            self.add_entry(
                "good", f"Saved as the macro “{name}”. {self.key('main.saved')} finds and runs it."
            )
            return

    # --- candidates and missing values ------------------------------------------------------------

    def ask(self, event: NeedsInput | ActionsOffered) -> None:
        """Let the user choose a candidate and enter missing values, then compute the preview.

        The choice that is open already gets the candidates of the model.
        """
        from obsidian_agent.agent.events import ActionsOffered
        from obsidian_agent.tui.screens.candidates import Candidates

        if isinstance(event, ActionsOffered):
            remark, thinking = "", event.model
        elif event.candidates:
            remark, thinking = _remark(event), ""
        else:
            self._ask_for_parameters(event)
            return
        if self._choice is None and _is_only_reading(event):
            self._preview_only_reading(event.candidates[0])
            return
        if self._choice is not None:
            self.keyboard.mark_appeared()
            self._choice.replace(event.candidates, remark)
            return
        self._choice = Candidates(
            self.turn.message or "",
            event.candidates,
            self.session,
            remark=remark,
            thinking=thinking,
        )
        self._let_choose(self._choice)

    @work(group="ask", exit_on_error=False)
    async def _preview_only_reading(self, candidate: Candidate) -> None:
        from obsidian_agent.tui.screens.candidates import PickedCandidate

        self.turn.supersede()
        comment, actions = self.key("plan.comment"), self.key("main.saved")
        self.add_entry(
            "note",
            "Your message has one reading. "
            f"{comment} in its preview changes the values, {actions} lists all actions.",
        )
        await self._fill_candidate(candidate, PickedCandidate(candidate))

    @work(group="ask", exit_on_error=False)
    async def _let_choose(self, choice: Candidates) -> None:
        from obsidian_agent.tui.screens.candidates import Candidates

        message = self.turn.message or ""
        while picked := await self.app.push_screen_wait(choice):
            self._choice = None
            self.turn.supersede()
            if picked.candidate is None:
                is_done = await self._choose_from_all(message)
            else:
                is_done = await self._fill_candidate(picked.candidate, picked)
            if is_done:
                return
            choice = self._choice = Candidates(message, choice.candidates, self.session)
        if self._choice is not choice:
            return  # the turn has ended with an answer
        self._choice = None
        if self.turn.phase == "planning":
            self.turn.cancel()
        else:
            self.add_entry("note", "You chose no action. Nothing was changed.")
        self.recall_message()

    def end_choice(self) -> None:
        """Close the choice if the turn has ended otherwise; after a failure it stays open."""
        choice = self._choice
        if choice is None or not choice.thinking:
            return
        if self.turn.has_failed:
            choice.replace(choice.candidates, "The model did not choose.")
        else:
            self._choice = None
            choice.dismiss(None)

    async def _fill_candidate(self, candidate: Candidate, picked: PickedCandidate) -> bool:
        """Ask for what the candidate still lacks, then compute its preview.

        Return False if the user closes the form.
        """
        values: Mapping[str, str] | None = {}
        action: FilledAction | None = None
        if candidate.recipe:
            known = {**candidate.values, **picked.values}
            values = await self._ask_for_values(candidate.recipe, known, always=picked.change)
            candidate = replace(candidate, values={})
            action = FilledAction(candidate.recipe, values or {})
        elif candidate.missing:
            declared = candidate.plan.parameters if candidate.plan is not None else {}
            fields = parameter_fields(candidate.missing, declared)
            values = await self.app.push_screen_wait(ValuesForm(candidate.title, fields))
        if values is None:
            return False
        turn = self.turn
        turn.forget_plan(
            macro=turn.macro,
            message=turn.message,
            client=turn.client,
            action=action,
            revises=turn.revises,
        )
        turn.start(self.session.fill(candidate, values), "Computing the preview")
        return True

    @work(group="ask", exit_on_error=False)
    async def _ask_for_parameters(self, event: NeedsInput) -> None:
        """Ask for the missing values of a plan, then compute its preview."""
        if not event.missing:
            self.add_entry("note", event.message)
            return
        form = ValuesForm(event.message, parameter_fields(event.missing, {}))
        values = await self.app.push_screen_wait(form)
        if values is None:
            self.add_entry("note", "Cancelled. Nothing was changed.")
            return
        self.turn.forget_plan(macro=self.turn.macro, client=self.turn.client)
        self.turn.start(self.session.fill(None, values), "Computing the preview")

    async def _choose_from_all(self, message: str) -> bool:
        """Let the user choose from all actions; the message fills the form of the chosen one.

        Return False if none was chosen.
        """
        name = await self.app.push_screen_wait(Actions(self.session, "", self._recent_actions))
        if name is None:
            return False
        self._recent_actions = [name, *(key for key in self._recent_actions if key != name)]
        known = await asyncio.to_thread(self.session.values_for, name, message)
        values = await self._ask_for_values(name, known)
        if values is None:
            return False
        self._preview_action(FilledAction(name, values), message or None)
        return True

    @work(group="ask", exit_on_error=False)
    async def change_values(self, plan: Pending, comment: str) -> None:
        """Show the form of a plan made without a model, filled in with what a comment changes."""
        action = await asyncio.to_thread(self._action_of, plan)
        if action is None:
            edit, toggle = self.key("plan.edit"), self.key("plan.toggle")
            self.show_plan_notice(
                "A comment can change this plan only with a model. "
                f"{edit} edits it, {toggle} leaves parts out."
            )
            return
        values = await asyncio.to_thread(
            self.session.changed_values, action.name, action.values, comment
        )
        filled = await self._ask_for_values(action.name, values)
        if filled is None or self.turn.pending is not plan or not self.ensure_idle():
            return
        if comment:
            self.add_entry("you", comment)
        message = "\n".join(filter(None, (plan.message, comment)))
        self._preview_action(FilledAction(action.name, filled), message, revises=plan)

    def _action_of(self, plan: Pending) -> FilledAction | None:
        """Return the action that a plan is, or that its message was read as. May block."""
        if plan.action is not None or plan.message is None:
            return plan.action
        for candidate in self.session.suggest(plan.message):
            if candidate.recipe and candidate.plan == plan.plan:
                return FilledAction(candidate.recipe, candidate.values)
        return None

    def _preview_action(
        self, action: FilledAction, message: str | None, *, revises: Pending | None = None
    ) -> None:
        macro = action.name.removeprefix(MACRO) if action.name.startswith(MACRO) else None
        self.turn.forget_plan(macro=macro, message=message, action=action, revises=revises)
        self.turn.start(
            self.session.run_recipe(action.name, action.values, message), "Computing the preview"
        )


def _is_only_reading(event: NeedsInput | ActionsOffered) -> bool:
    """Return True for a single candidate without a gap or a doubt, which needs no choice."""
    from obsidian_agent.agent.events import NeedsInput
    from obsidian_agent.services.offline_planner import WHICH

    if not isinstance(event, NeedsInput) or event.message != WHICH or len(event.candidates) != 1:
        return False
    (only,) = event.candidates
    is_partial = only.missing or only.unused or only.unknown or only.news
    # Several orders have no form that could change their values afterwards.
    return bool(only.recipe) and not (is_partial or only.doubts or only.fails)


def _remark(event: NeedsInput) -> str:
    """Return the message of a question, such as why the model failed; "" if it adds nothing."""
    from obsidian_agent.services.offline_planner import WHICH

    repeats_doubt = any(
        candidate.doubt and candidate.doubt in event.message for candidate in event.candidates
    )
    return "" if repeats_doubt or event.message == WHICH else event.message


class SaveRequest(Struct, frozen=True):
    """A request to save a plan as a macro."""

    name: str
    description: str | None
    parameters: Mapping[str, str]
    """The name of each new parameter, and the literal text of the plan that it replaces."""


class SaveMacro(Modal[SaveRequest]):
    """The form for saving a plan as a macro. Dismisses with the request."""

    BINDINGS = bindings("saving")
    AUTO_FOCUS = "#name"

    def __init__(self, plan: ActionPlan, problem: str = "") -> None:
        from obsidian_agent.services.macro import chosen_words, literals
        from obsidian_agent.tools.registry import TOOLS

        super().__init__("Save as macro")
        self._plan = plan
        self._problem = problem
        fixed = chosen_words(plan, TOOLS)
        self._literals = [
            text for text in literals(plan) if isinstance(text, str) and text not in fixed
        ]
        self._parameters: dict[str, str] = {}

    def body(self) -> ComposeResult:
        yield Static("Name", classes="label", markup=False)
        yield LineEntry(terminal_text.shortened(self._plan.goal, 80), id="name")
        yield Static("Description (optional)", classes="label", markup=False)
        yield LineEntry(id="description")
        if self._plan.parameters:
            labels = terminal_text.line(", ".join(input_labels(self._plan)))
            yield Static(Content(f"Asks for: {labels}"), classes="label", markup=False)
        if self._literals:
            yield Static(
                "Texts in the plan. Enter turns one into an input of the macro.",
                classes="label",
                markup=False,
            )
            yield ChoiceList()
        yield Buttons(Button(Content("Save"), compact=True, id="save"))

    def on_mount(self) -> None:
        if self._literals:
            self._draw()
        self.show_problem(self._problem)

    def _draw(self) -> None:
        names = {text: name for name, text in self._parameters.items()}
        choices = []
        for text in self._literals:
            if text in names:
                choices.append(Choice(text, text, f"input {names[text]}", "◆"))
            else:
                choices.append(Choice(text, text, "", "◇"))
        self.query_one(ChoiceList).set_choices(choices)

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        self.run_flow("parameter", partial(self._toggle, event.row.key))

    async def _toggle(self, text: str) -> None:
        parameters = self._parameters
        name = next((name for name, literal in parameters.items() if literal == text), None)
        if name is not None:
            del parameters[name]
            self._draw()
            return
        form = ValuesForm(
            f"Name of the input for “{terminal_text.shortened(text, 100)}”",
            [Field("name", description="letters, digits and _, e.g. folderName")],
        )
        values = await self.app.push_screen_wait(form)
        if not values:
            return
        new_name = values["name"].strip()
        if not _IDENTIFIER.fullmatch(new_name):
            self.show_problem(
                f"“{new_name}” is not a valid name. Use letters, digits and _, a letter first."
            )
            return
        if new_name in parameters or new_name in self._plan.parameters:
            self.show_problem(f"The name “{new_name}” is already used. Choose another one.")
            return
        self.show_problem("")
        parameters[new_name] = text
        self._draw()

    def on_input_submitted(self) -> None:
        self.action_save()

    def on_button_pressed(self) -> None:
        self.action_save()

    def action_save(self) -> None:
        name = self.query_one("#name", LineEntry).value.strip()
        if not name:
            self.show_problem("The macro needs a name.")
            return
        self.dismiss(
            SaveRequest(
                name,
                self.query_one("#description", LineEntry).value.strip() or None,
                dict(self._parameters),
            )
        )
