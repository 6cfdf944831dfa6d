"""Everything about a plan that can be judged without looking into the vault, and the order in which its steps run.

Nothing here raises for bad input: all problems are listed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from obsidian_agent.errors import PathRefused, PlanError, Problem
from obsidian_agent.plan.arguments import NO_MARKS, ArgMarks, argument_problems, control_characters, marks_of
from obsidian_agent.plan.flags import NOT_PERMITTED, Policy
from obsidian_agent.plan.grammar import pieces
from obsidian_agent.plan.model import ActionPlan, Step
from obsidian_agent.plan.names import dependency_problems, name_problems, reference_problems
from obsidian_agent.plan.nearest import nearest
from obsidian_agent.plan.parameters import default_problems
from obsidian_agent.plan.references import CompiledStep, compile_step
from obsidian_agent.plan.result import Flag
from obsidian_agent.plan.scope import CONTEXT_NAMES
from obsidian_agent.plan.shape import shape
from obsidian_agent.tools.core.tool import Risk, Tool
from obsidian_agent.vault.paths import path

_RISKS = (Risk.READ_ONLY, Risk.WRITES, Risk.COMMANDS)

_FINAL_CODES = NOT_PERMITTED | {"PATH_OUTSIDE_VAULT", "PATH_NOT_ALLOWED", "PLAN_TOO_LARGE"}
_DEFAULT_POLICY = Policy()

_PLACEHOLDER = "a b"
"""Stands for a value in a templated path: a legal name that begins no drive, scheme or dot name."""


@dataclass(frozen=True, slots=True)
class Validated:
    """A judged plan. `plan` is None when there are problems; `draft` is what was written as far as its form is right, for showing it.

    `order` and `needed` (per step the ids it needs) are complete only for a valid plan.
    `risk` is the author's claim, raised to `computed_risk` where it was too low. `missing` are the parameters that need a value
    before a run; they are no problem of the plan. `final`: asking a model again cannot help, or must not. `policy` is what the plan was
    judged under; the preview judges its changes under the same.
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
        """Whether it can be previewed."""
        return self.plan is not None


def validate(document: object, tools: Mapping[str, Tool], policy: Policy = _DEFAULT_POLICY) -> Validated:
    """Judge a JSON document as a plan for these tools (by name) under this policy."""
    shaped = shape(document.to_json() if isinstance(document, ActionPlan) else document)
    plan = shaped.plan
    if plan is None:
        return Validated(None, tuple(shaped.problems), tuple(shaped.warnings), final=shaped.final)
    problems, warnings = list(shaped.problems), list(shaped.warnings)
    compiled = {step.id: compile_step(step, marks_of(tools[step.tool].input) if step.tool in tools else NO_MARKS) for step in plan.steps}
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
    computed = max((tools[step.tool].risk for step in plan.steps if step.tool in tools), key=_RISKS.index, default=Risk.READ_ONLY)
    claimed = Risk(plan.risk_level)
    return Validated(
        None if problems else plan,
        tuple(dict.fromkeys(problems)),
        tuple(dict.fromkeys(warnings)),
        tuple(_risk_flags(claimed, computed)),
        max(claimed, computed, key=_RISKS.index),
        computed,
        tuple(order),
        {step_id: frozenset(ids) for step_id, ids in needed.items()},
        compiled,
        plan,
        tuple(name for name, declared in plan.parameters.items() if declared.default is None and name not in CONTEXT_NAMES),
        final=any(problem.code in _FINAL_CODES for problem in problems) or any("${" in step.tool for step in plan.steps),
        policy=policy,
    )


def _step_problems(step: Step, index: int, tools: Mapping[str, Tool], policy: Policy) -> Iterator[Problem]:
    where = f"/steps/{index}"
    tool = tools.get(step.tool)
    if tool is None:
        message = f"There is no tool '{step.tool[:60]}'.{_nearest_tool(step.tool, tools)}"
        yield Problem("TOOL_NOT_FOUND", message, step.id, path=f"{where}/tool")
        return
    if tool.deletes and not policy.allow_deletes:
        message = f"{tool.name} deletes, and deletes are off. {policy.way_to_allow('deletes')}"
        yield Problem("DELETE_DISABLED", message, step.id)
    if tool.risk is Risk.COMMANDS and not policy.allow_commands:
        message = f"{tool.name} runs commands, and they are off. {policy.way_to_allow('commands')}"
        yield Problem("COMMANDS_DISABLED", message, step.id)
    if tool.risk is not Risk.READ_ONLY and not policy.allow_writes:
        yield Problem("PERMISSION_DENIED", f"{tool.name} changes the vault, and only reading is permitted here.", step.id)
    for problem in argument_problems(tool, step.args, ("steps", index, "args")):
        yield problem.at(step.id)
    for problem in _path_problems(step.args, marks_of(tool.input)):
        yield problem.at(step.id)


def _nearest_tool(name: str, tools: Mapping[str, Tool]) -> str:
    if "${" in name:
        return " A tool's name takes no references."
    alias = next((tool.name for tool in tools.values() if name in tool.aliases), None)
    found = alias or nearest(name.replace("__", "."), tools, parts=True)
    return f" Did you mean '{found}'?" if found else f" There are {', '.join(sorted(tools))}."


def _path_problems(value: object, marks: ArgMarks) -> Iterator[Problem]:
    """What holds for a path whatever it is used for: inside the vault, not protected, a possible name."""
    match value:
        case str() if marks.path:
            found = pieces(value, False)
            if len(found) == 1 and not isinstance(found[0], str):
                return
            try:
                path.parse("".join(piece if isinstance(piece, str) else _PLACEHOLDER for piece in found), path.PathUse.FOLDER)
            except PathRefused as error:
                problem = error.problem()
                yield Problem(problem.code, problem.message, path=value)
        case list():
            for item in value:
                yield from _path_problems(item, marks.item())
        case dict():
            for name, below in value.items():
                yield from _path_problems(below, marks.field(name))
        case _:
            return


def _warnings(plan: ActionPlan, order: list[Step], compiled: Mapping[str, CompiledStep]) -> Iterator[Problem]:
    if not plan.steps:
        yield Problem("NO_STEPS", "The plan has no steps: there is nothing to approve.")
    if order and order != plan.steps:
        yield Problem("REORDERED", f"The steps run in the order that their references ask for: {', '.join(step.id for step in order)}.")
    for index, step in enumerate(plan.steps):
        if isinstance(step.when, str) and step.when and compiled[step.id].when.static:
            message = f"when is the text {step.when[:60]!r}, which is always true; a reference is written ${{…}}."
            yield Problem("SCHEMA_INVALID", message, step.id, path=f"/steps/{index}/when")
    shown = [("/goal", plan.goal), *((f"/assumptions/{n}", text) for n, text in enumerate(plan.assumptions))]
    shown += [(f"/steps/{n}/preview", step.preview or "") for n, step in enumerate(plan.steps)]
    for where, text in shown:
        if control_characters(text):
            yield Problem("CONTROL_CHARS", "The text holds control characters; they are shown as symbols.", path=where)


def _risk_flags(claimed: Risk, computed: Risk) -> Iterator[Flag]:
    if _RISKS.index(computed) > _RISKS.index(claimed):
        yield Flag("riskRaised", f"The plan says '{claimed.value}', but what it does is '{computed.value}'.")


def edges(plan: ActionPlan, compiled: Mapping[str, CompiledStep]) -> dict[str, set[str]]:
    """For each step the ids of the steps that it needs: named in `dependsOn` or by a reference to an output or a captured value.

    Ids that no step has are left out; validation reports them.
    """
    captured = {step.capture_as: step.id for step in plan.steps if step.capture_as is not None}
    ids = {step.id for step in plan.steps}
    needed: dict[str, set[str]] = {}
    for step in plan.steps:
        found = set(step.depends_on)
        for reference in compiled[step.id].references if step.id in compiled else ():
            if reference.kind == "steps":
                found.add(reference.head)
            elif reference.kind == "vars" and reference.head in captured:
                found.add(captured[reference.head])
        needed[step.id] = found & ids
    return needed


def execution_order(plan: ActionPlan, needed: Mapping[str, Set[str]]) -> list[Step]:
    """The steps so that each comes after what it needs, ties as written; ids must be unique.

    PlanError DEPENDENCY_CYCLE (message `a -> b -> a`) if there is no such order.
    """
    place = {step.id: index for index, step in enumerate(plan.steps)}
    waiting = {step.id: len(needed[step.id]) for step in plan.steps}
    followers: dict[str, list[str]] = {step.id: [] for step in plan.steps}
    for step in plan.steps:
        for earlier in needed[step.id]:
            followers[earlier].append(step.id)
    ready = [place[step_id] for step_id, count in waiting.items() if count == 0]
    order: list[Step] = []
    while ready:
        step = plan.steps[heapq.heappop(ready)]
        order.append(step)
        for follower in followers[step.id]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, place[follower])
    if len(order) < len(plan.steps):
        cycle = _cycle([step.id for step in plan.steps if waiting[step.id] > 0], needed)
        message = " -> ".join(cycle)
        raise PlanError(message, problems=[Problem("DEPENDENCY_CYCLE", message, cycle[0])])
    return order


def _cycle(blocked: list[str], needed: Mapping[str, Set[str]]) -> list[str]:
    """One cycle among steps that can never be ready, from its first written step back to itself."""
    place = {step_id: index for index, step_id in enumerate(blocked)}
    seen: dict[str, int] = {}
    path: list[str] = []
    current = blocked[0]
    while current not in seen:
        seen[current] = len(path)
        path.append(current)
        current = min((each for each in needed[current] if each in place), key=place.__getitem__)
    cycle = path[seen[current] :]
    first = cycle.index(min(cycle, key=place.__getitem__))
    cycle = cycle[first:] + cycle[:first]
    return [*cycle, cycle[0]]
