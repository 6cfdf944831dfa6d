"""What a dry run knows, as data: instances, flags and the preview that a person approves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from obsidian_agent.errors import Problem
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.tools.base import Risk, RunContext
from obsidian_agent.vault.changes import ChangeSet

FlagKind = Literal["remoteUrl", "runsAsCode", "shrink", "manyFiles", "notNamed", "opaque", "riskRaised"]
InstanceState = Literal["ready", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class Flag:
    """Something a person should notice before approving, computed by the app, never by the model."""

    kind: FlagKind
    detail: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """One call that the plan makes: the step itself, or one item of its foreach.

    `name` is the step's id, or `<id>_<index>` in a foreach. `output` is None when skipped or failed. `reason` says why then.
    """

    name: str
    step_id: str
    index: int | None
    tool: str
    args: Mapping[str, Any]
    state: InstanceState
    output: Any = None
    reason: str | None = None
    opaque: bool = False
    depends_on: frozenset[str] = frozenset()
    """Ids of the steps whose failure skips this instance."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds. `first_screen` is when the first changes could be shown with their diffs."""

    preview_ms: float = 0.0
    first_screen_ms: float = 0.0
    journal_ms: float = 0.0
    apply_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Preview:
    """Exactly what a plan would do. Nothing has been written; the executor writes this and nothing else."""

    plan: ActionPlan
    context: RunContext
    risk: Risk
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    flags: tuple[Flag, ...] = ()
    instances: tuple[Instance, ...] = ()
    outputs: Mapping[str, Any] = field(default_factory=dict)
    change_set: ChangeSet = ChangeSet()
    plan_hash: str | None = None
    timings: Timings = Timings()
    left_out: frozenset[str] = frozenset()
    """Ids of the steps that are switched off, and of those that need one of them."""

    @property
    def approved_plan(self) -> ActionPlan:
        """The plan without the steps that are left out: what an approval is about, and what a run is remembered by."""
        return self.plan.model_copy(update={"steps": [step for step in self.plan.steps if step.id not in self.left_out]})

    @property
    def valid(self) -> bool:
        """Whether it can be approved at all."""
        return not self.errors
