"""From a matched recipe to a plan: values become defaults of declared parameters, so that the plan can be saved as a macro as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from obsidian_agent.plan.model import ActionPlan, ParameterType
from obsidian_agent.providers.offline.recipe import Recipe, SlotKind
from obsidian_agent.providers.offline.resolve import Resolved
from obsidian_agent.providers.offline.type_nouns import told

_PATH_KINDS: frozenset[SlotKind] = frozenset({"note", "folder", "entry", "path", "newName", "destination", "template"})
_INLINE = re.compile(r"<<(?P<inline>[A-Za-z][A-Za-z0-9_]*)>>")
_SHOWN = re.compile(rf"{_INLINE.pattern}|\$\{{(?P<name>[A-Za-z][A-Za-z0-9_]*)(?:\|(?P<filter>default:[^|}}]*|basename))?\}}")
_ACTIVE = "${activeFile}"
_BARE = re.compile(r"\$+(?:steps|vars)\b\S*")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a plan may hold besides its parameters: `met` needs, and texts by name for `<<name>>` (references in them stay references)."""

    met: frozenset[str] = frozenset()
    texts: Mapping[str, str] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)
    """How context values read in titles: `date` is 2026-03-14."""


def plan_of(recipe: Recipe, resolved: Resolved, facts: Facts) -> ActionPlan | None:
    """The plan of a recipe for these values, or None while a value is missing that the plan holds as text.

    Values that are missing else are parameters without a default, so that the form asks for them; an argument that holds only an optional
    value which was not given is left out.
    """
    document = recipe.plan_for(facts.met, frozenset(resolved.values))
    if document is None:
        return None
    inlined = {name: str(value) for name, value in resolved.values.items() if isinstance(value, str | int | float)}
    texts = inlined | dict(facts.texts)
    objects = {name: _literal(value) for name, value in resolved.values.items() if isinstance(value, dict | list)}
    absent = frozenset(name for name, parameter in recipe.parameters.items() if parameter.optional and resolved.values.get(name) is None)
    said = [_without(step, absent) for step in document.get("steps", [])]
    if any(name not in texts and name not in objects for name in _inlines([said, document["goal"]])):
        return None
    shown = {name: _said(value) for name, value in resolved.values.items()} | dict(facts.shown)
    steps = [_step(_spread(step, objects), texts, resolved.references, shown) for step in said]
    used = _references(steps)
    parameters = {
        name: _declaration(parameter.kind, parameter.description, resolved.values.get(name))
        for name, parameter in recipe.parameters.items()
        if name in used and name not in resolved.references and name not in objects
    }
    heading = {key: document[key] for key in ("version", "riskLevel")}
    goal = _display(document["goal"], texts, shown)
    assumptions = [_display(each, texts, shown) for each in document.get("assumptions", [])]
    return ActionPlan.model_validate({**heading, "goal": goal, "assumptions": assumptions, "parameters": parameters, "steps": steps})


def escaped(text: str) -> str:
    """Text as it must stand in an argument of a plan to be taken literally."""
    return "$" + text if _BARE.fullmatch(text) else text.replace("${", "$${")


def type_of(kind: SlotKind, value: Any) -> ParameterType:
    """The plan's type of a recipe's parameter; a property's value is what it looks like."""
    if kind in _PATH_KINDS:
        return "path"
    if kind in ("date", "otherDay", "before"):
        return "date"
    if isinstance(value, bool):
        return "boolean"
    if kind in ("number", "level") or isinstance(value, int | float):
        return "number"
    return "list" if isinstance(value, list) else "text"


def _declaration(kind: SlotKind, description: str, value: Any) -> dict[str, Any]:
    declared = {"description": description, "type": type_of(kind, value)}
    return declared if value is None else declared | {"default": value}


def _literal(value: Any) -> Any:
    """A value whose texts are taken literally, but for the one reference that stands for the open note."""
    return _rewritten(value, lambda text: text if text == _ACTIVE else escaped(text))


def _without(step: Mapping[str, Any], absent: frozenset[str]) -> dict[str, Any]:
    """A step without the arguments that hold only an optional value which was not given."""
    marks = {f"<<{name}>>" for name in absent} | {f"${{{name}}}" for name in absent}
    return {**step, "args": {key: value for key, value in step.get("args", {}).items() if key not in marks and _mark(value) not in marks}}


def _mark(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _spread(value: Any, objects: Mapping[str, Any]) -> Any:
    """What `<<name>>` stands for, put in: as a whole value, or as the key of an object whose fields take its place."""
    if isinstance(value, str):
        whole = _INLINE.fullmatch(value)
        return objects.get(whole["inline"], value) if whole else value
    if isinstance(value, list):
        return [_spread(each, objects) for each in value]
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = {}
    for key, each in value.items():
        whole = _INLINE.fullmatch(key)
        fields = objects.get(whole["inline"]) if whole else None
        made |= fields if isinstance(fields, dict) else {key: _spread(each, objects)}
    return made


def _step(step: Mapping[str, Any], texts: Mapping[str, str], references: Mapping[str, str], shown: Mapping[str, str]) -> dict[str, Any]:
    """One step with its texts put in. Only arguments, `when` and lists hold references; previews are for people."""
    made = dict(step)
    for key in ("args", "foreach", "when"):
        if key in made:
            made[key] = _rewritten(made[key], lambda text: _INLINE.sub(lambda found: texts[found[1]], _pointed(text, references)))
    if "preview" in made:
        made["preview"] = _display(made["preview"], texts, shown)
    return made


def _rewritten(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_rewritten(each, change) for each in value]
    if isinstance(value, dict):
        return {change(key): _rewritten(each, change) for key, each in value.items()}
    return value


def _pointed(text: str, references: Mapping[str, str]) -> str:
    """References to parameters that a context value stands for, pointed at that value."""
    for name, head in references.items():
        text = re.sub(rf"(?<!\$)\$\{{{name}(?=[|}}])", f"${{{head}", text)
    return text


def _display(text: str, texts: Mapping[str, str], shown: Mapping[str, str]) -> str:
    """Text for people: values in place of references. What is put in is not looked at again."""

    def value(found: re.Match[str]) -> str:
        if found["inline"]:
            return texts[found["inline"]]
        said = shown.get(found["name"], "…")
        if found["filter"] == "basename":
            return said.rpartition("/")[2].removesuffix(".md")
        return said or (found["filter"] or "").removeprefix("default:") or "the vault"

    return _SHOWN.sub(value, text)


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    if isinstance(value, Mapping) and isinstance(value.get("where"), Mapping):
        return f"notes {told(value['where'])}"
    return "the selection" if value == "${selection}" else str(value)


def _inlines(document: Any) -> set[str]:
    return {name for text in _all_texts(document) for name in _INLINE.findall(text)}


def _references(steps: list[dict[str, Any]]) -> set[str]:
    places = [step.get(key) for step in steps for key in ("args", "foreach", "when")]
    return {name for text in _all_texts(places) for name in re.findall(r"\$\{([A-Za-z][A-Za-z0-9_]*)", text)}


def _all_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _all_texts(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from _all_texts(each)
