"""A planner that asks a model without letting it look around: under the same sharing rules, and with the same ledger, as the agent.

A turn with a model that can only write: the planner asks it for one JSON document, and what comes of it is kept in the conversation.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import cast

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import Answer, Notice, PlanReady, TurnEvent, TurnFailed
from obsidian_agent.agent.planner import ModelPlanner, PlanRequest
from obsidian_agent.agent.privacy.consent import REFUSED, ApproveShare, Level, Part, ShareDecision, ShareRequest, SharingRules
from obsidian_agent.agent.privacy.ledger import Ledger
from obsidian_agent.agent.turn.opening import Opening
from obsidian_agent.agent.turn.prompts import SELECTION_SHOWN
from obsidian_agent.errors import ConfigError, Problem
from obsidian_agent.plan.validate import validate
from obsidian_agent.vault.paths.path import VaultPath


async def share_selection(request: ShareRequest) -> ShareDecision:
    """The answer where nobody is asked: who has a plan made for a selection wants the planner to know of it, and nothing else goes out."""
    return ShareDecision("once") if request.kind == "selection" else REFUSED


@dataclass(frozen=True, slots=True)
class MadePlanner:
    """A planner for one turn. `sources` are files of the vault whose text is in its instructions; `notices` are told first."""

    planner: ModelPlanner
    sources: tuple[str, ...] = ()
    notices: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardedPlanner:
    """A `Planner` over a `ModelPlanner`, which `make` makes for each turn: the open note may wish for another model."""

    name: str
    make: Callable[[], MadePlanner]
    rules: SharingRules
    real: Callable[[VaultPath], VaultPath]
    ledger: Ledger
    approve: ApproveShare = share_selection

    async def plan(self, request: PlanRequest) -> AsyncIterator[TurnEvent]:
        """As the inner planner's, after what has to be asked; what is denied is neither open nor selected."""
        try:
            made = await asyncio.to_thread(self.make)
        except ConfigError as error:
            yield TurnFailed(error.problem())
            return
        for problem in made.notices:
            yield Notice(problem)
        provider, conversation = made.planner.provider, Conversation()
        opening = Opening(provider, self.rules, self.real, self.approve, conversation)
        async with contextlib.aclosing(opening.run(request.context)) as asked:
            async for event in asked:
                yield event
        selection = opening.context.selection
        shown = selection.text[:SELECTION_SHOWN] if selection is not None and opening.show_selection else ""
        try:
            opening.parts += [(Part(path, Level.TEXT, 0), "trusted") for path in made.sources]
            sending = replace(opening.sending(), text=shown)
            self.ledger.write([sending], provider=provider.name, address=provider.address, conversation=conversation.id)
        except ConfigError as error:
            yield TurnFailed(error.problem())
            return
        known = replace(request, context=opening.context, show_selection=opening.show_selection)
        # Every planner's turn is an async generator; the protocol only promises an iterator.
        events = cast("AsyncGenerator[TurnEvent, None]", made.planner.plan(known))
        async with contextlib.aclosing(events):
            async for event in events:
                yield event


async def plain_turn(
    planner: ModelPlanner, request: PlanRequest, conversation: Conversation, *, propose: bool
) -> AsyncGenerator[TurnEvent, None]:
    """The planner's events. Without `propose` the model was asked for an answer: a plan that reads can be one, any other is refused."""
    reading = replace(planner, policy=replace(planner.policy, allow_writes=False))
    # Every planner's turn is an async generator; the protocol only promises an iterator.
    events = cast("AsyncGenerator[TurnEvent, None]", (planner if propose else reading).plan(request))
    async with contextlib.aclosing(events):
        async for event in events:
            match event:
                case Answer(text):
                    conversation.hear(text)
                case PlanReady(plan):
                    conversation.hear(plan.goal)
                    event = event if propose else _only_reading(event, reading)
                case _:
                    pass
            yield event


def _only_reading(ready: PlanReady, planner: ModelPlanner) -> PlanReady | TurnFailed:
    problems = validate(ready.plan.to_json(), planner.tools, planner.policy).problems
    return TurnFailed(problems[0], problems) if problems else ready
