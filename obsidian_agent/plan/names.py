"""The names a plan gives: ids of steps, loop names, captured values, parameters; and the references that use them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set

from obsidian_agent.errors import Problem
from obsidian_agent.plan.grammar import Malformed, Reference
from obsidian_agent.plan.model import ActionPlan, Step
from obsidian_agent.plan.nearest import did_you_mean
from obsidian_agent.plan.references import CompiledStep
from obsidian_agent.plan.scope import BUILTIN_VARS, CONTEXT_NAMES, RESERVED_NAMES

_PARAMETER_NAME = re.compile(r"[^\W\d][\w-]*")
_STEP_OF = re.compile(r"\$\{\s*\$?steps\.(\w+)")


def name_problems(plan: ActionPlan) -> Iterator[Problem]:
    """Duplicate, reserved and hidden names."""
    yield from _id_problems(plan)
    captured: dict[str, str] = {}
    for index, step in enumerate(plan.steps):
        yield from _loop_problems(plan, step, f"/steps/{index}/foreach")
        if (name := step.capture_as) is None:
            continue
        if name in captured:
            message = f"'{name}' is captured by the steps '{captured[name]}' and '{step.id}': give each its own name."
            yield Problem("DUPLICATE_ID", message, step.id, path=f"/steps/{index}/captureAs")
        elif name in BUILTIN_VARS:
            message = f"'{name}' is always there as $vars.{name}: capture as another name."
            yield Problem("DUPLICATE_ID", message, step.id, path=f"/steps/{index}/captureAs")
        captured.setdefault(name, step.id)
    for name in plan.parameters:
        if not _PARAMETER_NAME.fullmatch(name) or name in ("steps", "vars"):
            message = f"{name!r} cannot be the name of a parameter: no reference could name it."
            yield Problem("SCHEMA_INVALID", message, path=f"/parameters/{name}")


def _id_problems(plan: ActionPlan) -> Iterator[Problem]:
    loops = {step.id for step in plan.steps if step.foreach is not None}
    seen: set[str] = set()
    for index, step in enumerate(plan.steps):
        where = f"/steps/{index}/id"
        if step.id in RESERVED_NAMES:
            yield Problem("SCHEMA_INVALID", f"'{step.id}' is a name of the plan language and cannot be a step's id.", step.id, path=where)
        if step.id in seen:
            yield Problem("DUPLICATE_ID", f"Two steps have the id '{step.id}'.", step.id, path=where)
        seen.add(step.id)
        stem, _, number = step.id.rpartition("_")
        if stem in loops and re.fullmatch(r"0|[1-9][0-9]*", number):
            yield Problem("DUPLICATE_ID", f"'{step.id}' is also the id of an instance of the foreach step '{stem}'.", step.id, path=where)


def _loop_problems(plan: ActionPlan, step: Step, where: str) -> Iterator[Problem]:
    if step.foreach is None:
        return
    for field, name in (("itemName", step.foreach.item_name), ("indexName", step.foreach.index_name)):
        hidden = "a parameter" if name in plan.parameters else "a name of the plan language" if name in RESERVED_NAMES else None
        if hidden:
            yield Problem("SCHEMA_INVALID", f"{field} '{name}' would hide {hidden}: take another name.", step.id, path=f"{where}/{field}")
    if step.foreach.item_name == step.foreach.index_name:
        yield Problem("SCHEMA_INVALID", f"itemName and indexName are both '{step.foreach.item_name}'.", step.id, path=where)


def dependency_problems(plan: ActionPlan) -> Iterator[Problem]:
    """Names in `dependsOn` that no step has."""
    ids = {step.id for step in plan.steps}
    for index, step in enumerate(plan.steps):
        for place, name in enumerate(step.depends_on):
            if name not in ids:
                message = f"dependsOn names '{name}', but no step has that id.{did_you_mean(name, ids)}"
                yield Problem("UNKNOWN_DEPENDENCY", message, step.id, path=f"/steps/{index}/dependsOn/{place}")


def reference_problems(plan: ActionPlan, compiled: Mapping[str, CompiledStep], unjudged: frozenset[str]) -> Iterator[tuple[bool, Problem]]:
    """What is wrong with references, each with whether it is an error (else a warning).

    Steps in `unjudged` have no known tool, so nobody knows which of their texts are long; only their `$steps` and `$vars` are judged.
    """
    captured = {step.capture_as for step in plan.steps if step.capture_as is not None} | set(BUILTIN_VARS)
    ids = {step.id for step in plan.steps}
    for index, step in enumerate(plan.steps):
        loop = {step.foreach.item_name, step.foreach.index_name} if step.foreach is not None else set()
        for field, template in compiled[step.id].templates():
            known = CONTEXT_NAMES | set(plan.parameters) | (loop if field != "foreach/from" else set())
            where = f"/steps/{index}/{field}"
            for reference in template.references:
                if reference.kind == "name" and reference.head not in known:
                    if step.id not in unjudged:
                        yield _unknown_head(plan, reference, known, ids, step.id, where)
                elif why := reference.flaw or _unknown_target(reference, ids, captured):
                    yield True, Problem("UNKNOWN_REFERENCE", f"{reference.source}: {why}", step.id, path=where)
            for malformed in template.malformed if step.id not in unjudged else ():
                yield _malformed(malformed, ids, step.id, where)


def _unknown_target(reference: Reference, ids: set[str], captured: set[str]) -> str | None:
    if reference.kind == "steps" and reference.head not in ids:
        return f"no step has the id '{reference.head}'.{did_you_mean(reference.head, ids)}"
    if reference.kind == "vars" and reference.head not in captured:
        return f"no step has captureAs '{reference.head}'.{did_you_mean(reference.head, captured)}"
    return None


def _unknown_head(plan: ActionPlan, reference: Reference, known: Set[str], ids: Set[str], step_id: str, where: str) -> tuple[bool, Problem]:
    if reference.long_text:
        message = f"{reference.source} stays as text: nothing is called '{reference.head}'."
        return False, Problem("UNKNOWN_REFERENCE", message, step_id, path=where)
    hint = did_you_mean(reference.head, known)
    if reference.head in ids:
        hint = f" Write $steps.{reference.head} for the output of that step."
    elif any(step.foreach is not None and reference.head in (step.foreach.item_name, step.foreach.index_name) for step in plan.steps):
        hint = " It is the name of an item in another place; loop names hold only in args and when of their own step."
    elif reference.head.lstrip("$") == "vars":
        hint = " Captured values are written $vars.name."
    message = f"{reference.source}: nothing is called '{reference.head}'.{hint} Write $${{ for a literal ${{."
    return True, Problem("UNKNOWN_REFERENCE", message, step_id, path=where)


def _malformed(malformed: Malformed, ids: Set[str], step_id: str, where: str) -> tuple[bool, Problem]:
    """Notes hold code, so what is no reference stays in long text; but nobody's code asks for a step of this plan."""
    meant = _STEP_OF.match(malformed.source)
    wrong = not malformed.long_text or (meant is not None and meant[1] in ids)
    said = ". Write $${ for a literal ${." if wrong else " and stays as text."
    return wrong, Problem("UNKNOWN_REFERENCE", f"{malformed.source[:60]} is no reference{said}", step_id, path=where)
