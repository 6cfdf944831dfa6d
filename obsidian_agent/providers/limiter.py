"""How often a service is asked: a token bucket for each, ahead of every request, retries and rounds of an agent included."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from obsidian_agent.errors import Problem
from obsidian_agent.providers.base import AroundProvider, ChatDelta, ChatRequest, Waiting
from obsidian_agent.providers.retry import closing

REQUESTS = 10
"""Requests that may go out at once, and in a minute from then on."""

MINUTE = 60.0


@dataclass(slots=True)
class TokenBucket:
    """`capacity` tokens, refilled evenly in `period` seconds. Who takes one that is not there yet is told how long to wait for it."""

    capacity: int = REQUESTS
    period: float = MINUTE
    clock: Callable[[], float] = time.monotonic
    _tokens: float = field(init=False)
    _at: float = field(init=False)

    def __post_init__(self) -> None:
        self._tokens = float(self.capacity)
        self._at = self.clock()

    def take(self) -> float:
        """Take a token. Seconds until it is there: 0.0 when it is, more for each who waits already."""
        now = self.clock()
        self._tokens = min(float(self.capacity), self._tokens + max(0.0, now - self._at) * self.capacity / self.period)
        self._at = now
        self._tokens -= 1
        return max(0.0, -self._tokens * self.period / self.capacity)

    def give_back(self) -> None:
        """Undo a `take` whose request never went out."""
        self._tokens = min(float(self.capacity), self._tokens + 1)


@dataclass(slots=True)
class RateLimits:
    """The bucket of each service, shared by everything in the program that asks it."""

    make: Callable[[], TokenBucket] = TokenBucket
    _buckets: dict[str, TokenBucket] = field(default_factory=dict)

    def bucket(self, service: str) -> TokenBucket:
        """The bucket of a service, by any name that is always the same."""
        if service not in self._buckets:
            self._buckets[service] = self.make()
        return self._buckets[service]


@dataclass(frozen=True, slots=True)
class LimitedProvider(AroundProvider):
    """A provider that is asked no more often than its bucket allows; a wait is shown as `Waiting` before the first attempt."""

    bucket: TokenBucket
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """As the inner provider's, when it is its turn."""
        seconds = self.bucket.take()
        if seconds > 0:
            sent = False
            try:
                message = f"At most {self.bucket.capacity} requests in {self.bucket.period:.0f} s go to {self.name}."
                yield Waiting(seconds, 1, 1, Problem("RATE_LIMIT_WAIT", message))
                await self.sleep(seconds)
                sent = True
            finally:
                if not sent:
                    self.bucket.give_back()
        async with contextlib.aclosing(closing(self.inner.stream(request))) as deltas:
            async for delta in deltas:
                yield delta
