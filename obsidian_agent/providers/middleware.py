"""Providers around another provider: asking again after a failure that may pass, asking no more often than allowed."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from obsidian_agent.dataclass import dataclass, field, replace
from obsidian_agent.errors import Problem, ProviderError
from obsidian_agent.providers.base import SILENCE, ChatDelta, ChatRequest, Provider, Waiting


@dataclass(frozen=True, slots=True)
class AroundProvider:
    """What providers around another one share: they are that one by name and place, and only treat its stream differently."""

    inner: Provider

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def address(self) -> str:
        return self.inner.address

    @property
    def local(self) -> bool:
        """Whether the inner provider is on this machine."""
        return self.inner.local


SHORTEST_ATTEMPT: Final = 0.1
"""Share of the permitted silence that must be left for another attempt."""
SILENT: Final = frozenset({"API_TIMEOUT", "API_NETWORK"})
"""Failures in which the service gave no answer, so that its silence goes on."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Pauses of `base_delay` doubling up to `max_delay` seconds with full jitter, or what the service asks for.

    A service that asks for more than `longest_request` seconds is not waited for: the person is told instead.
    """

    attempts: int = 3
    base_delay: float = 1.0
    max_delay: float = 30.0
    longest_request: float = 60.0

    def delay(self, failed: int, error: ProviderError, spread: float) -> float | None:
        """Seconds before the attempt after `failed` (from 1) failed ones; None when it should not be tried again. `spread` in [0, 1)."""
        if not error.retryable or failed >= self.attempts:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.longest_request else None
        return spread * min(self.max_delay, self.base_delay * float(2 ** (failed - 1)))


@dataclass(frozen=True, slots=True)
class RetryingProvider(AroundProvider):
    """A provider whose passing failures are met by asking again, up to the first text of the answer.

    `silence`: seconds without a sign of the service, over all attempts, where a request names none.
    """

    policy: RetryPolicy = RetryPolicy()
    silence: float = SILENCE
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    spread: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """As the inner provider's, with `Waiting` before each further attempt."""
        allowed = self.silence if request.timeout is None else request.timeout
        heard = (
            self.clock()
        )  # when the service last gave a sign, or a wait ended that was announced
        for attempt in range(1, self.policy.attempts + 1):
            begun = False
            failure: ProviderError | None = None
            left = allowed - (self.clock() - heard)
            asked = replace(request, timeout=left)
            async with contextlib.aclosing(self.inner.stream(asked)) as deltas:
                try:
                    async for delta in deltas:
                        if isinstance(delta, Waiting):
                            heard = self.clock() + delta.seconds
                        begun = begun or not isinstance(delta, Waiting)
                        yield delta
                except ProviderError as error:
                    failure = error
            if failure is None:
                return
            delay = None if begun else self.policy.delay(attempt, failure, self.spread())
            if delay is None:
                raise failure
            if failure.code not in SILENT:
                heard = self.clock() + delay
            elif self.clock() + delay - heard > allowed * (1 - SHORTEST_ATTEMPT):
                raise failure
            yield Waiting(delay, attempt + 1, self.policy.attempts, failure.problem())
            await self.sleep(delay)


REQUESTS = 10
"""Requests that may go out at once, and in a minute from then on."""

MINUTE = 60.0
"""Seconds in which the requests that may go out are refilled."""


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
        self._tokens = min(
            float(self.capacity),
            self._tokens + max(0.0, now - self._at) * self.capacity / self.period,
        )
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

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
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
        async with contextlib.aclosing(self.inner.stream(request)) as deltas:
            async for delta in deltas:
                yield delta
