"""What turns use of tokens, money and time, and what models cost in a month, in one file for all vaults, with a cap on it.

Figures are list prices and the service's token counts. A model whose price is not known cannot be held to a cap, and is told apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from obsidian_agent.agent.conversation import USUAL_REPLY, estimate_messages, estimate_offers
from obsidian_agent.agent.events import (
    AgentEvent,
    ShareDecided,
    ShareRequested,
    TextDelta,
    TokensUsed,
)
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import Problem, ProviderError
from obsidian_agent.providers.base import ChatDelta, ChatRequest, Finished, Usage
from obsidian_agent.providers.middleware import AroundProvider
from obsidian_agent.providers.prices import ModelFacts, Price, facts_of
from obsidian_agent.state_files import append_json, json_lines


@dataclass(slots=True)
class Meter:
    """Adds up a turn. `price` None: what it costs is not known."""

    model: str
    price: Price | None
    clock: Callable[[], float] = time.monotonic
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    requests: int = 0
    tools: float = 0.0
    first: float | None = None
    _began: float | None = None
    _looking: float | None = None

    def asking(self) -> None:
        self._began = self.clock() if self._began is None else self._began
        self.requests += 1

    def handle(self, event: AgentEvent) -> None:
        if isinstance(event, TextDelta) and self.first is None and self._began is not None:
            self.first = self.clock() - self._began

    def answered(self, usage: Usage | None) -> None:
        if usage is None:
            return
        self.prompt += usage.prompt_tokens
        self.completion += usage.completion_tokens
        self.cached += usage.cached_tokens

    def look(self, event: AgentEvent | None = None, *, over: bool = False) -> None:
        """Looking begins, goes on, or is over; the person's own time is not counted."""
        now = self.clock()
        if self._looking is not None:
            self.tools += now - self._looking
        waits = isinstance(event, ShareRequested)
        self._looking = None if over or waits else now
        if isinstance(event, ShareDecided):
            self._looking = now

    def total(self) -> TokensUsed:
        cost = (
            None
            if self.price is None
            else self.price.of(Usage(self.prompt, self.completion, self.cached))
        )
        seconds = self.clock() - self._began if self._began is not None else 0.0
        return TokensUsed(
            self.model,
            self.prompt,
            self.completion,
            self.requests,
            self.cached,
            cost,
            seconds,
            self.first,
            self.tools,
        )


def total(turns: Sequence[TokensUsed]) -> TokensUsed:
    """The sum over turns; `cost` of those whose price is known, None where that is none."""
    costs = [each.cost for each in turns if each.cost is not None]
    return TokensUsed(
        "",
        prompt=sum(each.prompt for each in turns),
        completion=sum(each.completion for each in turns),
        requests=sum(each.requests for each in turns),
        cached=sum(each.cached for each in turns),
        cost=sum(costs) if costs else None,
        seconds=sum(each.seconds for each in turns),
        tools=sum(each.tools for each in turns),
    )


@dataclass(frozen=True, slots=True)
class MonthlyCost:
    """The record `file` (JSON lines) and the cap in US dollars a calendar month (None: no cap)."""

    file: Path
    clock: Callable[[], datetime]
    cap: float | None = None

    def add(self, model: str, cost: float | None, prompt: int, completion: int) -> None:
        """Write a request down. A disk that does not take it is no reason to lose the answer."""
        now = self.clock().isoformat(timespec="seconds")
        entry = {
            "time": now,
            "model": model,
            "cost": cost,
            "prompt": prompt,
            "completion": completion,
        }
        with contextlib.suppress(OSError):
            append_json(self.file, [entry])

    def this_month(self) -> float:
        """US dollars spent since the first of the month, as far as prices are known."""
        month = f"{self.clock():%Y-%m}"
        try:
            entries = json_lines(self.file)
        except OSError:
            return 0.0
        return sum(
            _cost(entry) for entry in entries if str(entry.get("time", "")).startswith(month)
        )

    def refusal(self, estimate: float | None) -> Problem | None:
        """Why a request that may cost so much (None: nobody knows) must not go out; None when it may."""
        if self.cap is None or not estimate:
            return None
        spent = self.this_month()
        if spent + estimate <= self.cap:
            return None
        message = (
            f"This request may cost ${estimate:.4f}; ${spent:.2f} of ${self.cap:.2f} for this month are spent. "
            "Raise the spending cap in the settings, or choose another model."
        )
        return Problem("SPENDING_CAP", message)


@dataclass(frozen=True, slots=True)
class CountedProvider(AroundProvider):
    """A provider each of whose requests is held to the cap and written down, whatever it is for."""

    spending: Callable[[], MonthlyCost]
    facts: Callable[[str], ModelFacts] = facts_of

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """As the inner provider's. Raises `ProviderError` SPENDING_CAP instead of sending what may cost too much."""
        price = (await asyncio.to_thread(self.facts, self.name)).price
        spending = self.spending()
        if spending.cap is not None and price is not None:
            tokens = estimate_messages(request.messages) + estimate_offers(request.tools)
            likely = price.estimate(tokens, request.max_tokens or USUAL_REPLY)
            if (refusal := await asyncio.to_thread(spending.refusal, likely)) is not None:
                raise ProviderError(refusal.message, code=refusal.code)
        async with contextlib.aclosing(self.inner.stream(request)) as deltas:
            async for delta in deltas:
                if isinstance(delta, Finished) and delta.usage is not None and not self.local:
                    cost = price.of(delta.usage) if price is not None else None
                    spending.add(
                        self.name, cost, delta.usage.prompt_tokens, delta.usage.completion_tokens
                    )
                yield delta


def _cost(entry: Mapping[str, Any]) -> float:
    cost = entry.get("cost")
    return float(cost) if isinstance(cost, int | float) else 0.0
