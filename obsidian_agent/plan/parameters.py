"""Parameters of a plan: from text or values that people and programs give to typed values, and what is still missing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import PlanError, Problem, did_you_mean
from obsidian_agent.plan.arguments import marks_of
from obsidian_agent.plan.model import ActionPlan, Parameter, ParameterType
from obsidian_agent.plan.references import CONTEXT_NAMES, compile_step
from obsidian_agent.tools.core.tool import Tool

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_WANTED: Mapping[ParameterType, str] = {
    "text": "text",
    "number": "a number such as 3 or 2.5",
    "boolean": "true or false",
    "date": "a date such as 2026-03-14",
    "path": "a path from the vault's root",
    "list": "a list: a JSON array, or items with commas between them",
}


@dataclass(frozen=True, slots=True)
class BoundParameters:
    """Values by parameter name, the names that still need one, and what was wrong with the given ones (ARGUMENT_INVALID)."""

    values: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class MissingInput(PlanError):
    """A plan cannot be previewed before the person gives values for these parameters."""

    default_code = "NEEDS_INPUT"

    def __init__(self, missing: tuple[str, ...]) -> None:
        super().__init__(f"Values are missing: {', '.join(missing)}.")
        self.missing = missing


class _Unfit(Exception):
    """A given value is none of the declared type."""


def bind(plan: ActionPlan, given: Mapping[str, Any]) -> BoundParameters:
    """The values of a plan's parameters: given, else the default. Text is parsed as the declared type, other values must fit it.

    A name of the run's own context may be given too and then stands for it; a declared one that is not given is left to the context.
    """
    values: dict[str, Any] = {}
    missing: list[str] = []
    problems: list[Problem] = []
    for name, declared in plan.parameters.items():
        if name not in given or given[name] is None:
            if declared.default is not None:
                values[name] = declared.default
            elif name not in CONTEXT_NAMES:
                missing.append(name)
            continue
        try:
            values[name] = coerce(given[name], declared.type)
        except _Unfit:
            message = (
                f"The parameter '{name}' must be {_WANTED[declared.type]}, not {given[name]!r}."
            )
            problems.append(Problem("ARGUMENT_INVALID", message, path=name))
    for name in given.keys() - plan.parameters.keys():
        if name in CONTEXT_NAMES:
            values[name] = given[name]
        else:
            message = f"The plan has no parameter '{name}'.{did_you_mean(name, plan.parameters)}"
            problems.append(Problem("ARGUMENT_INVALID", message, path=name))
    return BoundParameters(values, tuple(missing), tuple(problems))


def default_problems(plan: ActionPlan) -> Iterator[Problem]:
    """Defaults that are no value of their parameter's type."""
    for name, declared in plan.parameters.items():
        try:
            if (
                declared.default is not None
                and coerce(declared.default, declared.type) != declared.default
            ):
                raise _Unfit
        except _Unfit:
            message = f"The default of '{name}' must be {_WANTED[declared.type]}."
            yield Problem("SCHEMA_INVALID", message, path=f"/parameters/{name}/default")


def with_implied_parameters(plan: ActionPlan, tools: Mapping[str, Tool]) -> ActionPlan:
    """The plan with the undeclared names that a macro takes as parameters declared: heads that mean nothing else and stand outside long text.

    What a step is done for each of is a list, everything else a text.
    """
    found: dict[str, Parameter] = {}
    for step in plan.steps:
        if step.tool not in tools:
            continue
        loop = (
            {step.foreach.item_name, step.foreach.index_name} if step.foreach is not None else set()
        )
        for place, template in compile_step(step, marks_of(tools[step.tool].input)).templates():
            known = (
                CONTEXT_NAMES
                | plan.parameters.keys()
                | (loop if place != "foreach/from" else set())
            )
            for each in template.references:
                if (
                    each.kind == "name"
                    and each.head not in known
                    and not each.long_text
                    and not each.head.startswith("$")
                ):
                    found.setdefault(each.head, Parameter())
            source = template.single if place == "foreach/from" else None
            if source is not None and source.head in found and not source.parts:
                found[source.head] = Parameter(type="list")
    return plan.model_copy(update={"parameters": {**plan.parameters, **found}}) if found else plan


def coerce(value: Any, wanted: ParameterType) -> Any:
    """A value of the wanted type; text is parsed. Dates come back as `YYYY-MM-DD`, paths without slashes at the end."""
    match wanted:
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
    raise _Unfit


def coerce_value(value: Any, wanted: ParameterType) -> Any:
    """As `coerce`; raises PlanError, whose message says what is wanted, where the value is none of that type."""
    try:
        return coerce(value, wanted)
    except _Unfit:
        raise PlanError(
            f"it must be {_WANTED[wanted]}, not {value!r}.", code="ARGUMENT_INVALID"
        ) from None


def _number(value: Any) -> int | float:
    if isinstance(value, str):
        try:
            value = json.loads(value.strip(), parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            raise _Unfit from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _Unfit
    return value


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = value.strip().lower() if isinstance(value, str) else None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _Unfit


def _date(value: Any) -> str:
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value.strip()).date().isoformat()
        if isinstance(value, date):
            return value.isoformat()[:10]
    except ValueError:
        pass
    raise _Unfit


def _list(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        raise _Unfit
    if value.lstrip().startswith("["):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, list):
            return parsed
    separator = "\n" if "\n" in value else ","
    return [item for item in (part.strip() for part in value.split(separator)) if item]
