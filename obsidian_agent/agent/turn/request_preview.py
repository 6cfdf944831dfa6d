"""What would be sent if the person said this now: exactly, with its size and price, and without sending or asking anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from obsidian_agent.agent.context.budget import Use
from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import NeedsInput, Notice, TurnEvent
from obsidian_agent.agent.menu_planner import picks
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.agent.privacy.consent import REFUSED, ShareDecision, ShareRequest
from obsidian_agent.agent.turn.answer import make_agent, menu_over
from obsidian_agent.agent.turn.loop import Agent, view_for
from obsidian_agent.agent.turn.opening import Opening
from obsidian_agent.agent.turn.prompts import request_message
from obsidian_agent.agent.turn.request_prefix import exact_text
from obsidian_agent.errors import Problem

if TYPE_CHECKING:
    from obsidian_agent.agent.session import Session


@dataclass(frozen=True, slots=True)
class RequestPreview:
    """The request that a message would start with; where the model picks from the menu, that request before it.

    `text` is all of it, but for the random mark of its fences and what `questions` would add if they were answered with yes. `cost` is the
    most that it may cost in US dollars by the list price, the room for the reply included; None where the price is not known.
    """

    provider: str
    address: str
    text: str
    use: Use
    cost: float | None
    questions: tuple[ShareRequest, ...] = ()
    notices: tuple[Problem, ...] = ()


async def preview_request(
    session: Session, conversation: Conversation, draft: str, *, model: str | None = None, assistant: str | None = None
) -> RequestPreview:
    """Look ahead. The conversation stays as it is. Raises `ConfigError` when no model is chosen or it cannot be opened."""
    questions: list[ShareRequest] = []

    async def note(request: ShareRequest) -> ShareDecision:
        questions.append(request)
        return REFUSED

    conversation = deepcopy(replace(conversation, keeper=None))
    agent = await asyncio.to_thread(make_agent, session, note, conversation, model=model, assistant=assistant)
    mark = agent.new_mark()
    opening = Opening(agent.provider, agent.rules, agent.vault.real, note, conversation)
    events = await _all(opening.run(session.context({})))
    prepared = await agent.prepare(mark)
    prepared.may_summarise = False
    view = view_for(agent, opening.asker.gate)
    events += await _all(prepared.run(draft, opening, view))
    params = opening.context.params
    shown, extra = opening.show_selection, prepared.extra
    tools = prepared.frame.more(draft)
    message = request_message(draft, opening.context, params, agent.policy, mark, show_selection=shown, extra=extra, tools=tools)
    said = conversation.plain_messages() if agent.plain else conversation.messages
    text = exact_text(prepared.frame.request((*said, message), prepared.sampling))
    menu = await _menu_first(session, agent, draft)
    if menu:
        text = f"{menu}\n\n=== and only if no action fits\n\n{text}"
    use = prepared.use(extra, message.text.replace(extra, "") if extra else message.text)
    price = prepared.facts.price
    cost = price.estimate(use.prompt, use.reply) if price is not None else None
    notices = tuple(event.problem for event in events if isinstance(event, Notice))
    return RequestPreview(agent.provider.name, agent.provider.address, text, use, cost, tuple(questions), notices)


async def _menu_first(session: Session, agent: Agent, draft: str) -> str:
    """What a model that picks from the menu is asked before; "" for any other, and for words that are certain without a model."""
    assert session.models is not None, "an agent has a model"
    if not picks(session.models.planning, agent.provider):
        return ""
    planner = menu_over(session, session.models, agent, questions=False)
    request = PlanRequest(draft, session.context({}))
    known = await asyncio.to_thread(planner.offline.decide, request)
    if not isinstance(known, NeedsInput):
        return "=== nothing: this needs no model"
    return exact_text((await asyncio.to_thread(planner.first_request, request))[0])


async def _all(events: AsyncIterator[TurnEvent]) -> list[TurnEvent]:
    return [event async for event in events]
