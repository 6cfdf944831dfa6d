"""The usage of turns (tokens, money, time), and the monthly cost of models with a cap.

One file covers all vaults. Figures are list prices and the token counts of the service. A model
without a known price cannot be held to the cap, and is reported separately.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from obsidian_agent.agent.events import (
    AgentEvent,
    ShareRequested,
    TextDelta,
    TokensUsed,
)
from obsidian_agent.agent.token_budget import (
    USUAL_REPLY,
    estimate_messages,
    estimate_offers,
)
from obsidian_agent.errors import Problem, ProviderError
from obsidian_agent.providers.base import ChatDelta, ChatRequest, Finished, Usage
from obsidian_agent.providers.middleware import AroundProvider
from obsidian_agent.providers.prices import ModelFacts, Price, facts_of
from obsidian_agent.state_files import append_json, json_lines


class Meter(Struct):
    """The usage of one turn.

    `price` is None if it is unknown. `tools` are the seconds spent in tool calls, `first` those
    from the first request to the first text.
    """

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
    _tools_since: float | None = None

    def count_request(self) -> None:
        """Count a request that is about to be sent."""
        self._began = self.clock() if self._began is None else self._began
        self.requests += 1

    def handle(self, event: AgentEvent) -> None:
        """Measure the time to the first text."""
        if isinstance(event, TextDelta) and self.first is None and self._began is not None:
            self.first = self.clock() - self._began

    def add_usage(self, usage: Usage | None) -> None:
        """Add the tokens of an answer."""
        if usage is None:
            return
        self.prompt += usage.prompt_tokens
        self.completion += usage.completion_tokens
        self.cached += usage.cached_tokens

    def time_tools(self, event: AgentEvent | None = None, *, finished: bool = False) -> None:
        """Measure the time of tool calls, without the time in which the user decides.

        Call it when the calls begin, with each event, and when they are `finished`.
        """
        now = self.clock()
        if self._tools_since is not None:
            self.tools += now - self._tools_since
        is_user_deciding = isinstance(event, ShareRequested)
        self._tools_since = None if finished or is_user_deciding else now

    def total(self) -> TokensUsed:
        """Return the usage so far."""
        cost: float | None = None
        if self.price is not None:
            cost = self.price.of(Usage(self.prompt, self.completion, self.cached))
        seconds = self.clock() - self._began if self._began is not None else 0.0
        return TokensUsed(
            model=self.model,
            prompt=self.prompt,
            completion=self.completion,
            requests=self.requests,
            cached=self.cached,
            cost=cost,
            seconds=seconds,
            first=self.first,
            tools=self.tools,
        )


def total(turns: Sequence[TokensUsed]) -> TokensUsed:
    """Return the sum over turns. `cost` covers the known prices; None if no price is known."""
    costs = [turn.cost for turn in turns if turn.cost is not None]
    return TokensUsed(
        "",
        prompt=sum(turn.prompt for turn in turns),
        completion=sum(turn.completion for turn in turns),
        requests=sum(turn.requests for turn in turns),
        cached=sum(turn.cached for turn in turns),
        cost=sum(costs) if costs else None,
        seconds=sum(turn.seconds for turn in turns),
        tools=sum(turn.tools for turn in turns),
    )


class MonthlyCost(Struct, frozen=True):
    """The cost of the requests in the current calendar month, in US dollars.

    `file` has a JSON line per request; `cap` is the most that may be spent, None without a limit.
    """

    file: Path
    clock: Callable[[], datetime]
    cap: float | None = None

    def add(self, model: str, cost: float | None, prompt: int, completion: int) -> None:
        """Record a request. Write errors are ignored, so that the answer is not lost."""
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
        """Return the US dollars spent since the first of the month, where prices are known."""
        month = f"{self.clock():%Y-%m}"
        try:
            entries = json_lines(self.file)
        except OSError:
            return 0.0
        return sum(
            _cost(entry) for entry in entries if str(entry.get("time", "")).startswith(month)
        )

    def refusal(self, estimate: float | None) -> Problem | None:
        """Return the reason not to send a request of this estimated cost; None to send it.

        An unknown cost (`estimate` None) is never refused.
        """
        if self.cap is None or not estimate:
            return None
        spent = self.this_month()
        if spent + estimate <= self.cap:
            return None
        message = (
            f"This request may cost ${estimate:.4f}; "
            f"${spent:.2f} of ${self.cap:.2f} for this month are spent. "
            "Raise the spending cap in the settings, or choose another model."
        )
        return Problem("SPENDING_CAP", message)


class CountedProvider(AroundProvider, frozen=True):
    """A provider that checks every request against the cap and records its cost."""

    spending: Callable[[], MonthlyCost]
    facts: Callable[[str], ModelFacts] = facts_of

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Stream the answer of the inner provider.

        Raises `ProviderError` SPENDING_CAP instead of sending a request that may exceed the cap.
        """
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
