"""Plans made from recipes and values.

Values become defaults of declared parameters, so that a run can be saved as a macro. Where the plan
language has no references, values are inserted: descriptions of notes become conditions, names of
properties keys. The open note stays a reference, so that a macro uses the note that is open when it
runs. Several plans can be joined into one.
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
# A part of a goal in brackets with a reference, omitted if that has no value.
_OPTIONAL_TEXT: Final = re.compile(r"\[([^\[\]]*\$\{([A-Za-z][A-Za-z0-9_]*)[^\[\]]*)\]")
_BARE: Final = re.compile(r"\$+(?:steps|vars)\b\S*")
# A reference to a step, a captured variable, or a parameter (in braces only).
_NAME: Final = re.compile(
    r"(?:(?<!\$)\$\{(?:\$?(steps|vars)\.)?|\A\$(steps|vars)\.)([A-Za-z][A-Za-z0-9_]*)"
)
_REFERENCE_KEYS: Final = ("args", "foreach", "when")
_RISKS: Final = ("read-only", "writes", "commands")


def fill(recipe: Recipe, values: Mapping[str, Any]) -> ActionPlan:
    """Return the plan of a recipe. `values` come from `values.read`; none may be missing."""
    known = recipe.defaults | {
        name: value for name, value in values.items() if name in recipe.inputs and value is not None
    }
    absent = recipe.inputs.keys() - known.keys()
    words = {name: recipe.inputs[name].worded(value) for name, value in known.items()}
    # A step that depends on an optional input is omitted if that has no value.
    steps = [
        _step(step, known, absent)
        for step in recipe.plan["steps"]
        if not _names(step.get("when")) & absent
    ]
    used = _names([step.get(key) for step in steps for key in _REFERENCE_KEYS])
    document = {
        **recipe.plan,
        "goal": render_text(recipe.plan["goal"], words),
        "assumptions": [
            render_text(text, words)
            for text in recipe.plan.get("assumptions", [])
            if not _names(text) & absent
        ],
        "parameters": {
            name: _declared(spec, known[name])
            for name, spec in recipe.inputs.items()
            if name in used and name in known
        },
        "steps": [
            step | {"preview": render_text(step["preview"], words)} if step.get("preview") else step
            for step in steps
        ],
    }
    return ActionPlan.model_validate(document)


def render_text(text: str, values: Mapping[str, Any]) -> str:
    """Return a text with values in place of references. Inserted text is not expanded again."""
    return "".join(part or "…" for part, _ in text_parts(text, values))


def text_parts(text: str, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the parts of a text with values in place of references.

    Each part has the name of its reference, "" for literal text. The text of a reference is "" if
    its value is absent, or `None`.
    """
    text = _OPTIONAL_TEXT.sub(
        lambda match: match[1] if values.get(match[2]) not in (None, "") else "", text
    )
    parts: list[tuple[str, str]] = []
    end = 0
    for match in _REFERENCE.finditer(text):
        parts += [(text[end : match.start()], ""), (_wording(match, values), match[1])]
        end = match.end()
    parts.append((text[end:], ""))
    return [(part, name) for part, name in parts if part or name]


def _wording(reference: re.Match[str], values: Mapping[str, Any]) -> str:
    name, filters = reference[1], reference[2]
    if name not in values and "default:" not in filters:
        return ""
    if name in values and values[name] is None:
        return ""
    words = phrase(values.get(name, ""))
    if "|basename" in filters:
        return note_name(words)
    return words or filters.partition("default:")[2] or "the vault"


def escape(text: str) -> str:
    """Return text escaped, so that it is literal in an argument of a plan."""
    if _BARE.fullmatch(text):
        return "$" + text
    return text.replace("${", "$${")


def map_texts(value: Any, change: Callable[[str], Any]) -> Any:
    """Return a value with each of its texts changed, except keys."""
    match value:
        case str():
            return change(value)
        case list():
            return [map_texts(item, change) for item in value]
        case dict():
            return {key: map_texts(item, change) for key, item in value.items()}
        case _:
            return value


def _step(
    step: Mapping[str, Any], known: Mapping[str, Any], absent: Collection[str]
) -> dict[str, Any]:
    """Return a step with descriptions of notes and keys inserted.

    References to inputs that are the open note become references to it. Arguments that consist of
    an absent optional input are omitted.
    """
    absent_references = {f"${{{name}}}" for name in absent}
    keys = {f"${{{name}}}": value for name, value in known.items() if isinstance(value, str)}
    pairs = {
        f"${{{name}}}": map_texts(value, escape)
        for name, value in known.items()
        if isinstance(value, dict)
    }
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
            lambda match: (
                f"${{activeFile{match[2]}}}" if known.get(match[1]) == ACTIVE else match[0]
            ),
            text,
        )

    def pruned(value: Any) -> Any:
        if isinstance(value, list):
            return [pruned(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            name: pruned(one)
            for key, item in value.items()
            if not absent_references & {key, item if isinstance(item, str) else key}
            for name, one in pairs.get(key, {keys.get(key, key): item}).items()
        }

    return {
        key: map_texts(pruned(value), change) if key in _REFERENCE_KEYS else value
        for key, value in step.items()
    }


def _declared(spec: Input, value: Any) -> dict[str, Any]:
    type_ = spec.type
    if spec.kind in ("value", "choice"):
        kinds: list[tuple[type, ParameterType]] = [
            (bool, "boolean"),
            (int, "number"),
            (float, "number"),
            (list, "list"),
        ]
        type_ = next((name for kind, name in kinds if isinstance(value, kind)), "text")
    return {"description": spec.description, "type": type_, "default": value}


def _names(value: Any) -> set[str]:
    """Return the names that the texts and keys of a value refer to."""
    return set(re.findall(r"(?<!\$)\$\{([A-Za-z][A-Za-z0-9_]*)", json.dumps(value)))


def join_plans(plans: Sequence[ActionPlan]) -> ActionPlan:
    """Join plans into one with all steps in order.

    Ids, captured names and parameters get the number of their part.
    """
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

    def renamed(match: re.Match[str]) -> str:
        return f"{match[0]}{ending}" if match[3] in known[match[1] or match[2]] else match[0]

    new_steps = []
    for step in steps:
        new = map_texts(step, lambda text: _NAME.sub(renamed, text))
        new |= {key: f"{step[key]}{ending}" for key in ("id", "captureAs") if step.get(key)}
        if step.get("dependsOn"):
            new["dependsOn"] = [f"{name}{ending}" for name in step["dependsOn"]]
        new_steps.append(new)
    return document | {
        "steps": new_steps,
        "parameters": {f"{name}{ending}": declared for name, declared in parameters.items()},
    }
