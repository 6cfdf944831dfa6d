"""A vault as another agent gets to know it: what the person's rules share and nothing else, and plans for the person to decide on.

Nobody can be asked here, so what no rule allows does not exist: a search does not find it, a folder does not list it, and a plan that is
previewed cannot copy its text into a note that is shared. What is handed over is written into the ledger first, with the client as its
provider.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from obsidian_agent import budget
from obsidian_agent.agent.privacy.consent import Gate, Grants, Level, SharedPart
from obsidian_agent.agent.privacy.record import Ledger, Sending
from obsidian_agent.agent.turn.calls import read_call, with_arguments
from obsidian_agent.agent.turn.read_calls import prepare
from obsidian_agent.budget import OutOfBudget
from obsidian_agent.dataclass import dataclass, field, replace
from obsidian_agent.errors import ConfigError, ObsidianAgentError, PlanError, Problem, VaultError
from obsidian_agent.integrations.proposals import ClientProposal, Outcome
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.policy import NOT_PERMITTED, PolicyLimits, SharingRules
from obsidian_agent.plan.preview import dry_run
from obsidian_agent.plan.result import Preview, change_document, diff_of, preview_document
from obsidian_agent.plan.validate import validate
from obsidian_agent.services.focus import Focus
from obsidian_agent.services.open_vault import OpenVault
from obsidian_agent.services.plans import Plans, PreviewOptions
from obsidian_agent.services.run_context import run_context
from obsidian_agent.state_files import replace_file
from obsidian_agent.tools.core.tool import RunContext
from obsidian_agent.vault.paths.path import ROOT, VaultPath
from obsidian_agent.vault.views.changes import ChangeSet
from obsidian_agent.vault.views.filtered import FilteredView
from obsidian_agent.vault.views.view import VaultView, locate_by_name

MAX_PROPOSALS: Final = 100
"""Kept plans of a vault; the oldest go first."""

CALL_SECONDS: Final = 60.0
"""A call of a client takes no longer, the writing of a plan's changes apart: most clients wait for a minute."""

RUN_PLAN: Final = "run_plan"

HINT: Final = "The person shares notes with MCP clients by patterns in share_allow: obsidian-agent config set share_allow 'Projects/**'."

_PLAN_ID: Final = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class SharedVault:
    """The vault for one client. `proposals` is the folder of the plans that wait for the person, `app` the socket of a program that shows them;
    `client` the name that rules and record know it by, "" what it calls itself."""

    vault: OpenVault
    plans: Plans
    ledger: Ledger
    proposals: Path
    app: Path
    client: str = ""
    cancel: threading.Event = field(default_factory=threading.Event)
    """Set when the answer to this call is no longer awaited."""

    @property
    def rules(self) -> SharingRules:
        """The sharing rules as settings and the vault have them now. May block."""
        return self.plans.policy.sharing

    def read(
        self, tool: str, args: Mapping[str, Any], only: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """The output of a reading tool over what is shared, `only` these of its fields (none: all). Raises the tool's errors. Blocks."""
        called = {"agent": self.client, "tool": tool}
        try:
            with self._limited():
                document = self._read(tool, args, only)
        except ObsidianAgentError as error:
            self.ledger.record.note("call", **called, decision="deny", rule=error.problem().code)
            raise
        self.ledger.record.note("call", **called, decision="allow")
        return document

    def _read(self, tool: str, args: Mapping[str, Any], only: tuple[str, ...]) -> dict[str, Any]:
        if (rule := self.plans.make_policy(self.client).on_call(tool)).decision == "deny":
            raise ConfigError(
                f"{tool} may not be used here: {rule.rule} ({rule.source}).",
                code="PERMISSION_DENIED",
            )
        view = self._view()
        call = with_arguments(read_call(tool, self.plans.tools), _with_suffix(args, view))
        try:
            found = prepare(call, view, self._context(view))
            shared = found.shared(frozenset(item.path.text for item in found.items))
        except VaultError as error:
            if error.code != "FILE_NOT_FOUND":
                raise
            raise VaultError(
                f"{error.path} does not exist, or is not shared. {HINT}",
                code=error.code,
                path=error.path,
            ) from None
        document = dict(shared.document or {})
        if only:
            document = {name: document[name] for name in only if name in document}
        self._note(tool, document, shared.parts)
        return document

    def preview(self, plan: object) -> dict[str, Any]:
        """What a plan would do to the notes that are shared, as `preview --json` says it. Raises `PlanError` for an invalid one. Blocks."""
        with self._limited():
            return self._preview(plan)[1]

    def _preview(self, plan: object, *limits: PolicyLimits) -> tuple[Preview, dict[str, Any]]:
        """Return the preview of a plan over what is shared, as if it were approved, and the document for the client.

        `limits` narrow the policy. Raises `PlanError` for an invalid plan.
        """
        view = self._view()
        policy = replace(
            self.plans.make_policy(self.client), confirm_writes=False, auto_approve_read_only=True
        ).within(*limits)
        done = dry_run(plan, self.plans.tools, policy, view, self._context(view), {})
        # A folder that is shared takes along what is not, when it goes.
        changes = tuple(
            each
            for each in done.change_set.changes
            if each.before is None or not view.is_hidden(each.before)
        )
        known = replace(
            done,
            errors=tuple(map(_without_path, done.errors)),
            change_set=ChangeSet(changes=changes),
            plan_hash=None,
            warnings=tuple(each for each in done.warnings if each.path is None),
        )
        document = preview_document(
            known,
            [
                change_document(change, diff_of(change, view))
                for change in budget.checked(known.change_set.changes)
            ],
        )
        parts = tuple(
            SharedPart(each.before.text, Level.PREVIEW, 0)
            for each in changes
            if each.before is not None
        )
        self._note("preview_plan", document, parts)
        return replace(done, errors=known.errors), document

    @property
    def may_run(self) -> bool:
        """Whether a rule of the person's settings has plans run without a question: only one that names `run_plan` itself."""
        return self.plans.policy.on_call(RUN_PLAN).rule == f"tools_allow {RUN_PLAN}"

    def run(self, plan: object) -> dict[str, Any]:
        """Carry out a plan without a question. Never one that deletes, waits for a command, or does anything else than it would if the vault had
        nothing but what is shared. Raises `PlanError`. Blocks.
        """
        if not self.may_run:
            raise PlanError(f"No rule of the person allows {RUN_PLAN}.", code="PERMISSION_DENIED")
        with self._limited():
            shared, document = self._preview(plan, self._write_limits())
            whole = self.plans.dry_run(
                plan, options=PreviewOptions(agent=self.client, now=shared.context.now)
            )
        if (
            shared.valid
            and shared.plan_hash == whole.plan_hash
            and shared.approval.decision == "allow"
            and not shared.deferred
        ):
            result = self.plans.apply(whole, lambda event: None, self.cancel, "settings")
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
                "The plan deletes, runs a command, or reaches what is not shared: propose it.",
            ),
        )
        raise PlanError("The plan was not run.", problems=problems)

    def propose(self, plan: object) -> tuple[ClientProposal, dict[str, Any]]:
        """Keep a valid plan for the person; the plan, and what it would do. Nothing is changed. Raises `PlanError` for an invalid one. Blocks."""
        checked = validate(plan, self.plans.tools, self.plans.make_policy(self.client))
        if checked.plan is None:
            raise PlanError("The plan is not valid.", problems=checked.problems)
        try:
            preview: dict[str, Any] | None = self.preview(checked)
        except (PlanError, MissingInput):
            if self.cancel.is_set():
                raise
            preview = None  # it touches what is not shared, or the person has to give values first
        plan_id = keep_proposal(
            self.proposals, {"client": self.client, "plan": checked.plan.to_json()}
        )
        self.ledger.record.append(
            [
                {
                    "kind": "proposal",
                    "client": self.client,
                    "planId": plan_id,
                    "goal": checked.plan.goal[:200],
                }
            ]
        )
        told = f"Nothing was changed. The person sees the whole preview and decides: obsidian-agent run --plan {plan_id}"
        document = {
            "planId": plan_id,
            "status": "waits for the person",
            "message": told,
            "preview": preview,
        }
        return ClientProposal(self.client, checked.plan.to_json()), document

    def decided(self, document: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
        """The answer about a kept plan when it is known what came of it; one that is settled is kept no longer. Blocks."""
        plan_id = document["planId"]
        self.ledger.record.append(
            [
                {
                    "kind": "proposal",
                    "client": self.client,
                    "planId": plan_id,
                    "outcome": outcome.status,
                }
            ]
        )
        if outcome.status in ("applied", "refused"):
            (self.proposals / f"{plan_id}.json").unlink(missing_ok=True)
        return {
            **document,
            "status": outcome.status,
            "message": outcome.message,
            "runId": outcome.run_id,
        }

    def _note(self, tool: str, document: Mapping[str, Any], parts: tuple[SharedPart, ...]) -> None:
        """Write down what is about to be handed over. Raises `ConfigError` where that is not possible."""
        text = json.dumps(document, ensure_ascii=False, default=str)
        sending = Sending(tool, secrets.token_hex(4), text, tuple((part, "rule") for part in parts))
        self.ledger.write(
            [sending], provider=f"mcp/{self.client}", address="stdio", conversation="mcp"
        )

    def _context(self, view: VaultView) -> RunContext:
        return run_context(self.vault.store, view, Focus(), self.vault.clock(), {})

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Limit the time of a call. Raise `PlanError` when that is used up, or the call was cancelled."""
        try:
            with budget.limited(CALL_SECONDS, self.cancel.is_set):
                yield
        except OutOfBudget as error:
            raise PlanError(f"The call was ended. {error}", code=error.code) from error

    def _write_limits(self) -> PolicyLimits:
        """Limit every path that a plan changes, creates, or moves to what is shared."""
        return PolicyLimits(
            "sharing",
            "scoped-write",
            write_allow=self.rules.allow,
            write_deny=self.rules.deny,
        )

    def _view(self) -> SharedView:
        inner = self.vault.view()
        gate = Gate(self.rules, Grants(), False, self.vault.resolve)
        folders = {ROOT.text}
        for entry in inner.walk(ROOT):
            if entry.kind == "file" and gate.allowed(entry.path, Level.TEXT):
                above = entry.path.parent
                while above.text not in folders:
                    folders.add(above.text)
                    above = above.parent
        return SharedView(inner, _not_shared(gate, frozenset(folders)), self.vault.resolve)


class SharedView(FilteredView):
    """The view of a client. What is in the trash may come from anywhere, so its names are hidden."""

    def trash_names(self) -> tuple[str, ...]:
        return ()


def _without_path(problem: Problem) -> Problem:
    """Return a refusal of the policy without the path and the rule: both may name what is not shared."""
    if problem.code not in NOT_PERMITTED or problem.path is None:
        return problem
    return replace(
        problem, message="It changes what is not shared, or what a rule protects.", path=None
    )


def _with_suffix(args: Mapping[str, Any], view: VaultView) -> dict[str, Any]:
    """Return the arguments with the paths of notes that go without `.md` completed."""

    def complete(name: object) -> object:
        try:
            entry = locate_by_name(view, name, "file") if isinstance(name, str) else None
        except VaultError:
            return name
        return name if entry is None else entry.path.text

    completed = dict(args)
    if "path" in args:
        completed["path"] = complete(args["path"])
    if isinstance(args.get("filePaths"), list):
        completed["filePaths"] = [complete(name) for name in args["filePaths"]]
    return completed


def _not_shared(gate: Gate, folders: frozenset[str]) -> Callable[[VaultPath], bool]:
    return lambda path: path.text not in folders and gate.allowed(path, Level.TEXT) is None


def keep_proposal(folder: Path, document: Mapping[str, Any]) -> str:
    """Write a proposed plan into the state folder; its id. The oldest go when there are too many."""
    plan_id = secrets.token_hex(6)
    replace_file(folder / f"{plan_id}.json", json.dumps(document).encode("ascii"))
    kept = sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    for old in kept[MAX_PROPOSALS:]:
        old.unlink(missing_ok=True)
    return plan_id


def proposal(folder: Path, plan_id: str) -> tuple[Mapping[str, Any], str]:
    """The plan that a client proposed, and the client. Raises `ConfigError` PLAN_NOT_FOUND."""
    try:
        if _PLAN_ID.fullmatch(plan_id) is None:
            raise FileNotFoundError
        document = json.loads((folder / f"{plan_id}.json").read_text("utf-8"))
        plan: Mapping[str, Any] = document["plan"]
    except (OSError, ValueError, KeyError) as error:
        message = f"There is no proposed plan {plan_id} for this vault."
        raise ConfigError(
            message, code="PLAN_NOT_FOUND", hint="A client that proposes a plan is told its id."
        ) from error
    return plan, str(document.get("client", ""))
