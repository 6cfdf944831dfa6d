"""Local models: only loopback is contacted, only for a moment, and without proxies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llm_server import KEY, Failure, LlmServer, Raw, Reply, Silence
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import ConfigError
from obsidian_agent.providers.local_models import (
    USUAL,
    LocalModels,
    LocalService,
    ServiceLocation,
    find_services,
    first_offer,
    locations,
    use,
)


def ollama(server: LlmServer) -> ServiceLocation:
    return ServiceLocation("ollama", "Ollama", server.url)


async def test_services_that_run_are_found_with_their_models() -> None:
    models = ["nomic-embed-text:latest", "qwen3:4b"]
    with (
        LlmServer([Reply("ok")], models) as first,
        LlmServer([Reply("ok")], ["qwen2.5.gguf"], keyless=True) as second,
    ):
        where = (
            ollama(first),
            ServiceLocation("lm_studio", "LM Studio", "http://127.0.0.1:9/v1"),
            ServiceLocation("custom", "llama.cpp", second.openai_url),
        )
        found = await find_services(where)
        assert [(service.location.title, service.models) for service in found] == [
            ("Ollama", ("nomic-embed-text:latest", "qwen3:4b")),
            ("llama.cpp", ("qwen2.5.gguf",)),
        ]
        assert [service.suggestion for service in found] == ["qwen3:4b", "qwen2.5.gguf"]
        assert found[0].spec("qwen3:4b") == "ollama/qwen3:4b"
        assert [request.path for request in (*first.requests, *second.requests)] == [
            "/api/tags",
            "/v1/models",
        ]


def test_a_service_without_a_model_for_conversations_suggests_none() -> None:
    assert LocalService(USUAL[0], ("nomic-embed-text",)).suggestion is None
    assert LocalService(USUAL[0], ()).suggestion is None


@pytest.mark.parametrize(
    "behaviour",
    [
        Silence(),
        Failure(404, "no such page"),
        Raw(b"<html>a web server</html>", "text/html"),
        Raw(b"not json", "application/json"),
        Failure(302, "elsewhere", headers=(("location", "http://127.0.0.1:9/api/tags"),)),
    ],
    ids=["silent", "404", "web page", "no json", "redirect"],
)
async def test_whatever_else_listens_on_a_port_is_no_service_and_costs_a_moment(
    behaviour: Failure | Raw | Silence,
) -> None:
    with LlmServer([behaviour]) as server, LlmServer([Reply("ok")], ["m"]) as runs:
        await find_services((ollama(runs),))  # what is loaded the first time is loaded
        found = await find_services(
            (ollama(server), ServiceLocation("custom", "Jan", server.openai_url), ollama(runs))
        )
        assert [service.models for service in found] == [("m",)]


def test_without_a_service_no_client_is_loaded() -> None:
    code = (
        "import asyncio, socket, sys\n"
        "from obsidian_agent.providers.local_models import ServiceLocation, find_services\n"
        "with socket.socket() as unused:\n"
        "    unused.bind(('127.0.0.1', 0))\n"
        "    url = f'http://127.0.0.1:{unused.getsockname()[1]}/v1'\n"
        "    where = (ServiceLocation('custom', 'Jan', url),)\n"
        "    where += (ServiceLocation('custom', 'vLLM', 'http://127.0.0.1:99999/v1'),)\n"
        "    print(asyncio.run(find_services(where)), 'httpx' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "() False\n"


async def test_no_proxy_and_no_key_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)
    monkeypatch.setenv("OBSIDIAN_AGENT_API_KEY", KEY)
    with LlmServer([Reply("ok")], ["m"], keyless=True) as server, LlmServer([Reply("no")]) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        found = await find_services(
            (ollama(server), ServiceLocation("custom", "llama.cpp", server.openai_url))
        )
        assert len(found) == 2
        assert not proxy.requests
        assert not proxy.connects
        assert not any("authorization" in request.headers for request in server.requests)


async def test_an_address_elsewhere_is_never_asked() -> None:
    assert (
        await find_services(
            (
                ServiceLocation("custom", "Elsewhere", "http://192.0.2.1:8080/v1"),
                ServiceLocation("ollama", "Host", "http://host.test"),
            )
        )
        == ()
    )


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1:4711", "http://127.0.0.1:4711"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("http://localhost:4712", "http://127.0.0.1:4712"),
        ("192.0.2.1:4711", "http://127.0.0.1:11434"),
        ("http://[bad", "http://127.0.0.1:11434"),
    ],
)
def test_ollama_is_looked_for_where_its_variable_says_if_that_is_here(
    host: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert locations()[0].url == url


def test_the_address_of_the_settings_is_looked_at_too_if_it_is_here() -> None:
    assert locations("custom/m", "http://127.0.0.1:8911/v1/")[0] == ServiceLocation(
        "custom", "The custom service", "http://127.0.0.1:8911/v1"
    )
    assert (
        locations("custom/m", "https://models.test/v1")
        == locations("custom/m", "http://127.0.0.1:8080/v1")
        == USUAL
    )


@pytest.mark.parametrize("model", [None, "none"])
def test_the_address_of_the_settings_needs_no_model(model: str | None) -> None:
    assert locations(model, "http://127.0.0.1:8911/v1")[0].url == "http://127.0.0.1:8911/v1"


async def test_a_first_start_offers_the_first_model_that_can_talk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LlmServer([Reply("ok")], ["nomic-embed-text", "qwen3:4b"]) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        settings = LiveSettings.load(tmp_path / "config.toml")
        found = await first_offer(settings)
        assert found is not None
        assert found.offer is not None
        assert (found.offer.title, found.offer.model, found.offer.spec) == (
            "Ollama",
            "qwen3:4b",
            "ollama/qwen3:4b",
        )
        use(settings, found.offer.spec, found.services)
        assert settings.current.model == "ollama/qwen3:4b"
        assert await first_offer(LiveSettings.load(tmp_path / "config.toml")) is None


async def test_who_decided_for_the_menu_alone_is_not_asked_again(tmp_path: Path) -> None:
    settings = LiveSettings.load(tmp_path / "config.toml")
    use(settings, "none", ())
    again = LiveSettings.load(tmp_path / "config.toml")
    assert again.model is None
    assert await first_offer(again) is None


def test_nothing_is_offered_where_nothing_can_talk() -> None:
    assert LocalModels((), None).offer is None
    assert LocalModels((LocalService(USUAL[0], ("nomic-embed-text",)),), None).offer is None


def test_a_name_that_two_services_have_must_be_said_in_full(tmp_path: Path) -> None:
    settings = LiveSettings.load(tmp_path / "config.toml")
    services = (
        LocalService(USUAL[0], ("m",)),
        LocalService(USUAL[1], ("m",)),
        LocalService(ServiceLocation("custom", "Jan", "http://127.0.0.1:1/v1"), ("n",)),
    )
    with pytest.raises(ConfigError) as caught:
        use(settings, "m", services)
    assert caught.value.code == "MODEL_AMBIGUOUS"
    use(settings, "lm_studio/m", services)
    assert (settings.current.model, settings.current.base_url) == (
        "lm_studio/m",
        "http://127.0.0.1:1234/v1",
    )
    use(settings, "n", services)
    assert (settings.current.model, settings.current.base_url) == (
        "custom/n",
        "http://127.0.0.1:1/v1",
    )


# --- the sentences of `model test`: each is judged by what it would do ---
