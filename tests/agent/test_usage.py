"""The costs of models, and the spending cap."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from agents import Desk, scripted
from obsidian_agent.agent.events import Answer, TurnFailed
from obsidian_agent.agent.usage import CountedProvider, MonthlyCost
from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.base import ChatMessage, ChatRequest
from obsidian_agent.providers.prices import ModelFacts, Price
from obsidian_agent.providers.scripted import ScriptedProvider

REQUEST = ChatRequest((ChatMessage("user", "Hi"),), max_tokens=1_000)
FACTS = ModelFacts(100_000, None, Price(1e-3, 1e-3, 1e-3))


def remote(*answers: dict[str, object]) -> ScriptedProvider:
    """Return a script that is played elsewhere."""
    return ScriptedProvider("openai/test", scripted(*answers).answers)


@pytest.fixture
def spending(tmp_path: Path) -> MonthlyCost:
    return MonthlyCost(
        tmp_path / "state" / "spending.jsonl", lambda: datetime(2026, 3, 14, tzinfo=UTC), cap=50.0
    )


def counted(
    provider: ScriptedProvider, spending: MonthlyCost, facts: ModelFacts = FACTS
) -> CountedProvider:
    return CountedProvider(provider, lambda: spending, lambda name: facts)


async def ask(provider: CountedProvider) -> int:
    return len([delta async for delta in provider.stream(REQUEST)])


async def test_every_request_is_written_down(spending: MonthlyCost) -> None:
    provider = counted(remote({"text": "A", "usage": [20_000, 10_000, 0]}, {"text": "B"}), spending)
    await ask(provider)
    await ask(provider)
    assert spending.this_month() == 30.0
    assert len(spending.file.read_text(encoding="utf-8").splitlines()) == 1, (
        "what the service does not count costs nothing that we know"
    )
    april = replace(spending, clock=lambda: datetime(2026, 4, 1, tzinfo=UTC))
    assert april.this_month() == 0.0


async def test_what_may_cost_too_much_is_not_sent(spending: MonthlyCost) -> None:
    inner = remote({"text": "A", "usage": [20_000, 10_000]}, {"text": "B"})
    await ask(counted(inner, spending))
    with pytest.raises(ProviderError) as caught:
        await ask(counted(inner, replace(spending, cap=31.0)))
    assert caught.value.code == "SPENDING_CAP"
    assert len(inner.requests) == 1
    await ask(counted(inner, replace(spending, cap=None)))
    assert len(inner.requests) == 2


async def test_a_model_without_a_known_price_is_not_held_to_it(spending: MonthlyCost) -> None:
    inner = remote({"text": "A", "usage": [10**9, 10**9]}, {"text": "B"})
    for _ in range(2):
        await ask(counted(inner, spending, ModelFacts()))
    assert spending.this_month() == 0.0


async def test_a_turn_that_would_cost_too_much_fails_and_says_why(
    desk: Desk, spending: MonthlyCost
) -> None:
    inner = remote({"text": "A"})
    events = await desk.turn(counted(inner, replace(spending, cap=0.5)))
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].problem.code == "SPENDING_CAP"
    assert "$0.50" in events[-1].problem.message
    assert not inner.requests
    assert isinstance((await desk.turn(counted(inner, spending)))[-1], Answer)


async def test_a_disk_that_takes_nothing_loses_no_answer(spending: MonthlyCost) -> None:
    spending.file.mkdir(parents=True)
    assert await ask(counted(remote({"text": "A", "usage": [1, 1]}), spending)) == 2
