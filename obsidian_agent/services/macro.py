"""Saved plans: what a person approved once becomes a thing to run again, with other values and without a model.

A macro is data. Reading, importing or saving one never runs anything; a run of it is validated, previewed and approved like any plan. From the
plan of a finished run it is made by turning literals into inputs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import ObsidianAgentError, PlanError, Problem
from obsidian_agent.plan.model import ActionPlan, ParameterType
from obsidian_agent.plan.parameters import bind, coerce, with_implied_parameters
from obsidian_agent.plan.policy import UNRESTRICTED
from obsidian_agent.plan.references import CONTEXT_NAMES, RESERVED_NAMES
from obsidian_agent.plan.validate import shape, validate
from obsidian_agent.services.trust import Standing
from obsidian_agent.tools.core.tool import Tool

MAX_NAME = 100
"""Characters: it is the name of a file, and stands in menus."""
_SAID = re.compile(r"(?<!\$)\$\{([A-Za-z][A-Za-z0-9_]*)(?:\|[^}]*)?\}")
_FIELDS = frozenset({"name", "description", "phrases", "plan", "parameters"})


class MacroError(ObsidianAgentError):
    """A macro cannot be read, kept or found."""

    default_code = "MACRO_INVALID"


@dataclass(frozen=True, slots=True)
class Macro:
    """A saved plan. Its inputs are `plan.parameters`. `standing` and `sha256` are those of the file that it was read from."""

    name: str
    plan: ActionPlan
    description: str | None = None
    phrases: tuple[str, ...] = ()
    standing: Standing = field(default="new", compare=False)
    sha256: str = field(default="", compare=False)

    @property
    def trusted(self) -> bool:
        """Whether this person saved, imported or accepted exactly this file."""
        return self.standing == "trusted"

    def for_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The plan's document; its goal and the lines of its steps say these values, and defaults, in place of references."""
        plan = self.plan
        bound = bind(
            plan, {name: value for name, value in values.items() if name in plan.parameters}
        ).values

        def said(text: str | None) -> str | None:
            return (
                None
                if text is None
                else _SAID.sub(
                    lambda found: _in_words(bound[found[1]]) if found[1] in bound else found[0],
                    text,
                )
            )

        steps = [step.model_copy(update={"preview": said(step.preview)}) for step in plan.steps]
        return plan.model_copy(update={"goal": said(plan.goal), "steps": steps}).to_json()

    def to_json(self) -> dict[str, Any]:
        """The document as it is kept and exported."""
        document: dict[str, Any] = {"name": self.name}
        if self.description:
            document["description"] = self.description
        if self.phrases:
            document["phrases"] = list(self.phrases)
        return document | {"plan": self.plan.to_json()}


def _in_words(value: Any) -> str:
    return (
        ", ".join(map(_in_words, value))
        if isinstance(value, list)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


@dataclass(frozen=True, slots=True)
class Imported:
    """A macro that was read and judged, not yet kept. `warnings` name what was left out or changed."""

    macro: Macro
    warnings: tuple[Problem, ...] = ()


def read_macro(document: object, tools: Mapping[str, Tool], *, judge: bool = True) -> Imported:
    """The macro in a JSON document. Raises PlanError with everything that is wrong.

    A top-level `parameters` (names, or a map) is merged into those of the plan; heads that nothing declares become parameters where they
    would be an error. With `judge` the plan is validated in full, but for what only the settings of the run can allow.
    """
    if not isinstance(document, Mapping):
        raise PlanError("A macro is a JSON object with name and plan.")
    name = name_of(document.get("name"))
    plan_document = document.get("plan")
    if not isinstance(plan_document, Mapping):
        raise PlanError(f"The macro “{name}” has no plan.")
    warnings = [
        Problem(
            "UNKNOWN_FIELD",
            f"The field “{field}” of the macro “{name}” is left out: a macro has no such field.",
        )
        for field in sorted(map(str, document.keys() - _FIELDS))
    ]
    merged = _with_parameters(dict(plan_document), document.get("parameters"))
    shaped = shape(merged)
    if shaped.plan is None:
        raise PlanError(f"The plan of the macro “{name}” is not valid.", problems=shaped.problems)
    plan = with_implied_parameters(shaped.plan, tools)
    if judge:
        checked = validate(plan, tools, UNRESTRICTED)
        if checked.plan is None:
            raise PlanError(
                f"The plan of the macro “{name}” is not valid.", problems=checked.problems
            )
        warnings += checked.warnings
    return Imported(
        Macro(name, plan, _text(document.get("description")), _texts(document.get("phrases"))),
        tuple(warnings),
    )


def name_of(value: object) -> str:
    """A macro's name, on one line. Raises PlanError for what cannot be one."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text:
        raise PlanError("A macro needs a name.")
    if len(text) > MAX_NAME or any(not char.isprintable() for char in text):
        raise PlanError(f"The name of a macro is printable text of at most {MAX_NAME} characters.")
    return text


def _with_parameters(plan: dict[str, Any], given: object) -> dict[str, Any]:
    """The plan with parameters that stand beside it; what the plan itself declares wins."""
    if given is None:
        return plan
    if isinstance(given, Mapping):
        beside = {
            str(name): declared if isinstance(declared, Mapping) else {}
            for name, declared in given.items()
        }
    elif (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and all(isinstance(name, str) for name in given)
    ):
        beside = {name: {} for name in given}
    else:
        raise PlanError(
            "The parameters of a macro are a list of names, or a map from names to descriptions, types and defaults."
        )
    own = plan.get("parameters")
    return plan | {"parameters": beside | (dict(own) if isinstance(own, Mapping) else {})}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


# --- from a run -----------------------------------------------------------------------------------------------------------------

MAX_LITERAL = 200
"""Longer texts are content, not values to ask for."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PATH_FIELDS = frozenset({"path", "folder", "from", "to", "paths", "filePaths"})

Literal = str | int | float | bool


def literals(plan: ActionPlan) -> list[Literal]:
    """What of a plan can become a parameter, each once, in the order of the plan: numbers, true and false, short texts without references.

    Of a path its folders count too: `Projects/A.md` offers `Projects/A.md` and `Projects`.
    """
    found: dict[tuple[type, Literal], None] = {}

    def take(field: str, value: Literal) -> Literal:
        found.update(
            ((type(each), each), None)
            for each in (_parts(value) if isinstance(value, str) else (value,))
        )
        return value

    _rewritten(plan.to_json(), take)
    return [value for _, value in found]


def _parts(text: str) -> Iterator[str]:
    if text.strip() and len(text) <= MAX_LITERAL and "\n" not in text:
        yield from (part for part in (text, *text.split("/")[:-1]) if part and "$" not in part)


def promote(plan: ActionPlan, value: Literal, name: str) -> ActionPlan:
    """The plan with a literal made a parameter whose default it is, wherever it stands: whole, or as words of its own in a text.

    MacroError when there is no such literal, or the name is taken or cannot be one.
    """
    _check_name(plan, name)
    reference = f"${{{name}}}"
    changed, is_path = 0, False

    def put(field: str, old: Literal) -> Literal:
        nonlocal changed, is_path
        new = _replaced(old, value, reference)
        changed += new != old or type(new) is not type(old)
        is_path |= (
            field in _PATH_FIELDS
            and isinstance(new, str)
            and (new == reference or new.startswith(f"{reference}/"))
        )
        return new

    document = _rewritten(plan.to_json(), put)
    if not changed:
        raise MacroError(
            f"The plan holds no literal {value!r}.",
            hint="Choose a text that stands in an argument of a step.",
        )
    kind: ParameterType
    match value:
        case bool():
            kind = "boolean"
        case str():
            kind = "path" if is_path else "text"
        case _:
            kind = "number"
    document.setdefault("parameters", {})[name] = {"type": kind, "default": coerce(value, kind)}
    return ActionPlan.model_validate(document)


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
    document = _without_old_values(plan, name).to_json()
    return read_macro(
        {"name": name, "description": description or plan.goal, "plan": document}, tools
    ).macro


def _promote_written(plan: ActionPlan, text: str, name: str) -> ActionPlan:
    """A literal as a person writes it: a text, or where the plan holds none such, a number, true or false."""
    try:
        return promote(plan, text, name)
    except MacroError:
        value = next(
            (each for each in literals(plan) if json.dumps(each) == text.strip().lower()), None
        )
        if value is None:
            raise
        return promote(plan, value, name)


def _without_old_values(plan: ActionPlan, name: str) -> ActionPlan:
    """The plan without texts for people that name a parameter's default: with other values they would be wrong."""
    old = [
        str(each.default)
        for each in plan.parameters.values()
        if isinstance(each.default, str | int | float) and str(each.default).strip()
    ]

    def stale(text: str) -> bool:
        return any(value in text for value in old)

    steps = [
        step.model_copy(update={"preview": None}) if step.preview and stale(step.preview) else step
        for step in plan.steps
    ]
    assumptions = [text for text in plan.assumptions if not stale(text)]
    goal = name if stale(plan.goal) else plan.goal
    return plan.model_copy(update={"goal": goal, "assumptions": assumptions, "steps": steps})


def _replaced(old: Literal, value: Literal, reference: str) -> Literal:
    """The value with the literal made a reference: the whole of it, or where it stands as words of its own in a text."""
    if old == value and type(old) is type(value):
        return reference
    if not isinstance(old, str) or not isinstance(value, str) or not value.strip():
        return old
    pieces = re.split(r"(\$\$\{|\$\{[^}]*\})", old)
    whole = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")
    return "".join(
        piece if piece.startswith(("${", "$${")) else whole.sub(lambda _: reference, piece)
        for piece in pieces
    )


def _check_name(plan: ActionPlan, name: str) -> None:
    taken = {step.id for step in plan.steps} | RESERVED_NAMES | plan.parameters.keys()
    for step in plan.steps:
        if step.foreach is not None:
            taken |= {step.foreach.item_name, step.foreach.index_name}
    if not _NAME.fullmatch(name):
        raise MacroError(
            f"“{name}” cannot be the name of a parameter.",
            hint="Use letters, digits and _, a letter first.",
        )
    if name in taken:
        raise MacroError(
            f"The plan uses the name “{name}” for something else.", hint="Choose another name."
        )


def _rewritten(
    document: dict[str, Any], change: Callable[[str, Literal], Literal]
) -> dict[str, Any]:
    """The plan with its values changed where references would be resolved: in arguments, `when` and literal lists of foreach.

    `change` gets the name of the field besides the value.
    """

    def below(value: Any, field: str) -> Any:
        match value:
            case dict():
                return {key: below(each, key) for key, each in value.items()}
            case list():
                return [below(each, field) for each in value]
            case str() | int() | float():
                return change(field, value)
            case _:
                return value

    def step(value: dict[str, Any]) -> dict[str, Any]:
        made = value | {key: below(value[key], key) for key in ("args", "when") if key in value}
        if (loop := value.get("foreach")) is not None:
            made["foreach"] = loop | {"from": below(loop["from"], "from")}
        return made

    return document | {"steps": [step(each) for each in document["steps"]]}
