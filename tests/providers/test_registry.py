from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import SecretStr

from llm_server import KEY, Failure, LlmServer, Raw, Reply
from obsidian_agent.bootstrap import Wiring, build_keys, build_session
from obsidian_agent.errors import ConfigError, ProviderError
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Provider
from obsidian_agent.providers.litellm_client import Endpoint, LiteLLMProvider
from obsidian_agent.providers.middleware import LimitedProvider, RateLimits, RetryingProvider
from obsidian_agent.providers.registry import (
    LIST_SECONDS,
    SHORTEST,
    VENDORS,
    Catalogue,
    ProviderManager,
    endpoint_of,
    environment_key,
    find_vendor,
    open_provider,
)
from obsidian_agent.providers.scripted import ScriptedProvider
from support import MakeVault, settings_with


def endpoint(spec: str, base_url: str | None = None) -> Endpoint:
    provider = open_provider(spec, base_url=base_url)
    assert isinstance(provider, RetryingProvider)
    assert provider.name == spec
    inner = provider.inner.inner if isinstance(provider.inner, LimitedProvider) else provider.inner
    assert isinstance(inner, LiteLLMProvider)
    return inner.endpoint


@pytest.mark.parametrize(
    ("spec", "dialect", "model", "base_url"),
    [
        ("openai/gpt-x", "openai", "gpt-x", "https://api.openai.com/v1"),
        ("anthropic/claude-x", "anthropic", "claude-x", "https://api.anthropic.com"),
        (
            "gemini/gemini-x",
            "openai",
            "gemini-x",
            "https://generativelanguage.googleapis.com/v1beta/openai",
        ),
        (
            "openrouter/anthropic/claude-x",
            "openai",
            "anthropic/claude-x",
            "https://openrouter.ai/api/v1",
        ),
        ("zenmux/openai/gpt-x", "openai", "openai/gpt-x", "https://zenmux.ai/api/v1"),
        ("ollama/qwen3:4b", "ollama_chat", "qwen3:4b", "http://localhost:11434"),
        ("lm_studio/qwen", "openai", "qwen", "http://localhost:1234/v1"),
    ],
)
def test_each_vendor_has_its_address(spec: str, dialect: str, model: str, base_url: str) -> None:
    found = endpoint(spec)
    assert (found.dialect, found.model, found.base_url) == (dialect, model, base_url)
    assert found.direct is base_url.startswith("http://")


def test_local_models_need_no_key() -> None:
    assert [
        endpoint(spec).needs_key for spec in ("ollama/a", "lm_studio/a", "openai/a", "anthropic/a")
    ] == [False, False, True, True]


def test_custom_needs_an_address() -> None:
    with pytest.raises(ConfigError, match="needs a base URL"):
        open_provider("custom/llama")
    assert (
        endpoint("custom/llama", "https://models.example/v1/").base_url
        == "https://models.example/v1"
    )


async def test_each_named_service_is_asked_at_its_address_with_its_key(
    tmp_path: Path, make_vault: MakeVault
) -> None:
    with (
        LlmServer([Reply("ok")], keyless=True) as work,
        LlmServer([Reply("ok")], keyless=True) as proxy,
    ):
        addresses = {"custom:work": work.openai_url, "openai": proxy.openai_url}
        settings = settings_with(model="custom:work/m", services=addresses, streaming=False)
        wiring = Wiring(make_vault({}), tmp_path / "state", settings=settings, config=tmp_path)
        for name in addresses:
            build_keys(wiring).save(find_vendor(name), SecretStr(f"sk-{name}"))
        models = build_session(wiring).open_models()
        assert models is not None
        for spec in ("custom:work/m", "openai/gpt-x"):
            async for _ in models.providers.get(spec).stream(
                ChatRequest((ChatMessage("user", "Hello"),))
            ):
                pass
        assert await models.providers.models("custom:work") == (
            "custom:work/llama3",
            "custom:work/qwen3:8b",
        )
        assert {each.headers["authorization"] for each in work.requests} == {
            "Bearer sk-custom:work"
        }
        assert [each.headers["authorization"] for each in proxy.requests] == ["Bearer sk-openai"]
        assert [
            each.body.get("stream", False) for each in (work.requests[0], proxy.requests[0])
        ] == [False, False]
        with pytest.raises(ConfigError, match="needs a base URL"):
            models.providers.get("custom:other/m")
    assert find_vendor("custom:my-own").key_variables == ("OBSIDIAN_AGENT_API_KEY_MY_OWN",)


def test_the_environment_gives_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9999")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://proxy.example/v1")
    assert endpoint("ollama/a").base_url == "http://127.0.0.1:9999"
    assert endpoint("openai/a").base_url == "https://proxy.example/v1"
    assert endpoint("openai/a", "https://given.example/v1").base_url == "https://given.example/v1"


def test_the_environment_gives_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", " g-key ")
    assert environment_key(find_vendor("gemini")) == SecretStr("g-key")
    monkeypatch.setenv("GEMINI_API_KEY", "first")
    assert environment_key(find_vendor("gemini")) == SecretStr("first")
    assert environment_key(find_vendor("openai")) is None


def test_one_vendors_key_is_not_sent_to_another() -> None:
    names = [name for vendor in VENDORS for name in vendor.key_variables]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080/v1",
        "http://localhost/v1",
        "http://[::1]:1234/v1",
        "http://127.9.9.9/v1",
        "https://host.example",
    ],
)
def test_addresses_that_may_be_used(url: str) -> None:
    assert endpoint("custom/m", url).base_url == url


@pytest.mark.parametrize(
    "url",
    [
        "http://models.example/v1",
        "http://127.0.0.1.evil.example/v1",
        "http://localhost.evil.example/v1",
        "http://127.0.0.1@evil.example/v1",
        "http://0.0.0.0/v1",
        "http://192.168.1.7/v1",
        "https://user:secretpassword@host.example/v1",
        "https://host.example/v1?key=secretpassword",
        "https://host.example/#secretpassword",
        "ftp://host.example",
        "file:///etc/passwd",
        "host.example/v1",
        "https://",
        "https://[::1/v1",
        "http://localhost:99999/v1",
    ],
)
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_provider("openai/gpt-x", base_url=url)
    assert caught.value.code == "BASE_URL_REFUSED"
    assert "secretpassword" not in str(caught.value.problem())


@pytest.mark.parametrize("spec", ["", "gpt-x", "openai", "openai/", "/gpt", "acme/gpt"])
def test_names_that_name_nothing(spec: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_provider(spec)
    assert caught.value.hint


def test_a_script(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "x"}', encoding="utf-8")
    provider = open_provider(f"scripted/{path}")
    assert isinstance(provider, ScriptedProvider)
    assert provider.name == f"scripted/{path}"
    with pytest.raises(ConfigError):
        open_provider(f"scripted/{tmp_path}/missing.jsonl")


def test_services_elsewhere_share_one_bucket_each_and_local_ones_have_none() -> None:
    limits = RateLimits()

    def inner(spec: str, base_url: str | None = None) -> object:
        provider = open_provider(spec, base_url=base_url, limits=limits)
        assert isinstance(provider, RetryingProvider)
        return provider.inner

    one, other, elsewhere = inner("openai/a"), inner("openai/b"), inner("anthropic/c")
    assert isinstance(one, LimitedProvider)
    assert isinstance(other, LimitedProvider)
    assert isinstance(elsewhere, LimitedProvider)
    assert one.bucket is other.bucket
    assert one.bucket is not elsewhere.bucket
    assert isinstance(inner("ollama/a"), LiteLLMProvider)
    assert isinstance(inner("openai/a", "http://127.0.0.1:9/v1"), LiteLLMProvider)


@pytest.mark.parametrize(
    ("spec", "base_url", "address", "local"),
    [
        ("openai/a", None, "https://api.openai.com", False),
        ("ollama/a", None, "http://localhost:11434", True),
        ("custom/a", "https://localhost.example:8443/v1", "https://localhost.example:8443", False),
    ],
)
def test_a_provider_tells_where_it_is(
    spec: str, base_url: str | None, address: str, local: bool
) -> None:
    provider = open_provider(spec, base_url=base_url)
    assert (provider.address, provider.local) == (address, local)


def test_the_key_is_not_in_reprs() -> None:
    provider = open_provider("openai/gpt-x", find_key=lambda _: SecretStr("sk-verysecretkey"))
    assert "verysecret" not in repr(provider)


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from obsidian_agent.providers.registry import open_provider; open_provider('openai/x'); "
        "print([name for name in ('litellm', 'openai', 'httpx', 'anthropic', 'aiohttp', 'ssl') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() in ("[]", "['ssl']")


# --- lists of models: over the wire, remembered, not asked for too often ---


def manager(server: LlmServer, vendor: str, key: str | None = KEY) -> ProviderManager:
    url = server.url if vendor in ("anthropic", "ollama") else server.openai_url
    return ProviderManager({vendor: url}, find_key=lambda _: SecretStr(key) if key else None)


@pytest.mark.parametrize("vendor", [vendor.name for vendor in VENDORS])
async def test_every_service_tells_its_models(vendor: str, llm_server: LlmServer) -> None:
    names = ("llama3", "qwen3:8b") if vendor == "ollama" else ("a-model", "b-model", "c-model")
    assert await manager(llm_server, vendor).models(vendor) == tuple(
        f"{vendor}/{name}" for name in names
    )
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
async def test_failures_are_named_and_hold_no_key(
    behaviour: Failure | Raw, code: str, llm_server: LlmServer
) -> None:
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
    service.now += LIST_SECONDS - 0.1
    assert await catalogue.models(endpoint, key) == ("m1",)
    assert await catalogue.models(endpoint, key, fresh=True) == ("m2",)
    service.now += SHORTEST - 0.1
    assert await catalogue.models(endpoint, key, fresh=True) == ("m2",)
    service.now += LIST_SECONDS
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
