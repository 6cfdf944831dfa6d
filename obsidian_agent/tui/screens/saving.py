"""Actions as a person meets them: run one by name, answer what is missing, save the plan of a run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.screens.candidates import Candidates, Picked
from obsidian_agent.tui.screens.save_action import SaveAction
from obsidian_agent.tui.screens.trust import Reading
from obsidian_agent.tui.screens.values_form import ValuesForm, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obsidian_agent.agent.events import Candidate, NeedsInput
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.tui.port import Macro
    from obsidian_agent.tui.screens.desk import Desk
    from obsidian_agent.tui.screens.turns import Turns


class Saving:
    """Runs in workers of the main screen."""

    def __init__(self, desk: Desk, turns: Turns) -> None:
        self._desk = desk
        self._turns = turns

    async def run(self, name: str) -> None:
        """Ask for the values of a saved action, then preview it. One that is not trusted is shown before anything else."""
        bridge = self._desk.bridge
        macros = await bridge.call(bridge.session.saved.list)
        macro = next((macro for macro in macros if macro.name == name), None)
        if macro is None:
            self._desk.say("bad", f"There is no saved action “{name}” any more.")
            return
        if macro.standing != "trusted" and not await self._accepted(macro):
            self._desk.say("note", f"“{terminal_text.line(name)}” is not trusted. Nothing was run.")
            return
        self._desk.freeze_focus()
        values = await self._filled(f"macro:{name}", {}) if macro.plan.parameters else {}
        if values is None:
            return
        self._desk.freeze_focus()
        self._desk.say("you", f"Run saved action: {name}")
        self._turns.forget_plan(macro=macro.name)
        self._turns.start(bridge.session.run_macro(name, values), "Computing the preview")

    async def run_recipe(self, name: str) -> None:
        """The form of an action of the menu, then its preview or answer."""
        self._desk.freeze_focus()
        values = await self._filled(name, {})
        if values is not None:
            recipe = next(each for each in await self._desk.bridge.call(self._desk.bridge.session.recipes) if each.name == name)
            self._start(recipe.title, name, values, None)

    async def fill_in(self, candidate: Candidate, said: str) -> None:
        """The form of an action that a message which is still in the box may mean; going on sends it."""
        values = await self._filled(candidate.recipe, candidate.values)
        if values is not None:
            self._desk.panes.chat.prompt.accept(said)
            self._start(said, candidate.recipe, values, said)

    def _start(self, said: str, recipe: str, values: Mapping[str, str], message: str | None) -> None:
        if self._turns.engine.phase != "idle":
            self._desk.panes.chat.hint("Still working on the last message. Esc cancels it.")
            return
        self._desk.freeze_focus()
        self._desk.say("you", said)
        self._turns.forget_plan(macro=recipe.removeprefix("macro:") if recipe.startswith("macro:") else None, message=message)
        self._turns.start(self._desk.bridge.session.run_recipe(recipe, values, message), "Computing the preview")

    async def _filled(self, name: str, values: Mapping[str, str], *, always: bool = True) -> Mapping[str, str] | None:
        """The values of an action as the person gives them; None when they left, or something must be there first.

        `values` stand in the form. Without `always` it is shown only where something is missing.
        """
        bridge = self._desk.bridge
        form = await bridge.call(bridge.session.form, name)
        if form.unmet is not None:
            self._desk.say("note", form.unmet)
            return None
        fields = form.fields(values)
        if not fields or (not always and all(field.optional or field.value for field in fields)):
            return dict(values)
        answer: Mapping[str, str] | None = await self._desk.app.push_screen_wait(ValuesForm(form.title, fields, form))
        return answer

    async def _accepted(self, macro: Macro) -> bool:
        """Show an action whole, and trust it as it was shown if the person wants that."""
        why = (
            "It has changed since you trusted it."
            if macro.standing == "changed"
            else "It came with the vault; you have not trusted it here."
        )
        text = terminal_text.block(json.dumps(macro.to_json(), ensure_ascii=False, indent=2))
        reading = Reading(
            macro.name, [(line, "$foreground") for line in text.split("\n")], trusted=False, hint=f"{why} Nothing runs by that."
        )
        if not await self._desk.app.push_screen_wait(reading):
            return False
        await self._desk.bridge.call(self._desk.bridge.session.saved.accept, macro.name, macro.sha256)
        return True

    async def save(self, run_id: str, plan: ActionPlan) -> None:
        """Save the plan of a run; what is refused is asked again."""
        bridge = self._desk.bridge
        problem = ""
        while True:
            wanted = await self._desk.app.push_screen_wait(SaveAction(plan, problem))
            if wanted is None:
                return
            try:
                await bridge.call(bridge.session.saved.save, run_id, wanted.name, wanted.description, wanted.parameters)
            except ObsidianAgentError as error:
                problem = error.problem().message
                continue
            self._desk.say("good", f"Saved as “{terminal_text.line(wanted.name)}”. F2 shows all actions.")
            return

    async def ask(self, event: NeedsInput) -> None:
        """Let the person choose among candidates and give what is missing, then go on."""
        chosen, change = await self._chosen(event)
        if chosen is None and event.candidates:
            self._desk.say("note", "Nothing was chosen. Nothing was changed.")
            return
        missing = chosen.missing if chosen is not None else event.missing
        if chosen is None and not missing:
            self._desk.say("note", event.message)
            return
        values: Mapping[str, str] | None = {}
        if chosen is not None and chosen.recipe:
            values = await self._filled(chosen.recipe, chosen.values, always=change)
            chosen = replace(chosen, values={})
        elif missing:
            declared = chosen.plan.parameters if chosen is not None and chosen.plan is not None else {}
            values = await self._desk.app.push_screen_wait(ValuesForm(chosen.title if chosen else event.message, plain(missing, declared)))
        if values is None:
            self._desk.say("note", "Nothing was changed.")
            return
        self._turns.forget_plan(macro=self._turns.macro)
        self._turns.start(self._desk.bridge.session.fill(chosen, values), "Computing the preview")

    async def _chosen(self, event: NeedsInput) -> tuple[Candidate | None, bool]:
        """The candidate that is meant, and whether its values shall be looked at. A single one that only lacks values needs no choice."""
        if not event.candidates:
            return None, False
        first = event.candidates[0]
        if len(event.candidates) == 1 and first.missing and not first.doubt and first.recipe:
            return first, True
        picked: Picked | None = await self._desk.app.push_screen_wait(Candidates(event.message, event.candidates))
        return (picked.candidate, picked.change) if picked is not None else (None, False)
