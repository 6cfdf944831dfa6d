"""The local model service as a fixture, and an environment without real keys, addresses and proxies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llm_server import LlmServer, Reply
from obsidian_agent.providers.registry import VENDORS


@pytest.fixture
def llm_server() -> Iterator[LlmServer]:
    """A service that answers "ok" until told otherwise with `play`."""
    with LlmServer([Reply("ok")]) as server:
        yield server


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for vendor in VENDORS for name in (*vendor.key_variables, *vendor.base_url_variables)]
    for name in [*names, "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]:
        monkeypatch.delenv(name, raising=False)
