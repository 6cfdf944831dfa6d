"""The result of a dry run: instances, flags and the preview a user approves.

Its JSON documents are part of the command line contract.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, NotRequired, TypedDict

from msgspec import Struct, field

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.plan.left_out import LeftOut
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.tools.core.tool import Risk, RunContext
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.changes import ChangeSet, NetChange, content_hash
from obsidian_agent.vault.views.diff import unified_diff
from obsidian_agent.vault.views.overlay import OverlayVault
from obsidian_agent.vault.views.view import VaultView

FlagKind = Literal[
    "remoteUrl",
    "runsAsCode",
    "shrink",
    "manyFiles",
    "notNamed",
    "opaque",
    "riskRaised",
    "deniedText",
]
InstanceState = Literal["ready", "skipped", "failed"]

SETTINGS: Final = "settings"

RenameDocument = TypedDict("RenameDocument", {"from": str, "to": str})


class Verdict(NamedTuple):
    """A decision, the rule behind it as written in its source, and that source."""

    decision: Literal["allow", "ask", "deny"]
    rule: str
    source: str = SETTINGS


class Flag(Struct, frozen=True):
    """A warning to notice before approval, computed by the app and never by a model."""

    kind: FlagKind
    detail: str
    path: str | None = None


def is_named(path: VaultPath, request: str) -> bool:
    """Return True if a request of the user names a file, or one of its folders."""
    text = request.casefold()
    return path.stem.casefold() in text or any(part.casefold() in text for part in path.parts[:-1])


class Instance(Struct, frozen=True, kw_only=True):
    """A call that the plan makes: the step itself, or one item of its foreach.

    `name` is the step's id, or `<id>_<index>` in a foreach. `output` is None if the call was
    skipped or failed; `reason` says why.
    """

    name: str
    step_id: str
    index: int | None
    tool: str
    args: Mapping[str, Any]
    state: InstanceState
    output: Any = None
    reason: str | None = None
    problem: Problem | None = None
    """The problem of a failed call."""
    opaque: bool = False
    depends_on: frozenset[str] = frozenset()
    """Ids of the steps whose failure skips this instance."""


class Timings(Struct, frozen=True):
    """Durations in milliseconds.

    `first_screen_ms` is the time until the first changes could be displayed with their diffs.
    """

    preview_ms: float = 0.0
    first_screen_ms: float = 0.0
    journal_ms: float = 0.0
    apply_ms: float = 0.0


class Preview(Struct, frozen=True, kw_only=True):
    """Exactly what a plan would do.

    Nothing has been written; the executor writes this and nothing else. Values that grow with the
    vault are not part of `repr`, which asyncio builds for the results of tasks.
    """

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
    excluded: frozenset[str] = frozenset()
    """Ids of the disabled steps, and of the steps that need one of them."""
    left_out: LeftOut = LeftOut()
    """The changes that the user left out; the change set is without them."""
    deferred: tuple[str, ...] = ()
    """Ids of the steps after a step with an unknown effect.

    They are previewed and approved once that step has run.
    """
    approval: Verdict = Verdict("ask", "the preview is incomplete")
    """The verdict of the user's rules: may the plan run without a question?"""
    agent: str = ""
    """The agent that planned it, as the policy names agents; "" for the user."""
    after: OverlayVault | None = None
    """The vault as the plan would leave it."""

    def __repr__(self) -> str:
        return f"Preview({self.plan.goal!r}, plan_hash={self.plan_hash!r})"

    @property
    def approved_plan(self) -> ActionPlan:
        """The plan without excluded steps, which an approval covers and a run records."""
        return self.plan.model_copy(
            update={"steps": [step for step in self.plan.steps if step.id not in self.excluded]}
        )

    @property
    def valid(self) -> bool:
        """True if the plan can be approved."""
        return not self.errors

    @property
    def discloses(self) -> bool:
        """True if the plan concerns notes in `share_deny` in a way that may disclose their text.

        Only an answer to this preview can approve that.
        """
        return any(flag.kind == "deniedText" for flag in self.flags)


class ChangeDocument(TypedDict):
    """One net change, as `preview --json` prints it. Empty diffs are those of `diff_of`."""

    kind: str
    path: str
    newPath: NotRequired[str]
    diff: str


class FlagDocument(TypedDict):
    """One flag of a preview."""

    kind: FlagKind
    path: NotRequired[str]
    detail: str


class SummaryDocument(TypedDict):
    """The paths of a preview by kind of change, its commands, and its number of instances."""

    filesCreated: list[str]
    filesModified: list[str]
    filesDeleted: list[str]
    filesRenamed: list[RenameDocument]
    foldersCreated: list[str]
    commandsExecuted: list[str]
    estimatedSteps: int


class PreviewDocument(TypedDict):
    """The document of `preview --json`."""

    valid: bool
    errors: list[dict[str, str]]
    warnings: list[dict[str, str]]
    flags: list[FlagDocument]
    riskLevel: str
    summary: SummaryDocument
    changes: Sequence[ChangeDocument]
    planHash: str | None


def diff_of(change: NetChange, base: VaultView) -> str:
    """Return the unified diff of one net change.

    It is "" for folders, pure renames and binary content. Raise VaultError CONFLICT for a file that
    has changed since it was read.
    """
    if change.folder or (change.content is None and change.kind != "delete"):
        return ""
    before = base.read(change.before) if change.before is not None else None
    if before is not None and change.before_hash not in (None, content_hash(before)):
        raise VaultError(
            f"{change.path} has changed since the preview.", code="CONFLICT", path=change.path.text
        )
    new_path = change.new_path or change.path
    return unified_diff(before, change.content, change.path.text, new_path.text)


def change_document(change: NetChange, diff: str) -> ChangeDocument:
    """Return the document of a change with its diff."""
    kind, path, new_path = change.kind, change.path.text, change.new_path
    if new_path is None:
        return {"kind": kind, "path": path, "diff": diff}
    return {"kind": kind, "path": path, "newPath": new_path.text, "diff": diff}


def summary_document(preview: Preview) -> SummaryDocument:
    """Return the summary of a preview."""

    def paths(kind: str) -> list[str]:
        return [change.path.text for change in preview.change_set.changes if change.kind == kind]

    renames = [change for change in preview.change_set.changes if change.kind == "rename"]
    return {
        "filesCreated": paths("create"),
        "filesModified": paths("modify"),
        "filesDeleted": paths("delete"),
        "filesRenamed": [
            {"from": change.path.text, "to": (change.new_path or change.path).text}
            for change in renames
        ],
        "foldersCreated": paths("mkdir"),
        "commandsExecuted": [
            str(item.args.get("id", item.tool))
            for item in preview.instances
            if item.opaque and item.state == "ready"
        ],
        "estimatedSteps": len(preview.instances),
    }


def preview_document(preview: Preview, changes: Sequence[ChangeDocument]) -> PreviewDocument:
    """Return the document of a preview with its changes."""
    return {
        "valid": preview.valid,
        "errors": [problem.to_json() for problem in preview.errors],
        "warnings": [problem.to_json() for problem in preview.warnings],
        "flags": [flag_document(flag) for flag in preview.flags],
        "riskLevel": preview.risk.value,
        "summary": summary_document(preview),
        "changes": changes,
        "planHash": preview.plan_hash,
    }


def rejected_document(problems: Sequence[Problem]) -> PreviewDocument:
    """Return the document of a plan that cannot be dry-run."""
    return {
        "valid": False,
        "errors": [problem.to_json() for problem in problems],
        "warnings": [],
        "flags": [],
        "riskLevel": Risk.READ_ONLY.value,
        "summary": {
            "filesCreated": [],
            "filesModified": [],
            "filesDeleted": [],
            "filesRenamed": [],
            "foldersCreated": [],
            "commandsExecuted": [],
            "estimatedSteps": 0,
        },
        "changes": [],
        "planHash": None,
    }


def flag_document(flag: Flag) -> FlagDocument:
    """Return the document of a flag."""
    if flag.path is None:
        return {"kind": flag.kind, "detail": flag.detail}
    return {"kind": flag.kind, "path": flag.path, "detail": flag.detail}
