"""Results as the JSON documents of the contract, and what a plan that only reads has found, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from obsidian_agent.agent.events import Candidate, Effects, ExecutionResult, NeedsInput
from obsidian_agent.plan.result import Preview, Timings
from obsidian_agent.tools.core.tool import Risk

MOST_LINES = 200
"""Of one step; how many more there are is told."""


def findings(approved: Preview, outputs: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """For each step that no other goes on with, what it does and the lines of its output; none for a plan that changes something.

    The texts come from notes and models: front ends make them safe to show.
    """
    if approved.risk is not Risk.READ_ONLY:
        return []
    used = {name for instance in approved.instances for name in instance.depends_on}
    return [
        (step.preview or step.tool, _cut(list(_lines(outputs[step.id]))))
        for step in approved.plan.steps
        if step.id not in used and outputs.get(step.id) is not None
    ]


def _cut(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], f"… and {more:,} more lines."]


def _lines(value: Any, indent: str = "") -> Iterator[str]:
    """Lists as items, objects as their fields, texts of several lines below their name."""
    match value:
        case list() if not value:
            yield f"{indent}nothing"
        case list():
            for item in value:
                first, *rest = _lines(item, "")
                yield f"{indent}- {first}"
                yield from (f"{indent}  {line}" for line in rest)
        case Mapping() if not value:
            yield f"{indent}nothing"
        case Mapping():
            for name, each in value.items():
                lines = list(_lines(each, ""))
                if len(lines) == 1 and not (isinstance(each, list | Mapping) and each):
                    yield f"{indent}{name}: {lines[0]}"
                else:
                    yield f"{indent}{name}:"
                    yield from (f"{indent}  {line}" for line in lines)
        case bool():
            yield f"{indent}{'yes' if value else 'no'}"
        case None:
            yield f"{indent}nothing"
        case _:
            yield from (f"{indent}{line}" for line in str(value).split("\n"))


def effects_document(effects: Effects) -> dict[str, Any]:
    """`{created, modified, deleted, renamed, folders, commands}`, renames as {from, to}."""
    return {
        "created": list(effects.created),
        "modified": list(effects.modified),
        "deleted": list(effects.deleted),
        "renamed": [{"from": old, "to": new} for old, new in effects.renamed],
        "folders": list(effects.folders),
        "commands": list(effects.commands),
    }


def timings_document(timings: Timings) -> dict[str, float]:
    """Milliseconds, to a hundredth."""
    return {
        "previewMs": round(timings.preview_ms, 2),
        "firstScreenMs": round(timings.first_screen_ms, 2),
        "journalMs": round(timings.journal_ms, 2),
        "applyMs": round(timings.apply_ms, 2),
    }


def result_document(result: ExecutionResult) -> dict[str, Any]:
    return {
        "runId": result.run_id,
        "status": result.status,
        "success": result.success,
        "outcome": result.outcome,
        "completedSteps": result.completed_steps,
        "totalSteps": result.total_steps,
        "outputs": dict(result.outputs),
        "errors": [problem.to_json() for problem in result.errors],
        "warnings": [problem.to_json() for problem in result.warnings],
        "effects": effects_document(result.effects),
        "undoAvailable": result.undo_available,
        "timings": timings_document(result.timings),
    }


def candidate_document(candidate: Candidate) -> dict[str, Any]:
    """A plan that an instruction may mean: `{recipe, title, values, missing, doubt?}`."""
    document = {
        "recipe": candidate.recipe,
        "title": candidate.title,
        "values": dict(candidate.values),
        "missing": list(candidate.missing),
    }
    return document | ({"doubt": candidate.doubt} if candidate.doubt else {})


def asked_document(asked: NeedsInput) -> dict[str, Any]:
    """What a person must decide first: `{message, missing, candidates}`."""
    return {
        "message": asked.message,
        "missing": list(asked.missing),
        "candidates": [candidate_document(candidate) for candidate in asked.candidates],
    }
