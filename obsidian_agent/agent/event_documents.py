"""Results and questions as JSON documents of the command line's `--json` output."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from obsidian_agent.agent.events import Candidate, ExecutionResult, NeedsInput
from obsidian_agent.journal.records import Effects
from obsidian_agent.plan.result import RenameDocument, Timings


class EffectsDocument(TypedDict):
    """The changes of a run to the vault."""

    created: list[str]
    modified: list[str]
    deleted: list[str]
    renamed: list[RenameDocument]
    folders: list[str]
    commands: list[str]


class TimingsDocument(TypedDict):
    """Durations in milliseconds, rounded to two decimals."""

    previewMs: float
    firstScreenMs: float
    journalMs: float
    applyMs: float


class ResultDocument(TypedDict):
    """The document of `run --json`, and of every command that runs a plan."""

    runId: str | None
    status: str
    success: bool
    outcome: str
    completedSteps: int
    totalSteps: int
    outputs: dict[str, Any]
    errors: list[dict[str, str]]
    warnings: list[dict[str, str]]
    effects: EffectsDocument
    undoAvailable: bool
    timings: TimingsDocument


class UnknownNameDocument(TypedDict):
    """A text read as a name that the vault does not have, and the most similar names."""

    text: str
    kind: str
    input: str
    nearest: list[str]


class CandidateDocument(TypedDict):
    """A recipe or plan to choose, with the values it has and those it lacks."""

    recipe: str | None
    title: str
    values: dict[str, Any]
    missing: list[str]
    doubt: NotRequired[str]
    unused: NotRequired[list[str]]
    unknown: NotRequired[list[UnknownNameDocument]]


class NeedsInputDocument(TypedDict):
    """The decision that the user must make."""

    message: str
    missing: list[str]
    candidates: list[CandidateDocument]


def effects_document(effects: Effects) -> EffectsDocument:
    """Return the document of effects."""
    return {
        "created": list(effects.created),
        "modified": list(effects.modified),
        "deleted": list(effects.deleted),
        "renamed": [{"from": old, "to": new} for old, new in effects.renamed],
        "folders": list(effects.folders),
        "commands": list(effects.commands),
    }


def timings_document(timings: Timings) -> TimingsDocument:
    """Return the document of timings."""
    return {
        "previewMs": round(timings.preview_ms, 2),
        "firstScreenMs": round(timings.first_screen_ms, 2),
        "journalMs": round(timings.journal_ms, 2),
        "applyMs": round(timings.apply_ms, 2),
    }


def result_document(result: ExecutionResult) -> ResultDocument:
    """Return the document of a result."""
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


def candidate_document(candidate: Candidate) -> CandidateDocument:
    """Return the document of a candidate."""
    document: CandidateDocument = {
        "recipe": candidate.recipe,
        "title": candidate.title,
        "values": dict(candidate.values),
        "missing": list(candidate.missing),
    }
    if candidate.doubt:
        document["doubt"] = candidate.doubt
    if candidate.unused:
        document["unused"] = list(candidate.unused)
    if candidate.unknown:
        document["unknown"] = [
            {"text": name.text, "kind": name.kind, "input": name.input, "nearest": [*name.nearest]}
            for name in candidate.unknown
        ]
    return document


def needs_input_document(event: NeedsInput) -> NeedsInputDocument:
    """Return the document of a question to the user."""
    return {
        "message": event.message,
        "missing": list(event.missing),
        "candidates": [candidate_document(candidate) for candidate in event.candidates],
    }
