"""What turns use of tokens, money and time, and what models cost in a month, in one file for all vaults, with a cap on it.

Figures are list prices and the service's token counts. A model whose price is not known cannot be held to a cap, and is told apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from obsidian_agent.agent.budget import USUAL_REPLY, estimate_messages, estimate_offers
from obsidian_agent.agent.events import AgentEvent, ShareDecided, ShareRequested, TextDelta, TokensUsed
from obsidian_agent.errors import Problem, ProviderError
from obsidian_agent.providers.base import ChatDelta, ChatRequest, Finished, Usage
from obsidian_agent.providers.middleware import AroundProvider, closing
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
        """A request goes out."""
        self._began = self.clock() if self._began is None else self._began
        self.requests += 1

    def hear(self, event: AgentEvent) -> None:
        """Something came."""
        if isinstance(event, TextDelta) and self.first is None and self._began is not None:
            self.first = self.clock() - self._began

    def answered(self, usage: Usage | None) -> None:
        """An answer is complete."""
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
        """Everything so far."""
        cost = None if self.price is None else self.price.of(Usage(self.prompt, self.completion, self.cached))
        seconds = self.clock() - self._began if self._began is not None else 0.0
        return TokensUsed(self.prompt, self.completion, self.requests, self.cached, cost, self.model, seconds, self.first, self.tools)


@dataclass(frozen=True, slots=True)
class TurnUsage:
    """Tokens as the service counts them, money in US dollars (None: the price is not known), seconds.

    `cached` are prompt tokens that the service remembered; `first` is the time to the first token, `tools` the time that looking took.
    """

    model: str
    prompt: int
    completion: int
    requests: int = 1
    cached: int = 0
    cost: float | None = None
    seconds: float = 0.0
    first: float | None = None
    tools: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """As a record of a thread."""
        return {
            "k": "usage",
            "model": self.model,
            "prompt": self.prompt,
            "completion": self.completion,
            "requests": self.requests,
            "cached": self.cached,
            "cost": self.cost,
            "seconds": round(self.seconds, 3),
            "first": None if self.first is None else round(self.first, 3),
            "tools": round(self.tools, 3),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> TurnUsage | None:
        """From a record; None when it is none."""
        match record:
            case {"model": str(model), "prompt": int(prompt), "completion": int(completion)}:
                cost, first = _real(record.get("cost")), _real(record.get("first"))
                return cls(
                    model,
                    prompt,
                    completion,
                    requests=int(_real(record.get("requests")) or 0),
                    cached=int(_real(record.get("cached")) or 0),
                    cost=cost,
                    seconds=_real(record.get("seconds")) or 0.0,
                    first=first,
                    tools=_real(record.get("tools")) or 0.0,
                )
            case _:
                return None


def _real(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


@dataclass(frozen=True, slots=True)
class Total:
    """A sum over turns. `unpriced` turns have no known price; `cost` is the sum of the others."""

    turns: int = 0
    requests: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cost: float = 0.0
    unpriced: int = 0
    seconds: float = 0.0
    tools: float = 0.0


def total(turns: Iterable[TurnUsage]) -> Total:
    """The sum."""
    found = list(turns)
    return Total(
        turns=len(found),
        requests=sum(each.requests for each in found),
        prompt=sum(each.prompt for each in found),
        completion=sum(each.completion for each in found),
        cached=sum(each.cached for each in found),
        cost=sum(each.cost for each in found if each.cost is not None),
        unpriced=sum(1 for each in found if each.cost is None),
        seconds=sum(each.seconds for each in found),
        tools=sum(each.tools for each in found),
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
        entry = {"time": now, "model": model, "cost": cost, "prompt": prompt, "completion": completion}
        with contextlib.suppress(OSError):
            append_json(self.file, [entry])

    def this_month(self) -> float:
        """US dollars spent since the first of the month, as far as prices are known."""
        month = f"{self.clock():%Y-%m}"
        try:
            entries = json_lines(self.file)
        except OSError:
            return 0.0
        return sum(_cost(entry) for entry in entries if str(entry.get("time", "")).startswith(month))

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

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """As the inner provider's. Raises `ProviderError` SPENDING_CAP instead of sending what may cost too much."""
        price = (await asyncio.to_thread(self.facts, self.name)).price
        spending = self.spending()
        if spending.cap is not None and price is not None:
            tokens = estimate_messages(request.messages) + estimate_offers(request.tools)
            likely = price.estimate(tokens, request.max_tokens or USUAL_REPLY)
            if (refusal := await asyncio.to_thread(spending.refusal, likely)) is not None:
                raise ProviderError(refusal.message, code=refusal.code)
        async with contextlib.aclosing(closing(self.inner.stream(request))) as deltas:
            async for delta in deltas:
                if isinstance(delta, Finished) and delta.usage is not None and not self.local:
                    cost = price.of(delta.usage) if price is not None else None
                    spending.add(self.name, cost, delta.usage.prompt_tokens, delta.usage.completion_tokens)
                yield delta


def _cost(entry: Mapping[str, Any]) -> float:
    cost = entry.get("cost")
    return float(cost) if isinstance(cost, int | float) else 0.0
