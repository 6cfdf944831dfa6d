"""Context windows and prices of models, from the list in litellm, which is read without an import.

Prices change and lists get old: a figure from here is an estimate, not the service's bill.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from obsidian_agent.providers.base import Usage
from obsidian_agent.providers.other_agent import ACP
from obsidian_agent.providers.registry import OLLAMA_CONTEXT, SCRIPTED

_LIST: Final = "model_prices_and_context_window_backup.json"
_OWN: Final = frozenset({"ollama", "lm_studio", SCRIPTED})
"""Vendors whose models are free."""
AGENT_CONTEXT: Final = 200_000
"""Tokens. Agents manage their own window; conversations are not shortened for them before this."""
_PASSED_ON: Final = frozenset({"openrouter"})
"""Services that charge the same as the model's maker."""
_FIELDS: Final = (
    "max_input_tokens",
    "max_output_tokens",
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
)


class Price(Struct, frozen=True):
    """US dollars per token. `cached` is the price of a cached prompt token."""

    prompt: float
    completion: float
    cached: float

    def of(self, usage: Usage) -> float:
        """Return the price of a request."""
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens)
        return (
            fresh * self.prompt
            + usage.cached_tokens * self.cached
            + usage.completion_tokens * self.completion
        )

    def estimate(self, prompt: int, completion: int) -> float:
        """Return the highest price of a request with these estimated tokens."""
        return self.of(Usage(prompt, completion))


class ModelFacts(Struct, frozen=True):
    """The window of a model in tokens, and its price; None if unknown."""

    window: int | None = None
    reply: int | None = None
    price: Price | None = None


FREE: Final = Price(0.0, 0.0, 0.0)
NOTHING_KNOWN: Final = ModelFacts()


def facts_of(spec: str) -> ModelFacts:
    """Return the known facts of `VENDOR/MODEL`. May block the first time (the list is 3 MB)."""
    vendor, _, model = spec.strip().partition("/")
    vendor = vendor.lower()
    if vendor == "ollama":
        return ModelFacts(OLLAMA_CONTEXT, None, FREE)
    if vendor == ACP:
        return ModelFacts(AGENT_CONTEXT, None, None)
    if vendor in _OWN:
        return ModelFacts(None, None, FREE)
    exact = _row(_own_names(vendor, model))
    similar = exact or _row(_other_names(model))
    if similar is None:
        return NOTHING_KNOWN
    priced = exact
    if exact is None and vendor in _PASSED_ON:
        priced = similar
    return ModelFacts(
        _positive_int(similar.get("max_input_tokens")),
        _positive_int(similar.get("max_output_tokens")),
        _price(priced),
    )


def _row(names: Iterable[str]) -> Mapping[str, Any] | None:
    return next((row for name in names if (row := _models().get(name)) is not None), None)


def _own_names(vendor: str, model: str) -> Iterator[str]:
    yield f"{vendor}/{model}"
    if vendor in ("openai", "anthropic"):
        yield model


def _other_names(model: str) -> Iterator[str]:
    """Yield the names under which the same model may be listed for its maker.

    For instance, `anthropic/claude-sonnet-4.5:beta` is `claude-sonnet-4-5`.
    """
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


def _positive_int(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None


@lru_cache(maxsize=1)
def _models() -> Mapping[str, Mapping[str, Any]]:
    litellm = importlib.util.find_spec("litellm")
    if litellm is None or litellm.origin is None:
        return {}
    try:
        document = json.loads(Path(litellm.origin).with_name(_LIST).read_bytes())
    except (OSError, ValueError):
        return {}
    rows = document.items() if isinstance(document, dict) else ()
    return {
        name: {key: row[key] for key in _FIELDS if key in row}
        for name, row in rows
        if isinstance(row, dict)
    }
