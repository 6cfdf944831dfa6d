"""The planner that lets a model pick actions from the menu.

A certain sentence needs no model, and one that no action fits is passed on to another planner. The
model receives only the sentence and the kinds of the vault's names in it: no note, no selection and
no other path. Its choice is read, checked and previewed like a filled form. If it fails, the most
likely actions are offered, as without a model.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from obsidian_agent.agent.conversation import new_id
from obsidian_agent.agent.events import (
    ActionsOffered,
    AgentEvent,
    Answer,
    Candidate,
    Emit,
    NeedsInput,
    PlanningResult,
    PlanReady,
    TextDelta,
    TurnFailed,
)
from obsidian_agent.agent.planner import Planner, PlanRequest, is_revision
from obsidian_agent.agent.privacy.consent import AllowedBy, Level, SharedPart
from obsidian_agent.agent.privacy.ledger import Ledger, Sending
from obsidian_agent.agent.privacy.untrusted_text import neutral
from obsidian_agent.agent.replies import Reply, Sampling, receive
from obsidian_agent.agent.usage import Meter
from obsidian_agent.errors import ConfigError, ProviderError
from obsidian_agent.offline.check import doubts, mentioned_terms, recipe_of_plan
from obsidian_agent.offline.chooser import Chooser, InvalidChoice, MenuChoice, menu_request
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.note_set import InvalidValue
from obsidian_agent.offline.recipe import MAX_SUGGESTIONS, Recipe, packaged
from obsidian_agent.offline.recipe_plan import join_plans
from obsidian_agent.offline.search import packaged_menu
from obsidian_agent.offline.sentence import NameMatch, names_in
from obsidian_agent.offline.values import forbidden_path
from obsidian_agent.plan.llm_output import ParsedPlan, parse_plan
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.policy import SharingRules
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Provider
from obsidian_agent.providers.other_agent import is_agent
from obsidian_agent.providers.prices import facts_of
from obsidian_agent.services.joined import JoinedPart, Reader, read_in_turn
from obsidian_agent.services.offline_planner import WHICH, OfflinePlanner, OfflineTurn
from obsidian_agent.vault.views.filtered import FilteredView
from obsidian_agent.vault.views.view import VaultView

Planning = Literal["auto", "menu", "plan"]

WHOLE_PLAN_SECONDS: Final = 180.0
"""Seconds in which a model that picks from the menu may write a whole plan instead."""

MAX_GUESSED: Final = 3
"""Words of a value without quotes in a reading that stays before the choice of a model."""

ROOM: Final = 400
"""The most tokens of a reply: three actions with their values."""
_AS_CONTEXT: Final[AllowedBy] = "context"
"""The reason why a name may be sent: the user's message contains it."""
_LOCAL: Final = ("ollama/", "lm_studio/", "custom/")


def picks(planning: Planning, provider: Provider) -> bool:
    """Return whether a model picks from the menu before it plans.

    With "auto" only models on this machine do. External agents never do.
    """
    if is_agent(provider):
        return False
    return planning == "menu" or (
        planning == "auto" and provider.local and provider.name.startswith(_LOCAL)
    )


class MenuPlanner(Struct, frozen=True, kw_only=True):
    """A `Planner` over the menu.

    `make` opens the model, and returns `None` if it does not pick from the menu. `otherwise` plans
    what no action fits. With `questions` nothing may change, so only actions that answer are used.
    """

    name: str
    make: Callable[[], Provider | None]
    offline: OfflinePlanner
    otherwise: Planner
    rules: SharingRules
    ledger: Ledger
    sampling: Sampling = Sampling()
    questions: bool = False
    offers: bool = False
    """Offer the likely actions while the model chooses, and then its choice among them."""
    conversation: str = field(default_factory=new_id)

    async def plan(self, request: PlanRequest, emit: Emit) -> PlanningResult:
        """Plan a request. See `Planner.plan`.

        `request.pick` selects a candidate of the question that the same sentence leads to.
        """
        try:
            provider = await asyncio.to_thread(self.make)
        except ConfigError as error:
            return TurnFailed(error.problem())
        if provider is not None and is_revision(request.message):
            # Its difference from the plan before is shown; no action is chosen by its words.
            return await self._whole_plan(request, None, emit)
        plain = replace(request, pick=None)
        verdict: PlanningResult | None = None
        offered: tuple[Candidate, ...] = ()
        # A model that writes whole plans offers no candidates; the menu does.
        if provider is not None or request.pick is not None:
            verdict = await asyncio.to_thread(self.offline.decide, plain, questions=self.questions)
        known = verdict
        if provider is not None and isinstance(verdict, NeedsInput):
            if _is_clear(verdict.candidates[:1]):
                verdict = await asyncio.to_thread(self._without_model, plain, verdict)
            else:
                if self.offers and verdict.candidates:
                    await emit(ActionsOffered(verdict.candidates, provider.name))
                    offered = verdict.candidates
                verdict = await _Turn(self, provider, plain, verdict).run(emit)
                if self.questions and isinstance(verdict, NeedsInput):
                    verdict = await asyncio.to_thread(self._answered, request, verdict)
        if verdict is None:
            verdict = await self._whole_plan(plain, known, emit)
            if provider is not None and isinstance(verdict, PlanReady):
                # A model that picks is weak: its plans are doubted like its choices.
                verdict = await asyncio.to_thread(
                    self.doubted,
                    plain,
                    verdict.plan,
                    recipe_of_plan(verdict.plan),
                    agent=verdict.agent,
                )
        if offered and isinstance(verdict, PlanReady):
            verdict = _among(verdict, offered)
        return await asyncio.to_thread(self.offline.apply_pick, request, verdict)

    def _without_model(self, request: PlanRequest, known: NeedsInput) -> PlanningResult:
        """Return the answer of a clear first candidate; the question if it changes something."""
        first = known.candidates[0]
        recipe = next((one for one in self.offline.recipes() if one.name == first.recipe), None)
        if recipe is None or recipe.answer is None:
            return known
        verdict = self.offline.turn(request).propose(recipe, first.values)
        return verdict if isinstance(verdict, Answer) else known

    def _answered(self, request: PlanRequest, known: NeedsInput) -> PlanningResult:
        """Return the answer without the model instead of a doubtful choice, if there is one.

        The numbers that the answer offers are those of its own readings.
        """
        # Lazy: most questions are answered before, or by the model.
        from obsidian_agent.services.offline_answer import answer

        answered = answer(self.offline, replace(request, pick=None))
        if not isinstance(answered, Answer):
            return known
        return answered if request.pick is None else answer(self.offline, request)

    async def _whole_plan(
        self, request: PlanRequest, known: PlanningResult | None, emit: Emit
    ) -> PlanningResult:
        """Return a plan for what no action fits.

        If a small model takes too long, the most likely actions are offered.
        """
        try:
            async with asyncio.timeout(WHOLE_PLAN_SECONDS if known is not None else None):
                return await self.otherwise.plan(request, emit)
        except TimeoutError:
            if not isinstance(known, NeedsInput):
                raise
            message = f"The model did not finish a plan in {WHOLE_PLAN_SECONDS:.0f} s. {WHICH}"
            return replace(known, message=message)

    def first_request(self, request: PlanRequest) -> tuple[ChatRequest, Sending]:
        """Return the request to the model for an uncertain sentence, and the record of its content.

        May block.
        """
        view: VaultView = self.offline.view()
        if self.rules.deny:
            view = FilteredView(view, self.rules.deny.cover)
        chooser = chooser_of()
        names = Surroundings(view, request.context).names
        matches = list(names_in(request.message, names, packaged_menu().common))
        text = neutral(menu_request(request.message, matches, request.context))
        parts = tuple(
            (SharedPart(path, Level.NAME, len(match.text)), _AS_CONTEXT)
            for match in matches
            for path in _paths(match)
        )
        chat_request = ChatRequest(
            (ChatMessage("system", chooser.prompt), ChatMessage("user", text)),
            temperature=0.0,
            max_tokens=ROOM,
            json_only=True,
            timeout=self.sampling.timeout,
            schema=chooser.schema,
        )
        return chat_request, Sending("menu", "", text, parts)

    def doubted(
        self,
        request: PlanRequest,
        plan: ActionPlan,
        *parts: tuple[Recipe, Mapping[str, Any]],
        agent: str = "",
    ) -> PlanningResult:
        """Return an agent's plan made of `parts`, as a question if there are doubts. May block."""
        around = Surroundings(self.offline.view(), request.context)
        preview = self.offline.turn(request).tried(plan, self.offline.policy())
        sentences = doubts(request.message, around, *parts, preview=preview)
        if sentences:
            return _question(
                Candidate(
                    title=plan.goal, plan=plan, values={}, missing=(), doubts=sentences, agent=agent
                )
            )
        return PlanReady(plan, preview=preview, agent=agent)


class _Turn(Struct):
    """An uncertain sentence, from the request to the verdict on the model's choice."""

    planner: MenuPlanner
    provider: Provider
    request: PlanRequest
    known: NeedsInput
    _reply: Reply = field(default_factory=Reply)

    async def run(self, emit: Emit) -> PlanningResult | None:
        """Return the verdict on the model's choice, `None` if no action fits."""
        planner, provider = self.planner, self.provider
        meter = Meter(provider.name, facts_of(provider.name).price)

        async def forward(event: AgentEvent) -> None:
            meter.handle(event)
            # The choice itself is JSON for the program, so it is not displayed.
            if not isinstance(event, TextDelta) or event.thinking:
                await emit(event)

        try:
            request, sending = await asyncio.to_thread(planner.first_request, self.request)
            await asyncio.to_thread(self._record, sending)
            meter.count_request()
            await receive(provider, request, self._reply, forward)
            meter.add_usage(self._reply.usage)
            await emit(meter.total())
            chosen = chooser_of().choices(self._reply.text)
        except ConfigError as error:
            return TurnFailed(error.problem())
        except ProviderError as error:
            return replace(
                self.known,
                message=f"{error.message} Without the model: {WHICH[:1].lower()}{WHICH[1:]}",
            )
        except InvalidChoice as error:
            parsed = parse_plan(self._reply.text, self._reply.reason)
            if self._reply.calls or isinstance(parsed, ParsedPlan):
                return None  # the model writes plans although it was asked to choose
            message = f"The choice of {provider.name} cannot be used. {error} {WHICH}"
            return replace(self.known, message=message)
        changes_something = any(choice.recipe.answer is None for choice in chosen)
        if not chosen or (planner.questions and changes_something):
            return None
        return await asyncio.to_thread(self._verdict, chosen)

    def _record(self, sending: Sending) -> None:
        """Write to the ledger what is about to be sent. Raise `ConfigError` if that fails."""
        planner, provider = self.planner, self.provider
        planner.ledger.write(
            [sending],
            provider=provider.name,
            address=provider.address,
            conversation=planner.conversation,
        )

    def _verdict(self, chosen: Sequence[MenuChoice]) -> PlanningResult:
        """Return the verdict on a choice. A question also offers the most likely other actions."""
        chosen = [self._without_invented(choice) for choice in chosen]
        event = self._one(chosen[0]) if len(chosen) == 1 else self._several(chosen)
        if not isinstance(event, NeedsInput):
            return event
        if len(chosen) == 1 and (simpler := self._simpler(chosen[0])) is not None:
            event = replace(event, candidates=(*event.candidates, simpler))
        return replace(event, candidates=_merged(event.candidates, self.known.candidates))

    def _without_invented(self, chosen: MenuChoice) -> MenuChoice:
        """Return a choice without the conditions on notes that the message does not mention."""
        turn = self.planner.offline.turn(self.request)
        texts = dict(chosen.texts)
        for name, spec in chosen.recipe.inputs.items():
            if spec.kind == "notes" and name in texts:
                try:
                    described = turn.values(chosen.recipe, {name: texts[name]})[name]
                except (InvalidValue, KeyError):
                    continue
                mentioned = mentioned_terms(described, self.request.message, turn.around)
                if mentioned.terms and mentioned != described:
                    texts[name] = mentioned.query()
        return MenuChoice(chosen.recipe, texts)

    def _simpler(self, chosen: MenuChoice) -> Candidate | None:
        """Return the choice without the optional value whose removal leaves the fewest doubts.

        Small models often fill in too many values.
        """
        recipe = chosen.recipe
        candidates: list[Candidate] = []
        for name, input in recipe.inputs.items():
            if input.needed or name not in chosen.texts:
                continue
            rest = {key: text for key, text in chosen.texts.items() if key != name}
            doubt = f"“{input.description}: {chosen.texts[name]}” is left out."
            match self.planner.offline.turn(self.request).propose(recipe, rest, doubted=True):
                case PlanReady(plan):
                    candidates.append(
                        Candidate(
                            title=plan.goal,
                            plan=plan,
                            values=rest,
                            missing=(),
                            recipe=recipe.name,
                            doubts=(doubt,),
                        )
                    )
                case NeedsInput(candidates=(first, *_)) if not first.missing:
                    candidates.append(replace(first, doubts=(doubt, *first.doubts)))
                case _:
                    pass
        return min(candidates, key=lambda candidate: len(candidate.doubt), default=None)

    def _one(self, chosen: MenuChoice, planner: OfflinePlanner | None = None) -> PlanningResult:
        """Return the verdict on one action. The user is asked for a value that cannot be read."""
        offline = planner or self.planner.offline
        event = offline.turn(self.request).propose(chosen.recipe, chosen.texts, doubted=True)
        if not isinstance(event, TurnFailed):
            return event
        invalid = event.problem.path
        if invalid is None or invalid not in chosen.texts:
            return event
        if (refusal := forbidden_path(chosen.texts[invalid])) is not None:
            return TurnFailed(refusal)
        rest = {name: text for name, text in chosen.texts.items() if name != invalid}
        match self._one(MenuChoice(chosen.recipe, rest), planner):
            case NeedsInput(candidates=(first, *_)):
                candidate = first
            case PlanReady(plan):
                candidate = Candidate(
                    title=plan.goal, plan=plan, values=rest, missing=(), recipe=chosen.recipe.name
                )
            case _:
                candidate = Candidate(
                    title=chosen.recipe.title,
                    plan=None,
                    values=rest,
                    missing=(),
                    recipe=chosen.recipe.name,
                )
        doubts = (event.problem.message, *candidate.doubts)
        return _question(replace(candidate, doubts=doubts))

    def _several(self, chosen: Sequence[MenuChoice]) -> PlanningResult:
        """Return one plan of several actions, each read against the result of those before it."""

        def reader(choice: MenuChoice) -> Reader:
            def read(turn: OfflineTurn, _: Sequence[JoinedPart]) -> JoinedPart | None:
                verdict = turn.propose(choice.recipe, choice.texts)
                if not isinstance(verdict, PlanReady):
                    return None
                values = turn.values(choice.recipe, choice.texts)
                return JoinedPart(recipe=choice.recipe, values=values, plan=verdict.plan)

            return read

        turn = self.planner.offline.turn(self.request)
        parts = read_in_turn(turn, [reader(choice) for choice in chosen])
        if len(parts) < len(chosen):
            # A question can be about one action only: the first that is unclear.
            return self._one(chosen[len(parts)])
        plan = join_plans([part.plan for part in parts])
        return self.planner.doubted(
            self.request, plan, *((part.recipe, part.values) for part in parts)
        )


def _is_clear(candidates: Sequence[Candidate]) -> bool:
    """Return whether the first candidate has every value and no doubt."""
    return any(
        (candidate.values or not candidate.recipe) and not (candidate.missing or candidate.doubt)
        for candidate in candidates
    )


def _among(planned: PlanReady, offered: Sequence[Candidate]) -> NeedsInput:
    """Return the question in which the plan of a model is one of the candidates."""
    plan = planned.plan
    same = [candidate for candidate in offered if candidate.plan == plan]
    chosen = same or [
        Candidate(title=plan.goal, plan=plan, values={}, missing=(), agent=planned.agent)
    ]
    return NeedsInput(WHICH, _merged(chosen, offered))


def _merged(chosen: Sequence[Candidate], known: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates of a model and those without it, each reading once.

    A reading without the model that is first and complete stays first, and none that is complete
    is pushed down by one that is not.
    """
    ordered = sorted((*chosen, *known), key=lambda candidate: bool(candidate.missing))
    ordered[:0] = filter(_is_complete, known[:1])
    merged: dict[Any, Candidate] = {}
    for candidate in ordered:
        merged.setdefault(_reading(candidate), candidate)
    return tuple(merged.values())[:MAX_SUGGESTIONS]


def _is_complete(candidate: Candidate) -> bool:
    """Return whether a candidate has every value and uses the whole message.

    A long phrase without quotes may hold another action.
    """
    phrases = (guess.partition("“")[2].split() for guess in candidate.guesses)
    lacks = candidate.missing or candidate.unused or candidate.unknown
    is_read = candidate.values or not candidate.recipe
    return bool(is_read) and not lacks and all(len(words) <= MAX_GUESSED for words in phrases)


def _reading(candidate: Candidate) -> Any:
    """Return what is equal for candidates that do the same."""
    if candidate.plan is not None:
        return json.dumps(candidate.plan.to_json(), sort_keys=True)
    return candidate.recipe, tuple(sorted(candidate.values.items()))


def _question(candidate: Candidate) -> NeedsInput:
    return NeedsInput(f"Is this what you mean? {candidate.doubt}", (candidate,), candidate.missing)


def _paths(match: NameMatch) -> list[str]:
    """Return the notes and folders that a name in a sentence may mean."""
    paths = (str(name.value) for name in match.names if name.kind in ("note", "folder"))
    return list(dict.fromkeys(paths))


@cache
def chooser_of() -> Chooser:
    """Return the menu for a model: all packaged recipes.

    It is always the same, so that services can cache the prompt. Macros are not in it, because
    their names belong to the vault.
    """
    return Chooser(packaged())
