"""From a document to an `ActionPlan`: the schema of plans, said in sentences, and what is clamped instead of refused."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from obsidian_agent.errors import Problem
from obsidian_agent.plan import arguments
from obsidian_agent.plan.arguments import check
from obsidian_agent.plan.model import MAX_BACKOFF_MS, MAX_INSTANCES, MAX_STEPS, ActionPlan

VERSION: Final = "1.0"
_MAX_ATTEMPTS: Final = 5
_PATH_ARGUMENT = re.compile(r"/steps/\d+/args/(?:path|from|to|folder)")


@dataclass(slots=True)
class Shaped:
    """The plan, or what is wrong. `final`: no other answer of a model would help, or the plan is beyond all bounds."""

    plan: ActionPlan | None = None
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    final: bool = False


def shape(document: object) -> Shaped:
    """Judge a document's form. Never raises."""
    if not isinstance(document, dict):
        return Shaped(problems=[Problem("SCHEMA_INVALID", "A plan is a JSON object.", path="/")])
    if too_large := _too_large(document):
        return Shaped(problems=too_large, final=True)
    if flaw := arguments.flaw(document):
        code = "PATH_INVALID" if _PATH_ARGUMENT.fullmatch(flaw.pointer) else "SCHEMA_INVALID"
        return Shaped(problems=[Problem(code, flaw.message, path=flaw.pointer)], final=flaw.code == "TOO_DEEP")
    version = document.get("version")
    if isinstance(version, str) and version != VERSION:
        message = f"Version {version[:20]!r} of the plan language is not known; this program reads version {VERSION!r}."
        return Shaped(problems=[Problem("SCHEMA_INVALID", message, path="/version")], final=True)
    clamped, warnings = _clamped(document)
    plan, problems = check(ActionPlan, clamped, code="SCHEMA_INVALID")
    return Shaped(plan, [_placed(problem, document) for problem in problems], warnings)


def _too_large(document: dict[Any, Any]) -> list[Problem]:
    steps = document.get("steps")
    if not isinstance(steps, list):
        return []
    if len(steps) > MAX_STEPS:
        return [Problem("PLAN_TOO_LARGE", f"The plan has {len(steps)} steps; at most {MAX_STEPS} are allowed.", path="/steps")]
    lists = [_literal_items(step) for step in steps]
    if sum(lists) > MAX_INSTANCES:
        largest = max(range(len(lists)), key=lists.__getitem__)
        message = f"The plan's lists make {sum(lists)} instances; at most {MAX_INSTANCES} are allowed."
        return [Problem("PLAN_TOO_LARGE", message, _step_id(steps[largest]), path=f"/steps/{largest}/foreach/from")]
    return []


def _literal_items(step: object) -> int:
    foreach = step.get("foreach") if isinstance(step, dict) else None
    items = foreach.get("from") if isinstance(foreach, dict) else None
    return len(items) if isinstance(items, list) else 0


def _clamped(document: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Retry policies beyond the bounds are brought to them: less often is never more than what was asked for."""
    warnings: list[Problem] = []
    clamped = dict(document)
    if "defaults" in document:
        clamped["defaults"] = _clamp_retry(document["defaults"], "/defaults", warnings)
    if isinstance(steps := document.get("steps"), list):
        clamped["steps"] = [_clamp_retry(step, f"/steps/{index}", warnings) for index, step in enumerate(steps)]
    return clamped, warnings


def _clamp_retry(holder: Any, place: str, warnings: list[Problem]) -> Any:
    retry = holder.get("retry") if isinstance(holder, dict) else None
    if not isinstance(retry, dict):
        return holder
    clamped = dict(retry)
    for name, most in (("maxAttempts", _MAX_ATTEMPTS), ("backoffMs", MAX_BACKOFF_MS)):
        given = retry.get(name)
        if isinstance(given, int | float) and not isinstance(given, bool) and given > most:
            clamped[name] = most
            message = f"{name} is lowered from {given} to {most}."
            warnings.append(Problem("RETRY_LIMIT", message, _step_id(holder), path=f"{place}/retry/{name}"))
    return {**holder, "retry": clamped}


def _placed(problem: Problem, document: dict[str, Any]) -> Problem:
    """The problem with the id of the step that its pointer leads to."""
    parts = (problem.path or "").split("/")
    steps = document.get("steps")
    if len(parts) < 3 or parts[1] != "steps" or not parts[2].isdigit() or not isinstance(steps, list) or int(parts[2]) >= len(steps):
        return problem
    step_id = _step_id(steps[int(parts[2])])
    return problem.at(step_id) if step_id else problem


def _step_id(step: object) -> str | None:
    found = step.get("id") if isinstance(step, dict) else None
    return found if isinstance(found, str) else None
