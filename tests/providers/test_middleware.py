"""Answers in one piece."""

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
from obsidian_agent.providers.base import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    Finished,
    TextChunk,
    Waiting,
)
from obsidian_agent.providers.middleware import (
    LimitedProvider,
    RateLimits,
    RetryingProvider,
    RetryPolicy,
    TokenBucket,
)

REQUEST = ChatRequest((ChatMessage("user", "hi"),))


@dataclass
class Flaky:
    """Plays lists of deltas and errors, one list a request."""

    turns: list[list[ChatDelta | ProviderError]]
    asked: int = 0
    closed: int = 0
    name: str = "flaky/one"
    address: str = ""
    local: bool = True

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        turn = self.turns[self.asked]
        self.asked += 1
        try:
            for item in turn:
                if isinstance(item, ProviderError):
                    raise item
                yield item
        finally:
            self.closed += 1


def busy(retry_after: float | None = None) -> ProviderError:
    return ProviderError("busy", code="API_RATE_LIMIT", retryable=True, retry_after=retry_after)


def wrong() -> ProviderError:
    return ProviderError("wrong key", code="API_KEY_INVALID")


async def play(inner: Flaky, clock: Clock) -> list[ChatDelta]:
    provider = RetryingProvider(inner, sleep=clock.sleep, spread=lambda: 0.5)
    assert provider.name == "flaky/one"
    return [delta async for delta in provider.stream(REQUEST)]


GOOD: list[ChatDelta | ProviderError] = [TextChunk("ok"), Finished("stop")]


async def test_a_passing_failure_is_met_by_asking_again_visibly() -> None:
    inner, clock = Flaky([[busy()], [busy()], GOOD]), Clock()
    deltas = await play(inner, clock)
    assert deltas == [
        Waiting(0.5, 2, 3, busy().problem()),
        Waiting(1.0, 3, 3, busy().problem()),
        *GOOD,
    ]
    assert clock.slept == [0.5, 1.0]
    assert inner.closed == 3


async def test_three_attempts_and_no_more() -> None:
    inner, clock = Flaky([[busy()]] * 9), Clock()
    with pytest.raises(ProviderError, match="busy"):
        await play(inner, clock)
    assert (inner.asked, len(clock.slept)) == (3, 2)


async def test_a_failure_that_does_not_pass_is_told_at_once() -> None:
    inner, clock = Flaky([[wrong()], GOOD]), Clock()
    with pytest.raises(ProviderError, match="wrong key"):
        await play(inner, clock)
    assert (inner.asked, clock.slept) == (1, [])


@pytest.mark.parametrize("begun", [TextChunk("Once"), TextChunk("hm", thinking=True)])
async def test_nothing_is_asked_again_after_the_first_text(begun: TextChunk) -> None:
    inner, clock = Flaky([[begun, busy()], GOOD]), Clock()
    deltas = RetryingProvider(inner, sleep=clock.sleep).stream(REQUEST)
    assert await anext(deltas) == begun
    with pytest.raises(ProviderError, match="busy"):
        await anext(deltas)
    assert (inner.asked, clock.slept) == (1, [])


async def test_the_service_says_how_long_to_wait() -> None:
    inner, clock = Flaky([[busy(7.0)], GOOD]), Clock()
    await play(inner, clock)
    assert clock.slept == [7.0]


async def test_a_very_long_wait_is_the_persons_to_decide() -> None:
    inner, clock = Flaky([[busy(3600.0)], GOOD]), Clock()
    with pytest.raises(ProviderError):
        await play(inner, clock)
    assert clock.slept == []


async def test_closing_closes_the_request() -> None:
    inner = Flaky([GOOD])
    deltas = RetryingProvider(inner).stream(REQUEST)
    await anext(deltas)
    await deltas.aclose()  # type: ignore[attr-defined]
    assert inner.closed == 1


@dataclass
class Silent:
    """Fails after seconds of silence, as it is told to or when its request says so."""

    clock: Clock
    failures: list[tuple[float, str]]
    allowed: list[float] = field(default_factory=list)
    name: str = "silent/one"
    address: str = ""
    local: bool = True

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        assert request.timeout is not None
        seconds, code = self.failures[len(self.allowed)]
        self.allowed.append(request.timeout)
        self.clock.now += min(seconds, request.timeout)
        code = code if seconds < request.timeout else "API_TIMEOUT"
        raise ProviderError("silent", code=code, retryable=True)
        yield


@pytest.mark.parametrize(
    ("failures", "allowed", "seconds"),
    [
        ([(99.0, "")], [6.0], 6.0),
        ([(2.0, "API_NETWORK"), (99.0, "")], [6.0, 3.5], 6.0),
        ([(0.0, "API_NETWORK")] * 3, [6.0, 5.5, 4.5], 1.5),
        ([(5.9, "API_NETWORK")], [6.0], 5.9),
        ([(4.0, "API_SERVER"), (4.0, "API_SERVER"), (99.0, "")], [6.0, 6.0, 6.0], 15.5),
    ],
)
@pytest.mark.parametrize("setting", [6.0, None])
async def test_attempts_share_the_silence_that_is_permitted(
    failures: list[tuple[float, str]],
    allowed: list[float],
    seconds: float,
    setting: float | None,
) -> None:
    """A service that answers, if only with an error, is not silent."""
    clock = Clock()
    inner = Silent(clock, failures)
    provider = RetryingProvider(
        inner, silence=6.0, sleep=clock.sleep, spread=lambda: 0.5, clock=clock
    )
    with pytest.raises(ProviderError, match="silent"):
        async for _ in provider.stream(ChatRequest(REQUEST.messages, timeout=setting)):
            pass
    assert inner.allowed == allowed
    assert clock.now - 100 == pytest.approx(seconds)


@given(st.integers(1, 20), st.floats(0, 1, exclude_max=True))
def test_delays_double_up_to_thirty_seconds_with_full_jitter(failed: int, spread: float) -> None:
    delay = RetryPolicy(attempts=99).delay(failed, busy(), spread)
    assert delay is not None
    assert 0 <= delay <= min(30.0, 2.0 ** (failed - 1))
    assert RetryPolicy(attempts=99).delay(failed, busy(), 0.999999) == pytest.approx(
        min(30.0, 2.0 ** (failed - 1)), rel=1e-3
    )


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
    assert [bucket.acquire() for _ in range(12)] == [0.0] * 10 + [6.0, 12.0]
    clock.now += 12
    assert bucket.acquire() == pytest.approx(6.0)
    clock.now += 1000
    assert [bucket.acquire() for _ in range(11)] == [0.0] * 10 + [6.0]


@given(st.lists(st.floats(0, 30), min_size=1, max_size=200))
def test_no_minute_has_more_than_twenty_and_none_in_the_long_run(pauses: list[float]) -> None:
    """Any window of a period holds at most the capacity and the refill of a bucket."""
    clock = Clock()
    bucket = TokenBucket(clock=clock)
    sent = []
    for pause in pauses:
        clock.now += pause
        sent.append(clock.now + bucket.acquire())
    assert sent == sorted(sent)
    for start in sent:
        assert sum(start <= at < start + 60 for at in sent) <= 20
    assert len(sent) <= 10 + (sent[-1] - 100) / 6 + 1e-6


async def test_a_wait_is_shown_and_waited_for() -> None:
    clock, service = Clock(), Service()
    provider = LimitedProvider(service, TokenBucket(2, 60.0, clock), clock.sleep)
    for _ in range(2):
        assert [delta async for delta in provider.stream(REQUEST)] == [
            TextChunk("ok"),
            Finished("stop"),
        ]
    waiting, *rest = [delta async for delta in provider.stream(REQUEST)]
    assert isinstance(waiting, Waiting)
    assert (waiting.seconds, waiting.attempt, waiting.attempts) == (30.0, 1, 1)
    assert "At most 2 requests in 60 s are sent to service" in waiting.problem.message
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
    bucket.acquire()

    async def forever(seconds: float) -> None:
        await asyncio.Event().wait()

    deltas = cast(
        "AsyncGenerator[ChatDelta, None]", LimitedProvider(service, bucket, forever).stream(REQUEST)
    )
    assert isinstance(await anext(deltas), Waiting)
    task = asyncio.ensure_future(anext(deltas))
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert service.asked == 0
    assert bucket.acquire() == 60.0, "no other call is waiting"


def test_each_service_has_one_bucket() -> None:
    limits = RateLimits()
    assert limits.bucket("a") is limits.bucket("a")
    assert limits.bucket("a") is not limits.bucket("b")
