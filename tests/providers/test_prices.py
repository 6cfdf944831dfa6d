"""The context windows and the prices of models."""

from __future__ import annotations

import subprocess
import sys

import pytest

from obsidian_agent.providers.base import Usage
from obsidian_agent.providers.prices import FREE, NOTHING_KNOWN, Price, facts_of
from obsidian_agent.providers.registry import OLLAMA_CONTEXT


@pytest.mark.parametrize(
    "spec", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"]
)
def test_known_models_have_a_window_and_a_price(spec: str) -> None:
    facts = facts_of(spec)
    assert facts.window is not None
    assert facts.window >= 128_000
    assert facts.price is not None
    assert 0 < facts.price.cached < facts.price.prompt < facts.price.completion < 1e-3


def test_the_same_model_elsewhere_is_as_large_and_has_no_price_that_we_know() -> None:
    here, there = (
        facts_of("anthropic/claude-sonnet-4-5"),
        facts_of("zenmux/anthropic/claude-sonnet-4.5"),
    )
    assert there.window == here.window
    assert there.price is None
    assert facts_of("openrouter/anthropic/claude-sonnet-4.5:beta").price == here.price, (
        "it charges what the maker charges"
    )


def test_models_on_this_machine_are_free() -> None:
    assert facts_of("ollama/qwen3") == type(NOTHING_KNOWN)(OLLAMA_CONTEXT, None, FREE)
    assert facts_of("lm_studio/x").price == FREE
    assert facts_of("scripted/x.jsonl").price == FREE


def test_of_others_nothing_is_known() -> None:
    assert facts_of("custom/my-own-model-of-last-night") == NOTHING_KNOWN
    assert facts_of("nonsense") == NOTHING_KNOWN


def test_what_a_service_remembered_costs_less() -> None:
    price = Price(2e-6, 1e-5, 5e-7)
    assert price.of(Usage(1000, 100)) == pytest.approx(0.003)
    assert price.of(Usage(1000, 100, 800)) == pytest.approx(200 * 2e-6 + 800 * 5e-7 + 100 * 1e-5)
    assert price.estimate(1000, 0) == pytest.approx(0.002)


def test_the_list_is_read_without_importing_the_library() -> None:
    program = "import sys; from obsidian_agent.providers.prices import facts_of; facts_of('openai/gpt-4o'); sys.exit('litellm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
