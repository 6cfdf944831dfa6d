"""Macros as the offline planner sees them: found by their names and phrases, their inputs filled from the instruction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from obsidian_agent.agent.macros import told_with
from obsidian_agent.plan.binding import bind
from obsidian_agent.plan.model import ActionPlan, Parameter
from obsidian_agent.plan.scope import CONTEXT_NAMES
from obsidian_agent.providers.offline import phrases
from obsidian_agent.providers.offline.recipe import Recipe, RecipeParameter, SlotKind

_PAIR = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)\s*[=:]\s*(\"[^\"]*\"|'[^']*'|[^,;]*?)\s*(?:[,;]|\band\b|$)")


class MacroLike(Protocol):
    """What is needed of a macro."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def phrases(self) -> Sequence[str]: ...
    @property
    def plan(self) -> ActionPlan: ...


def recipe_of(macro: MacroLike) -> Recipe:
    """The macro as a recipe, by its name and by those of its phrases that can be read."""
    parameters = {name: _parameter(name, declared) for name, declared in macro.plan.parameters.items()}
    own = [text for text in macro.phrases if _readable(text, frozenset(parameters))]
    words = " ".join(re.findall(r"[^\s()\[\]|/{}~]+", macro.name))
    wanted = [name for name, parameter in parameters.items() if parameter.needed]
    named = [f"{words} [(for|with|on) {{{wanted[0]}!}}]" if len(wanted) == 1 else words] if words else []
    return Recipe(
        name=f"macro-{re.sub(r'[^a-z0-9]+', '-', macro.name.lower()).strip('-') or 'unnamed'}",
        title=macro.name,
        description=macro.description or macro.plan.goal,
        phrases=tuple(own + named) or ("run this macro",),
        parameters=parameters,
        plan=macro.plan.to_json(),
    )


def macro_match(macro: MacroLike, values: Mapping[str, Any], text: str | None = None) -> ActionPlan | None:
    """The macro's plan with these values as defaults. `text` is the value of the one input that has none yet, or `name=value` pairs.

    None when it is not clear which input `text` is. Inputs without a value stay open, so that the form asks for them.
    """
    given = dict(values)
    if text:
        pairs = {name: value.strip("\"'") for name, value in _PAIR.findall(text) if name in macro.plan.parameters}
        open_names = [
            name for name, each in macro.plan.parameters.items() if each.default is None and name not in given and name not in CONTEXT_NAMES
        ]
        names = open_names or list(macro.plan.parameters)
        if pairs:
            given |= pairs
        elif len(names) == 1:
            given[names[0]] = text
        else:
            return None
    bound = bind(macro.plan, {name: value for name, value in given.items() if name in macro.plan.parameters})
    parameters = {
        name: each.model_copy(update={"default": bound.values[name]}) if name in bound.values else each
        for name, each in macro.plan.parameters.items()
    }
    return told_with(macro.plan, bound.values).model_copy(update={"parameters": parameters})


def _parameter(name: str, declared: Parameter) -> RecipeParameter:
    kinds: Mapping[str, SlotKind] = {
        "number": "number",
        "date": "date",
        "boolean": "value",
        "path": "folder" if "folder" in name.lower() else "text",
    }
    return RecipeParameter(
        kind=kinds.get(declared.type, "text"),
        description=declared.description or name,
        default=declared.default,
        optional=name in CONTEXT_NAMES,
    )


def _readable(text: str, names: frozenset[str]) -> bool:
    try:
        return phrases.parse(text).slots <= names
    except phrases.PhraseError:
        return False
