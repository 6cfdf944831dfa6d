from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.base import ChatDelta, ChatMessage, ChatRequest, Finished, TextChunk, Waiting
from obsidian_agent.providers.middleware import LimitedProvider, RateLimits, RetryingProvider, TokenBucket

REQUEST = ChatRequest((ChatMessage("user", "hi"),))


@dataclass
class Clock:
    now: float = 100.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass
class Service:
    """Fails as often as told, then answers."""

    failures: int = 0
    asked: int = 0
    name: str = "service"
    address: str = "https://service.example"
    local: bool = False

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        self.asked += 1
        if self.asked <= self.failures:
            raise ProviderError("Busy.", code="API_SERVER", retryable=True)
        yield TextChunk("ok")
        yield Finished("stop")


def test_ten_at_once_then_one_every_six_seconds() -> None:
    clock = Clock()
    bucket = TokenBucket(clock=clock)
    assert [bucket.take() for _ in range(12)] == [0.0] * 10 + [6.0, 12.0]
    clock.now += 12
    assert bucket.take() == pytest.approx(6.0)
    clock.now += 1000
    assert [bucket.take() for _ in range(11)] == [0.0] * 10 + [6.0]


@given(st.lists(st.floats(0, 30), min_size=1, max_size=200))
def test_no_minute_has_more_than_twenty_and_none_in_the_long_run(pauses: list[float]) -> None:
    """A bucket lets `capacity` out at once and as many in a period, so any window of time holds at most the sum of both."""
    clock = Clock()
    bucket = TokenBucket(clock=clock)
    sent = []
    for pause in pauses:
        clock.now += pause
        sent.append(clock.now + bucket.take())
    assert sent == sorted(sent)
    for start in sent:
        assert sum(start <= at < start + 60 for at in sent) <= 20
    assert len(sent) <= 10 + (sent[-1] - 100) / 6 + 1e-6


async def test_a_wait_is_shown_and_waited_for() -> None:
    clock, service = Clock(), Service()
    provider = LimitedProvider(service, TokenBucket(2, 60.0, clock), clock.sleep)
    for _ in range(2):
        assert [delta async for delta in provider.stream(REQUEST)] == [TextChunk("ok"), Finished("stop")]
    waiting, *rest = [delta async for delta in provider.stream(REQUEST)]
    assert isinstance(waiting, Waiting)
    assert (waiting.seconds, waiting.attempt, waiting.attempts) == (30.0, 1, 1)
    assert "At most 2 requests in 60 s go to service" in waiting.problem.message
    assert rest == [TextChunk("ok"), Finished("stop")]
    assert clock.slept == [30.0]


async def test_retries_are_counted_and_a_wait_is_no_answer() -> None:
    clock, service = Clock(), Service(failures=2)
    limited = LimitedProvider(service, TokenBucket(1, 60.0, clock), clock.sleep)
    provider = RetryingProvider(limited, sleep=clock.sleep, spread=lambda: 0.0)
    deltas = [delta async for delta in provider.stream(REQUEST)]
    assert deltas[-2:] == [TextChunk("ok"), Finished("stop")]
    assert service.asked == 3
    assert [delta.problem.code for delta in deltas if isinstance(delta, Waiting)] == [
        "API_SERVER",
        "RATE_LIMIT_WAIT",
        "API_SERVER",
        "RATE_LIMIT_WAIT",
    ]
    assert [seconds for seconds in clock.slept if seconds] == [60.0, 60.0]


async def test_who_gives_up_waiting_gives_the_token_back() -> None:
    clock, service = Clock(), Service()
    bucket = TokenBucket(1, 60.0, clock)
    bucket.take()

    async def forever(seconds: float) -> None:
        await asyncio.Event().wait()

    deltas = cast("AsyncGenerator[ChatDelta, None]", LimitedProvider(service, bucket, forever).stream(REQUEST))
    assert isinstance(await anext(deltas), Waiting)
    task = asyncio.ensure_future(anext(deltas))
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert service.asked == 0
    assert bucket.take() == 60.0, "nobody else is waiting"


def test_each_service_has_one_bucket() -> None:
    limits = RateLimits()
    assert limits.bucket("a") is limits.bucket("a")
    assert limits.bucket("a") is not limits.bucket("b")
