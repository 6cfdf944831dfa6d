from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.base import ChatDelta, ChatMessage, ChatRequest, Finished, TextChunk, Waiting
from obsidian_agent.providers.middleware import RetryingProvider, RetryPolicy

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


@dataclass
class Clock:
    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


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
    assert deltas == [Waiting(0.5, 2, 3, busy().problem()), Waiting(1.0, 3, 3, busy().problem()), *GOOD]
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


@given(st.integers(1, 20), st.floats(0, 1, exclude_max=True))
def test_delays_double_up_to_thirty_seconds_with_full_jitter(failed: int, spread: float) -> None:
    delay = RetryPolicy(attempts=99).delay(failed, busy(), spread)
    assert delay is not None
    assert 0 <= delay <= min(30.0, 2.0 ** (failed - 1))
    assert RetryPolicy(attempts=99).delay(failed, busy(), 0.999999) == pytest.approx(min(30.0, 2.0 ** (failed - 1)), rel=1e-3)
