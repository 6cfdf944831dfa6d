"""A turn with a model that can only write: the planner asks it for one JSON document, and what comes of it is kept in the conversation."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import cast

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import Answer, PlanReady, TurnEvent, TurnFailed
from obsidian_agent.agent.planner import ModelPlanner, PlanRequest
from obsidian_agent.plan.validate import validate


async def plain_turn(planner: ModelPlanner, request: PlanRequest, talk: Conversation, *, propose: bool) -> AsyncGenerator[TurnEvent, None]:
    """The planner's events. Without `propose` the model was asked for an answer: a plan that reads can be one, any other is refused."""
    reading = replace(planner, policy=replace(planner.policy, allow_writes=False))
    # Every planner's turn is an async generator; the protocol only promises an iterator.
    events = cast("AsyncGenerator[TurnEvent, None]", (planner if propose else reading).plan(request))
    async with contextlib.aclosing(events):
        async for event in events:
            match event:
                case Answer(text):
                    talk.hear(text)
                case PlanReady(plan):
                    talk.hear(plan.goal)
                    event = event if propose else _only_reading(event, reading)
                case _:
                    pass
            yield event


def _only_reading(ready: PlanReady, planner: ModelPlanner) -> PlanReady | TurnFailed:
    problems = validate(ready.plan.to_json(), planner.tools, planner.policy).problems
    return TurnFailed(problems[0], problems) if problems else ready
