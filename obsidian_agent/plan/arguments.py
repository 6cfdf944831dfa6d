"""JSON checked against pydantic models, with problems that name the field and its path.

Values are plain, strict and not too deep; a reference may replace a value of any type. `ArgMarks`
tell which strings of a tool's arguments are vault paths or long text. They are read from the
annotations of its input model.
"""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeVar, Union

from msgspec import Struct, field
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from obsidian_agent.errors import Problem, ToolError, did_you_mean
from obsidian_agent.plan.grammar import Reference, pieces
from obsidian_agent.tools.core.filters import text_of
from obsidian_agent.tools.core.tool import LongTextMark, PathMark, Tool

MAX_DEPTH: Final = 64
"""Levels of lists and objects in arguments, which are walked recursively."""
MAX_INTEGER: Final = 2**63 - 1
"""The largest number that SQLite and every consumer of JSON accept."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


Model = TypeVar("Model", bound=BaseModel)
Path = tuple[str | int, ...]

_STRUCTURE = frozenset({"missing", "extra_forbidden"})
_TEXT_RULES = frozenset(
    {
        "literal_error",
        "string_pattern_mismatch",
        "string_too_short",
        "string_too_long",
        "value_error",
        "enum",
    }
)
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


class Flaw(Struct, frozen=True):
    """The reason why a document is unusable, and where (`pointer`, RFC 6901).

    Codes: TOO_DEEP, ENCODING, CONTROL_CHARS, NUMBER, NOT_JSON.
    """

    code: str
    message: str
    pointer: str


def json_pointer(path: tuple[str | int, ...]) -> str:
    """Return the JSON pointer (RFC 6901) of a path."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def find_flaw(document: object) -> Flaw | None:
    """Return the first flaw of a document, or None. Accept any Python value, however deep."""
    for path, value in _walk(document):
        if len(path) > MAX_DEPTH:
            return Flaw(
                "TOO_DEEP",
                f"The document is nested deeper than {MAX_DEPTH} levels.",
                json_pointer(path[:4]) + "/…",
            )
        if flaw := _value_flaw(value):
            return Flaw(flaw[0], flaw[1], json_pointer(path))
    return None


def has_control_characters(text: str) -> bool:
    """Return whether text holds terminal controls or direction overrides.

    They could falsify what a screen displays. Tab and newline are allowed.
    """
    return _CONTROL.search(text) is not None


def _walk(document: object) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    open_values: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while open_values:
        path, value = open_values.pop()
        yield path, value
        if isinstance(value, dict):
            open_values.extend(((*path, str(key)), child) for key, child in value.items())
            yield from (
                ((*path, "(name)"), key)
                for key in value
                if not isinstance(key, str) or _text_flaw(key)
            )
        elif isinstance(value, list):
            open_values.extend(
                ((*path, index), child) for index, child in enumerate(value) if child is not None
            )


def _value_flaw(value: object) -> tuple[str, str] | None:
    match value:
        case str():
            return _text_flaw(value)
        case bool() | None | dict() | list():
            return None
        case int():
            return ("NUMBER", "A number is too large.") if abs(value) > MAX_INTEGER else None
        case float():
            if math.isfinite(value):
                return None
            return "NUMBER", "NaN and infinite numbers are not JSON."
        case _:
            return "NOT_JSON", f"{type(value).__name__} is not a JSON value."


def _text_flaw(text: str) -> tuple[str, str] | None:
    if "\x00" in text:
        return "CONTROL_CHARS", "Text holds a NUL character, which would make a note binary."
    if not text.isascii() and _SURROGATE.search(text):
        return "ENCODING", "Text holds half of a surrogate pair, which cannot be written as UTF-8."
    return None


def parse_input(tool: Tool, args: Mapping[str, Any]) -> BaseModel:
    """Return a tool's input from resolved arguments.

    A number or boolean from a reference becomes text if the field is text. Raise ToolError
    ARGUMENT_INVALID with all problems.
    """
    model, problems = check(tool.input, dict(args))
    if model is None and (scalars := _scalars_for_text(tool.input, args)):
        model, problems = check(tool.input, {**args, **scalars})
    if model is None:
        raise ToolError(
            " ".join(problem.message for problem in problems),
            code="ARGUMENT_INVALID",
            path=problems[0].path,
        )
    return model


def _scalars_for_text(model: type[BaseModel], args: Mapping[str, Any]) -> dict[str, str]:
    """Return numbers and booleans of text-only fields, formatted as inside other text."""
    texts = {
        info.alias or name
        for name, info in model.model_fields.items()
        if info.annotation in (str, str | None)
    }
    return {
        name: text_of(value)
        for name, value in args.items()
        if name in texts and isinstance(value, bool | int | float)
    }


def argument_problems(tool: Tool, args: dict[str, Any], base: Path = ()) -> list[Problem]:
    """Return the problems of a step's arguments as written, at the path `base`.

    A reference may replace a value of any type.
    """
    _, problems = check(
        tool.input, args, base=base, code="ARGUMENT_INVALID", excuse=_excused_by_reference
    )
    return problems


def check(
    model: type[Model],
    document: Any,
    *,
    base: Path = (),
    code: str = "ARGUMENT_INVALID",
    excuse: Callable[[Any, ErrorDetails], bool] = lambda value, error: False,
) -> tuple[Model | None, list[Problem]]:
    """Return the model, or None and all problems.

    `excuse(value, error)` may drop an error of the value at its path; the model is None then too.
    """
    try:
        return model.model_validate(document, by_alias=True, by_name=False), []
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
    errors = [
        detail for detail in details if not excuse(_locate(document, detail["loc"])[1], detail)
    ]
    return None, _problems(model, document, errors, base, code)


def _excused_by_reference(value: Any, error: ErrorDetails) -> bool:
    if error["type"] in _STRUCTURE or not isinstance(value, str) or "$" not in value:
        return False
    parts = pieces(value, False)
    if len(parts) == 1 and isinstance(parts[0], Reference):
        return True
    return error["type"] in _TEXT_RULES and any(isinstance(piece, Reference) for piece in parts)


def _locate(document: Any, loc: tuple[str | int, ...]) -> tuple[Path, Any]:
    """Return the path of an error in the document, and the value there.

    `loc` also names union members, which are skipped.
    """
    path: list[str | int] = []
    value = document
    for part in loc:
        exists = (
            part in value
            if isinstance(value, dict)
            else isinstance(value, list) and isinstance(part, int) and part < len(value)
        )
        if exists:
            value = value[part]
            path.append(part)
    return tuple(path), value


def _problems(
    model: type[BaseModel], document: Any, details: list[ErrorDetails], base: Path, code: str
) -> list[Problem]:
    problems: dict[tuple[str, str], Problem] = {}
    for error in details:
        path, value = _locate(document, error["loc"])
        location = (*path, str(error["loc"][-1])) if error["type"] == "missing" else path
        where = json_pointer((*base, *location)) or "/"
        message = f"{_sentence(error, value, location, model)} (at {where})"
        problems.setdefault((where, message), Problem(code, message, path=where))
    return list(problems.values())


def _sentence(error: ErrorDetails, value: Any, path: Path, model: type[BaseModel]) -> str:
    name = _name(path)
    context = error.get("ctx", {})
    kind = error["type"]
    if kind == "missing":
        return f"{name} is missing."
    if kind == "extra_forbidden":
        known = (
            [info.alias or name_ for name_, info in model.model_fields.items()]
            if len(path) == 1
            else []
        )
        return f"Unknown field {name}.{did_you_mean(str(path[-1]), known)}"
    if kind in _KINDS:
        return f"{name} must be {_KINDS[kind]}, not {_described(value)}."
    if kind in ("literal_error", "enum"):
        return (
            f"{name} must be {context.get('expected', 'another value')}, not {_described(value)}."
        )
    if kind == "string_pattern_mismatch":
        return (
            f"{name} is {_described(value)}: "
            "it must begin with a letter and hold only letters, digits and _."
        )
    if kind in ("greater_than_equal", "less_than_equal"):
        limit = context.get("ge", context.get("le"))
        bound = "least" if kind == "greater_than_equal" else "most"
        return f"{name} must be at {bound} {limit}, not {_described(value)}."
    if kind in ("string_too_short", "too_short", "string_too_long", "too_long"):
        unit = "character" if kind.startswith("string") else "item"
        return f"{name} {_length(context, unit)}, not {len(value):,}."
    message = error["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{name}: {message}." if path else f"{message}."


def _name(path: Path) -> str:
    """Return the name of a value in a sentence."""
    match path:
        case ():
            return "The document"
        case (*_, str(field), int(number)):
            return f"Item {number + 1} of {field!r}"
        case _:
            return repr(str(path[-1]))


def _length(limits: Mapping[str, Any], unit: str) -> str:
    """Return what a length must be."""
    bound = "most" if "max_length" in limits else "least"
    limit = limits["max_length" if bound == "most" else "min_length"]
    return f"must have at {bound} {limit:,} {unit}{'' if limit == 1 else 's'}"


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


class ArgMarks(Struct, frozen=True, kw_only=True):
    """The marks of one argument, of the items of its list and of the fields of its object."""

    path: bool = False
    moved_from: str = ""
    long_text: bool = False
    items: ArgMarks | None = None
    fields: Mapping[str, ArgMarks] = field(default_factory=dict)

    def field(self, name: str) -> ArgMarks:
        """Return the marks of an object's field."""
        return self.fields.get(name) or self.fields.get("*") or NO_MARKS

    def item(self) -> ArgMarks:
        """Return the marks of a list's items."""
        return self.items or NO_MARKS


NO_MARKS = ArgMarks()
"""The marks of a value without paths and long text."""


@cache
def marks_of(model: type[BaseModel]) -> ArgMarks:
    """Return the marks of a tool's input model by JSON field names.

    A model nested in itself has no marks at the inner level.
    """
    return _of_model(model, frozenset())


def _of_model(model: type[BaseModel], inside: frozenset[type[BaseModel]]) -> ArgMarks:
    if model in inside:
        return NO_MARKS
    fields = {}
    for name, info in model.model_fields.items():
        own = _merge([_of_metadata(info.metadata), _of_type(info.annotation, inside | {model})])
        if own != NO_MARKS:
            fields[info.alias or name] = own
    return ArgMarks(fields=fields) if fields else NO_MARKS


def _of_metadata(metadata: list[Any]) -> ArgMarks:
    paths = [mark for mark in metadata if isinstance(mark, PathMark)]
    return ArgMarks(
        path=bool(paths),
        moved_from=next((mark.moved_from for mark in paths if mark.moved_from), ""),
        long_text=_has(metadata, LongTextMark),
    )


def _has(metadata: typing.Iterable[Any], mark: type) -> bool:
    return any(isinstance(item, mark) or item is mark for item in metadata)


def _of_type(annotation: Any, inside: frozenset[type[BaseModel]]) -> ArgMarks:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _merge([_of_metadata(list(annotation.__metadata__)), _of_type(arguments[0], inside)])
    if origin in (Union, types.UnionType):
        return _merge([_of_type(argument, inside) for argument in arguments])
    if origin in (list, tuple, set, frozenset) or origin is typing.get_origin(typing.Sequence[Any]):
        items = _merge(
            [_of_type(argument, inside) for argument in arguments if argument is not Ellipsis]
        )
        return ArgMarks(items=items) if items != NO_MARKS else NO_MARKS
    if origin in (dict, Mapping) and len(arguments) == 2:
        values = _of_type(arguments[1], inside)
        return ArgMarks(fields={"*": values}) if values != NO_MARKS else NO_MARKS
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _of_model(annotation, inside)
    return NO_MARKS


def _merge(marks: list[ArgMarks]) -> ArgMarks:
    fields: dict[str, ArgMarks] = {}
    for mark in marks:
        for name, below in mark.fields.items():
            fields[name] = _merge([fields[name], below]) if name in fields else below
    items = [mark.items for mark in marks if mark.items is not None]
    merged = ArgMarks(
        path=any(mark.path for mark in marks),
        moved_from=next((mark.moved_from for mark in marks if mark.moved_from), ""),
        long_text=any(mark.long_text for mark in marks),
        items=_merge(items) if items else None,
        fields=fields,
    )
    return merged if merged != NO_MARKS else NO_MARKS
