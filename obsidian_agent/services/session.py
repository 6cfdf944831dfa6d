"""One vault and who plans for it: what front ends talk to.

A turn is a short script: freeze the context, plan, validate, dry-run; what it yields is data, and approval is the caller's.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from obsidian_agent.agent.events import (
    AgentEvent,
    Candidate,
    Emit,
    NeedsInput,
    PlanReady,
    TurnFailed,
    TurnStarted,
    Verdict,
)
from obsidian_agent.agent.privacy.consent import ApproveShare, refuse_all
from obsidian_agent.agent.streaming import stream
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import ConfigError, ObsidianAgentError, PlanError, Problem
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.services.macro_store import MacroStore
from obsidian_agent.services.open_vault import OpenVault
from obsidian_agent.services.plans import Plans

if TYPE_CHECKING:
    from obsidian_agent.agent.conversation import Conversation
    from obsidian_agent.agent.planner import Planner, PlanRequest
    from obsidian_agent.agent.turn.loop import Agent
    from obsidian_agent.offline.recipe import Recipe
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.providers.other_agent import AgentState
    from obsidian_agent.services.form import Form
    from obsidian_agent.services.model_turns import Models, ModelTurns
    from obsidian_agent.services.offline_planner import OfflinePlanner
    from obsidian_agent.services.runs import Runs


@dataclass(frozen=True, slots=True)
class _Open:
    """What a turn left open: the candidates and the plan whose values are missing."""

    instruction: str | None = None
    plan: ActionPlan | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    agent: str = ""


class Session:
    """Everything a front end does with a vault. Not thread-safe but for the calls that say they may block.

    `make_models` opens the models as the settings have them (None: none); it is asked again after a change of the settings.
    """

    def __init__(
        self,
        vault: OpenVault,
        plans: Plans,
        saved: MacroStore,
        settings: LiveSettings,
        make_models: Callable[[], Models | None] = lambda: None,
    ) -> None:
        self.vault = vault
        self.plans = plans
        self.saved = saved
        self.settings = settings
        """The settings in use; call `settings_changed` after a change."""
        self.on_agent: Callable[[AgentState], object] = lambda state: None
        """Hears how an agent stands that looks around by itself, in the event loop of its turn."""
        self._make_models = make_models
        self._made: tuple[Models | None] | None = None
        self._offline: OfflinePlanner | None = None
        self._conversation: Conversation | None = None
        self._open = _Open()

    def settings_changed(self) -> None:
        """Take up changed settings: what follows is planned and asked by them."""
        self._made = None

    @property
    def runs(self) -> Runs:
        """What was done, and how to take it back."""
        return self.plans.runs

    @property
    def models(self) -> Models | None:
        """The models that are asked, and the rules for that; made when first asked for, None without one. May block."""
        if self._made is None:
            self._made = (self._make_models(),)
        return self._made[0]

    @property
    def model_turns(self) -> ModelTurns | None:
        """Who makes turns with the models; None without one. May block."""
        models = self.models
        if models is None:
            return None
        # Imported here: a third of the time that a headless run takes to start, and most of them have their plan already.
        from obsidian_agent.services.model_turns import ModelTurns

        return ModelTurns(self.vault, self.plans, self.offline, models)

    @property
    def offline(self) -> OfflinePlanner:
        """Recipes and macros, whoever plans else; made when first asked for."""
        if self._offline is None:
            from obsidian_agent.services.offline_planner import OfflinePlanner

            self._offline = OfflinePlanner(
                self.vault.view, self.plans.tools, self.saved.trusted, lambda: self.plans.policy
            )
        return self._offline

    @property
    def planner(self) -> Planner:
        """The planner of turns in which no question about sharing can be asked."""
        return self.planner_for(refuse_all)

    def planner_for(self, approve: ApproveShare) -> Planner:
        """Return the planner that asks `approve` before something of the vault is sent. Blocks."""
        turns = self.model_turns
        return self.offline if turns is None else turns.planner(approve)

    @property
    def planner_name(self) -> str:
        """Who plans: a model, or the offline planner."""
        return self.planner.name

    @property
    def conversation(self) -> Conversation:
        """The conversation with the model that `turn` goes on with."""
        if self._conversation is None:
            from obsidian_agent.agent.conversation import Conversation

            self._conversation = Conversation()
        return self._conversation

    def warm_up(self) -> None:
        """Prepare for the first question to a model, if there is one, so that it need not wait for imports. Does not block.

        The thread is a daemon's: who quits in the middle of it does not wait for it.
        """
        threading.Thread(target=self._warm_up, name="warming-up", daemon=True).start()

    def _warm_up(self) -> None:
        with contextlib.suppress(ObsidianAgentError):  # the first question will say what is wrong
            if self.models is not None:
                self.models.providers.warm_up(self.models.spec)

    def check_call(self, tool: str, args: Mapping[str, Any]) -> tuple[Problem, ...]:
        """What is wrong with other arguments for a read that a model asked for."""
        from obsidian_agent.agent.turn.calls import read_call, with_arguments

        try:
            with_arguments(read_call(tool, self.plans.tools), args)
        except ObsidianAgentError as error:
            return (error.problem(),)
        return ()

    # --- actions that need no model ------------------------------------------------------------------------------------------------

    def recipes(self) -> tuple[Recipe, ...]:
        """Everything that can be done without a model, the macros that this person trusts among it. May block."""
        return self.offline.recipes()

    def form(self, name: str) -> Form:
        """The form of a recipe or trusted macro (`macro:NAME`). Raises `PlanError`. May block."""
        from obsidian_agent.services.form import Form

        recipe = next((each for each in self.recipes() if each.name == name), None)
        if recipe is None:
            raise PlanError(f"There is no action “{name}” any more.", code="RECIPE_NOT_FOUND")
        turn = self.offline.turn(self.request(""))
        return Form(recipe, turn.around, turn.unmet(recipe))

    def suggest(self, message: str, model: str | None = None) -> tuple[Candidate, ...]:
        """The likeliest actions for a message that is still being written; none where a model will plan that picks from no menu.

        `model`: the one that the conversation asks, None for that of the settings. May block.
        """
        if self.models is not None:
            from obsidian_agent.services.menu_planner import picks

            try:
                if not picks(
                    self.models.planning, self.models.providers.get(model or self.models.spec)
                ):
                    return ()
            except ConfigError:
                return ()  # what is wrong is said when the message is sent
        return self.offline.turn(self.request(message)).candidates

    def request(
        self, message: str, params: Mapping[str, str] | None = None, pick: int | None = None
    ) -> PlanRequest:
        """A message of the person to a planner, as things are now. May block."""
        from obsidian_agent.agent.planner import PlanRequest

        return PlanRequest(message, self.plans.context(), params=params or {}, pick=pick)

    # --- turns -----------------------------------------------------------------------------------------------------------------------

    def turn(
        self, message: str, approve: ApproveShare | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """One message of the person; ends with Answer, NeedsInput, PreviewReady, RoundsUsedUp or TurnFailed.

        With a model and somebody who can be asked about sharing (`approve`), the model looks around first, answers or proposes a plan,
        and the session's conversation goes on. Without, whoever plans makes a plan from the message alone.
        """

        async def work(emit: Emit) -> None:
            if approve is not None and await asyncio.to_thread(lambda: self.models) is not None:
                asked = approve
                await self._answer(
                    message, lambda turns: turns.agent(asked, self.conversation), emit
                )
            else:
                await emit(TurnStarted(message))
                await self._follow(await self.plan(message, {}, None, emit), message, emit)

        return stream(work)

    async def plan(
        self,
        message: str,
        params: Mapping[str, str],
        pick: int | None,
        emit: Emit,
        approve: ApproveShare = refuse_all,
    ) -> Verdict:
        """Plan a message without a preview. `params` and `pick` as in `answer`.

        A model sees the selection only if a rule or `approve` allows it.
        """

        async def verdict() -> Verdict:
            planner, request = await asyncio.to_thread(
                lambda: (self.planner_for(approve), self.request(message, params, pick))
            )
            return await planner.plan(request, emit)

        return await self._with_hooks(message, verdict)

    async def _with_hooks(self, message: str, turn: Callable[[], Awaitable[Verdict]]) -> Verdict:
        hooks = self.plans.hooks
        await asyncio.to_thread(hooks.fire, "before_prompt", message=message)
        verdict = await turn()
        outcome = {PlanReady: "plan", NeedsInput: "question", TurnFailed: "failed"}.get(
            type(verdict), "answer"
        )
        if isinstance(verdict, TurnFailed):
            await asyncio.to_thread(hooks.failed, verdict.problem)
        await asyncio.to_thread(hooks.fire, "after_prompt", message=message, outcome=outcome)
        return verdict

    def answer(
        self,
        question: str,
        approve: ApproveShare,
        *,
        conversation: Conversation | None = None,
        propose: bool = True,
        model: str | None = None,
        assistant: str | None = None,
        pick: int | None = None,
        params: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[AgentEvent, None]:
        """One message of the person to the session's model (or to `model`), in a conversation (None: a new one).

        `assistant` is the agent of the vault whose instructions hold, by name. `pick`: the person chose this one, from 1, of the candidates
        that the same message was asked back with, and gave `params` for it. A model that picks from the menu does so first, and looks around
        where no action fits.

        Ends with Answer, PreviewReady (of a plan that the model proposes; without `propose` none is offered to it), NeedsInput (actions to
        pick from, values of the plan), RoundsUsedUp or TurnFailed. Nothing of the vault is sent that the rules or `approve` do not allow.
        """

        def agent(turns: ModelTurns) -> Agent:
            return turns.agent(
                approve, conversation, propose=propose, model=model, assistant=assistant
            )

        return stream(lambda emit: self._answer(question, agent, emit, pick=pick, params=params))

    async def _answer(
        self,
        question: str,
        make_agent: Callable[[ModelTurns], Agent],
        emit: Emit,
        *,
        pick: int | None = None,
        params: Mapping[str, str] | None = None,
    ) -> None:
        from obsidian_agent.services.model_turns import traced

        await emit(TurnStarted(question))

        async def verdict() -> Verdict:
            try:
                turns = await asyncio.to_thread(lambda: self.model_turns)
                if turns is None:
                    raise ConfigError(
                        "There is no model to answer this.",
                        code="NO_MODEL",
                        hint="Choose one first.",
                    )
                agent = await asyncio.to_thread(make_agent, turns)
            except ConfigError as error:
                return TurnFailed(error.problem())
            request = await asyncio.to_thread(self.request, question, params, pick)
            planner = turns.menu(agent)
            return await traced(lambda emit: planner.plan(request, emit), question, agent, emit)

        await self._follow(await self._with_hooks(question, verdict), question, emit)

    async def _follow(self, verdict: Verdict, message: str, emit: Emit) -> None:
        """Tell what a message came to, and preview a plan."""
        await emit(verdict)
        match verdict:
            case NeedsInput():
                self._open = _Open(message)
            case PlanReady(plan, preview=tried, agent=agent):
                await self._preview(
                    plan.to_json(), {}, frozenset(), message, emit, agent=agent, tried=tried
                )
            case _:
                pass

    def fill(
        self, candidate: Candidate | None, values: Mapping[str, Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Go on after NeedsInput with values for what was missing, for the chosen candidate if there were any."""
        opened = self._open
        if candidate is not None and candidate.recipe:
            return self.run_recipe(
                candidate.recipe, {**candidate.values, **values}, opened.instruction
            )
        plan = candidate.plan if candidate is not None else opened.plan
        known = candidate.values if candidate is not None else opened.values
        agent = candidate.agent if candidate is not None else opened.agent

        async def work(emit: Emit) -> None:
            if plan is not None:
                await self._preview(
                    plan.to_json(),
                    {**known, **values},
                    frozenset(),
                    opened.instruction,
                    emit,
                    agent=agent,
                )

        return stream(work)

    def preview_plan(
        self,
        document: Mapping[str, Any],
        disabled: frozenset[str] = frozenset(),
        values: Mapping[str, Any] | None = None,
        instruction: str | None = None,
        done: Mapping[str, Any] | None = None,
        agent: str = "",
    ) -> AsyncGenerator[AgentEvent, None]:
        """Preview a plan: an edited one, one with steps left out, a macro's, or what is left of one. `instruction` is the message that it was
        made from, `done` the outputs of the steps that ran, `agent` who made it."""
        return stream(
            lambda emit: self._preview(
                document, values or {}, disabled, instruction, emit, done, agent
            )
        )

    def run_recipe(
        self, name: str, values: Mapping[str, Any], instruction: str | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Preview a recipe with values, mostly texts, or answer its question; NeedsInput when values are missing or are none."""

        async def work(emit: Emit) -> None:
            recipe = next(
                (
                    each
                    for each in await asyncio.to_thread(self.offline.recipes)
                    if each.name == name
                ),
                None,
            )
            if recipe is None:
                await emit(TurnFailed(Problem("RECIPE_NOT_FOUND", f"There is no recipe “{name}”.")))
                return
            turn = await asyncio.to_thread(
                lambda: self.offline.turn(self.request(instruction or ""))
            )
            verdict = await asyncio.to_thread(turn.propose, recipe, values)
            if isinstance(verdict, PlanReady):
                await self._preview(verdict.plan.to_json(), {}, frozenset(), instruction, emit)
            else:
                await emit(verdict)

        return stream(work)

    def run_macro(self, name: str, values: Mapping[str, Any]) -> AsyncGenerator[AgentEvent, None]:
        """Preview a saved action; NeedsInput when values are missing. Raises MacroError, also for one that is not trusted."""

        async def work(emit: Emit) -> None:
            macro = await asyncio.to_thread(self.saved.to_run, name)
            await self._preview(macro.for_values(values), values, frozenset(), None, emit)

        return stream(work)

    async def _preview(
        self,
        document: Mapping[str, Any],
        values: Mapping[str, Any],
        disabled: frozenset[str],
        instruction: str | None,
        emit: Emit,
        done: Mapping[str, Any] | None = None,
        agent: str = "",
        tried: Preview | None = None,
    ) -> None:
        if await self.plans.preview(
            document, values, disabled, instruction, emit, done, agent, tried
        ):
            self._open = _Open(instruction, ActionPlan.model_validate(document), values, agent)
