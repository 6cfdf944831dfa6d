"""Makes the local model service importable (`from llm_server import Reply`) and keeps real keys and proxies out of the tests."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from obsidian_agent.providers.registry import VENDORS

if TYPE_CHECKING:
    from llm_server import LlmServer


def _load_server_module() -> None:
    if "llm_server" not in sys.modules:
        path = Path(__file__).parent.parent / "llm_server.py"
        spec = importlib.util.spec_from_file_location("llm_server", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["llm_server"] = module
        spec.loader.exec_module(module)


_load_server_module()


@pytest.fixture
def llm_server() -> Iterator[LlmServer]:
    """A service that answers "ok" until told otherwise with `play`."""
    from llm_server import LlmServer, Reply

    with LlmServer([Reply("ok")]) as server:
        yield server


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for vendor in VENDORS for name in (*vendor.key_variables, *vendor.base_url_variables)]
    for name in [*names, "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]:
        monkeypatch.delenv(name, raising=False)
