"""A model that picks from the menu instead of writing plans: what it is told, the shape of its answer, and what an answer chooses.

The prompt is a function of the recipes alone, so services keep it ready; a sentence adds itself, the day, and the kinds of the names in it.
Nothing of a note is in either. What is chosen are texts, as a form would give them: `values.read` and `check` decide what they are worth.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib import resources
from typing import Any, Final

from obsidian_agent.dataclass import dataclass
from obsidian_agent.offline.note_set import (
    SLOTS,
    STATES,
    TASKS,
    InvalidValue,
    NoteSet,
    plain,
    with_field,
)
from obsidian_agent.offline.recipe import Input, Recipe
from obsidian_agent.offline.sentence import NameMatch
from obsidian_agent.offline.values import form_text
from obsidian_agent.plan.json_text import InvalidJson, decode
from obsidian_agent.tools.core.tool import RunContext

MAX_ACTIONS: Final = 3
"""Of one sentence that a model on this machine reads."""
OTHER: Final = "other"
_KINDS_SENT: Final = ("folder", "tag", "property", "note", "value")
_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
# The fields by which a model describes notes; together they hold of each note.
_NOTES: Final[Mapping[str, Mapping[str, Any]]] = {
    **dict.fromkeys(SLOTS, _TEXT),
    "note": _TEXTS,
    "is": {"enum": list(STATES)},
    "tasks": {"enum": list(TASKS)},
    "all": {"const": True},
}


class InvalidChoice(Exception):
    """An answer that chooses nothing from the menu; the message says why."""


@dataclass(frozen=True, slots=True)
class MenuChoice:
    """An action of the menu, and its values as texts."""

    recipe: Recipe
    texts: Mapping[str, str]


@dataclass(frozen=True)
class Chooser:
    """A menu for a model."""

    recipes: tuple[Recipe, ...]

    @cached_property
    def prompt(self) -> str:
        """What is told before every sentence; the same bytes for the same recipes."""
        told = json.loads(
            resources.files("obsidian_agent.offline")
            .joinpath("choices.json")
            .read_text(encoding="utf-8")
        )
        examples = [
            f"{each['request']}\n{json.dumps({'actions': each['actions']}, ensure_ascii=False, separators=(',', ':'))}"
            for each in told["examples"]
        ]
        return "\n\n".join(
            [
                told["role"],
                "\n".join([*map(_line, self.recipes), told["other"]]),
                told["notes"],
                *examples,
            ]
        )

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of an answer: one to three actions, each with its own parameters."""
        ways = [*map(_alternative, self.recipes), _shape({"action": {"const": OTHER}}, ["action"])]
        actions = {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_ACTIONS,
            "items": {"anyOf": ways},
        }
        return {**_shape({"actions": actions}, ["actions"]), "$defs": {"notes": _shape(_NOTES, [])}}

    def choices(self, answer: str) -> tuple[MenuChoice, ...]:
        """What an answer chooses, in order; nothing where it says that no action fits. Raises `InvalidChoice`."""
        actions = _actions(answer)
        if any(action.get("action") == OTHER for action in actions):
            return ()
        return tuple(self._one(action) for action in actions)

    def _one(self, action: Mapping[str, Any]) -> MenuChoice:
        recipe = next((each for each in self.recipes if each.name == action.get("action")), None)
        if recipe is None:
            raise InvalidChoice(
                f"It chose “{str(action.get('action'))[:40]}”, which is not in the menu."
            )
        texts: dict[str, str] = {}
        for name, value in action.items():
            if name == "action":
                continue
            if name not in recipe.inputs:
                raise InvalidChoice(f"{recipe.title} has no “{name[:40]}”.")
            text = _text(recipe.inputs[name], value)
            if text is not None:
                texts[name] = text
        return MenuChoice(recipe, texts)


def menu_request(sentence: str, names: Iterable[NameMatch], context: RunContext) -> str:
    """What a sentence adds: the day, what is at hand, the kinds of the names of the vault that the sentence says, and itself."""
    kinds = {}
    for found in names:
        known = [kind for kind in _KINDS_SENT if any(name.kind == kind for name in found.names)]
        if known:
            kinds[found.text] = " or ".join(known)
    at_hand = [f"{context.now:%Y-%m-%d, %A}"]
    if context.active_file is not None:
        at_hand.append("a note is open")
    if context.selection is not None and context.selection.text.strip():
        at_hand.append("text is selected")
    told = [f"{json.dumps(text, ensure_ascii=False)} is a {kind}" for text, kind in kinds.items()]
    return "\n".join([f"({'; '.join([*at_hand, *told])})", sentence])


def _line(recipe: Recipe) -> str:
    """A recipe in one line: its name, its inputs (those in brackets may be left out), its title, and an example."""
    inputs = ", ".join(
        name if wanted.needed else f"[{name}]" for name, wanted in recipe.inputs.items()
    )
    return f"{recipe.name}({inputs}): {recipe.title}. {' / '.join(recipe.examples[:1])}"


def _alternative(recipe: Recipe) -> Mapping[str, Any]:
    values = {name: _value_shape(wanted) for name, wanted in recipe.inputs.items()}
    return _shape(
        {"action": {"const": recipe.name}, **values},
        ["action", *(name for name, each in recipe.inputs.items() if each.needed)],
    )


def _shape(properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _value_shape(wanted: Input) -> Mapping[str, Any]:
    match wanted.kind:
        case "notes":
            return {"$ref": "#/$defs/notes"}
        case "choice":
            return {"enum": list(wanted.options)}
        case "boolean" | "number":
            return {"type": wanted.kind}
        case "list" | "tags" | "properties":
            return _TEXTS
        case _:
            return _TEXT


def _actions(answer: str) -> list[dict[str, Any]]:
    """The actions in an answer, also one that a service without schemas wrapped in words."""
    text = answer.rpartition("</think>")[2]
    start = text.find("{")
    try:
        document = decode(text, start).value if start >= 0 else None
    except InvalidJson as error:
        raise InvalidChoice("Its answer cannot be read.") from error
    if isinstance(document, dict) and "action" in document:
        document = {"actions": [document]}
    actions = document.get("actions") if isinstance(document, dict) else None
    if (
        not isinstance(actions, list)
        or not 1 <= len(actions) <= MAX_ACTIONS
        or not all(isinstance(each, dict) for each in actions)
    ):
        raise InvalidChoice("Its answer is no choice from the menu.")
    return actions


def _text(wanted: Input, value: Any) -> str | None:
    """A value as a form would have it; None for none."""
    if isinstance(value, dict):
        if wanted.kind != "notes":
            raise InvalidChoice(f"{wanted.description} is neither a text nor a number.")
        return _query(value)
    return form_text(wanted, value) or None


def _query(fields: Mapping[str, Any]) -> str | None:
    """A description of notes as `note_set.read_set` reads it; None where nothing is described."""
    unknown = fields.keys() - _NOTES.keys()
    if unknown:
        raise InvalidChoice(f"Notes are not described by {min(unknown)[:40]!r}.")
    described = NoteSet()
    try:
        for field in (each for each in SLOTS if fields.get(each) not in (None, "", [])):
            for value in fields[field] if isinstance(fields[field], list) else [fields[field]]:
                described = with_field(
                    described, field, plain(str(value)) if field == "value" else str(value)
                )
    except InvalidValue as error:
        raise InvalidChoice(error.message) from error
    return described.query() if described.terms or fields.get("all") is True else None
