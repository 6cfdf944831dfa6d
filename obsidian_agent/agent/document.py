"""Results as the JSON documents of the contract."""

from __future__ import annotations

from typing import Any

from obsidian_agent.agent.events import Candidate, Effects, ExecutionResult, NeedsInput
from obsidian_agent.plan.result import Timings


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
    """The whole document of `run --json`."""
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
