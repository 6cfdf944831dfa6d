"""From a recipe and its values to a plan: values become defaults of declared parameters, so that a run of it can be saved as a macro.

What the plan language resolves no references in is written out: descriptions of notes become conditions, names of properties keys. The open
note stays a reference, so that a macro works on whichever note is open then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from obsidian_agent.offline.recipe import Input, Recipe
from obsidian_agent.offline.sets import ACTIVE, NoteSet, stem
from obsidian_agent.offline.values import said
from obsidian_agent.plan.model import ActionPlan, ParameterType

_REFERENCE: Final = re.compile(r"(?<!\$)\$\{([A-Za-z][A-Za-z0-9_]*)((?:\|[^}]*)?)\}")
_PERHAPS: Final = re.compile(r"\[([^\[\]]*\$\{([A-Za-z][A-Za-z0-9_]*)[^\[\]]*)\]")
"""A part of a goal in brackets, with a reference: it is only said when that has a value."""

_BARE: Final = re.compile(r"\$+(?:steps|vars)\b\S*")
_PLACES: Final = ("args", "foreach", "when")


@dataclass(frozen=True, slots=True)
class Filled:
    """The plan, or the inputs that still need a value."""

    plan: ActionPlan | None
    missing: tuple[str, ...] = ()


def fill(recipe: Recipe, values: Mapping[str, Any]) -> Filled:
    """The plan of a recipe for values as `values.read` gives them; defaults hold for what is not given."""
    known = {name: input_.default for name, input_ in recipe.inputs.items() if input_.default is not None}
    known |= {name: value for name, value in values.items() if name in recipe.inputs and value is not None}
    missing = tuple(name for name, input_ in recipe.inputs.items() if input_.needed and name not in known)
    if missing:
        return Filled(None, missing)
    absent = recipe.inputs.keys() - known.keys()
    steps = [_step(step, known) for step in recipe.plan["steps"] if not _hangs_on(step, absent)]
    steps = [_without(step, absent) for step in steps]
    used = set(_names([step.get(place) for step in steps for place in _PLACES]))
    parameters = {name: _declared(recipe.inputs[name], known[name]) for name in recipe.inputs if name in used and name in known}
    document = {key: value for key, value in recipe.plan.items() if key not in ("steps", "parameters", "goal", "assumptions")}
    words = {name: recipe.inputs[name].options.get(str(value), value) for name, value in known.items()}
    document |= {
        "goal": told(recipe.plan["goal"], words),
        "assumptions": [told(each, words) for each in recipe.plan.get("assumptions", []) if not set(_names(each)) & absent],
        "parameters": parameters,
        "steps": [step | ({"preview": told(step["preview"], words)} if step.get("preview") else {}) for step in steps],
    }
    return Filled(ActionPlan.model_validate(document))


def told(text: str, values: Mapping[str, Any]) -> str:
    """A text for people: values in place of references. What is put in is not looked at again."""

    def value(found: re.Match[str]) -> str:
        name, filters = found[1], found[2]
        if name not in values and "default:" not in filters:
            return "…"
        words = said(values.get(name, ""))
        if "|basename" in filters:
            return stem(words)
        return words or filters.partition("default:")[2] or "the vault"

    def perhaps(found: re.Match[str]) -> str:
        return found[1] if found[2] in values else ""

    return _REFERENCE.sub(value, _PERHAPS.sub(perhaps, text))


def escaped(text: str) -> str:
    """Text as it must stand in an argument of a plan to be taken literally."""
    return "$" + text if _BARE.fullmatch(text) else text.replace("${", "$${")


def _step(step: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """A step with its descriptions of notes and its keys written out, and references to what is the open note pointed at it."""
    sets = {f"${{{name}}}": _literal(value.condition()) for name, value in known.items() if isinstance(value, NoteSet)}
    keys = {f"${{{name}}}": value for name, value in known.items() if isinstance(value, str)}
    open_note = {name for name, value in known.items() if value == ACTIVE}

    def change(value: Any) -> Any:
        match value:
            case str() if value in sets:
                return sets[value]
            case str():
                return _REFERENCE.sub(lambda found: f"${{activeFile{found[2]}}}" if found[1] in open_note else found[0], value)
            case list():
                return [change(each) for each in value]
            case dict():
                return {keys.get(key, key): change(each) for key, each in value.items()}
            case _:
                return value

    return {key: change(value) if key in _PLACES else value for key, value in step.items()}


def _hangs_on(step: Mapping[str, Any], absent: Any) -> bool:
    """Whether a step is only for an optional input that was not given."""
    when = step.get("when")
    return isinstance(when, str) and any(when == f"${{{name}}}" for name in absent)


def _without(step: dict[str, Any], absent: Any) -> dict[str, Any]:
    """A step without the arguments that hold only an optional value which was not given."""
    marks = {f"${{{name}}}" for name in absent}

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: kept(each) for key, each in value.items() if key not in marks and not (isinstance(each, str) and each in marks)}
        return value

    return {**step, "args": kept(step.get("args", {}))}


def _literal(value: Any) -> Any:
    """A value whose texts are taken literally, but for the reference that stands for the open note."""
    match value:
        case str():
            return value if value == ACTIVE else escaped(value)
        case list():
            return [_literal(each) for each in value]
        case dict():
            return {key: _literal(each) for key, each in value.items()}
        case _:
            return value


def _declared(wanted: Input, value: Any) -> dict[str, Any]:
    type_: ParameterType = wanted.type
    if wanted.kind == "value":
        type_ = (
            "boolean"
            if isinstance(value, bool)
            else "number"
            if isinstance(value, int | float)
            else "list"
            if isinstance(value, list)
            else "text"
        )
    return {"description": wanted.description, "type": type_, "default": value}


def _names(value: Any) -> Iterator[str]:
    """The names that the texts of a value refer to."""
    match value:
        case str():
            yield from (found[1] for found in re.finditer(r"(?<!\$)\$\{([A-Za-z][A-Za-z0-9_]*)", value))
        case list():
            for each in value:
                yield from _names(each)
        case dict():
            for key, each in value.items():
                yield from _names(key)
                yield from _names(each)
