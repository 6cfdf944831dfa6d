"""Findings about a vault, and the repairs that they offer."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from msgspec import Struct

FindingKind = Literal[
    "unresolved-link",
    "ambiguous-link",
    "unlinked-note",
    "empty-note",
    "duplicate-note",
    "similar-note",
    "tag-spelling",
    "property-type",
    "property-value",
    "unused-attachment",
    "missing-attachment",
    "invalid-properties",
    "conflict-copy",
    "stale-note",
    "overdue-task",
]
"""The kinds of findings, in the order of a report."""

_MAX_EXCERPT: Final = 80
KINDS: tuple[FindingKind, ...] = get_args(FindingKind)


class RepairStep(Struct, frozen=True):
    """A call of a tool that a repair consists of."""

    tool: str
    args: Mapping[str, Any]


class RepairChoice(Struct, frozen=True):
    """One way to repair a finding. `title` is a sentence for the user."""

    title: str
    steps: tuple[RepairStep, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the choice as `health --json` prints it."""
        steps = [{"tool": step.tool, "args": dict(step.args)} for step in self.steps]
        return {"title": self.title, "steps": steps}


class Repair(Struct, frozen=True):
    """The choices of a finding, the likeliest first.

    `preselected`: the evidence names exactly one repair, the first choice. All others are
    questions to the user.
    """

    choices: tuple[RepairChoice, ...]
    preselected: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the repair as `health --json` prints it."""
        choices = [choice.to_json() for choice in self.choices]
        return {"preselected": self.preselected, "choices": choices}


class HealthFinding(Struct, frozen=True, kw_only=True):
    """One thing that may need attention.

    `path` is the note that has to change, or the file itself; `subject` is what is wrong in it and
    identifies the finding together with them. `line` counts from 1.
    """

    kind: FindingKind
    path: str
    subject: str
    text: str
    evidence: str = ""
    line: int | None = None
    repair: Repair | None = None

    @property
    def id(self) -> str:
        """An id that stays the same as long as kind, path and subject do."""
        parts = "\0".join((self.kind, self.path, self.subject))
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        """Return the finding as `health --json` prints it."""
        document: dict[str, Any] = {"id": self.id, "kind": self.kind, "path": self.path}
        if self.line is not None:
            document["line"] = self.line
        document |= {"text": self.text, "evidence": self.evidence}
        if self.repair is not None:
            document["repair"] = self.repair.to_json()
        return document


class HealthReport(Struct, frozen=True):
    """The findings about a vault, and apart from them those that the user ignores."""

    findings: tuple[HealthFinding, ...]
    ignored: tuple[HealthFinding, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """The number of findings of every kind that has any."""
        counted = Counter(finding.kind for finding in self.findings)
        return {kind: counted[kind] for kind in KINDS if counted[kind]}


def in_order(findings: Sequence[HealthFinding]) -> tuple[HealthFinding, ...]:
    """Return findings sorted by kind, path and line."""
    order = {kind: position for position, kind in enumerate(KINDS)}
    return tuple(
        sorted(
            findings,
            key=lambda finding: (
                order[finding.kind],
                finding.path,
                finding.line or 0,
                finding.subject,
            ),
        )
    )


def note_count(count: int) -> str:
    """Return a number of notes in words, such as "1 note"."""
    return "1 note" if count == 1 else f"{count} notes"


def excerpt(text: str) -> str:
    """Return the beginning of a text for a sentence about it."""
    return text if len(text) <= _MAX_EXCERPT else f"{text[: _MAX_EXCERPT - 1]}…"
