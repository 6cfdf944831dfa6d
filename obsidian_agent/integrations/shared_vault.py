"""A vault as other agents see it: the notes that the user's rules share, and plans to propose.

The user cannot be asked, so what no rule shares does not exist: no search matches it, no folder
lists it, and the preview of a plan cannot copy its text into a shared note. What is sent is first
written to the ledger, with the client as the provider.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from obsidian_agent import budget
from obsidian_agent.agent.privacy.consent import Level, SharedPart
from obsidian_agent.agent.privacy.ledger import Ledger, Sending
from obsidian_agent.agent.turn.calls import read_call, with_arguments
from obsidian_agent.agent.turn.read_calls import prepare
from obsidian_agent.budget import OutOfBudget
from obsidian_agent.errors import (
    ConfigError,
    ObsidianAgentError,
    PlanError,
    Problem,
    ToolError,
    VaultError,
)
from obsidian_agent.integrations.mcp_reading import ReadAnswer, named_file
from obsidian_agent.integrations.proposals import ClientProposal, Outcome
from obsidian_agent.integrations.shared_view import SharedFilesCache, SharedView
from obsidian_agent.plan.arguments import parse_input
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.policy import NOT_PERMITTED, PolicyLimits, SharingRules
from obsidian_agent.plan.preview import dry_run
from obsidian_agent.plan.result import (
    ChangeDocument,
    Preview,
    change_document,
    diff_of,
    preview_document,
    summary_document,
)
from obsidian_agent.plan.validate import Validated, validate
from obsidian_agent.services.focus import Focus
from obsidian_agent.services.open_vault import OpenVault
from obsidian_agent.services.plan_review import result_of
from obsidian_agent.services.plans import Plans
from obsidian_agent.services.run_context import run_context
from obsidian_agent.services.waiting_plans import UNKNOWN_RESULT, ProposedResult, WaitingPlans
from obsidian_agent.tools.core.tool import RunContext, ToolContext
from obsidian_agent.vault.views.changes import ChangeSet, NetChange
from obsidian_agent.vault.views.overlay import OverlayVault
from obsidian_agent.vault.views.view import VaultView

CALL_SECONDS: Final = 60.0
"""Seconds of a client's call without the writing of changes; most clients wait for a minute."""

RUN_PLAN: Final = "run_plan"

MAX_CHANGES: Final = 50
"""Changes of a preview that a client gets."""
MAX_DIFFS: Final = 16_000
"""Characters of all their diffs."""

UPDATES_LINKS: Final = frozenset({"vault.rename", "vault.changeHeading", "vault.takeSection"})
"""The tools that rewrite links and queries in other files."""

HINT: Final = (
    "The user shares notes with MCP clients by patterns in share_allow: "
    "obsidian-agent config set share_allow 'Projects/**'."
)


class SharedVault(Struct, frozen=True, kw_only=True):
    """The vault for one client.

    `waiting` are the plans that wait for the user, `app` the socket of the program that
    displays them. `client` is the client's name in rules and in the record, "" for the name that it
    gives itself.
    """

    vault: OpenVault
    plans: Plans
    ledger: Ledger
    waiting: WaitingPlans
    app: Path
    client: str = ""
    cancel: threading.Event = field(default_factory=threading.Event)
    """Set when the answer to this call is no longer awaited."""
    files: SharedFilesCache = field(default_factory=SharedFilesCache)

    @property
    def rules(self) -> SharingRules:
        """The current sharing rules of the settings and the vault. May block."""
        return self.plans.policy().sharing

    def read(
        self, tool: str, args: Mapping[str, Any], only: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Run a reading tool over what is shared. Return its output, or `only` these fields.

        Raise the tool's errors. Blocks.
        """

        def run(view: SharedView, context: RunContext) -> ReadAnswer:
            named = _with_paths(args, view)
            call = with_arguments(read_call(tool, self.plans.tools), named)
            result = prepare(call, view, context)
            allowed = (item.path for item in result.items if not view.is_hidden(item.path))
            shared = result.shared(frozenset(path.text for path in allowed))
            document = dict(shared.document or {})
            if only:
                document = {name: document[name] for name in only if name in document}
            return ReadAnswer(document, shared.parts)

        return self.answer(tool, run)

    def answer(
        self, tool: str, work: Callable[[SharedView, RunContext], ReadAnswer]
    ) -> dict[str, Any]:
        """Return the document of the answer that `work` makes from the shared notes.

        The rules for `tool` apply. Raise its errors. Blocks.
        """
        called = {"agent": self.client, "tool": tool}
        try:
            with self._limited():
                answer = self._answer(tool, work)
        except ObsidianAgentError as error:
            self.ledger.record.note("call", **called, decision="deny", rule=error.problem().code)
            raise
        entry = {"kind": "call", **called, "decision": "allow"}
        self._note(tool, answer.document, answer.parts, before=(entry,))
        return answer.document

    def _answer(
        self, tool: str, work: Callable[[SharedView, RunContext], ReadAnswer]
    ) -> ReadAnswer:
        if (rule := self.plans.make_policy(self.client).on_call(tool)).decision == "deny":
            raise ConfigError(
                f"{tool} is not allowed by the rule {rule.rule} ({rule.source}).",
                code="PERMISSION_DENIED",
            )
        view = self._view(followed=True)
        with _missing_files():
            return work(view, self._context(view))

    def plan(self, work: Callable[[SharedView], dict[str, Any]]) -> dict[str, Any]:
        """Return the plan that `work` makes from the shared notes.

        Raise `PlanError` if its preview has errors. Blocks.
        """
        with self._limited(), _missing_files():
            document = work(self._view(followed=True))
            checked = self._preview(document)[0]
        if checked.errors:
            problems = [Problem(item.code, item.plain or item.message) for item in checked.errors]
            raise PlanError("The change is not possible.", problems=problems)
        return document

    def preview(self, plan: object) -> dict[str, Any]:
        """Preview a plan over the shared notes. Return the document for the client.

        Raise `PlanError` for an invalid plan. Blocks.
        """
        with self._limited():
            return self._preview(plan)[1]

    def _preview(self, plan: object, *limits: PolicyLimits) -> tuple[Preview, dict[str, Any]]:
        """Preview a plan over the shared notes, as if it were approved.

        Return the preview and the document for the client. `limits` narrow the policy. Raise
        `PlanError` for an invalid plan.
        """
        view = self._view()
        policy = replace(
            self.plans.make_policy(self.client), confirm_writes=False, auto_approve_read_only=True
        ).within(*limits)
        done = dry_run(plan, self.plans.tools, policy, view, self._context(view))
        # A shared folder that moves takes entries along that are not shared.
        changes = tuple(
            change
            for change in done.change_set.changes
            if change.before is None or not view.is_hidden(change.before)
        )
        known = replace(
            done,
            errors=tuple(map(_without_path, done.errors)),
            change_set=ChangeSet(changes=changes),
            plan_hash=None,
            warnings=tuple(warning for warning in done.warnings if warning.path is None),
        )
        document = _client_document(known, changes, view)
        parts = tuple(
            SharedPart(change.before.text, Level.PREVIEW, 0)
            for change in changes
            if change.before is not None
        )
        self._note("preview_plan", document, parts)
        return replace(done, errors=known.errors), document

    @property
    def may_run(self) -> bool:
        """True if a rule in the settings that names `run_plan` allows runs without asking."""
        return self.plans.policy().on_call(RUN_PLAN).rule == f"tools_allow {RUN_PLAN}"

    def run(self, plan: object) -> dict[str, Any]:
        """Run a plan without asking the user. Blocks.

        What runs is the preview over the shared notes. Raise `PlanError` for a plan that deletes,
        waits for a command, or changes links in notes that are not shared.
        """
        if not self.may_run:
            raise PlanError(f"No rule of the user allows {RUN_PLAN}.", code="PERMISSION_DENIED")
        self.plans.hooks.fire("before_plan", plan=plan)
        with self._limited():
            shared, document = self._preview(plan, self._write_limits())
            may_run = (
                shared.valid
                and shared.approval.decision == "allow"
                and not shared.deferred
                and not self._changes_other_links(shared)
            )
        self.plans.hooks.fire(
            "after_plan",
            planHash=shared.plan_hash,
            valid=shared.valid,
            summary=document["summary"],
        )
        if may_run:
            result = self.plans.apply(shared, lambda event: None, self.cancel, "settings")
            codes = sorted({problem.code for problem in result.errors})
            return {
                "status": result.status,
                "success": result.success,
                "runId": result.run_id,
                "errors": codes,
                "preview": document,
            }
        problems = shared.errors or (
            Problem(
                "PERMISSION_DENIED",
                "The plan deletes, runs a command, or concerns links in notes that are not shared. "
                "Propose it instead.",
            ),
        )
        raise PlanError("The plan was not run.", problems=problems)

    def _changes_other_links(self, preview: Preview) -> bool:
        """Return whether this plan would change links in notes that are not shared.

        Only the calls that update links are tried over the whole vault. With the other calls, the
        answer would reveal what unshared notes contain.
        """
        view = self._view()
        overlay = OverlayVault(view.inner, preview.context.now.timestamp() * 1000)
        for number, item in enumerate(preview.instances):
            if item.tool in UPDATES_LINKS and item.state == "ready":
                tool = self.plans.tools[item.tool]
                with suppress(ObsidianAgentError):
                    proposal = tool.propose(
                        parse_input(tool, item.args),
                        ToolContext(overlay, view.inner, preview.context),
                    )
                    overlay.apply(proposal.changes, number)
        return any(view.is_hidden(change.path) for change in overlay.change_set().changes)

    def propose(self, plan: object) -> tuple[ClientProposal, dict[str, Any]]:
        """Store a valid plan for the user. Return it with the document for the client.

        Nothing is changed. Raise `PlanError` for an invalid plan. Blocks.
        """
        checked = validate(plan, self.plans.tools, self.plans.make_policy(self.client))
        if checked.plan is None:
            raise PlanError("The plan is not valid.", problems=checked.problems)
        try:
            preview: dict[str, Any] | None = self.preview(checked)
        except (PlanError, MissingInput):
            if self.cancel.is_set():
                raise
            preview = None  # it uses what is not shared, or the user must fill in values first
        waiting = self.waiting.add(
            checked.plan.to_json(),
            source=self.client,
            now=self.vault.clock(),
            result=self._result(checked),
        )
        self._note_proposal(waiting.id, goal=checked.plan.goal[:200])
        message = (
            "Nothing was changed. The user sees the whole preview and decides: "
            f"obsidian-agent plans run {waiting.id}"
        )
        document = {
            "planId": waiting.id,
            "status": "waits for the user",
            "message": message,
            "preview": preview,
        }
        return ClientProposal(self.client, checked.plan.to_json()), document

    def _result(self, checked: Validated) -> ProposedResult:
        """Return what a plan does in the whole vault, for the user. The client never gets it."""
        try:
            with self._limited():
                return result_of(self.plans.proposed(checked, self.vault.view(), ""))
        except (PlanError, MissingInput):
            return UNKNOWN_RESULT

    def resolve(self, document: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
        """Record the outcome of a stored plan. Return its document with the outcome. Blocks.

        A plan that was applied or refused is deleted.
        """
        plan_id = document["planId"]
        self._note_proposal(plan_id, outcome=outcome.status)
        if outcome.status == "applied":
            self.vault.stored_index()  # the client's next call sees what it proposed
        if outcome.status in ("applied", "refused"):
            self.waiting.drop(plan_id)
        return {
            **document,
            "status": outcome.status,
            "message": outcome.message,
            "runId": outcome.run_id,
        }

    def _note_proposal(self, plan_id: str, **details: str) -> None:
        entry = {"kind": "proposal", "client": self.client, "planId": plan_id, **details}
        self.ledger.record.append([entry])

    def _note(
        self,
        tool: str,
        document: Mapping[str, Any],
        parts: tuple[SharedPart, ...],
        before: tuple[Mapping[str, Any], ...] = (),
    ) -> None:
        """Write to the ledger what is about to be sent. Raise `ConfigError` if that fails."""
        text = json.dumps(document, ensure_ascii=False, default=str)
        sending = Sending(tool, secrets.token_hex(4), text, tuple((part, "rule") for part in parts))
        self.ledger.write(
            [sending],
            provider=f"mcp/{self.client}",
            address="stdio",
            conversation="mcp",
            before=before,
        )

    def _context(self, view: VaultView) -> RunContext:
        return run_context(self.vault.store, view, Focus(), self.vault.clock(), {})

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Limit the time of a call. Raise `PlanError` on a timeout or if the call was cancelled."""
        try:
            with budget.limited(CALL_SECONDS, self.cancel.is_set):
                yield
        except OutOfBudget as error:
            raise PlanError(f"The call was stopped. {error}", code=error.code) from error

    def _write_limits(self) -> PolicyLimits:
        """Return limits by which every path that a plan changes must be shared."""
        return PolicyLimits(
            "sharing",
            "scoped-write",
            write_allow=self.rules.allow,
            write_deny=self.rules.deny,
        )

    def _view(self, *, followed: bool = False) -> SharedView:
        """Return the current shared notes. With `followed` the last second may be missing."""
        index = self.vault.stored_index(followed=followed)
        return SharedView(self.vault.store, self.files.get(index, self.rules, self.vault.store))


@contextmanager
def _missing_files() -> Iterator[None]:
    """Report a missing file as the client sees it."""
    try:
        yield
    except VaultError as error:
        if error.code != "FILE_NOT_FOUND":
            raise
        similar = f" {error.hint}" if error.hint else ""
        raise VaultError(
            f"{error.path} does not exist or is not shared.{similar} {HINT}",
            code=error.code,
            path=error.path,
        ) from None


def _client_document(
    preview: Preview, changes: Sequence[NetChange], view: VaultView
) -> dict[str, Any]:
    """Return the document of a preview, with its first changes and as many diffs as fit."""
    rows: list[ChangeDocument] = []
    room = MAX_DIFFS
    for change in budget.checked(changes[:MAX_CHANGES]):
        diff = diff_of(change, view)
        part = diff if len(diff) <= room else f"{diff[:room]}[truncated]"
        room = max(0, room - len(diff))
        rows.append(change_document(change, part))
    document = dict(preview_document(preview, rows)) | {"count": len(changes)}
    document["summary"] = {
        name: value[:MAX_CHANGES] if isinstance(value, list) else value
        for name, value in summary_document(preview).items()
    }
    return document


def _without_path(problem: Problem) -> Problem:
    """Remove path and rule from a refusal of the policy, since both may name unshared notes."""
    if problem.code not in NOT_PERMITTED or problem.path is None:
        return problem
    return replace(
        problem,
        message="It changes something that is not shared or that a rule protects.",
        path=None,
    )


def _with_paths(args: Mapping[str, Any], view: SharedView) -> dict[str, Any]:
    """Replace names of notes in the arguments by their paths."""
    completed = dict(args)
    if isinstance(args.get("path"), str):
        completed["path"] = named_file(view, args["path"])
    if isinstance(args.get("filePaths"), list):
        completed["filePaths"] = [_path_or_name(view, name) for name in args["filePaths"]]
    return completed


def _path_or_name(view: SharedView, name: object) -> object:
    try:
        return named_file(view, name) if isinstance(name, str) else name
    except (ToolError, VaultError):
        return name  # the entry of this file says that it does not exist
