"""The parameters of a plan: typed values from text or JSON, and the names that still need one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

from msgspec import Struct, field

from obsidian_agent.errors import PlanError, Problem, did_you_mean
from obsidian_agent.plan.arguments import marks_of
from obsidian_agent.plan.model import ActionPlan, Parameter, ParameterType
from obsidian_agent.plan.references import CONTEXT_NAMES, compile_step
from obsidian_agent.tools.core.tool import Tool

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_EXPECTED: Mapping[ParameterType, str] = {
    "text": "text",
    "number": "a number such as 3 or 2.5",
    "boolean": "true or false",
    "date": "a date such as 2026-03-14",
    "path": "a path from the vault's root",
    "list": "a list: a JSON array, or items with commas between them",
}


class BoundParameters(Struct, frozen=True):
    """The values of a plan's parameters by name.

    `missing` names those that still need a value; `problems` (ARGUMENT_INVALID) describe wrong
    values.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class MissingInput(PlanError):
    """A plan that cannot be previewed before the user gives values for these parameters."""

    default_code = "NEEDS_INPUT"

    def __init__(self, missing: tuple[str, ...]) -> None:
        super().__init__(f"Values are missing: {', '.join(missing)}.")
        self.missing = missing


class _TypeMismatch(Exception):
    """A value that does not have the declared type."""


def bind(plan: ActionPlan, arguments: Mapping[str, Any]) -> BoundParameters:
    """Return the values of a plan's parameters: the argument, else the default.

    Text is parsed as the declared type; other values must fit it. An argument may also replace a
    name of the run's context; a declared context name without an argument keeps the value of the
    context.
    """
    values: dict[str, Any] = {}
    missing: list[str] = []
    problems: list[Problem] = []
    for name, declared in plan.parameters.items():
        if name not in arguments or arguments[name] is None:
            if declared.default is not None:
                values[name] = declared.default
            elif name not in CONTEXT_NAMES:
                missing.append(name)
            continue
        try:
            values[name] = coerce(arguments[name], declared.type)
        except _TypeMismatch:
            expected = _EXPECTED[declared.type]
            message = f"The parameter '{name}' must be {expected}, not {arguments[name]!r}."
            problems.append(Problem("ARGUMENT_INVALID", message, path=name))
    for name in arguments.keys() - plan.parameters.keys():
        if name in CONTEXT_NAMES:
            values[name] = arguments[name]
        else:
            message = f"The plan has no parameter '{name}'.{did_you_mean(name, plan.parameters)}"
            problems.append(Problem("ARGUMENT_INVALID", message, path=name))
    return BoundParameters(values, tuple(missing), tuple(problems))


def default_problems(plan: ActionPlan) -> Iterator[Problem]:
    """Yield a problem for each default that does not have its parameter's type."""
    for name, declared in plan.parameters.items():
        try:
            if (
                declared.default is not None
                and coerce(declared.default, declared.type) != declared.default
            ):
                raise _TypeMismatch
        except _TypeMismatch:
            message = f"The default of '{name}' must be {_EXPECTED[declared.type]}."
            yield Problem("SCHEMA_INVALID", message, path=f"/parameters/{name}/default")


def with_implied_parameters(plan: ActionPlan, tools: Mapping[str, Tool]) -> ActionPlan:
    """Return the plan with the parameters declared that a macro implies.

    They are the names of references outside long text that mean nothing else. A name that a step
    loops over is a list, every other a text.
    """
    implied: dict[str, Parameter] = {}
    for step in plan.steps:
        if step.tool not in tools:
            continue
        loop = (
            {step.foreach.item_name, step.foreach.index_name} if step.foreach is not None else set()
        )
        for location, template in compile_step(step, marks_of(tools[step.tool].input)).templates():
            known = (
                CONTEXT_NAMES
                | plan.parameters.keys()
                | (loop if location != "foreach/from" else set())
            )
            for reference in template.references:
                if (
                    reference.kind == "name"
                    and reference.head not in known
                    and not reference.long_text
                    and not reference.head.startswith("$")
                ):
                    implied.setdefault(reference.head, Parameter())
            source = template.single if location == "foreach/from" else None
            if source is not None and source.head in implied and not source.parts:
                implied[source.head] = Parameter(type="list")
    return (
        plan.model_copy(update={"parameters": {**plan.parameters, **implied}}) if implied else plan
    )


def coerce(value: Any, type_: ParameterType) -> Any:
    """Return a value as a parameter type; parse it if it is text.

    Dates become `YYYY-MM-DD`, paths lose slashes at their end. Raise `_TypeMismatch`.
    """
    match type_:
        case "text":
            if isinstance(value, str):
                return value
        case "number":
            return _number(value)
        case "boolean":
            return _boolean(value)
        case "date":
            return _date(value)
        case "path":
            if isinstance(value, str):
                return value.strip().rstrip("/") or ("" if not value.strip() else "/")
        case "list":
            return _list(value)
    raise _TypeMismatch


def coerce_value(value: Any, type_: ParameterType) -> Any:
    """Like `coerce`, but raise PlanError ARGUMENT_INVALID with the expected type."""
    try:
        return coerce(value, type_)
    except _TypeMismatch:
        raise PlanError(
            f"it must be {_EXPECTED[type_]}, not {value!r}.", code="ARGUMENT_INVALID"
        ) from None


def _number(value: Any) -> int | float:
    if isinstance(value, str):
        try:
            value = json.loads(value.strip(), parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            raise _TypeMismatch from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _TypeMismatch
    return value


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = value.strip().lower() if isinstance(value, str) else None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _TypeMismatch


def _date(value: Any) -> str:
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value.strip()).date().isoformat()
        if isinstance(value, date):
            return value.isoformat()[:10]
    except ValueError:
        pass
    raise _TypeMismatch


def _list(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        raise _TypeMismatch
    if value.lstrip().startswith("["):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, list):
            return parsed
    separator = "\n" if "\n" in value else ","
    return [item for item in (part.strip() for part in value.split(separator)) if item]
