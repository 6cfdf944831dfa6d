"""Results and questions as JSON documents of the command line's `--json` output."""

from __future__ import annotations

from typing import Any

from obsidian_agent.agent.events import Candidate, ExecutionResult, NeedsInput
from obsidian_agent.journal.records import Effects
from obsidian_agent.plan.result import Timings


def effects_document(effects: Effects) -> dict[str, Any]:
    """Return `{created, modified, deleted, renamed, folders, commands}`.

    Renames are objects `{from, to}`.
    """
    return {
        "created": list(effects.created),
        "modified": list(effects.modified),
        "deleted": list(effects.deleted),
        "renamed": [{"from": old, "to": new} for old, new in effects.renamed],
        "folders": list(effects.folders),
        "commands": list(effects.commands),
    }


def timings_document(timings: Timings) -> dict[str, float]:
    """Return the timings in milliseconds, rounded to two decimals."""
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
    """Return `{recipe, title, values, missing, doubt?}`."""
    document: dict[str, Any] = {
        "recipe": candidate.recipe,
        "title": candidate.title,
        "values": dict(candidate.values),
        "missing": list(candidate.missing),
    }
    if candidate.doubt:
        document["doubt"] = candidate.doubt
    return document


def needs_input_document(event: NeedsInput) -> dict[str, Any]:
    """Return the decision that the user must make: `{message, missing, candidates}`."""
    return {
        "message": event.message,
        "missing": list(event.missing),
        "candidates": [candidate_document(candidate) for candidate in event.candidates],
    }
