"""The planner that lets a model pick from the menu: what is certain needs none, what no action fits is planned as a whole.

Only the sentence goes to the model, with the kinds of the names of the vault that it says; no note, no selection, no path that was not
said. What it picks goes the way of a filled form: read, checked, previewed. Where it fails, the likeliest actions are offered, as without
a model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal

from obsidian_agent.agent.conversation import new_id
from obsidian_agent.agent.events import (
    AgentEvent,
    Candidate,
    Emit,
    NeedsInput,
    PlanReady,
    TextDelta,
    TurnFailed,
    Verdict,
)
from obsidian_agent.agent.planner import Planner, PlanRequest, Reply, Sampling, receive
from obsidian_agent.agent.privacy.consent import AllowedBy, Level, SharedPart
from obsidian_agent.agent.privacy.record import Ledger, Sending
from obsidian_agent.agent.privacy.untrusted_text import neutral
from obsidian_agent.agent.usage import Meter
from obsidian_agent.dataclass import dataclass, field, replace
from obsidian_agent.errors import ConfigError, ProviderError
from obsidian_agent.offline.check import doubts, recipe_of_plan
from obsidian_agent.offline.chooser import Chooser, InvalidChoice, MenuChoice, menu_request
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.recipe import Recipe, packaged
from obsidian_agent.offline.recipe_plan import join_plans
from obsidian_agent.offline.search import MAX_SUGGESTIONS, packaged_menu
from obsidian_agent.offline.sentence import NameMatch, names_in
from obsidian_agent.offline.values import forbidden_path
from obsidian_agent.plan.llm_output import ParsedPlan, parse_plan
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.policy import SharingRules
from obsidian_agent.plan.result import Preview
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Provider
from obsidian_agent.providers.other_agent import is_agent
from obsidian_agent.providers.prices import facts_of
from obsidian_agent.services.offline_planner import WHICH, OfflinePlanner
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.filtered import FilteredView
from obsidian_agent.vault.views.view import VaultView

Planning = Literal["auto", "menu", "plan"]

ROOM: Final = 400
"""Tokens of an answer at most: three actions with their values."""
_AS_CONTEXT: Final[AllowedBy] = "context"
"""Why a name may be sent: the person said it."""
_LOCAL: Final = ("ollama/", "lm_studio/", "custom/")


def picks(planning: Planning, provider: Provider) -> bool:
    """Whether a model picks from the menu first: where the setting says so, and by itself where the model runs on this machine. No agent does."""
    if is_agent(provider):
        return False
    return planning == "menu" or (
        planning == "auto" and provider.local and provider.name.startswith(_LOCAL)
    )


@dataclass(frozen=True, slots=True)
class MenuPlanner:
    """A `Planner`. `make` opens the model and says whether it picks from the menu; `otherwise` plans what no action fits.

    `questions`: nothing may be changed, so only a choice that answers counts. Plans that such a model makes in `otherwise` are doubted too.
    """

    name: str
    make: Callable[[], Provider | None]
    offline: OfflinePlanner
    otherwise: Planner
    rules: SharingRules
    real: Callable[[VaultPath], VaultPath]
    ledger: Ledger
    sampling: Sampling = Sampling()
    questions: bool = False
    conversation: str = field(default_factory=new_id)

    async def plan(self, request: PlanRequest, emit: Emit) -> Verdict:
        """See `Planner.plan`. With `request.pick` the candidate of that number of what the same sentence is asked back."""
        try:
            provider = await asyncio.to_thread(self.make)
        except ConfigError as error:
            return TurnFailed(error.problem())
        plain = replace(request, pick=None)
        verdict: Verdict | None = None
        # A model that writes whole plans offers nothing to pick from; the menu does.
        if provider is not None or request.pick is not None:
            verdict = await asyncio.to_thread(self.offline.decide, plain, questions=self.questions)
        if provider is not None and isinstance(verdict, NeedsInput):
            verdict = await _Turn(self, provider, plain, verdict).run(emit)
        if verdict is None:
            verdict = await self.otherwise.plan(plain, emit)
            if provider is not None and isinstance(verdict, PlanReady):
                # The plan of a model that picks is doubted as its choices are.
                verdict = await asyncio.to_thread(
                    self.doubted,
                    plain,
                    verdict.plan,
                    recipe_of_plan(verdict.plan),
                    agent=verdict.agent,
                )
        return await asyncio.to_thread(self.offline.picked, request, verdict)

    def first_request(self, request: PlanRequest) -> tuple[ChatRequest, Sending]:
        """What the model is asked for a sentence that is not certain, and what of the vault is in that. May block."""
        view: VaultView = self.offline.view()
        if self.rules.deny:
            view = FilteredView(view, self.rules.deny.cover, self.real)
        chooser = chooser_of()
        found = list(
            names_in(
                request.message, Surroundings(view, request.context).names, packaged_menu().common
            )
        )
        text = neutral(menu_request(request.message, found, request.context))
        parts = tuple(
            (SharedPart(path, Level.NAME, len(each.text)), _AS_CONTEXT)
            for each in found
            for path in _paths(each)
        )
        asked = ChatRequest(
            (ChatMessage("system", chooser.prompt), ChatMessage("user", text)),
            temperature=0.0,
            max_tokens=ROOM,
            json_only=True,
            timeout=self.sampling.timeout,
            schema=chooser.schema,
        )
        return asked, Sending("menu", "", text, parts)

    def doubted(
        self,
        request: PlanRequest,
        plan: ActionPlan,
        *parts: tuple[Recipe, Mapping[str, Any]],
        agent: str = "",
    ) -> Verdict:
        """A plan that was made of these parts, by an agent; as a question, where something speaks against it. May block."""
        around = Surroundings(self.offline.view(), request.context)
        preview = self.offline.turn(request).tried(plan, self.offline.policy())
        found = doubts(request.message, around, *parts, preview=preview)
        if found:
            return _question(Candidate(plan.goal, plan, {}, (), doubt=" ".join(found), agent=agent))
        return PlanReady(plan, preview=preview, agent=agent)


@dataclass(slots=True)
class _Turn:
    """One sentence that is not certain, up to what the model's choice comes to."""

    planner: MenuPlanner
    provider: Provider
    request: PlanRequest
    known: NeedsInput
    _reply: Reply = field(default_factory=Reply)

    async def run(self, emit: Emit) -> Verdict | None:
        """What the choice comes to; None: no action fits."""
        planner, provider = self.planner, self.provider
        meter = Meter(provider.name, facts_of(provider.name).price)

        async def heard(event: AgentEvent) -> None:
            meter.handle(event)
            # The choice itself is for the program, not for people.
            if not isinstance(event, TextDelta) or event.thinking:
                await emit(event)

        try:
            asked, sending = await asyncio.to_thread(planner.first_request, self.request)
            await asyncio.to_thread(self._write_down, sending)
            meter.asking()
            await receive(provider, asked, self._reply, heard)
            meter.answered(self._reply.usage)
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
            if self._reply.calls or isinstance(
                parse_plan(self._reply.text, self._reply.reason), ParsedPlan
            ):
                return None  # it plans, whatever it is asked for: let it
            return replace(
                self.known,
                message=f"{provider.name} chose nothing that can be used. {error} {WHICH}",
            )
        if chosen and not (
            planner.questions and any(each.recipe.answer is None for each in chosen)
        ):
            return await asyncio.to_thread(self._proposed, chosen)
        return None

    def _write_down(self, sending: Sending) -> None:
        """Keep in the ledger what is about to be sent. Raises `ConfigError`."""
        planner, provider = self.planner, self.provider
        planner.ledger.write(
            [sending],
            provider=provider.name,
            address=provider.address,
            conversation=planner.conversation,
        )

    def _proposed(self, chosen: Sequence[MenuChoice]) -> Verdict:
        """What the choice comes to; behind a doubted one stand the likeliest actions."""
        event = self._one(chosen[0]) if len(chosen) == 1 else self._several(chosen)
        if not isinstance(event, NeedsInput):
            return event
        if len(chosen) == 1 and (simpler := self._simpler(chosen[0])) is not None:
            event = replace(event, candidates=(*event.candidates, simpler))
        names = {candidate.recipe for candidate in event.candidates}
        others = [each for each in self.known.candidates if each.recipe not in names]
        return replace(event, candidates=(*event.candidates, *others)[:MAX_SUGGESTIONS])

    def _simpler(self, chosen: MenuChoice) -> Candidate | None:
        """The choice without that one of its optional values whose absence leaves least to doubt: small models say too much."""
        found: list[Candidate] = []
        for name, wanted in chosen.recipe.inputs.items():
            if wanted.needed or name not in chosen.texts:
                continue
            rest = {key: text for key, text in chosen.texts.items() if key != name}
            left_out = f"“{wanted.description}: {chosen.texts[name]}” is left out."
            match self.planner.offline.turn(self.request).propose(
                chosen.recipe, rest, doubted=True
            ):
                case PlanReady(plan):
                    found.append(Candidate(plan.goal, plan, rest, (), chosen.recipe.name, left_out))
                case NeedsInput(candidates=(first, *_)) if not first.missing:
                    found.append(replace(first, doubt=f"{left_out} {first.doubt}"))
                case _:
                    pass
        return min(found, key=lambda each: len(each.doubt), default=None)

    def _one(self, chosen: MenuChoice, planner: OfflinePlanner | None = None) -> Verdict:
        """One action with its values; a value that cannot be read is left to the person."""
        offline = planner or self.planner.offline
        event = offline.turn(self.request).propose(chosen.recipe, chosen.texts, doubted=True)
        bad = event.problem.path if isinstance(event, TurnFailed) else None
        if bad is None or bad not in chosen.texts or not isinstance(event, TurnFailed):
            return event
        if (refused := forbidden_path(chosen.texts[bad])) is not None:
            return TurnFailed(refused)
        rest = {name: text for name, text in chosen.texts.items() if name != bad}
        match self._one(MenuChoice(chosen.recipe, rest), planner):
            case NeedsInput(candidates=(first, *_)):
                candidate = first
            case PlanReady(plan):
                candidate = Candidate(plan.goal, plan, rest, (), chosen.recipe.name)
            case _:
                candidate = Candidate(chosen.recipe.title, None, rest, (), chosen.recipe.name)
        return _question(
            replace(
                candidate, doubt=" ".join(filter(None, (event.problem.message, candidate.doubt)))
            )
        )

    def _several(self, chosen: Sequence[MenuChoice]) -> Verdict:
        """Several actions as one plan, each read against the vault as those before it would leave it."""
        offline = self.planner.offline
        view = offline.view()
        plans: list[ActionPlan] = []
        parts: list[tuple[Recipe, Mapping[str, Any]]] = []
        preview: Preview | None = None
        for each in chosen:
            here = _on(offline, view).turn(self.request)
            part = here.propose(each.recipe, each.texts)
            if isinstance(part, PlanReady):
                plans.append(part.plan)
                parts.append((each.recipe, here.values(each.recipe, each.texts)))
                preview = here.tried(part.plan)
            if (
                not isinstance(part, PlanReady)
                or preview is None
                or preview.errors
                or preview.after is None
            ):
                # One of them alone is worth asking about: the first that is not clear.
                return self._one(each)
            view = preview.after
        plan = join_plans(plans)
        return self.planner.doubted(self.request, plan, *parts)


def _on(planner: OfflinePlanner, view: VaultView) -> OfflinePlanner:
    """The planner over another state of the vault."""
    return replace(planner, view=lambda: view, _known=[], _menus=[])


def _question(candidate: Candidate) -> NeedsInput:
    return NeedsInput(f"Is it this? {candidate.doubt}", (candidate,), candidate.missing)


def _paths(found: NameMatch) -> list[str]:
    """The notes and folders that a name stands for."""
    return list(
        dict.fromkeys(str(name.value) for name in found.names if name.kind in ("note", "folder"))
    )


@cache
def chooser_of() -> Chooser:
    """The menu for a model: the recipes that ship, for questions too, so that services keep one prompt ready. No macros: their names are the vault's."""
    return Chooser(packaged())
