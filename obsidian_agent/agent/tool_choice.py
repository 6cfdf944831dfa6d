"""Which tools a small model is told of for one message, besides those it always knows: by the message's words, and without a look at the vault.

A recipe that is asked for in such words shows which tools its kind of plan is made of; the words of a tool's own line count as well. Who
asks in another language gets none of them, and the names of all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

from obsidian_agent.agent.plan_language import CORE
from obsidian_agent.agent.signatures import Detail, signatures
from obsidian_agent.offline.recipe import packaged
from obsidian_agent.offline.search import Menu
from obsidian_agent.providers.base import Provider
from obsidian_agent.tools.base import Tool

MOST: Final = 6
SMALL_WINDOW: Final = 16_384
"""Tokens; models that hold no more are told the short form."""
_RECIPES: Final = 4
"""So many recipes are looked at, if they fit nearly as well as the best one."""
_NEAR: Final = 0.75


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
    ranked = _menu().ranked(message)
    best = ranked[0][0]
    near = [recipe for score, recipe in ranked[:_RECIPES] if score > 0 and score >= _NEAR * best]
    there = {tool.name: tool for tool in tools}
    found = dict.fromkeys(name for recipe in near for name in recipe.tools)
    return tuple(there[name] for name in found if name in there and name not in known)[:most]


@lru_cache(maxsize=1)
def _menu() -> Menu:
    return Menu(packaged())
