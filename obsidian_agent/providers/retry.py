"""Asking again when a failure may pass: visibly, with growing pauses, and never after something of the answer was shown."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.base import AroundProvider, ChatDelta, ChatRequest, Waiting


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
    """A provider whose passing failures are met by asking again, up to the first text of the answer."""

    policy: RetryPolicy = RetryPolicy()
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    spread: Callable[[], float] = random.random

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """As the inner provider's, with `Waiting` before each further attempt."""
        for attempt in range(1, self.policy.attempts + 1):
            begun = False
            failure: ProviderError | None = None
            async with contextlib.aclosing(closing(self.inner.stream(request))) as deltas:
                try:
                    async for delta in deltas:
                        begun = begun or not isinstance(delta, Waiting)
                        yield delta
                except ProviderError as error:
                    failure = error
            if failure is None:
                return
            delay = None if begun else self.policy.delay(attempt, failure, self.spread())
            if delay is None:
                raise failure
            yield Waiting(delay, attempt + 1, self.policy.attempts, failure.problem())
            await self.sleep(delay)


async def closing(deltas: AsyncIterator[ChatDelta]) -> AsyncGenerator[ChatDelta, None]:
    """The iterator with a certain `aclose`: closing it closes the iterator, if that can be closed."""
    try:
        async for delta in deltas:
            yield delta
    finally:
        close = getattr(deltas, "aclose", None)
        if close is not None:
            await close()
