"""What a model can hold and what it costs, from the list that comes with litellm. The list is read as a file: nothing is imported.

Prices change and lists get old; a figure from here is an estimate until the service's bill comes.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from obsidian_agent.dataclass import dataclass
from obsidian_agent.providers.base import Usage
from obsidian_agent.providers.other_agent import ACP
from obsidian_agent.providers.registry import OLLAMA_CONTEXT, SCRIPTED

_LIST: Final = "model_prices_and_context_window_backup.json"
_OWN: Final = frozenset({"ollama", "lm_studio", SCRIPTED})
"""Models that cost nothing but electricity."""
AGENT_CONTEXT: Final = 200_000
"""Tokens. Agents see to their own window; a conversation is not made shorter for them before this."""
_PASSED_ON: Final = frozenset({"openrouter"})
"""Services that charge what the model's maker charges."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a token. `cached`: of a prompt token that the service remembered."""

    prompt: float
    completion: float
    cached: float

    def of(self, usage: Usage) -> float:
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens)
        return (
            fresh * self.prompt
            + usage.cached_tokens * self.cached
            + usage.completion_tokens * self.completion
        )

    def estimate(self, prompt: int, completion: int) -> float:
        """What a request may cost, at most, for the tokens that it is thought to take."""
        return self.of(Usage(prompt, completion))


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model's window in tokens and its price; None where nobody knows."""

    window: int | None = None
    reply: int | None = None
    price: Price | None = None


FREE: Final = Price(0.0, 0.0, 0.0)
NOTHING_KNOWN: Final = ModelFacts()


def facts_of(spec: str) -> ModelFacts:
    """What is known of `VENDOR/MODEL`. May block the first time (the list is 3 MB)."""
    vendor, _, model = spec.strip().partition("/")
    vendor = vendor.lower()
    if vendor == "ollama":
        return ModelFacts(OLLAMA_CONTEXT, None, FREE)
    if vendor == ACP:
        return ModelFacts(AGENT_CONTEXT, None, None)
    if vendor in _OWN:
        return ModelFacts(None, None, FREE)
    exact = next(
        (row for name in _own_names(vendor, model) if (row := _models().get(name)) is not None),
        None,
    )
    alike = exact or next(
        (row for name in _other_names(model) if (row := _models().get(name)) is not None), None
    )
    if alike is None:
        return NOTHING_KNOWN
    priced = exact if exact is not None else alike if vendor in _PASSED_ON else None
    return ModelFacts(
        _whole(alike.get("max_input_tokens")),
        _whole(alike.get("max_output_tokens")),
        _price(priced),
    )


def _own_names(vendor: str, model: str) -> Iterator[str]:
    yield f"{vendor}/{model}"
    if vendor in ("openai", "anthropic"):
        yield model


def _other_names(model: str) -> Iterator[str]:
    """The names under which the same model may be listed for its maker: `anthropic/claude-sonnet-4.5:beta` is `claude-sonnet-4-5`."""
    bare = model.rpartition("/")[2].partition(":")[0]
    for name in (model, bare, bare.replace(".", "-")):
        yield name
        yield f"gemini/{name}"


def _price(row: Mapping[str, Any] | None) -> Price | None:
    if row is None:
        return None
    prompt, completion = row.get("input_cost_per_token"), row.get("output_cost_per_token")
    if not isinstance(prompt, int | float) or not isinstance(completion, int | float):
        return None
    cached = row.get("cache_read_input_token_cost")
    return Price(
        float(prompt),
        float(completion),
        float(cached) if isinstance(cached, int | float) else float(prompt),
    )


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None


_FIELDS: Final = (
    "max_input_tokens",
    "max_output_tokens",
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
)


@lru_cache(maxsize=1)
def _models() -> Mapping[str, Mapping[str, Any]]:
    found = importlib.util.find_spec("litellm")
    if found is None or found.origin is None:
        return {}
    try:
        document = json.loads(Path(found.origin).with_name(_LIST).read_bytes())
    except (OSError, ValueError):
        return {}
    rows = document.items() if isinstance(document, dict) else ()
    return {
        name: {key: row[key] for key in _FIELDS if key in row}
        for name, row in rows
        if isinstance(row, dict)
    }
