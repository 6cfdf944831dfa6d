"""A menu for models that choose recipes instead of writing plans: prompt, answer schema, choices.

The prompt depends on the recipes alone, so services can cache it; a request adds the sentence, the
day, and the kinds of the names in it. Neither contains text of notes. Chosen values are texts as in
a form, which `values.read` and `check` then verify.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib import resources
from typing import Any, Final

from msgspec import Struct

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
"""Actions that a model may choose for one sentence."""
OTHER: Final = "other"
_KINDS_SENT: Final = ("folder", "tag", "property", "note", "value")
_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_TEXTS: Final[Mapping[str, Any]] = {"type": "array", "items": _TEXT}
_NOTES: Final[Mapping[str, Mapping[str, Any]]] = {
    **dict.fromkeys(SLOTS, _TEXT),
    "note": _TEXTS,
    "is": {"enum": list(STATES)},
    "tasks": {"enum": list(TASKS)},
    "all": {"const": True},
}
"""The fields by which a model describes notes; all of them apply to each note."""


class InvalidChoice(Exception):
    """An answer that is not a choice from the menu; the message is the reason."""


class MenuChoice(Struct, frozen=True):
    """A recipe of the menu, and its values as texts."""

    recipe: Recipe
    texts: Mapping[str, str]


class Chooser(Struct, frozen=True, dict=True):
    """A menu for a model."""

    recipes: tuple[Recipe, ...]

    @cached_property
    def prompt(self) -> str:
        """The system prompt; the same bytes for the same recipes."""
        texts = json.loads(
            resources.files("obsidian_agent.offline")
            .joinpath("choices.json")
            .read_text(encoding="utf-8")
        )
        examples = [
            f"{example['request']}\n{_compact_json({'actions': example['actions']})}"
            for example in texts["examples"]
        ]
        return "\n\n".join(
            [
                texts["role"],
                "\n".join([*map(_line, self.recipes), texts["other"]]),
                texts["notes"],
                *examples,
            ]
        )

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of an answer: one to three actions with their parameters."""
        alternatives = [
            *map(_alternative, self.recipes),
            _shape({"action": {"const": OTHER}}, ["action"]),
        ]
        actions = {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_ACTIONS,
            "items": {"anyOf": alternatives},
        }
        return {**_shape({"actions": actions}, ["actions"]), "$defs": {"notes": _shape(_NOTES, [])}}

    def choices(self, answer: str) -> tuple[MenuChoice, ...]:
        """Return the choices in an answer, or () if it says that no action fits.

        Raise `InvalidChoice` if it cannot be used.
        """
        actions = _actions(answer)
        if any(action.get("action") == OTHER for action in actions):
            return ()
        return tuple(self._one(action) for action in actions)

    def _one(self, action: Mapping[str, Any]) -> MenuChoice:
        recipe = next(
            (recipe for recipe in self.recipes if recipe.name == action.get("action")), None
        )
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


def _compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def menu_request(sentence: str, names: Iterable[NameMatch], context: RunContext) -> str:
    """Return the message: day, open note, selection, kinds of names, then the sentence."""
    kinds = {}
    for match in names:
        known = [kind for kind in _KINDS_SENT if any(name.kind == kind for name in match.names)]
        if known:
            kinds[match.text] = " or ".join(known)
    at_hand = [f"{context.now:%Y-%m-%d, %A}"]
    if context.active_file is not None:
        at_hand.append("a note is open")
    if context.selection is not None and context.selection.text.strip():
        at_hand.append("text is selected")
    known_names = [
        f"{json.dumps(text, ensure_ascii=False)} is a {kind}" for text, kind in kinds.items()
    ]
    return "\n".join([f"({'; '.join([*at_hand, *known_names])})", sentence])


def _line(recipe: Recipe) -> str:
    """Return a recipe on one line: name, inputs (optional ones in brackets), title, example."""
    inputs = ", ".join(name if spec.needed else f"[{name}]" for name, spec in recipe.inputs.items())
    return f"{recipe.name}({inputs}): {recipe.title}. {' / '.join(recipe.examples[:1])}"


def _alternative(recipe: Recipe) -> Mapping[str, Any]:
    values = {name: _value_shape(spec) for name, spec in recipe.inputs.items()}
    return _shape(
        {"action": {"const": recipe.name}, **values},
        ["action", *(name for name, spec in recipe.inputs.items() if spec.needed)],
    )


def _shape(properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _value_shape(spec: Input) -> Mapping[str, Any]:
    match spec.kind:
        case "notes":
            return {"$ref": "#/$defs/notes"}
        case "choice":
            return {"enum": list(spec.options)}
        case "boolean" | "number":
            return {"type": spec.kind}
        case "list" | "tags" | "properties":
            return _TEXTS
        case _:
            return _TEXT


def _actions(answer: str) -> list[dict[str, Any]]:
    """Return the actions in an answer, which may have text around its JSON."""
    text = answer.rpartition("</think>")[2]
    start = text.find("{")
    try:
        document = decode(text, start).value if start >= 0 else None
    except InvalidJson as error:
        raise InvalidChoice("The answer is not valid JSON.") from error
    if isinstance(document, dict) and "action" in document:
        document = {"actions": [document]}
    actions = document.get("actions") if isinstance(document, dict) else None
    if (
        not isinstance(actions, list)
        or not 1 <= len(actions) <= MAX_ACTIONS
        or not all(isinstance(action, dict) for action in actions)
    ):
        raise InvalidChoice("The answer is not a choice from the menu.")
    return actions


def _text(spec: Input, value: Any) -> str | None:
    """Return a value as text for a form, or None if it is empty."""
    if isinstance(value, dict):
        if spec.kind != "notes":
            raise InvalidChoice(f"{spec.description} is neither a text nor a number.")
        return _query(value)
    return form_text(spec, value) or None


def _query(fields: Mapping[str, Any]) -> str | None:
    """Return a description of notes as text for `values.read_set`, or None if it is empty."""
    unknown = fields.keys() - _NOTES.keys()
    if unknown:
        raise InvalidChoice(f"Notes are not described by {min(unknown)[:40]!r}.")
    described = NoteSet()
    try:
        for field in (key for key in SLOTS if fields.get(key) not in (None, "", [])):
            for value in fields[field] if isinstance(fields[field], list) else [fields[field]]:
                described = with_field(
                    described, field, plain(str(value)) if field == "value" else str(value)
                )
    except InvalidValue as error:
        raise InvalidChoice(error.message) from error
    return described.query() if described.terms or fields.get("all") is True else None
