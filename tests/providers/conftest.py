"""The local model service as a fixture; an environment without real keys, addresses or proxies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pydantic import SecretStr

from llm_server import KEY, LlmServer, Reply
from obsidian_agent.providers.litellm_client import LiteLLMProvider
from obsidian_agent.providers.middleware import RetryingProvider
from obsidian_agent.providers.registry import VENDORS, open_provider


@pytest.fixture
def llm_server() -> Iterator[LlmServer]:
    """Start a service that answers "ok" until `play` changes that."""
    with LlmServer([Reply("ok")]) as server:
        yield server


@pytest.fixture
def connect(llm_server: LlmServer) -> Callable[..., LiteLLMProvider]:
    """Connect a vendor's bare client to the fixture's service."""

    def connect(vendor: str, *, streaming: bool = True) -> LiteLLMProvider:
        url = llm_server.openai_url if vendor in ("openai", "custom") else llm_server.url
        provider = open_provider(
            f"{vendor}/test-model",
            base_url=url,
            find_key=lambda _: SecretStr(KEY),
            streaming=streaming,
        )
        assert isinstance(provider, RetryingProvider)
        assert isinstance(provider.inner, LiteLLMProvider)
        return provider.inner

    return connect


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [
        name for vendor in VENDORS for name in (*vendor.key_variables, *vendor.base_url_variables)
    ]
    for name in [
        *names,
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ]:
        monkeypatch.delenv(name, raising=False)
