"""Everything about a plan that can be checked without the vault, and the order of its steps.

`shape` turns a document into an `ActionPlan`: it checks the schema with readable messages, and
lowers retry policies beyond the limits. Then follow the names in a plan and the references to them,
then what its tools may do. Nothing here raises for bad input: all problems are listed.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping, Set
from typing import Any, Final

from msgspec import Struct, field

from obsidian_agent.errors import PathRefused, PlanError, Problem, did_you_mean, nearest
from obsidian_agent.plan import arguments
from obsidian_agent.plan.arguments import (
    NO_MARKS,
    ArgMarks,
    argument_problems,
    check,
    has_control_characters,
    marks_of,
)
from obsidian_agent.plan.grammar import Malformed, Reference, pieces
from obsidian_agent.plan.model import MAX_BACKOFF_MS, MAX_INSTANCES, MAX_STEPS, ActionPlan, Step
from obsidian_agent.plan.parameters import default_problems
from obsidian_agent.plan.policy import NOT_PERMITTED, Policy
from obsidian_agent.plan.references import (
    BUILTIN_VARS,
    CONTEXT_NAMES,
    RESERVED_NAMES,
    CompiledStep,
    compile_step,
)
from obsidian_agent.plan.result import Flag
from obsidian_agent.tools.core.tool import Risk, Tool
from obsidian_agent.vault.paths import path

VERSION: Final = "1.0"
_MAX_ATTEMPTS: Final = 5
_PATH_ARGUMENT = re.compile(r"/steps/\d+/args/(?:path|from|to|folder)")


_PARAMETER_NAME = re.compile(r"[^\W\d][\w-]*")
_STEP_OF = re.compile(r"\$\{\s*\$?steps\.(\w+)")

_RISKS = (Risk.READ_ONLY, Risk.WRITES, Risk.COMMANDS)

_FINAL_CODES = NOT_PERMITTED | {"PATH_OUTSIDE_VAULT", "PATH_NOT_ALLOWED", "PLAN_TOO_LARGE"}
_DEFAULT_POLICY = Policy()

_PLACEHOLDER = "a b"
"""A value in a templated path: a legal name that begins no drive, scheme or dot name."""


class ShapedPlan(Struct):
    """A plan, or its problems.

    `final`: another answer of a model would not help, or the plan exceeds all limits.
    """

    plan: ActionPlan | None = None
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    final: bool = False


def shape(document: object) -> ShapedPlan:
    """Check the form of a document. Never raise."""
    if not isinstance(document, dict):
        return ShapedPlan(
            problems=[Problem("SCHEMA_INVALID", "A plan is a JSON object.", path="/")]
        )
    if too_large := _too_large(document):
        return ShapedPlan(problems=too_large, final=True)
    if flaw := arguments.find_flaw(document):
        code = "PATH_INVALID" if _PATH_ARGUMENT.fullmatch(flaw.pointer) else "SCHEMA_INVALID"
        return ShapedPlan(
            problems=[Problem(code, flaw.message, path=flaw.pointer)], final=flaw.code == "TOO_DEEP"
        )
    version = document.get("version")
    if isinstance(version, str) and version != VERSION:
        message = (
            f"Version {version[:20]!r} of the plan language is unknown; "
            f"this program supports version {VERSION!r}."
        )
        return ShapedPlan(
            problems=[Problem("SCHEMA_INVALID", message, path="/version")], final=True
        )
    clamped, warnings = _clamped(document)
    plan, problems = check(ActionPlan, clamped, code="SCHEMA_INVALID")
    return ShapedPlan(plan, [_placed(problem, document) for problem in problems], warnings)


def _too_large(document: dict[Any, Any]) -> list[Problem]:
    steps = document.get("steps")
    if not isinstance(steps, list):
        return []
    if len(steps) > MAX_STEPS:
        return [
            Problem(
                "PLAN_TOO_LARGE",
                f"The plan has {len(steps)} steps; at most {MAX_STEPS} are allowed.",
                path="/steps",
            )
        ]
    lists = [_literal_items(step) for step in steps]
    if sum(lists) > MAX_INSTANCES:
        largest = max(range(len(lists)), key=lists.__getitem__)
        message = (
            f"The plan's lists make {sum(lists)} instances; at most {MAX_INSTANCES} are allowed."
        )
        return [
            Problem(
                "PLAN_TOO_LARGE",
                message,
                _step_id(steps[largest]),
                path=f"/steps/{largest}/foreach/from",
            )
        ]
    return []


def _literal_items(step: object) -> int:
    foreach = step.get("foreach") if isinstance(step, dict) else None
    items = foreach.get("from") if isinstance(foreach, dict) else None
    return len(items) if isinstance(items, list) else 0


def _clamped(document: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Return the document with retry policies lowered to the limits, and warnings.

    Fewer attempts never do more than the plan asked for.
    """
    warnings: list[Problem] = []
    clamped = dict(document)
    if "defaults" in document:
        clamped["defaults"] = _clamp_retry(document["defaults"], "/defaults", warnings)
    if isinstance(steps := document.get("steps"), list):
        clamped["steps"] = [
            _clamp_retry(step, f"/steps/{index}", warnings) for index, step in enumerate(steps)
        ]
    return clamped, warnings


def _clamp_retry(holder: Any, location: str, warnings: list[Problem]) -> Any:
    retry = holder.get("retry") if isinstance(holder, dict) else None
    if not isinstance(retry, dict):
        return holder
    clamped = dict(retry)
    for name, limit in (("maxAttempts", _MAX_ATTEMPTS), ("backoffMs", MAX_BACKOFF_MS)):
        value = retry.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > limit:
            clamped[name] = limit
            message = f"{name} is lowered from {value} to {limit}."
            warnings.append(
                Problem("RETRY_LIMIT", message, _step_id(holder), path=f"{location}/retry/{name}")
            )
    return {**holder, "retry": clamped}


def _placed(problem: Problem, document: dict[str, Any]) -> Problem:
    """Return the problem with the id of the step its pointer leads to."""
    parts = (problem.path or "").split("/")
    steps = document.get("steps")
    if (
        len(parts) < 3
        or parts[1] != "steps"
        or not parts[2].isdigit()
        or not isinstance(steps, list)
        or int(parts[2]) >= len(steps)
    ):
        return problem
    step_id = _step_id(steps[int(parts[2])])
    return problem.at(step_id) if step_id else problem


def _step_id(step: object) -> str | None:
    id_ = step.get("id") if isinstance(step, dict) else None
    return id_ if isinstance(id_, str) else None


def name_problems(plan: ActionPlan) -> Iterator[Problem]:
    """Yield problems of duplicate, reserved and hidden names."""
    yield from _id_problems(plan)
    captured: dict[str, str] = {}
    for index, step in enumerate(plan.steps):
        yield from _loop_problems(plan, step, f"/steps/{index}/foreach")
        if (name := step.capture_as) is None:
            continue
        if name in captured:
            message = (
                f"The steps '{captured[name]}' and '{step.id}' both capture '{name}': "
                "give each its own name."
            )
            yield Problem("DUPLICATE_ID", message, step.id, path=f"/steps/{index}/captureAs")
        elif name in BUILTIN_VARS:
            message = f"'{name}' is built in as $vars.{name}: use another name in captureAs."
            yield Problem("DUPLICATE_ID", message, step.id, path=f"/steps/{index}/captureAs")
        captured.setdefault(name, step.id)
    for name in plan.parameters:
        if not _PARAMETER_NAME.fullmatch(name) or name in ("steps", "vars"):
            message = f"{name!r} cannot be the name of a parameter: references cannot contain it."
            yield Problem("SCHEMA_INVALID", message, path=f"/parameters/{name}")


def _id_problems(plan: ActionPlan) -> Iterator[Problem]:
    loops = {step.id for step in plan.steps if step.foreach is not None}
    seen: set[str] = set()
    for index, step in enumerate(plan.steps):
        where = f"/steps/{index}/id"
        if step.id in RESERVED_NAMES:
            yield Problem(
                "SCHEMA_INVALID",
                f"'{step.id}' is a name of the plan language and cannot be a step's id.",
                step.id,
                path=where,
            )
        if step.id in seen:
            yield Problem(
                "DUPLICATE_ID", f"Two steps have the id '{step.id}'.", step.id, path=where
            )
        seen.add(step.id)
        stem, _, number = step.id.rpartition("_")
        if stem in loops and re.fullmatch(r"0|[1-9][0-9]*", number):
            yield Problem(
                "DUPLICATE_ID",
                f"'{step.id}' is also the id of an instance of the foreach step '{stem}'.",
                step.id,
                path=where,
            )


def _loop_problems(plan: ActionPlan, step: Step, where: str) -> Iterator[Problem]:
    if step.foreach is None:
        return
    for argument, name in (
        ("itemName", step.foreach.item_name),
        ("indexName", step.foreach.index_name),
    ):
        if name in plan.parameters:
            hidden = "a parameter"
        elif name in RESERVED_NAMES:
            hidden = "a name of the plan language"
        else:
            continue
        yield Problem(
            "SCHEMA_INVALID",
            f"{argument} '{name}' would hide {hidden}: use another name.",
            step.id,
            path=f"{where}/{argument}",
        )
    if step.foreach.item_name == step.foreach.index_name:
        yield Problem(
            "SCHEMA_INVALID",
            f"itemName and indexName are both '{step.foreach.item_name}'.",
            step.id,
            path=where,
        )


def dependency_problems(plan: ActionPlan) -> Iterator[Problem]:
    """Yield a problem for each name in `dependsOn` that no step has."""
    ids = {step.id for step in plan.steps}
    for index, step in enumerate(plan.steps):
        for position, name in enumerate(step.depends_on):
            if name not in ids:
                message = (
                    f"dependsOn names '{name}', but no step has that id.{did_you_mean(name, ids)}"
                )
                yield Problem(
                    "UNKNOWN_DEPENDENCY",
                    message,
                    step.id,
                    path=f"/steps/{index}/dependsOn/{position}",
                )


def reference_problems(
    plan: ActionPlan, compiled: Mapping[str, CompiledStep], unjudged: frozenset[str]
) -> Iterator[tuple[bool, Problem]]:
    """Yield the problems of references, each with whether it is an error and no warning.

    Steps in `unjudged` have no known tool, so that their long texts are unknown; only their
    `$steps` and `$vars` are checked.
    """
    captured = {step.capture_as for step in plan.steps if step.capture_as is not None} | set(
        BUILTIN_VARS
    )
    ids = {step.id for step in plan.steps}
    for index, step in enumerate(plan.steps):
        loop = (
            {step.foreach.item_name, step.foreach.index_name} if step.foreach is not None else set()
        )
        for field_name, template in compiled[step.id].templates():
            known = (
                CONTEXT_NAMES
                | set(plan.parameters)
                | (loop if field_name != "foreach/from" else set())
            )
            where = f"/steps/{index}/{field_name}"
            for reference in template.references:
                if reference.kind == "name" and reference.head not in known:
                    if step.id not in unjudged:
                        yield _unknown_head(
                            plan, reference, known=known, ids=ids, step_id=step.id, where=where
                        )
                elif reason := reference.flaw or _unknown_target(reference, ids, captured):
                    yield (
                        True,
                        Problem(
                            "UNKNOWN_REFERENCE",
                            f"{reference.source}: {reason}",
                            step.id,
                            path=where,
                        ),
                    )
            for malformed in template.malformed if step.id not in unjudged else ():
                yield _malformed(malformed, ids, step.id, where)


def _unknown_target(reference: Reference, ids: set[str], captured: set[str]) -> str | None:
    if reference.kind == "steps" and reference.head not in ids:
        return f"no step has the id '{reference.head}'.{did_you_mean(reference.head, ids)}"
    if reference.kind == "vars" and reference.head not in captured:
        return f"no step has captureAs '{reference.head}'.{did_you_mean(reference.head, captured)}"
    return None


def _unknown_head(
    plan: ActionPlan, reference: Reference, known: Set[str], ids: Set[str], step_id: str, where: str
) -> tuple[bool, Problem]:
    if reference.long_text:
        message = f"{reference.source} stays as text: nothing is called '{reference.head}'."
        return False, Problem("UNKNOWN_REFERENCE", message, step_id, path=where)
    hint = did_you_mean(reference.head, known)
    if reference.head in ids:
        hint = f" Write $steps.{reference.head} for the output of that step."
    elif any(
        step.foreach is not None
        and reference.head in (step.foreach.item_name, step.foreach.index_name)
        for step in plan.steps
    ):
        hint = (
            " It is a loop name of another step; "
            "loop names are available only in args and when of their own step."
        )
    elif reference.head.lstrip("$") == "vars":
        hint = " Captured values are written $vars.name."
    message = (
        f"{reference.source}: nothing is called '{reference.head}'."
        f"{hint} Write $${{ for a literal ${{."
    )
    return True, Problem("UNKNOWN_REFERENCE", message, step_id, path=where)


def _malformed(
    malformed: Malformed, ids: Set[str], step_id: str, where: str
) -> tuple[bool, Problem]:
    """Return the problem of a malformed reference, and whether it is an error.

    Notes contain code, so that it stays as text in long text, unless it names a step of this plan.
    """
    match = _STEP_OF.match(malformed.source)
    is_error = not malformed.long_text or (match is not None and match[1] in ids)
    consequence = ". Write $${ for a literal ${." if is_error else " and stays as text."
    return is_error, Problem(
        "UNKNOWN_REFERENCE",
        f"{malformed.source[:60]} is not a reference{consequence}",
        step_id,
        path=where,
    )


class Validated(Struct, frozen=True, kw_only=True):
    """A validated plan. `plan` is None if there are problems.

    `draft` is the plan as written if its form is right, for display. `order` and `needed` (the ids
    each step needs) are complete only for a valid plan. `risk` is the declared risk, raised to
    `computed_risk` if it was too low. `missing` are the parameters that need a value before a run;
    these are not problems. `final`: asking a model again cannot help, or must not happen.
    `policy` is the policy of the validation; the preview checks its changes under the same.
    """

    plan: ActionPlan | None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    flags: tuple[Flag, ...] = ()
    risk: Risk = Risk.READ_ONLY
    computed_risk: Risk = Risk.READ_ONLY
    order: tuple[Step, ...] = ()
    needed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    compiled: Mapping[str, CompiledStep] = field(default_factory=dict)
    draft: ActionPlan | None = None
    missing: tuple[str, ...] = ()
    final: bool = False
    policy: Policy = _DEFAULT_POLICY

    @property
    def valid(self) -> bool:
        """The plan can be previewed."""
        return self.plan is not None


def validate(
    document: object, tools: Mapping[str, Tool], policy: Policy = _DEFAULT_POLICY
) -> Validated:
    """Validate a JSON document as a plan for these tools (by name) under this policy."""
    shaped = shape(document.to_json() if isinstance(document, ActionPlan) else document)
    plan = shaped.plan
    if plan is None:
        return Validated(
            plan=None,
            problems=tuple(shaped.problems),
            warnings=tuple(shaped.warnings),
            final=shaped.final,
        )
    problems, warnings = list(shaped.problems), list(shaped.warnings)
    compiled = {
        step.id: compile_step(
            step, marks_of(tools[step.tool].input) if step.tool in tools else NO_MARKS
        )
        for step in plan.steps
    }
    problems += name_problems(plan)
    problems += default_problems(plan)
    for index, step in enumerate(plan.steps):
        problems += _step_problems(step, index, tools, policy)
    problems += dependency_problems(plan)
    unjudged = frozenset(step.id for step in plan.steps if step.tool not in tools)
    for is_error, problem in reference_problems(plan, compiled, unjudged):
        (problems if is_error else warnings).append(problem)
    needed = edges(plan, compiled)
    order: list[Step] = []
    if len(compiled) == len(plan.steps):
        try:
            order = execution_order(plan, needed)
        except PlanError as error:
            problems += error.problems
    warnings += _warnings(plan, order, compiled)
    computed = max(
        (tools[step.tool].risk for step in plan.steps if step.tool in tools),
        key=_RISKS.index,
        default=Risk.READ_ONLY,
    )
    claimed = Risk(plan.risk_level)
    return Validated(
        plan=None if problems else plan,
        problems=tuple(dict.fromkeys(problems)),
        warnings=tuple(dict.fromkeys(warnings)),
        flags=tuple(_risk_flags(claimed, computed)),
        risk=max(claimed, computed, key=_RISKS.index),
        computed_risk=computed,
        order=tuple(order),
        needed={step_id: frozenset(ids) for step_id, ids in needed.items()},
        compiled=compiled,
        draft=plan,
        missing=tuple(
            name
            for name, declared in plan.parameters.items()
            if declared.default is None and name not in CONTEXT_NAMES
        ),
        final=any(problem.code in _FINAL_CODES for problem in problems)
        or any("${" in step.tool for step in plan.steps),
        policy=policy,
    )


def _step_problems(
    step: Step, index: int, tools: Mapping[str, Tool], policy: Policy
) -> Iterator[Problem]:
    where = f"/steps/{index}"
    tool = tools.get(step.tool)
    if tool is None:
        message = f"There is no tool '{step.tool[:60]}'.{_nearest_tool(step.tool, tools)}"
        yield Problem("TOOL_NOT_FOUND", message, step.id, path=f"{where}/tool")
        return
    for problem in policy.step_problems(tool):
        yield problem.at(step.id)
    for problem in argument_problems(tool, step.args, ("steps", index, "args")):
        yield problem.at(step.id)
    for problem in _path_problems(step.args, marks_of(tool.input)):
        yield problem.at(step.id)


def _nearest_tool(name: str, tools: Mapping[str, Tool]) -> str:
    if "${" in name:
        return " The name of a tool cannot contain references."
    alias = next((tool.name for tool in tools.values() if name in tool.aliases), None)
    match = alias or nearest(name.replace("__", "."), tools, parts=True)
    return f" Did you mean '{match}'?" if match else f" There are {', '.join(sorted(tools))}."


def _path_problems(value: object, marks: ArgMarks) -> Iterator[Problem]:
    """Yield problems of paths that hold for any use: outside the vault, protected, illegal."""
    match value:
        case str() if marks.path:
            parts = pieces(value, False)
            if len(parts) == 1 and not isinstance(parts[0], str):
                return
            try:
                path.parse(
                    "".join(piece if isinstance(piece, str) else _PLACEHOLDER for piece in parts),
                    path.PathUse.FOLDER,
                )
            except PathRefused as error:
                problem = error.problem()
                yield Problem(problem.code, problem.message, path=value)
        case list():
            for item in value:
                yield from _path_problems(item, marks.item())
        case dict():
            for name, child in value.items():
                yield from _path_problems(child, marks.field(name))
        case _:
            return


def _warnings(
    plan: ActionPlan, order: list[Step], compiled: Mapping[str, CompiledStep]
) -> Iterator[Problem]:
    if not plan.steps:
        yield Problem("NO_STEPS", "The plan has no steps, so it does nothing.")
    if order and order != plan.steps:
        yield Problem(
            "REORDERED",
            f"References change the order of the steps: {', '.join(step.id for step in order)}.",
        )
    for index, step in enumerate(plan.steps):
        if isinstance(step.when, str) and step.when and compiled[step.id].when.static:
            message = (
                f"when is the text {step.when[:60]!r}, which is always true; "
                "write a reference as ${…}."
            )
            yield Problem("SCHEMA_INVALID", message, step.id, path=f"/steps/{index}/when")
    texts = [
        ("/goal", plan.goal),
        *((f"/assumptions/{index}", text) for index, text in enumerate(plan.assumptions)),
    ]
    texts += [
        (f"/steps/{index}/preview", step.preview or "") for index, step in enumerate(plan.steps)
    ]
    for where, text in texts:
        if has_control_characters(text):
            yield Problem(
                "CONTROL_CHARS",
                "The text holds control characters; they are shown as symbols.",
                path=where,
            )


def _risk_flags(claimed: Risk, computed: Risk) -> Iterator[Flag]:
    if _RISKS.index(computed) > _RISKS.index(claimed):
        yield Flag(
            "riskRaised",
            f"The plan declares '{claimed.value}', but its steps are '{computed.value}'.",
        )


def edges(plan: ActionPlan, compiled: Mapping[str, CompiledStep]) -> dict[str, set[str]]:
    """Return the ids of the steps each step needs: in `dependsOn` or by a reference.

    Ids that no step has are omitted; validation reports them.
    """
    captured = {step.capture_as: step.id for step in plan.steps if step.capture_as is not None}
    ids = {step.id for step in plan.steps}
    needed: dict[str, set[str]] = {}
    for step in plan.steps:
        needs = set(step.depends_on)
        for reference in compiled[step.id].references if step.id in compiled else ():
            if reference.kind == "steps":
                needs.add(reference.head)
            elif reference.kind == "vars" and reference.head in captured:
                needs.add(captured[reference.head])
        needed[step.id] = needs & ids
    return needed


def execution_order(plan: ActionPlan, needed: Mapping[str, Set[str]]) -> list[Step]:
    """Return the steps ordered so that each follows what it needs, ties as written.

    Ids must be unique. Raise PlanError DEPENDENCY_CYCLE (message `a -> b -> a`) without such an
    order.
    """
    positions = {step.id: index for index, step in enumerate(plan.steps)}
    waiting = {step.id: len(needed[step.id]) for step in plan.steps}
    followers: dict[str, list[str]] = {step.id: [] for step in plan.steps}
    for step in plan.steps:
        for earlier in needed[step.id]:
            followers[earlier].append(step.id)
    ready = [positions[step_id] for step_id, count in waiting.items() if count == 0]
    order: list[Step] = []
    while ready:
        step = plan.steps[heapq.heappop(ready)]
        order.append(step)
        for follower in followers[step.id]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, positions[follower])
    if len(order) < len(plan.steps):
        cycle = _cycle([step.id for step in plan.steps if waiting[step.id] > 0], needed)
        message = " -> ".join(cycle)
        raise PlanError(message, problems=[Problem("DEPENDENCY_CYCLE", message, cycle[0])])
    return order


def _cycle(blocked: list[str], needed: Mapping[str, Set[str]]) -> list[str]:
    """Return one cycle among steps that are never ready, from its first written step to itself."""
    positions = {step_id: index for index, step_id in enumerate(blocked)}
    seen: dict[str, int] = {}
    path: list[str] = []
    current = blocked[0]
    while current not in seen:
        seen[current] = len(path)
        path.append(current)
        current = min(
            (needed_id for needed_id in needed[current] if needed_id in positions),
            key=positions.__getitem__,
        )
    cycle = path[seen[current] :]
    first = cycle.index(min(cycle, key=positions.__getitem__))
    cycle = cycle[first:] + cycle[:first]
    return [*cycle, cycle[0]]
