"""From recipes and their values to a plan: values become defaults of declared parameters, so that a run of it can be saved as a macro.

What the plan language resolves no references in is written out: descriptions of notes become conditions, names of properties keys. The open
note stays a reference, so that a macro works on whichever note is open then. Several plans become one, with the steps of all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from obsidian_agent.offline.note_set import ACTIVE, NoteSet, note_name
from obsidian_agent.offline.recipe import Input, Recipe
from obsidian_agent.offline.values import phrase
from obsidian_agent.plan.model import ActionPlan, ParameterType

_REFERENCE: Final = re.compile(r"(?<!\$)\$\{([A-Za-z][A-Za-z0-9_]*)((?:\|[^}]*)?)\}")
# A part of a goal in brackets, with a reference: it is only said when that has a value.
_PERHAPS: Final = re.compile(r"\[([^\[\]]*\$\{([A-Za-z][A-Za-z0-9_]*)[^\[\]]*)\]")
_BARE: Final = re.compile(r"\$+(?:steps|vars)\b\S*")
# A name that a text refers to: of a step, of something captured, or of a parameter, which is only referred to in braces.
_NAME: Final = re.compile(
    r"(?:(?<!\$)\$\{(?:\$?(steps|vars)\.)?|\A\$(steps|vars)\.)([A-Za-z][A-Za-z0-9_]*)"
)
_PLACES: Final = ("args", "foreach", "when")
_RISKS: Final = ("read-only", "writes", "commands")


def fill(recipe: Recipe, values: Mapping[str, Any]) -> ActionPlan:
    """The plan of a recipe for values as `values.read` gives them, of which none is missing; defaults hold for what is not given."""
    known = recipe.defaults | {
        name: value for name, value in values.items() if name in recipe.inputs and value is not None
    }
    absent = recipe.inputs.keys() - known.keys()
    words = {
        name: recipe.inputs[name].options.get(str(value), value) for name, value in known.items()
    }
    # A step may be there for an optional input only.
    steps = [
        _step(step, known, absent)
        for step in recipe.plan["steps"]
        if not _names(step.get("when")) & absent
    ]
    used = _names([step.get(place) for step in steps for place in _PLACES])
    document = {
        **recipe.plan,
        "goal": render_text(recipe.plan["goal"], words),
        "assumptions": [
            render_text(each, words)
            for each in recipe.plan.get("assumptions", [])
            if not _names(each) & absent
        ],
        "parameters": {
            name: _declared(wanted, known[name])
            for name, wanted in recipe.inputs.items()
            if name in used and name in known
        },
        "steps": [
            step | ({"preview": render_text(step["preview"], words)} if step.get("preview") else {})
            for step in steps
        ],
    }
    return ActionPlan.model_validate(document)


def render_text(text: str, values: Mapping[str, Any]) -> str:
    """A text for people: values in place of references. What is put in is not looked at again."""

    def value(found: re.Match[str]) -> str:
        name, filters = found[1], found[2]
        if name not in values and "default:" not in filters:
            return "…"
        words = phrase(values.get(name, ""))
        if "|basename" in filters:
            return note_name(words)
        return words or filters.partition("default:")[2] or "the vault"

    return _REFERENCE.sub(
        value, _PERHAPS.sub(lambda found: found[1] if found[2] in values else "", text)
    )


def escape(text: str) -> str:
    """Text as it must stand in an argument of a plan to be taken literally."""
    return "$" + text if _BARE.fullmatch(text) else text.replace("${", "$${")


def map_texts(value: Any, change: Callable[[str], Any]) -> Any:
    """A value with each of its texts changed, but not its keys."""
    match value:
        case str():
            return change(value)
        case list():
            return [map_texts(each, change) for each in value]
        case dict():
            return {key: map_texts(each, change) for key, each in value.items()}
        case _:
            return value


def _step(
    step: Mapping[str, Any], known: Mapping[str, Any], absent: Collection[str]
) -> dict[str, Any]:
    """A step with its descriptions of notes and its keys written out, references to what is the open note pointed at it, and without the
    arguments that hold only an optional value which was not given."""
    gone = {f"${{{name}}}" for name in absent}
    keys = {f"${{{name}}}": value for name, value in known.items() if isinstance(value, str)}
    sets = {
        f"${{{name}}}": map_texts(
            value.condition(), lambda text: text if text == ACTIVE else escape(text)
        )
        for name, value in known.items()
        if isinstance(value, NoteSet)
    }

    def change(text: str) -> Any:
        if text in sets:
            return sets[text]
        return _REFERENCE.sub(
            lambda found: (
                f"${{activeFile{found[2]}}}" if known.get(found[1]) == ACTIVE else found[0]
            ),
            text,
        )

    def kept(value: Any) -> Any:
        if isinstance(value, list):
            return [kept(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {
            keys.get(key, key): kept(each)
            for key, each in value.items()
            if not gone & {key, each if isinstance(each, str) else key}
        }

    return {
        key: map_texts(kept(value), change) if key in _PLACES else value
        for key, value in step.items()
    }


def _declared(wanted: Input, value: Any) -> dict[str, Any]:
    type_ = wanted.type
    if wanted.kind in ("value", "choice"):
        kinds: list[tuple[type, ParameterType]] = [
            (bool, "boolean"),
            (int, "number"),
            (float, "number"),
            (list, "list"),
        ]
        type_ = next((name for kind, name in kinds if isinstance(value, kind)), "text")
    return {"description": wanted.description, "type": type_, "default": value}


def _names(value: Any) -> set[str]:
    """The names that the texts of a value refer to, those of its keys among them."""
    return set(re.findall(r"(?<!\$)\$\{([A-Za-z][A-Za-z0-9_]*)", json.dumps(value)))


def join_plans(plans: Sequence[ActionPlan]) -> ActionPlan:
    """One plan with the steps of all, in order; ids, captured names and parameters get the number of their part."""
    documents = [
        _numbered(plan.to_json(), f"_part{number}") for number, plan in enumerate(plans, 1)
    ]
    return ActionPlan.model_validate(
        {
            "version": documents[0]["version"],
            "goal": "; ".join(document["goal"] for document in documents),
            "assumptions": [
                text for document in documents for text in document.get("assumptions", [])
            ],
            "riskLevel": max((document["riskLevel"] for document in documents), key=_RISKS.index),
            "parameters": {
                name: declared
                for document in documents
                for name, declared in document["parameters"].items()
            },
            "steps": [step for document in documents for step in document["steps"]],
        }
    )


def _numbered(document: dict[str, Any], ending: str) -> dict[str, Any]:
    steps, parameters = document["steps"], document.get("parameters", {})
    known = {
        "steps": {step["id"] for step in steps},
        "vars": {step.get("captureAs") for step in steps},
        None: set(parameters),
    }

    def named(found: re.Match[str]) -> str:
        return f"{found[0]}{ending}" if found[3] in known[found[1] or found[2]] else found[0]

    made = []
    for step in steps:
        new = map_texts(step, lambda text: _NAME.sub(named, text))
        new |= {key: f"{step[key]}{ending}" for key in ("id", "captureAs") if step.get(key)}
        made.append(
            new
            | (
                {"dependsOn": [f"{name}{ending}" for name in step["dependsOn"]]}
                if step.get("dependsOn")
                else {}
            )
        )
    return document | {
        "steps": made,
        "parameters": {f"{name}{ending}": each for name, each in parameters.items()},
    }
