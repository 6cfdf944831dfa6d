"""What models wrap around a plan: a known key, a list of one, the call of the one function that was offered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from obsidian_agent.plan.decoder import Refused, decode

OFFERED: Final = frozenset({"submit_plan", "propose_plan"})
"""The functions that a model may call to hand in a plan."""

_WRAPPERS: Final = frozenset({"plan", "action_plan", "actionPlan"})
_PLAN_FIELDS: Final = frozenset({"version", "goal", "riskLevel", "steps", "assumptions"})
_OWN_TOOL = re.compile(r"\w+(?:\.|__)\w+")


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan's document, and what was taken from around it (None: nothing)."""

    document: dict[str, Any]
    unwrapped: str | None = None


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A call of a function. `direct`: of a tool, which only a plan may call; else of something that was never offered."""

    name: str
    direct: bool


@dataclass(frozen=True, slots=True)
class Steps:
    """A step, or a list of steps, without the plan."""


@dataclass(frozen=True, slots=True)
class ManyPlans:
    """Several plans or calls, where the person would have to choose."""


@dataclass(frozen=True, slots=True)
class ServiceError:
    """The error report of a service, where its answer should be."""


@dataclass(frozen=True, slots=True)
class BadArguments:
    """A call of an offered function whose arguments are no JSON object."""

    why: str


@dataclass(frozen=True, slots=True)
class Other:
    """JSON that has nothing to do with plans."""


Content = Plan | ForeignCall | Steps | ManyPlans | ServiceError | BadArguments | Other


def classify(value: Any) -> Content:
    """What a JSON value from a model is."""
    if isinstance(value, list):
        return _list(value)
    if not isinstance(value, dict):
        return Other()
    if is_plan(value):
        return Plan(value)
    if len(value) == 1 and (key := next(iter(value))) in _WRAPPERS and isinstance(value[key], dict):
        inner = value[key]
        return Plan(inner, f"taken out of {key!r}") if is_plan(inner) else Other()
    if (calls := _calls(value)) is not None:
        return _call(calls[0]) if len(calls) == 1 else ManyPlans()
    if "tool" in value and "args" in value:
        return Steps()
    return ServiceError() if isinstance(value.get("error"), dict | str) else Other()


def is_plan(value: dict[str, Any]) -> bool:
    """Whether an object is meant to be a plan: it has steps, or most of what a plan begins with."""
    return "steps" in value or len(_PLAN_FIELDS & value.keys()) >= 2


def _list(items: list[Any]) -> Content:
    found = [each for each in map(classify, (item for item in items if isinstance(item, dict))) if not isinstance(each, Other)]
    if not found:
        return Other()
    if len(found) > 1:
        return Steps() if all(isinstance(each, Steps) for each in found) else ManyPlans()
    only = found[0]
    if isinstance(only, Plan):
        return Plan(only.document, "taken out of a list") if len(items) == 1 else Other()
    return only


def _calls(value: dict[str, Any]) -> list[Any] | None:
    """The calls that an object makes, or None if it is no call."""
    calls = value.get("tool_calls")
    if isinstance(calls, list) and calls:
        return calls
    if isinstance(value.get("function_call"), dict):
        return [value["function_call"]]
    named = isinstance(value.get("name"), str) and ("arguments" in value or "input" in value or "parameters" in value)
    return [value] if named or isinstance(value.get("function"), dict) else None


def _call(call: Any) -> Content:
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return Other()
    name = call["name"]
    if name not in OFFERED:
        return ForeignCall(name, direct=_OWN_TOOL.fullmatch(name) is not None)
    arguments = next((call[key] for key in ("arguments", "input", "parameters") if key in call), None)
    if isinstance(arguments, str):
        try:
            decoded = decode(arguments)
        except Refused as error:
            return BadArguments(error.message)
        arguments = decoded.value if not arguments[decoded.end :].strip() else None
    if not isinstance(arguments, dict):
        return BadArguments("they are no JSON object")
    inner = classify(arguments) if len(arguments) == 1 else Plan(arguments)
    document = inner.document if isinstance(inner, Plan) else arguments
    return Plan(document, f"taken out of a call of {name}")
