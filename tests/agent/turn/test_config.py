"""Which model is asked."""

from __future__ import annotations

import pytest

from obsidian_agent.agent.model_turns import choose, may_choose, wish_of
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.disk import DiskView
from support import MakeVault

SETTINGS = "openai/gpt-5"


@pytest.mark.parametrize(
    ("properties", "wish"),
    [
        ("ai-model: anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("aiService: OpenRouter\nmodel: openai/gpt-5", "openrouter/openai/gpt-5"),
        ("aiService: ollama", None),
        ("model: gpt-5", None),
        ("ai-model: 5", None),
        ("ai-model: https://evil.test/v1", None),
        ("aiService: openai\nmodel: a b", None),
        ("aiService: https://evil.test\nmodel: x", None),
        ("ai-model: [a, b]", None),
        ("x: [", None),
    ],
)
def test_what_a_note_wishes_for(properties: str, wish: str | None, make_vault: MakeVault) -> None:
    store = make_vault({"A.md": f"---\n{properties}\n---\n# A\n", "b.canvas": "{}"})
    assert wish_of(DiskView(store), parse("A.md", PathUse.READ)) == wish
    assert wish_of(DiskView(store), parse("b.canvas", PathUse.READ)) is None
    assert wish_of(DiskView(store), None) is None


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ("openai/gpt-4o", True),
        ("anthropic/claude", False),
        ("ollama/qwen3", True),
        ("evil/gpt-5", False),
        ("scripted//tmp/x.jsonl", False),
    ],
)
def test_what_vaults_may_choose_is_the_persons_to_say(spec: str, allowed: bool) -> None:
    assert may_choose(spec, SETTINGS, ("ollama/*",)) == allowed


def test_the_thread_comes_first_then_the_note_then_the_agent() -> None:
    assert choose(SETTINGS, "x/y", "openai/a", "openai/b", ()).spec == "x/y"
    assert choose(SETTINGS, None, "openai/a", "openai/b", ()).spec == "openai/a"
    assert choose(SETTINGS, None, None, "openai/b", ()).spec == "openai/b"
    assert choose(SETTINGS, None, None, None, ()).spec == SETTINGS


def test_what_is_not_allowed_is_told_and_does_not_count() -> None:
    choice = choose(SETTINGS, None, "openrouter/evil", "openai/b", ())
    assert choice.spec == "openai/b"
    assert [notice.code for notice in choice.notices] == ["MODEL_NOT_ALLOWED", "MODEL_CHOSEN"]
    assert "openrouter/evil" in choice.notices[0].message
