"""From the plan of a finished run to a macro: which inputs it has, and how a literal in it becomes one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from obsidian_agent.agent.macros.macro import Macro, MacroError, read_macro
from obsidian_agent.plan.arguments import marks_of
from obsidian_agent.plan.model import ActionPlan, Parameter, ParameterType
from obsidian_agent.plan.parameters import typed
from obsidian_agent.plan.references import compile_step
from obsidian_agent.plan.scope import CONTEXT_NAMES, RESERVED_NAMES
from obsidian_agent.tools.core.tool import Tool

JsonPath = tuple[str | int, ...]
"""Where a value is in the plan's document: `("steps", 0, "args", "path")`."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PLACES = ("args", "when")


@dataclass(frozen=True, slots=True)
class FoundParameter:
    """A name that the plan takes from outside. `context`: it is bound by itself, from the selection, the open note or the clock."""

    name: str
    declared: Parameter
    context: bool


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal of the plan that can become a parameter. Several places may hold the same one."""

    value: str | int | float | bool
    places: tuple[JsonPath, ...]


def find_parameters(plan: ActionPlan, tools: Mapping[str, Tool]) -> list[FoundParameter]:
    """All inputs of a plan in the order of use: declared parameters and names of the run's own context, no loop or captured names."""
    found: dict[str, FoundParameter] = {}
    for step in plan.steps:
        if step.tool not in tools:
            continue
        loop = {step.foreach.item_name, step.foreach.index_name} if step.foreach is not None else set()
        for place, template in compile_step(step, marks_of(tools[step.tool].input)).templates():
            hidden = loop if place != "foreach/from" else set()
            for reference in template.references:
                head = reference.head
                if reference.kind == "name" and head not in hidden and (head in plan.parameters or head in CONTEXT_NAMES):
                    found.setdefault(head, FoundParameter(head, plan.parameters.get(head, Parameter()), head in CONTEXT_NAMES))
    for name, declared in plan.parameters.items():
        found.setdefault(name, FoundParameter(name, declared, name in CONTEXT_NAMES))
    return list(found.values())


def literals(plan: ActionPlan) -> list[Literal]:
    """The literal values of the steps' arguments, each with all its places, in the order of the plan."""
    found: dict[tuple[type, Any], list[JsonPath]] = {}
    for place, value in _leaves(plan.to_json()):
        if isinstance(value, str) and ("$" in value or not value.strip()):
            continue
        found.setdefault((type(value), value), []).append(place)
    return [Literal(value, tuple(places)) for (_, value), places in found.items()]


def promote_literal(plan: ActionPlan, path: Sequence[str | int], name: str, type_: ParameterType | None = None) -> ActionPlan:
    """The plan with the literal at `path` made a parameter whose default it is; every equal literal becomes the same one.

    MacroError when there is no literal, or the name is taken or cannot be one.
    """
    document = plan.to_json()
    value = _at(document, tuple(path))
    if not isinstance(value, str | int | float | bool):
        raise MacroError("Only a text, a number, or true and false can become a parameter.")
    return _promoted(plan, document, value, name, type_)


def promote_text(plan: ActionPlan, text: str, name: str, type_: ParameterType | None = None) -> ActionPlan:
    """As `promote_literal`, for every place where `text` is a whole literal, a folder at the start of a path, or else a part of a text."""
    return _promoted(plan, plan.to_json(), text, name, type_)


def macro_from_run(
    plan_json: Mapping[str, Any],
    name: str,
    tools: Mapping[str, Tool],
    description: str | None = None,
    parameters: Mapping[str, str] | None = None,
) -> Macro:
    """The macro for the plan of a run. `parameters`: name of a new input -> the literal text that it replaces."""
    plan = read_macro({"name": name, "plan": dict(plan_json)}, tools).macro.plan
    for parameter, text in (parameters or {}).items():
        if parameter not in plan.parameters and parameter not in CONTEXT_NAMES:
            plan = _promote_written(plan, text, parameter)
    return read_macro(
        {"name": name, "description": description or plan.goal, "plan": _without_old_values(plan, name).to_json()}, tools
    ).macro


def _promote_written(plan: ActionPlan, text: str, name: str) -> ActionPlan:
    """A literal as a person writes it: a text, or where the plan holds none such, a number, true or false."""
    try:
        return promote_text(plan, text, name)
    except MacroError:
        place = next((literal.places[0] for literal in literals(plan) if json.dumps(literal.value) == text.strip().lower()), None)
        if place is None:
            raise
        return promote_literal(plan, place, name)


def _without_old_values(plan: ActionPlan, name: str) -> ActionPlan:
    """The plan without texts for people that name a parameter's default: with other values they would be wrong."""
    old = [
        str(each.default) for each in plan.parameters.values() if isinstance(each.default, str | int | float) and str(each.default).strip()
    ]

    def stale(text: str) -> bool:
        return any(value in text for value in old)

    steps = [step.model_copy(update={"preview": None}) if step.preview and stale(step.preview) else step for step in plan.steps]
    assumptions = [text for text in plan.assumptions if not stale(text)]
    goal = name if stale(plan.goal) else plan.goal
    return plan.model_copy(update={"goal": goal, "assumptions": assumptions, "steps": steps})


def _promoted(
    plan: ActionPlan, document: dict[str, Any], value: str | int | float | bool, name: str, type_: ParameterType | None
) -> ActionPlan:
    _check_name(plan, name)
    reference = f"${{{name}}}"
    paths = {place for place, _ in _leaves(document)}
    changed = 0
    for place in paths:
        old = _at(document, place)
        new = _replaced(old, value, reference)
        if new != old or type(new) is not type(old):
            _put(document, place, new)
            changed += 1
    if not changed:
        raise MacroError(f"The plan holds no literal {value!r}.", hint="Choose a text that stands in an argument of a step.")
    wanted = type_ or _type(value, document, name)
    document.setdefault("parameters", {})[name] = {"type": wanted, "default": typed(value, wanted)}
    return ActionPlan.model_validate(document)


def _replaced(old: Any, value: Any, reference: str) -> Any:
    """The value with the literal made a reference: the whole of it, or where it stands as words of its own in a text."""
    if old == value and type(old) is type(value):
        return reference
    if not isinstance(old, str) or not isinstance(value, str) or not value.strip():
        return old
    pieces = re.split(r"(\$\$\{|\$\{[^}]*\})", old)
    whole = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")
    return "".join(piece if piece.startswith(("${", "$${")) else whole.sub(lambda _: reference, piece) for piece in pieces)


def _type(value: Any, document: dict[str, Any], name: str) -> ParameterType:
    """Boolean and number by themselves; a text that is used as a path, or as the folders of one, is a path."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    reference = f"${{{name}}}"
    path_fields = {"path", "folder", "from", "to", "paths", "filePaths"}
    for place, leaf in _leaves(document):
        field = next((part for part in reversed(place) if isinstance(part, str)), "")
        if field in path_fields and isinstance(leaf, str) and (leaf == reference or leaf.startswith(f"{reference}/")):
            return "path"
    return "text"


def _check_name(plan: ActionPlan, name: str) -> None:
    taken = {step.id for step in plan.steps} | RESERVED_NAMES | plan.parameters.keys()
    for step in plan.steps:
        if step.foreach is not None:
            taken |= {step.foreach.item_name, step.foreach.index_name}
    if not _NAME.fullmatch(name):
        raise MacroError(f"“{name}” cannot be the name of a parameter.", hint="Use letters, digits and _, a letter first.")
    if name in taken:
        raise MacroError(f"The plan uses the name “{name}” for something else.", hint="Choose another name.")


def _leaves(document: Mapping[str, Any]) -> Iterator[tuple[JsonPath, Any]]:
    """Texts, numbers and booleans where references would be resolved: arguments, `when` and literal lists of foreach."""
    for number, step in enumerate(document.get("steps", [])):
        for key in _PLACES:
            if key in step:
                yield from _below(("steps", number, key), step[key])
        if isinstance(step.get("foreach"), Mapping):
            yield from _below(("steps", number, "foreach", "from"), step["foreach"]["from"])


def _below(place: JsonPath, value: Any) -> Iterator[tuple[JsonPath, Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _below((*place, key), each)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _below((*place, number), each)
    elif isinstance(value, str | int | float | bool):
        yield place, value


def _at(document: Any, place: JsonPath) -> Any:
    value = document
    try:
        for part in place:
            value = value[part]
    except (KeyError, IndexError, TypeError):
        raise MacroError(f"The plan has nothing at {'/'.join(map(str, place))}.") from None
    return value


def _put(document: Any, place: JsonPath, value: Any) -> None:
    parent = _at(document, place[:-1])
    parent[place[-1]] = value
