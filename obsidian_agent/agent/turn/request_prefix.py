"""What every request of a conversation begins with, and requests as they go out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from obsidian_agent.agent.context.items import beginning
from obsidian_agent.agent.context.tokens import estimate, estimate_messages, estimate_offers
from obsidian_agent.agent.planner import Sampling
from obsidian_agent.agent.turn.model_tools import Detail, offers
from obsidian_agent.agent.turn.prompts import agent_prompt, hint, system_prompt
from obsidian_agent.providers.base import ChatMessage, ChatRequest, ToolOffer
from obsidian_agent.tools.core.tool import Tool


@dataclass(frozen=True, slots=True)
class RequestPrefix:
    """The system prompt, the functions on offer, and what both take; `instructions` are the person's own part of the prompt.

    `more` says which tools are named along with a message.
    """

    system: str
    offers: tuple[ToolOffer, ...]
    instructions: str = ""
    more: Callable[[str], str] = lambda message: ""

    @property
    def tokens(self) -> int:
        """About how many tokens it takes, without the instructions."""
        return estimate_messages([ChatMessage("system", self.system)]) + estimate_offers(self.offers)

    @property
    def instruction_tokens(self) -> int:
        """About how many tokens the instructions take."""
        return estimate(self.instructions)

    def within(self, tokens: int) -> RequestPrefix:
        """The frame with as much of the instructions as fits into so many tokens; itself when they do."""
        if self.instruction_tokens <= tokens:
            return self
        return replace(self, instructions=f"{beginning(self.instructions, tokens)}\n[cut]")

    def request(self, messages: Sequence[ChatMessage], sampling: Sampling, *, json_only: bool = False) -> ChatRequest:
        """A request with these messages. `json_only`: nothing but a JSON document is wanted."""
        text = f"{self.system}\n{self.instructions}" if self.instructions else self.system
        told = (ChatMessage("system", text), *messages)
        return ChatRequest(
            told, sampling.temperature, sampling.max_tokens, json_only=json_only, timeout=sampling.timeout, tools=self.offers
        )


def agent_prefix(
    tools: Mapping[str, Tool],
    *,
    propose: bool,
    instructions: str = "",
    only: frozenset[str] | None = None,
    detail: Detail = "full",
) -> RequestPrefix:
    """The frame for these tools; the same bytes every time. `only` these are on offer for looking around. Slow the first time."""
    readable = tools if only is None else {name: tool for name, tool in tools.items() if name in only}
    system = agent_prompt(tools.values(), propose=propose, detail=detail)

    def more(message: str) -> str:
        return hint(message, tools.values(), detail) if propose else ""

    return RequestPrefix(system, offers(readable, propose=propose, detail=detail), instructions, more)


def planner_prefix(tools: Mapping[str, Tool], instructions: str, detail: Detail) -> RequestPrefix:
    """The frame for a model that does not look around: the planner's prompt, and no functions."""
    return RequestPrefix(system_prompt(tools.values(), detail), (), instructions, lambda message: hint(message, tools.values(), detail))


def exact_text(request: ChatRequest) -> str:
    """A request as people read it: every message in full, and each function on offer."""
    parts = []
    for message in request.messages:
        calls = "".join(f"\n[calls {call.name} {call.arguments} ({call.id})]" for call in message.calls)
        answers = f" (result of {message.call_id})" if message.call_id else ""
        parts.append(f"=== {message.role}{answers}\n{message.text}{calls}")
    for offer in request.tools:
        parts.append(f"=== function {offer.name}\n{offer.description}\n{json.dumps(dict(offer.parameters), ensure_ascii=False)}")
    return "\n\n".join(parts) + "\n"
