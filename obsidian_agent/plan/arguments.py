"""JSON against pydantic models: strict, tolerant of references, and answered in sentences that name field and path."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.plan.filters import text_of
from obsidian_agent.plan.grammar import Reference, pieces
from obsidian_agent.plan.jsonvalues import pointer
from obsidian_agent.plan.nearest import did_you_mean
from obsidian_agent.tools.base import Tool, ToolModel

Model = TypeVar("Model", bound=BaseModel)
Path = tuple[str | int, ...]

_STRUCTURE = frozenset({"missing", "extra_forbidden"})
_TEXT_RULES = frozenset({"literal_error", "string_pattern_mismatch", "string_too_short", "string_too_long", "value_error", "enum"})
_KINDS: Mapping[str, str] = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "none_required": "null",
}


def parse_input(tool: Tool, args: Mapping[str, Any]) -> ToolModel:
    """A tool's input from resolved arguments; a number or boolean that a reference brought where text is wanted becomes text.

    ToolError ARGUMENT_INVALID says everything that is wrong.
    """
    model, problems = check(tool.input, dict(args))
    if model is None and (scalars := _scalars_for_text(tool.input, args)):
        model, problems = check(tool.input, {**args, **scalars})
    if model is None:
        raise ToolError(" ".join(each.message for each in problems), code="ARGUMENT_INVALID", path=problems[0].path)
    return model


def _scalars_for_text(model: type[BaseModel], args: Mapping[str, Any]) -> dict[str, str]:
    """Arguments that are numbers or booleans where the model wants nothing but text, as the text they have inside other text."""
    texts = {info.alias or name for name, info in model.model_fields.items() if info.annotation in (str, str | None)}
    return {name: text_of(value) for name, value in args.items() if name in texts and isinstance(value, bool | int | float)}


def argument_problems(tool: Tool, args: dict[str, Any], base: Path = ()) -> list[Problem]:
    """What is wrong with a step's arguments as written; a reference may stand for a value of any type. `base` is the place of `args`."""
    _, problems = check(tool.input, args, base=base, code="ARGUMENT_INVALID", excuse=_excused_by_reference)
    return problems


def check(
    model: type[Model],
    document: Any,
    *,
    base: Path = (),
    code: str = "ARGUMENT_INVALID",
    excuse: Callable[[Any, ErrorDetails], bool] = lambda value, error: False,
) -> tuple[Model | None, list[Problem]]:
    """The model, or everything that is wrong. A whole number may be written `1.0`; nothing else is coerced.

    `excuse(value, error)` may drop an error of the value that stands at its place; the model is None then too.
    """
    try:
        return model.model_validate(document, by_alias=True, by_name=False), []
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
    if integral := [place for place in map(_integral_place(document), details) if place is not None]:
        document = _with_integers(document, integral)
        return check(model, document, base=base, code=code, excuse=excuse)
    kept = [each for each in details if not excuse(_locate(document, each["loc"])[1], each)]
    return None, _problems(model, document, kept, base, code)


def _excused_by_reference(value: Any, error: ErrorDetails) -> bool:
    if error["type"] in _STRUCTURE or not isinstance(value, str) or "$" not in value:
        return False
    found = pieces(value, False)
    if len(found) == 1 and isinstance(found[0], Reference):
        return True
    return error["type"] in _TEXT_RULES and any(isinstance(piece, Reference) for piece in found)


def _integral_place(document: Any) -> Callable[[ErrorDetails], Path | None]:
    def place(error: ErrorDetails) -> Path | None:
        if error["type"] not in ("int_type", "int_from_float"):
            return None
        path, value = _locate(document, error["loc"])
        return path if isinstance(value, float) and value.is_integer() and path else None

    return place


def _with_integers(document: Any, places: list[Path]) -> Any:
    document = copy.deepcopy(document)
    for place in places:
        parent: Any = document
        for part in place[:-1]:
            parent = parent[part]
        parent[place[-1]] = int(parent[place[-1]])
    return document


def _locate(document: Any, loc: tuple[str | int, ...]) -> tuple[Path, Any]:
    """The place in the document that an error speaks of, and the value there; names of union members in `loc` are passed over."""
    path: list[str | int] = []
    value = document
    for part in loc:
        held = part in value if isinstance(value, dict) else isinstance(value, list) and isinstance(part, int) and part < len(value)
        if held:
            value = value[part]
            path.append(part)
    return tuple(path), value


def _problems(model: type[BaseModel], document: Any, details: list[ErrorDetails], base: Path, code: str) -> list[Problem]:
    found: dict[tuple[str, str], Problem] = {}
    for error in details:
        path, value = _locate(document, error["loc"])
        at = (*path, str(error["loc"][-1])) if error["type"] == "missing" else path
        where = pointer((*base, *at)) or "/"
        message = f"{_sentence(error, value, at, model)} (at {where})"
        found.setdefault((where, message), Problem(code, message, path=where))
    return list(found.values())


def _sentence(error: ErrorDetails, value: Any, path: Path, model: type[BaseModel]) -> str:
    name = repr(str(path[-1])) if path else "The document"
    context = error.get("ctx", {})
    kind = error["type"]
    if kind == "missing":
        return f"{name} is missing."
    if kind == "extra_forbidden":
        known = [info.alias or each for each, info in model.model_fields.items()] if len(path) == 1 else []
        return f"Unknown field {name}.{did_you_mean(str(path[-1]), known)}"
    if kind in _KINDS:
        return f"{name} must be {_KINDS[kind]}, not {_described(value)}."
    if kind in ("literal_error", "enum"):
        return f"{name} must be {context.get('expected', 'another value')}, not {_described(value)}."
    if kind == "string_pattern_mismatch":
        return f"{name} is {_described(value)}: it must begin with a letter and hold only letters, digits and _."
    if kind in ("greater_than_equal", "less_than_equal"):
        limit = context.get("ge", context.get("le"))
        return f"{name} must be at {'least' if kind == 'greater_than_equal' else 'most'} {limit}, not {_described(value)}."
    message = error["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{name}: {message}." if path else f"{message}."


def _described(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return repr(value[:60])
        case int() | float():
            return f"the number {value}"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return type(value).__name__
