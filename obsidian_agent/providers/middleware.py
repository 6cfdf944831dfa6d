"""Wrappers of providers: retries after temporary failures, and a rate limit."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from obsidian_agent.errors import Problem, ProviderError
from obsidian_agent.providers.base import SILENCE, ChatDelta, ChatRequest, Provider, Waiting

SHORTEST_ATTEMPT: Final = 0.1
"""Share of the permitted silence that must remain for another attempt."""
SILENT: Final = frozenset({"API_TIMEOUT", "API_NETWORK"})
"""Failures without an answer, after which the silence continues."""
REQUESTS: Final = 10
"""Requests that may be sent at once, and per minute afterwards."""
MINUTE: Final = 60.0
"""Seconds in which a bucket is refilled."""


class AroundProvider(Struct, frozen=True):
    """The base of wrappers, which have the name and address of the inner provider."""

    inner: Provider

    @property
    def name(self) -> str:
        """The name of the inner provider."""
        return self.inner.name

    @property
    def address(self) -> str:
        """The address of the inner provider."""
        return self.inner.address

    @property
    def local(self) -> bool:
        """True if the inner provider is on this machine."""
        return self.inner.local


class RetryPolicy(Struct, frozen=True):
    """Exponential backoff with full jitter, unless the service requests a pause.

    Delays double from `base_delay` up to `max_delay` seconds. A request for a pause of more than
    `longest_request` seconds is reported instead.
    """

    attempts: int = 3
    base_delay: float = 1.0
    max_delay: float = 30.0
    longest_request: float = 60.0

    def delay(self, failed: int, error: ProviderError, spread: float) -> float | None:
        """Return the seconds before the next attempt, or None if there should be none.

        `failed` is the number of failed attempts, `spread` the jitter in [0, 1).
        """
        if not error.retryable or failed >= self.attempts:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.longest_request else None
        return spread * min(self.max_delay, self.base_delay * float(2 ** (failed - 1)))


class RetryingProvider(AroundProvider, frozen=True):
    """A provider that repeats a request after a temporary failure before the first text.

    `silence` is the default timeout in seconds without a sign of the service, over all attempts.
    """

    policy: RetryPolicy = RetryPolicy()
    silence: float = SILENCE
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    spread: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Stream the inner provider's deltas, with `Waiting` before each further attempt."""
        allowed = self.silence if request.timeout is None else request.timeout
        # The time of the last sign of the service, or of the end of an announced wait.
        last_sign = self.clock()
        for attempt in range(1, self.policy.attempts + 1):
            begun = False
            failure: ProviderError | None = None
            remaining = allowed - (self.clock() - last_sign)
            attempt_request = replace(request, timeout=remaining)
            async with contextlib.aclosing(self.inner.stream(attempt_request)) as deltas:
                try:
                    async for delta in deltas:
                        if isinstance(delta, Waiting):
                            last_sign = self.clock() + delta.seconds
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
                last_sign = self.clock() + delay
            elif self.clock() + delay - last_sign > allowed * (1 - SHORTEST_ATTEMPT):
                raise failure
            yield Waiting(delay, attempt + 1, self.policy.attempts, failure.problem())
            await self.sleep(delay)


class TokenBucket:
    """A bucket of `capacity` tokens that is refilled evenly in `period` seconds."""

    def __init__(
        self,
        capacity: int = REQUESTS,
        period: float = MINUTE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capacity = capacity
        self.period = period
        self.clock = clock
        self._tokens = float(capacity)
        self._at = clock()

    def acquire(self) -> float:
        """Remove a token. Return the seconds until it is available, 0.0 if it is now."""
        now = self.clock()
        self._tokens = min(
            float(self.capacity),
            self._tokens + max(0.0, now - self._at) * self.capacity / self.period,
        )
        self._at = now
        self._tokens -= 1
        return max(0.0, -self._tokens * self.period / self.capacity)

    def give_back(self) -> None:
        """Return the token of a request that was not sent."""
        self._tokens = min(float(self.capacity), self._tokens + 1)


class RateLimits(Struct):
    """The buckets of the services, shared by the whole program."""

    make: Callable[[], TokenBucket] = TokenBucket
    _buckets: dict[str, TokenBucket] = field(default_factory=dict)

    def bucket(self, service: str) -> TokenBucket:
        """Return the bucket of a service."""
        if service not in self._buckets:
            self._buckets[service] = self.make()
        return self._buckets[service]


class LimitedProvider(AroundProvider, frozen=True):
    """A rate-limited provider, which yields `Waiting` before it waits for its bucket."""

    bucket: TokenBucket
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Stream the inner provider's deltas when the bucket allows it."""
        seconds = self.bucket.acquire()
        if seconds > 0:
            sent = False
            try:
                message = (
                    f"At most {self.bucket.capacity} requests in {self.bucket.period:.0f} s are "
                    f"sent to {self.name}."
                )
                yield Waiting(seconds, 1, 1, Problem("RATE_LIMIT_WAIT", message))
                await self.sleep(seconds)
                sent = True
            finally:
                if not sent:
                    self.bucket.give_back()
        async with contextlib.aclosing(self.inner.stream(request)) as deltas:
            async for delta in deltas:
                yield delta
