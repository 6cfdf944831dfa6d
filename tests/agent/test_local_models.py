"""What a first start offers: a model that runs here, until somebody has chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_server import LlmServer, Reply
from obsidian_agent.agent.local_models import USUAL, LocalModels, LocalService, Place, first_offer, use
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import ConfigError


async def test_a_first_start_offers_the_first_model_that_can_talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LlmServer([Reply("ok")], ["nomic-embed-text", "qwen3:4b"]) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        settings = LiveSettings.load(tmp_path / "config.toml")
        found = await first_offer(settings)
        assert found is not None
        assert found.offer is not None
        assert (found.offer.title, found.offer.model, found.offer.spec) == ("Ollama", "qwen3:4b", "ollama/qwen3:4b")
        use(settings, found.offer.spec, found.services)
        assert settings.current.model == "ollama/qwen3:4b"
        assert await first_offer(LiveSettings.load(tmp_path / "config.toml")) is None


async def test_who_decided_for_the_menu_alone_is_not_asked_again(tmp_path: Path) -> None:
    settings = LiveSettings.load(tmp_path / "config.toml")
    use(settings, "none", ())
    again = LiveSettings.load(tmp_path / "config.toml")
    assert again.chosen is None
    assert await first_offer(again) is None


def test_nothing_is_offered_where_nothing_can_talk() -> None:
    assert LocalModels((), None).offer is None
    assert LocalModels((LocalService(USUAL[0], ("nomic-embed-text",)),), None).offer is None


def test_a_name_that_two_services_have_must_be_said_in_full(tmp_path: Path) -> None:
    settings = LiveSettings.load(tmp_path / "config.toml")
    services = (
        LocalService(USUAL[0], ("m",)),
        LocalService(USUAL[1], ("m",)),
        LocalService(Place("custom", "Jan", "http://127.0.0.1:1/v1"), ("n",)),
    )
    with pytest.raises(ConfigError) as caught:
        use(settings, "m", services)
    assert caught.value.code == "MODEL_AMBIGUOUS"
    use(settings, "lm_studio/m", services)
    assert (settings.current.model, settings.current.base_url) == ("lm_studio/m", "http://127.0.0.1:1234/v1")
    use(settings, "n", services)
    assert (settings.current.model, settings.current.base_url) == ("custom/n", "http://127.0.0.1:1/v1")
