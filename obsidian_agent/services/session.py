"""A session on one vault: the planners and everything else that front ends use.

A turn freezes the context, plans, validates and dry-runs. It yields events, which are data;
approval is up to the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from obsidian_agent.agent.events import (
    AgentEvent,
    Candidate,
    Emit,
    NeedsInput,
    PlanningResult,
    PlanReady,
    TurnFailed,
    TurnStarted,
)
from obsidian_agent.agent.privacy.consent import ApproveShare, refuse_all
from obsidian_agent.agent.streaming import stream
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import ConfigError, ObsidianAgentError, PlanError, Problem
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.services.macro_store import MacroStore
from obsidian_agent.services.open_vault import OpenVault
from obsidian_agent.services.plans import DEFAULT_OPTIONS, Plans, PreviewOptions

if TYPE_CHECKING:
    from obsidian_agent.agent.conversation import Conversation
    from obsidian_agent.agent.planner import Planner, PlanRequest
    from obsidian_agent.agent.turn.loop import Agent
    from obsidian_agent.offline.recipe import Recipe
    from obsidian_agent.providers.other_agent import AgentState
    from obsidian_agent.services.form import Form
    from obsidian_agent.services.model_turns import Models, ModelTurns
    from obsidian_agent.services.offline_planner import OfflinePlanner
    from obsidian_agent.services.runs import Runs


class _OpenQuestion(Struct, frozen=True):
    """The state that a question of a turn leaves for its answer, such as a plan without values."""

    instruction: str | None = None
    plan: ActionPlan | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    agent: str = ""


class Session:
    """Everything that a front end does with a vault.

    Only methods that may block can be called from other threads. `make_models` opens the models of
    the settings, or returns `None` without one; it is called again after the settings changed. Its
    argument receives the states of external agents.
    """

    def __init__(
        self,
        vault: OpenVault,
        plans: Plans,
        saved: MacroStore,
        settings: LiveSettings,
        make_models: Callable[[Callable[[AgentState], object]], Models | None],
    ) -> None:
        self.vault = vault
        self.plans = plans
        self.saved = saved
        self.settings = settings
        """The settings in use; call `settings_changed` after a change."""
        self.on_agent: Callable[[AgentState], object] = lambda state: None
        """Receives the state of an external agent, in the event loop of its turn."""
        self.offers_actions = False
        """True if likely actions are offered while a model chooses; the app shows them."""
        self._make_models = make_models
        self._models: tuple[Models | None] | None = None
        self._offline: OfflinePlanner | None = None
        self._conversation: Conversation | None = None
        self._open = _OpenQuestion()

    def settings_changed(self) -> None:
        """Apply changed settings to the following turns."""
        self._models = None

    @property
    def runs(self) -> Runs:
        """The runs of the vault, with undo and recovery."""
        return self.plans.runs

    @property
    def has_model(self) -> bool:
        """True if the settings name a model."""
        return self.settings.model is not None

    def open_models(self) -> Models | None:
        """Return the models and the rules for them, opened once; `None` without one. May block."""
        if self._models is None:
            self._models = (self._make_models(self._report_agent),)
        return self._models[0]

    def _report_agent(self, state: AgentState) -> None:
        self.on_agent(state)

    def open_model_turns(self) -> ModelTurns | None:
        """Return the factory of turns with a model; `None` without a model. May block."""
        models = self.open_models()
        if models is None:
            return None
        # This import takes a third of a headless run's start-up time, and most runs need no model.
        from obsidian_agent.services.model_turns import ModelTurns

        return ModelTurns(self.vault, self.plans, self.offline, models)

    @property
    def offline(self) -> OfflinePlanner:
        """The planner over recipes and macros, created on first use."""
        if self._offline is None:
            from obsidian_agent.services.offline_planner import OfflinePlanner

            self._offline = OfflinePlanner(
                self.vault.view, self.plans.tools, self.saved.trusted, self.plans.policy
            )
        return self._offline

    @property
    def planner(self) -> Planner:
        """The planner of turns that cannot ask for consent to share notes."""
        return self.planner_for(refuse_all)

    def planner_for(self, approve: ApproveShare) -> Planner:
        """Return the planner that asks `approve` before it sends anything of the vault. Blocks."""
        turns = self.open_model_turns()
        if turns is not None:
            return turns.planner(approve)
        from obsidian_agent.services.offline_answer import AnsweringPlanner

        return AnsweringPlanner(self.offline)

    @property
    def conversation(self) -> Conversation:
        """The conversation with the model that `turn` continues."""
        if self._conversation is None:
            from obsidian_agent.agent.conversation import Conversation

            self._conversation = Conversation()
        return self._conversation

    def warm_up(self) -> None:
        """Import in the background what the first request to a model needs. Does not block.

        The thread is a daemon, so that the program can exit while it runs.
        """
        threading.Thread(target=self._warm_up, name="warming-up", daemon=True).start()

    def _warm_up(self) -> None:
        with contextlib.suppress(ObsidianAgentError):  # the first request reports the problem
            if (models := self.open_models()) is not None:
                models.providers.warm_up(models.spec)

    def check_call(self, tool: str, args: Mapping[str, Any]) -> tuple[Problem, ...]:
        """Return the problems of edited arguments for a read that a model requested."""
        from obsidian_agent.agent.turn.calls import read_call, with_arguments

        try:
            with_arguments(read_call(tool, self.plans.tools), args)
        except ObsidianAgentError as error:
            return (error.problem(),)
        return ()

    # --- actions without a model ------------------------------------------------------------

    def recipes(self) -> tuple[Recipe, ...]:
        """Return the recipes and the trusted macros. May block."""
        return self.offline.recipes()

    def form(self, name: str) -> Form:
        """Return the form of a recipe or trusted macro (`macro:NAME`).

        Raise `PlanError` if there is no such action. May block.
        """
        from obsidian_agent.services.form import Form

        recipe = next((recipe for recipe in self.recipes() if recipe.name == name), None)
        if recipe is None:
            raise PlanError(f"The action “{name}” no longer exists.", code="RECIPE_NOT_FOUND")
        turn = self.offline.turn(self.request(""))
        return Form(recipe, turn.around, turn.unmet(recipe))

    def values_for(self, name: str, message: str) -> Mapping[str, str]:
        """Return the values that an action, by name, can take from a message. May block."""
        return self.offline.turn(self.request(message)).texts_for(name)

    def changed_values(
        self, name: str, values: Mapping[str, str], comment: str
    ) -> Mapping[str, str]:
        """Return the values of an action with those that a comment on it changes. May block.

        Beside a name of the vault, other words of the comment are no text to write.
        """
        inputs = next(recipe.inputs for recipe in self.recipes() if recipe.name == name)
        changed = self.values_for(name, comment)
        names = {key: text for key, text in changed.items() if inputs[key].kind != "text"}
        return {**values, **(names or changed)}

    def suggest(self, message: str, model: str | None = None) -> tuple[Candidate, ...]:
        """Return the most likely actions for a message that is still being typed.

        There are none if the model (`model`, or by default that of the settings) will plan the
        message without the menu. May block.
        """
        models = self.open_models()
        if models is not None:
            from obsidian_agent.services.menu_planner import picks

            try:
                provider = models.providers.get(model or models.spec)
            except ConfigError:
                return ()  # reported when the message is sent
            if not picks(models.planning, provider):
                return ()
        from obsidian_agent.services.offline_answer import suggestions

        return suggestions(self.offline, self.request(message))

    def request(
        self, message: str, params: Mapping[str, str] | None = None, pick: int | None = None
    ) -> PlanRequest:
        """Return the request of a message to a planner, with the current context. May block."""
        from obsidian_agent.agent.planner import PlanRequest

        return PlanRequest(message, self.plans.context(), params=params or {}, pick=pick)

    # --- turns ------------------------------------------------------------------------------

    def turn(
        self, message: str, approve: ApproveShare | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run a message of the user as a turn.

        The last event is Answer, NeedsInput, PreviewReady, RoundsUsedUp or TurnFailed. With a model
        and `approve`, which asks the user about sharing, the model reads first, then answers or
        proposes a plan, and the session's conversation continues. Otherwise the planner makes a
        plan from the message alone.
        """

        async def work(emit: Emit) -> None:
            if approve is not None and self.has_model:
                await self._answer(
                    message, lambda turns: turns.agent(approve, self.conversation), emit
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
    ) -> PlanningResult:
        """Plan a message without a preview. `params` and `pick` are as in `answer`.

        A model receives the selection only if a rule or `approve` allows it.
        """

        async def verdict() -> PlanningResult:
            planner, request = await asyncio.to_thread(
                lambda: (self.planner_for(approve), self.request(message, params, pick))
            )
            return await planner.plan(request, emit)

        return await self._with_hooks(message, verdict)

    async def _with_hooks(
        self, message: str, turn: Callable[[], Awaitable[PlanningResult]]
    ) -> PlanningResult:
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

    def answer(  # noqa: PLR0913 - options are keywords
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
        """Send a message to the session's model (or to `model`) in a conversation, or a new one.

        `assistant` names the vault's agent whose instructions apply. `pick` is the number, from 1,
        of the candidate that the user chose after the same message led to a question; `params` are
        the values for it. A model that picks from the menu does so first, and reads notes if no
        action fits. Without `propose` the model cannot propose plans.

        The last event is Answer, PreviewReady (of a plan that the model proposed), NeedsInput
        (actions to choose from, or missing values), RoundsUsedUp or TurnFailed. Only what the rules
        or `approve` allow is sent.
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

        async def verdict() -> PlanningResult:
            try:
                turns = await asyncio.to_thread(self.open_model_turns)
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
            planner = turns.menu(agent, offers=self.offers_actions)
            return await traced(lambda emit: planner.plan(request, emit), question, agent, emit)

        await self._follow(await self._with_hooks(question, verdict), question, emit)

    async def _follow(self, verdict: PlanningResult, message: str, emit: Emit) -> None:
        """Emit the verdict on a message, and preview its plan."""
        await emit(verdict)
        match verdict:
            case NeedsInput():
                self._open = _OpenQuestion(message)
            case PlanReady(plan, preview=tried, agent=agent):
                options = PreviewOptions(instruction=message, agent=agent, tried=tried)
                await self._preview(plan.to_json(), {}, options, emit)
            case _:
                pass

    def fill(
        self, candidate: Candidate | None, values: Mapping[str, Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Continue after NeedsInput with the chosen candidate, if any, and the missing values."""
        opened = self._open
        # What the user chose or typed is named by the user, too.
        instruction = opened.instruction
        if instruction is not None:
            instruction = "\n".join([instruction, *map(str, values.values())])
        if candidate is not None and candidate.recipe:
            return self.run_recipe(candidate.recipe, {**candidate.values, **values}, instruction)
        plan = candidate.plan if candidate is not None else opened.plan
        known = candidate.values if candidate is not None else opened.values
        agent = candidate.agent if candidate is not None else opened.agent

        async def work(emit: Emit) -> None:
            if plan is not None:
                options = PreviewOptions(instruction=instruction, agent=agent)
                await self._preview(plan.to_json(), {**known, **values}, options, emit)

        return stream(work)

    def preview_plan(
        self,
        document: Mapping[str, Any],
        values: Mapping[str, Any] | None = None,
        options: PreviewOptions = DEFAULT_OPTIONS,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Preview a plan, such as an edited one, a macro's, or the rest of one that ran in part."""
        return stream(lambda emit: self._preview(document, values or {}, options, emit))

    def run_recipe(
        self, name: str, values: Mapping[str, Any], instruction: str | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Preview a recipe with values, mostly texts, or answer its question.

        The event is NeedsInput if values are missing.
        """

        async def work(emit: Emit) -> None:
            recipes = await asyncio.to_thread(self.offline.recipes)
            recipe = next((recipe for recipe in recipes if recipe.name == name), None)
            if recipe is None:
                await emit(TurnFailed(Problem("RECIPE_NOT_FOUND", f"There is no recipe “{name}”.")))
                return
            turn = await asyncio.to_thread(
                lambda: self.offline.turn(self.request(instruction or ""))
            )
            verdict = await asyncio.to_thread(turn.propose, recipe, values)
            if isinstance(verdict, PlanReady):
                options = PreviewOptions(instruction=instruction)
                await self._preview(verdict.plan.to_json(), {}, options, emit)
            else:
                await emit(verdict)

        return stream(work)

    def run_macro(self, name: str, values: Mapping[str, Any]) -> AsyncGenerator[AgentEvent, None]:
        """Preview a macro. The event is NeedsInput if values are missing.

        Raise `MacroError`, also for a macro that is not trusted.
        """

        async def work(emit: Emit) -> None:
            macro = await asyncio.to_thread(self.saved.to_run, name)
            await self._preview(macro.for_values(values), values, DEFAULT_OPTIONS, emit)

        return stream(work)

    async def _preview(
        self,
        document: Mapping[str, Any],
        values: Mapping[str, Any],
        options: PreviewOptions,
        emit: Emit,
    ) -> None:
        if await self.plans.preview(document, values, options, emit):
            plan = ActionPlan.model_validate(document)
            self._open = _OpenQuestion(options.instruction, plan, values, options.agent)
