"""What would be sent if the person said this now: exactly, with its size and price, and without sending or asking anything."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import dataclass, replace

from obsidian_agent.agent.context.budget import Use
from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import AgentEvent, NeedsInput, Notice
from obsidian_agent.agent.menu_planner import picks
from obsidian_agent.agent.model_turns import ModelTurns
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.agent.privacy.consent import REFUSED, ShareDecision, ShareRequest
from obsidian_agent.agent.turn.loop import Agent
from obsidian_agent.agent.turn.request_prefix import exact_text
from obsidian_agent.errors import Problem


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
    turns: ModelTurns, conversation: Conversation, draft: str, *, model: str | None = None, assistant: str | None = None
) -> RequestPreview:
    """Look ahead. The conversation stays as it is. Raises `ConfigError` when the model cannot be opened."""
    questions: list[ShareRequest] = []
    notices: list[Problem] = []

    async def note(request: ShareRequest) -> ShareDecision:
        questions.append(request)
        return REFUSED

    async def emit(event: AgentEvent) -> None:
        if isinstance(event, Notice):
            notices.append(event.problem)

    copy = deepcopy(replace(conversation, keeper=None))
    agent = await asyncio.to_thread(lambda: turns.agent(note, copy, model=model, assistant=assistant))
    request = PlanRequest(draft, await asyncio.to_thread(turns.plans.context))
    prepared = await agent.prepare(request.context)
    prepared.may_summarise = False
    await prepared.run(draft, emit)
    message, extra = agent.message(request, prepared), prepared.extra
    said = copy.plain_messages() if agent.plain else copy.messages
    text = exact_text(prepared.prefix.request((*said, message), prepared.sampling))
    if menu := await _menu_first(turns, agent, request):
        text = f"{menu}\n\n=== and only if no action fits\n\n{text}"
    use = prepared.use(extra, message.text.replace(extra, "") if extra else message.text)
    price = prepared.facts.price
    cost = price.estimate(use.prompt, use.reply) if price is not None else None
    return RequestPreview(agent.provider.name, agent.provider.address, text, use, cost, tuple(questions), tuple(notices))


async def _menu_first(turns: ModelTurns, agent: Agent, request: PlanRequest) -> str:
    """What a model that picks from the menu is asked before; "" for any other, and for words that are certain without a model."""
    if not picks(turns.models.planning, agent.provider):
        return ""
    planner = turns.menu(agent, questions=False)
    known = await asyncio.to_thread(planner.offline.decide, request)
    if not isinstance(known, NeedsInput):
        return "=== nothing: this needs no model"
    return exact_text((await asyncio.to_thread(planner.first_request, request))[0])
