"""Saved actions as a person meets them: run one by name, save the plan of a run, answer what is missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui import sanitize
from obsidian_agent.tui.screens.candidates import Candidates
from obsidian_agent.tui.screens.save_action import SaveAction
from obsidian_agent.tui.screens.trust import Reading
from obsidian_agent.tui.screens.values_form import Field, ValuesForm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from obsidian_agent.agent.events import Candidate, NeedsInput
    from obsidian_agent.plan.model import ActionPlan, Parameter
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
            self._desk.say("note", f"“{sanitize.line(name)}” is not trusted. Nothing was run.")
            return
        wanted = [_field(key, parameter) for key, parameter in macro.plan.parameters.items()]
        values = {}
        if wanted:
            answer = await self._desk.app.push_screen_wait(ValuesForm(name, wanted))
            if answer is None:
                return
            values = dict(answer)
        self._desk.freeze_focus()
        self._desk.say("you", f"Run saved action: {name}")
        self._turns.forget_plan(macro=macro.name)
        self._turns.start(bridge.session.run_macro(name, values), "Computing the preview")

    async def _accepted(self, macro: Macro) -> bool:
        """Show an action whole, and trust it as it was shown if the person wants that."""
        why = (
            "It has changed since you trusted it."
            if macro.standing == "changed"
            else "It came with the vault; you have not trusted it here."
        )
        text = sanitize.block(json.dumps(macro.to_json(), ensure_ascii=False, indent=2))
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
            self._desk.say("good", f"Saved as “{sanitize.line(wanted.name)}”. F2 shows all saved actions.")
            return

    async def ask(self, event: NeedsInput) -> None:
        """Let the person choose among candidates and give what is missing, then go on."""
        chosen: Candidate | None = None
        if event.candidates:
            chosen = await self._desk.app.push_screen_wait(Candidates(event.message, event.candidates))
            if chosen is None:
                self._desk.say("note", "Nothing was chosen. Nothing was changed.")
                return
        missing = chosen.missing if chosen is not None else event.missing
        values = {}
        if missing:
            answer = await self._desk.app.push_screen_wait(ValuesForm(chosen.title if chosen else event.message, _fields(missing, chosen)))
            if answer is None:
                self._desk.say("note", "Nothing was changed.")
                return
            values = dict(answer)
        if chosen is None and not missing:
            self._desk.say("note", event.message)
            return
        self._turns.forget_plan(macro=self._turns.macro)
        self._turns.start(self._desk.bridge.session.fill(chosen, values), "Computing the preview")


def _fields(missing: Sequence[str], chosen: Candidate | None) -> list[Field]:
    declared = chosen.plan.parameters if chosen is not None and chosen.plan is not None else {}
    return [Field(name, declared[name].type, declared[name].description) if name in declared else Field(name) for name in missing]


def _field(name: str, parameter: Parameter) -> Field:
    """A field with the parameter's default in it; who leaves it as it is gets the default."""
    default = parameter.default
    match default:
        case None:
            return Field(name, parameter.type, parameter.description)
        case bool():
            text = "true" if default else "false"
        case list():
            text = ", ".join(str(item) for item in default)
        case _:
            text = str(default)
    return Field(name, parameter.type, parameter.description, text, optional=True)
