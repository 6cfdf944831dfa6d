"""Macros: saved plans that run again with other values and without a model.

A macro is data. Reading, importing or saving one never runs anything, and its run is validated,
previewed and approved like any plan. A macro is made from the plan of a finished run by replacing
literals with parameters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

from msgspec import Struct

from obsidian_agent.errors import ObsidianAgentError, PlanError, Problem
from obsidian_agent.plan.model import ActionPlan, ParameterType
from obsidian_agent.plan.parameters import bind, coerce, with_implied_parameters
from obsidian_agent.plan.policy import UNRESTRICTED
from obsidian_agent.plan.references import CONTEXT_NAMES, RESERVED_NAMES
from obsidian_agent.plan.validate import shape, validate
from obsidian_agent.services.trust import Standing
from obsidian_agent.tools.core.tool import Tool

Literal = str | int | float | bool

MAX_NAME = 100
"""Characters of a name, which is also a file name and appears in menus."""
MAX_LITERAL = 200
"""Characters of a literal. Longer texts are content, not values to ask for."""
_REFERENCE = re.compile(r"(?<!\$)\$\{([A-Za-z][A-Za-z0-9_]*)(?:\|[^}]*)?\}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PATH_FIELDS = frozenset({"path", "folder", "from", "to", "paths", "filePaths"})
_FIELDS = frozenset({"name", "description", "phrases", "plan", "parameters"})


class MacroError(ObsidianAgentError):
    """A macro that cannot be read, saved or found."""

    default_code = "MACRO_INVALID"


class Macro(Struct, frozen=True):
    """A saved plan. Its inputs are `plan.parameters`.

    `standing` and `sha256` are those of the file that it was read from.
    """

    name: str
    plan: ActionPlan
    description: str | None = None
    phrases: tuple[str, ...] = ()
    standing: Standing = "new"
    sha256: str = ""

    @property
    def trusted(self) -> bool:
        """True if the user saved, imported or accepted exactly this file."""
        return self.standing == "trusted"

    def for_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plan's document with values in place of references in its goal and titles.

        Parameters without a value in `values` get their defaults.
        """
        plan = self.plan
        known = {name: value for name, value in values.items() if name in plan.parameters}
        bound = bind(plan, known).values

        def fill(reference: re.Match[str]) -> str:
            name = reference[1]
            return _in_words(bound[name]) if name in bound else reference[0]

        def filled(text: str | None) -> str | None:
            return None if text is None else _REFERENCE.sub(fill, text)

        steps = [step.model_copy(update={"preview": filled(step.preview)}) for step in plan.steps]
        return plan.model_copy(update={"goal": filled(plan.goal), "steps": steps}).to_json()

    def to_json(self) -> dict[str, Any]:
        """Return the document that is saved and exported."""
        document: dict[str, Any] = {"name": self.name}
        if self.description:
            document["description"] = self.description
        if self.phrases:
            document["phrases"] = list(self.phrases)
        return document | {"plan": self.plan.to_json()}


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_in_words, value))
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


class Imported(Struct, frozen=True):
    """A macro that was read and validated but not saved. `warnings` name what was ignored."""

    macro: Macro
    warnings: tuple[Problem, ...] = ()


def read_macro(document: object, tools: Mapping[str, Tool], *, judge: bool = True) -> Imported:
    """Read the macro in a JSON document. Raise `PlanError` with everything that is wrong.

    A top-level `parameters` (a list of names, or a map) is merged into those of the plan, and
    undeclared references become parameters. With `judge` the plan is validated in full, except for
    what depends on the settings of the run.
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
            f"The field “{field}” of the macro “{name}” is ignored: a macro has no such field.",
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
    """Return a macro's name on one line. Raise `PlanError` for an invalid name."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text:
        raise PlanError("A macro needs a name.")
    if len(text) > MAX_NAME or any(not char.isprintable() for char in text):
        raise PlanError(
            f"The name of a macro must be printable text of at most {MAX_NAME} characters."
        )
    return text


def _with_parameters(plan: dict[str, Any], parameters: object) -> dict[str, Any]:
    """Merge parameters of the macro into those of the plan, which take precedence."""
    if parameters is None:
        return plan
    if isinstance(parameters, Mapping):
        declared = {
            str(name): declaration if isinstance(declaration, Mapping) else {}
            for name, declaration in parameters.items()
        }
    elif (
        isinstance(parameters, Sequence)
        and not isinstance(parameters, str)
        and all(isinstance(name, str) for name in parameters)
    ):
        declared = {name: {} for name in parameters}
    else:
        raise PlanError(
            "The parameters of a macro must be a list of names, or a map from names to "
            "descriptions, types and defaults."
        )
    own = plan.get("parameters")
    return plan | {"parameters": declared | (dict(own) if isinstance(own, Mapping) else {})}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(text for text in value if isinstance(text, str))


# --- from a run --------------------------------------------------------------------------------


def literals(plan: ActionPlan) -> list[Literal]:
    """Return the values of a plan that can become parameters, each once, in the plan's order.

    These are numbers, true and false, and short texts without references. The folders of a path
    count too: `Projects/A.md` offers `Projects/A.md` and `Projects`.
    """
    values: dict[tuple[type, Literal], None] = {}

    def collect(field: str, value: Literal) -> Literal:
        parts = _parts(value) if isinstance(value, str) else (value,)
        values.update(((type(part), part), None) for part in parts)
        return value

    _rewritten(plan.to_json(), collect)
    return [value for _, value in values]


def chosen_words(plan: ActionPlan, tools: Mapping[str, Tool]) -> frozenset[str]:
    """Return the arguments of a plan that are words of a tool's own, such as “end”."""
    return frozenset(
        value
        for step in plan.steps
        for name, value in step.args.items()
        if value in choices_of(tools.get(step.tool), name)
    )


def choices_of(tool: Tool | None, argument: str) -> tuple[str, ...]:
    """Return the words that an argument of a tool allows; none if it allows any text."""
    fields = {} if tool is None else tool.input.model_fields
    for name, field in fields.items():
        if argument in (name, field.alias):
            return tuple(_words(field.annotation))
    return ()


def _words(annotation: Any) -> Iterator[str]:
    """Yield the literal texts of a type."""
    for part in get_args(annotation):
        if isinstance(part, str):
            yield part
        else:
            yield from _words(part)


def _parts(text: str) -> Iterator[str]:
    if text.strip() and len(text) <= MAX_LITERAL and "\n" not in text:
        yield from (part for part in (text, *text.split("/")[:-1]) if part and "$" not in part)


def promote(plan: ActionPlan, value: Literal, name: str) -> ActionPlan:
    """Replace a literal by a parameter with that default, as a whole value or as words in a text.

    Raise `MacroError` if there is no such literal, or the name is invalid or in use.
    """
    _check_name(plan, name)
    reference = f"${{{name}}}"
    changed, is_path = False, False

    def substitute(field: str, old: Literal) -> Literal:
        nonlocal changed, is_path
        new = _replaced(old, value, reference)
        changed |= new != old or type(new) is not type(old)
        is_path |= (
            field in _PATH_FIELDS
            and isinstance(new, str)
            and (new == reference or new.startswith(f"{reference}/"))
        )
        return new

    document = _rewritten(plan.to_json(), substitute)
    if not changed:
        raise MacroError(
            f"The plan has no literal {value!r}.",
            hint="Choose a text from an argument of a step.",
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
    """Make a macro of the plan of a run.

    `parameters` maps the names of new parameters to the literal texts that they replace.
    """
    plan = read_macro({"name": name, "plan": dict(plan_json)}, tools).macro.plan
    for parameter, text in (parameters or {}).items():
        if parameter not in plan.parameters and parameter not in CONTEXT_NAMES:
            plan = _promote_written(plan, text, parameter)
    document = _without_old_values(plan, name).to_json()
    return read_macro(
        {"name": name, "description": description or plan.goal, "plan": document}, tools
    ).macro


def _promote_written(plan: ActionPlan, text: str, name: str) -> ActionPlan:
    """Promote a literal that the user typed: a text, or else a number, true or false."""
    try:
        return promote(plan, text, name)
    except MacroError:
        written = text.strip().lower()
        value = next((value for value in literals(plan) if json.dumps(value) == written), None)
        if value is None:
            raise
        return promote(plan, value, name)


def _without_old_values(plan: ActionPlan, name: str) -> ActionPlan:
    """Remove texts that name a parameter's default, because other values make them wrong."""
    old = [
        str(parameter.default)
        for parameter in plan.parameters.values()
        if isinstance(parameter.default, str | int | float) and str(parameter.default).strip()
    ]

    def is_stale(text: str) -> bool:
        return any(value in text for value in old)

    steps = [
        step.model_copy(update={"preview": None})
        if step.preview and is_stale(step.preview)
        else step
        for step in plan.steps
    ]
    assumptions = [text for text in plan.assumptions if not is_stale(text)]
    goal = name if is_stale(plan.goal) else plan.goal
    return plan.model_copy(update={"goal": goal, "assumptions": assumptions, "steps": steps})


def _replaced(old: Literal, value: Literal, reference: str) -> Literal:
    """Replace a literal by a reference, as a whole value or as whole words in a text."""
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
    used = {step.id for step in plan.steps} | RESERVED_NAMES | plan.parameters.keys()
    for step in plan.steps:
        if step.foreach is not None:
            used |= {step.foreach.item_name, step.foreach.index_name}
    if not _NAME.fullmatch(name):
        raise MacroError(
            f"“{name}” cannot be the name of a parameter.",
            hint="Use letters, digits and _, starting with a letter.",
        )
    if name in used:
        raise MacroError(
            f"The plan uses the name “{name}” for something else.", hint="Choose another name."
        )


def _rewritten(
    document: dict[str, Any], change: Callable[[str, Literal], Literal]
) -> dict[str, Any]:
    """Change the values of a plan where references are resolved.

    These are arguments, `when` and literal lists of `foreach`. `change` receives the name of the
    field and the value.
    """

    def below(value: Any, field: str) -> Any:
        match value:
            case dict():
                return {key: below(item, key) for key, item in value.items()}
            case list():
                return [below(item, field) for item in value]
            case str() | int() | float():
                return change(field, value)
            case _:
                return value

    def step(value: dict[str, Any]) -> dict[str, Any]:
        changed = value | {key: below(value[key], key) for key in ("args", "when") if key in value}
        if (loop := value.get("foreach")) is not None:
            changed["foreach"] = loop | {"from": below(loop["from"], "from")}
        return changed

    return document | {"steps": [step(value) for value in document["steps"]]}
