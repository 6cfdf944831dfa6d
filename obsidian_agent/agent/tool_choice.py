"""Which tools a small model is told of for one message, besides those it always knows: by the message's words, and without a look at the vault.

A recipe that is asked for in such words shows which tools its kind of plan is made of; the words of a tool's own line count as well. Who
asks in another language gets none of them, and the names of all the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from obsidian_agent.agent.plan_language import CORE
from obsidian_agent.agent.signatures import Detail, signatures
from obsidian_agent.providers.base import Provider
from obsidian_agent.providers.offline.lexicon import FILLERS, stem
from obsidian_agent.providers.offline.recipe import Recipe, packaged
from obsidian_agent.providers.offline.tokens import tokenise
from obsidian_agent.tools.base import Tool

MOST: Final = 6
SMALL_WINDOW: Final = 16_384
"""Tokens; models that hold no more are told the short form."""
_RECIPES: Final = 4
"""So many recipes are looked at, if they fit nearly as well as the best one."""
_NEAR: Final = 0.75
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_SLOT: Final = re.compile(r"\{[^}]*\}")


def detail_for(wanted: Detail | None, provider: Provider, window: int | None) -> Detail:
    """How much a model is told (`wanted` None: as fits it): models on this machine are slow, small windows soon full."""
    if wanted is not None:
        return wanted
    return "short" if provider.local or (window is not None and window <= SMALL_WINDOW) else "full"


def hint(message: str, tools: Iterable[Tool], detail: Detail) -> str:
    """What goes along with a message about tools that the system prompt does not name; "" when there is nothing to add."""
    found = suggested(message, tools, CORE) if detail == "short" else ()
    return f"# More tools\n\n{signatures(found, detail)}" if found else ""


def suggested(message: str, tools: Iterable[Tool], known: Collection[str], most: int = MOST) -> tuple[Tool, ...]:
    """Tools that plans for such a message are made of, likeliest first, without those that are `known`."""
    words = {token.stem for token in tokenise(message) if token.kind == "word"}
    weights = _weights()
    scores: dict[str, float] = {}
    by_score = sorted(((_score(words, spoken, weights), recipe) for recipe, spoken in _spoken()), key=lambda pair: -pair[0])
    best = by_score[0][0]
    for score, recipe in by_score[:_RECIPES]:
        for name in _tools(recipe) if score >= _NEAR * best else ():
            scores[name] = max(scores.get(name, 0.0), score)
    there = {tool.name: tool for tool in tools}
    found = [name for name, score in sorted(scores.items(), key=lambda item: -item[1]) if score > 0]
    return tuple(there[name] for name in found if name in there and name not in known)[:most]


def _score(words: set[str], spoken: Iterable[frozenset[str]], weights: Mapping[str, float]) -> float:
    """How well the best of a recipe's phrases fits: what both say, less a little for what only the phrase says."""
    return max(sum(weights.get(word, 0.0) for word in words & phrase) - 0.02 * len(phrase) for phrase in spoken)


@lru_cache(maxsize=1)
def _spoken() -> tuple[tuple[Recipe, tuple[frozenset[str], ...]], ...]:
    """Each recipe that plans, with the words of each of its phrases."""
    return tuple((recipe, tuple(map(_words, recipe.phrases))) for recipe in packaged() if recipe.refusal is None)


def _words(phrase: str) -> frozenset[str]:
    return frozenset(stem(word.casefold()) for word in _WORD.findall(_SLOT.sub(" ", phrase))) - FILLERS


@lru_cache(maxsize=1)
def _weights() -> Mapping[str, float]:
    """How much a word tells: those that few recipes are asked for with tell more."""
    used: dict[str, int] = {}
    for _, phrases in _spoken():
        for word in frozenset[str]().union(*phrases):
            used[word] = used.get(word, 0) + 1
    return {word: math.log(1 + len(_spoken()) / count) for word, count in used.items()}


@lru_cache(maxsize=256)
def _tools_named(recipe_name: str) -> tuple[str, ...]:
    recipe = next(each for each in packaged() if each.name == recipe_name)
    return tuple(dict.fromkeys(_in_plans(recipe)))


def _tools(recipe: Recipe) -> tuple[str, ...]:
    return _tools_named(recipe.name)


def _in_plans(recipe: Recipe) -> Iterator[str]:
    plans: list[dict[str, Any]] = [recipe.plan] if recipe.plan is not None else [variant.plan for variant in recipe.variants]
    for plan in plans:
        yield from (str(step["tool"]) for step in plan["steps"])
