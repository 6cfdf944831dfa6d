"""Lists of models: over the wire, remembered, and not asked for too often."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from pydantic import SecretStr

from llm_server import KEY, Failure, LlmServer, Raw
from obsidian_agent.errors import ConfigError, ProviderError
from obsidian_agent.providers.base import Provider
from obsidian_agent.providers.litellm_client import Endpoint
from obsidian_agent.providers.registry import (
    REMEMBERED,
    SHORTEST,
    VENDORS,
    Catalogue,
    ProviderManager,
    endpoint_of,
    find_vendor,
    open_provider,
)


def manager(server: LlmServer, vendor: str, key: str | None = KEY) -> ProviderManager:
    url = server.url if vendor in ("anthropic", "ollama") else server.openai_url
    return ProviderManager({vendor: url}, find_key=lambda _: SecretStr(key) if key else None)


@pytest.mark.parametrize("vendor", [vendor.name for vendor in VENDORS])
async def test_every_service_tells_its_models(vendor: str, llm_server: LlmServer) -> None:
    names = ("llama3", "qwen3:8b") if vendor == "ollama" else ("a-model", "b-model", "c-model")
    assert await manager(llm_server, vendor).models(vendor) == tuple(f"{vendor}/{name}" for name in names)
    assert len(llm_server.requests) == 1


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (Failure(401, f"Incorrect API key provided: {KEY}"), "API_KEY_INVALID"),
        (Failure(500, "oops"), "API_SERVER"),
        (Raw(b"<html>wifi</html>", "text/html"), "API_BAD_RESPONSE"),
        (Raw(b"not json", "application/json"), "API_BAD_RESPONSE"),
    ],
)
async def test_failures_are_named_and_hold_no_key(behaviour: Failure | Raw, code: str, llm_server: LlmServer) -> None:
    llm_server.play(behaviour)
    with pytest.raises(ProviderError) as caught:
        await manager(llm_server, "openai").models("openai")
    assert caught.value.code == code
    assert KEY not in str(caught.value.problem())


async def test_without_a_service_or_a_name_there_is_no_list() -> None:
    with pytest.raises(ProviderError) as caught:
        await ProviderManager({"custom": "http://127.0.0.1:9/v1"}).models("custom")
    assert caught.value.code == "API_NETWORK"
    with pytest.raises(ConfigError):
        await ProviderManager().models("nobody")


@dataclass
class Service:
    """Counts how often it is asked."""

    asked: int = 0
    fail: bool = False
    now: float = 100.0
    wait: asyncio.Event = field(default_factory=asyncio.Event)

    async def fetch(self, endpoint: Endpoint, key: SecretStr | None) -> tuple[str, ...]:
        self.asked += 1
        await self.wait.wait()
        if self.fail:
            raise ProviderError("no")
        return (f"m{self.asked}",)


async def test_a_list_is_good_for_half_a_minute_and_two_seconds_lie_between_questions() -> None:
    service = Service()
    service.wait.set()
    catalogue = Catalogue(service.fetch, lambda: service.now)
    endpoint, key = endpoint_of(find_vendor("ollama"), "")
    assert await catalogue.models(endpoint, key) == ("m1",)
    service.now += REMEMBERED - 0.1
    assert await catalogue.models(endpoint, key) == ("m1",)
    assert await catalogue.models(endpoint, key, fresh=True) == ("m2",)
    service.now += SHORTEST - 0.1
    assert await catalogue.models(endpoint, key, fresh=True) == ("m2",)
    service.now += REMEMBERED
    assert await catalogue.models(endpoint, key) == ("m3",)


async def test_two_who_ask_at_once_share_one_question() -> None:
    service = Service()
    catalogue = Catalogue(service.fetch, lambda: service.now)
    endpoint, key = endpoint_of(find_vendor("ollama"), "")
    both = asyncio.gather(catalogue.models(endpoint, key), catalogue.models(endpoint, key))
    await asyncio.sleep(0)
    service.wait.set()
    assert await both == [("m1",), ("m1",)]


async def test_a_failure_is_not_asked_for_again_at_once() -> None:
    service = Service(fail=True)
    service.wait.set()
    catalogue = Catalogue(service.fetch, lambda: service.now)
    endpoint, key = endpoint_of(find_vendor("ollama"), "")
    for _ in range(3):
        with pytest.raises(ProviderError):
            await catalogue.models(endpoint, key)
    assert service.asked == 1
    service.now += SHORTEST
    service.fail = False
    assert await catalogue.models(endpoint, key) == ("m2",)


def test_a_provider_is_made_once_and_an_address_is_for_one_service_alone() -> None:
    made = ProviderManager({"openai": "https://mine.example/v1"}, find_key=lambda _: None)
    one: Provider = made.get("openai/x")
    assert made.get("openai/x") is one
    assert made.get("openai/y") is not one
    assert one.address == "https://mine.example"
    assert made.get("anthropic/x").address == "https://api.anthropic.com"
    made.forget()
    assert made.get("openai/x") is not one
    assert open_provider("openai/x", find_key=lambda _: None).address == "https://api.openai.com"


def test_warming_up_sends_nothing(llm_server: LlmServer) -> None:
    made = manager(llm_server, "openai")
    made.warm_up("openai/x")
    made.warm_up("scripted/x.jsonl")
    assert not llm_server.requests
    assert not llm_server.connects
