"""Which strings among a tool's arguments are vault paths, and which are long text: read from the marks on its input model."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Union

from pydantic import BaseModel

from obsidian_agent.tools.core.tool import LongTextMark, PathMark


@dataclass(frozen=True, slots=True)
class ArgMarks:
    """The marks at one place of the argument tree, with those of a list's items and an object's fields below it."""

    path: bool = False
    long_text: bool = False
    items: ArgMarks | None = None
    fields: Mapping[str, ArgMarks] = field(default_factory=dict)

    def field(self, name: str) -> ArgMarks:
        """The marks of an object's field."""
        return self.fields.get(name) or self.fields.get("*") or NO_MARKS

    def item(self) -> ArgMarks:
        """The marks of a list's items."""
        return self.items or NO_MARKS


NO_MARKS = ArgMarks()
"""Nothing below this place is a path or long text."""


@cache
def marks_of(model: type[BaseModel]) -> ArgMarks:
    """The marks of a tool's input model, by the names on the wire. A model inside itself is looked at once: below, it has no marks."""
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
    return ArgMarks(path=_has(metadata, PathMark), long_text=_has(metadata, LongTextMark))


def _has(metadata: typing.Iterable[Any], mark: type) -> bool:
    return any(isinstance(each, mark) or each is mark for each in metadata)


def _of_type(annotation: Any, inside: frozenset[type[BaseModel]]) -> ArgMarks:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _merge([_of_metadata(list(annotation.__metadata__)), _of_type(arguments[0], inside)])
    if origin in (Union, types.UnionType):
        return _merge([_of_type(each, inside) for each in arguments])
    if origin in (list, tuple, set, frozenset) or origin is typing.get_origin(typing.Sequence[Any]):
        items = _merge([_of_type(each, inside) for each in arguments if each is not Ellipsis])
        return ArgMarks(items=items) if items != NO_MARKS else NO_MARKS
    if origin in (dict, Mapping) and len(arguments) == 2:
        values = _of_type(arguments[1], inside)
        return ArgMarks(fields={"*": values}) if values != NO_MARKS else NO_MARKS
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _of_model(annotation, inside)
    return NO_MARKS


def _merge(marks: list[ArgMarks]) -> ArgMarks:
    fields: dict[str, ArgMarks] = {}
    for each in marks:
        for name, below in each.fields.items():
            fields[name] = _merge([fields[name], below]) if name in fields else below
    items = [each.items for each in marks if each.items is not None]
    merged = ArgMarks(any(m.path for m in marks), any(m.long_text for m in marks), _merge(items) if items else None, fields)
    return merged if merged != NO_MARKS else NO_MARKS
