"""A plan that a model proposes: judged, dry-run, and sent back with what is wrong, without telling what is in the notes.

What validation finds follows from the document alone, so the model may read all of it. What the dry run finds can quote notes (a name
made from a note's text, for example); of that a model elsewhere is told the step, the code, and what the code means.

What becomes of the plans that a model proposes in one turn: shown to the person, sent back a few times, or given up.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from obsidian_agent.agent.events import PlanningRetry, PlanReady, TurnFailed
from obsidian_agent.agent.planner import FAILED_CODE, FAILED_MESSAGE
from obsidian_agent.agent.turn.calls import ProposalCall
from obsidian_agent.agent.turn.model_tools import usage_of
from obsidian_agent.agent.turn.tool_round import Round, Surroundings
from obsidian_agent.errors import ObsidianAgentError, PlanError, Problem
from obsidian_agent.plan import preview
from obsidian_agent.plan.flags import NOT_PERMITTED, Policy
from obsidian_agent.plan.llm_output import ParsedPlan, parse_plan
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.validate import Validated, validate
from obsidian_agent.tools.core.tool import RunContext, Tool
from obsidian_agent.vault.views.view import VaultView

DryRun = Callable[[Validated], tuple[Problem, ...]]
"""The errors of a valid plan's dry run over what the model may know of; may block."""

_MEANINGS: Final[Mapping[str, str]] = {
    "FILE_EXISTS": "A file or folder is there already. Choose another name, or say what is to happen with it.",
    "FILE_NOT_FOUND": "A file or folder that the step names does not exist.",
    "NOT_A_FOLDER": "The step takes a file for a folder.",
    "FOLDER_NOT_EMPTY": "The folder is not empty.",
    "REFERENCE_ERROR": "A reference leads to nothing: the output has no such field, or the list is too short.",
    "MARKER_NOT_FOUND": "The heading or line that the step looks for is not in the note.",
    "NO_SELECTION": "Nothing is selected.",
    "TEXT_NOT_FOUND": "The text that the step looks for is not there.",
    "COUNT_MISMATCH": "There are more or fewer places than the step expects.",
    "FRONTMATTER_INVALID": "The properties of the note are no valid YAML.",
    "NOT_TEXT": "What the step names is no text file.",
    "DUPLICATE_PATH": "Two steps or instances make the same file.",
    "TRUNCATED_LIST": "The loop goes through a list that was cut: leave `limit` out.",
    "PATH_INVALID": "A path is not possible as it comes out; put |filename after text that becomes part of a name.",
    "PATH_OUTSIDE_VAULT": "A path would lead out of the vault.",
    "PATH_NOT_ALLOWED": "A path is protected.",
    "ARGUMENT_INVALID": "An argument is not valid once its references are filled in.",
    "PLAN_TOO_LARGE": "The plan's loops run too often.",
}
_ANY_MEANING: Final = "The step cannot be done as it is written."


@dataclass(frozen=True, slots=True)
class Accepted:
    """A plan for the person to see; also one that only they can say something about (a permission, a place out of reach)."""

    plan: ActionPlan
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """A plan for the model to mend. `problems` may be told it, and `usage`, how tools are used that it uses wrongly; `plan` is what can be
    shown to the person all the same.
    """

    problems: tuple[Problem, ...]
    plan: ActionPlan | None = None
    usage: tuple[str, ...] = ()


def judge(
    document: Any, tools: Mapping[str, Tool], policy: Policy, dry_run: DryRun, *, tell_all: bool, notes: tuple[str, ...] = ()
) -> Accepted | Rejected:
    """What a proposed document amounts to. `tell_all`: the model may know everything that the dry run says. May block."""
    checked = validate(document, tools, policy)
    if checked.plan is None:
        if checked.final and checked.draft is not None:
            return Accepted(checked.draft, notes)
        return Rejected(checked.problems, checked.draft, usage_of(checked.problems, document, tools))
    if not checked.plan.steps:
        return Rejected((Problem("NO_STEPS", "The plan has no steps. Answer in words when there is nothing to do."),))
    errors = dry_run(checked)
    if not errors or any(error.code in NOT_PERMITTED for error in errors):
        return Accepted(checked.plan, notes)
    written = json.dumps(checked.plan.to_json(), ensure_ascii=False)
    told = errors if tell_all else tuple(dict.fromkeys(_blurred(error, written) for error in errors))
    return Rejected(told, checked.plan, usage_of(told, checked.plan.to_json(), tools))


def plan_in(text: str) -> tuple[Any, tuple[str, ...]] | None:
    """The plan's document in an answer that is nothing but a plan, with what was mended; None for words."""
    if not text.lstrip().startswith(("{", "```", "~~~")):
        return None
    parsed = parse_plan(text)
    return (parsed.document, parsed.repairs) if isinstance(parsed, ParsedPlan) else None


def dry_run_over(
    open_view: Callable[[], VaultView], context: Callable[[Mapping[str, Any]], RunContext], tools: Mapping[str, Tool]
) -> DryRun:
    """A dry run that sees the views that `open_view` makes. Values that the person must give first are no problem of the plan."""

    def dry_run(checked: Validated) -> tuple[Problem, ...]:
        try:
            return preview.dry_run(checked, tools, checked.policy, open_view(), context({})).errors
        except MissingInput:
            return ()
        except PlanError as error:
            return error.problems
        except ObsidianAgentError as error:
            return (error.problem(),)

    return dry_run


def _blurred(problem: Problem, written: str) -> Problem:
    """A problem without anything that the model did not write itself."""
    path = problem.path if problem.path is not None and json.dumps(problem.path, ensure_ascii=False) in written else None
    return Problem(problem.code, _MEANINGS.get(problem.code, _ANY_MEANING), problem.step_id, None, path)


MAX_CORRECTIONS: Final = 2


@dataclass(slots=True)
class Judging:
    """The plans of one turn. `dry_run` sees what the model may know of."""

    tools: Mapping[str, Tool]
    policy: Policy
    dry_run: DryRun
    around: Surroundings
    corrections: int = 0

    async def propose(self, call: ProposalCall, work: Round) -> PlanReady | TurnFailed | None:
        """A plan that was proposed by a call; None when it went back to the model."""
        verdict = await self._verdict(call.document, ())
        if isinstance(verdict, Accepted):
            work.accept(call)
            return PlanReady(verdict.plan, verdict.notes)
        work.reject(call, verdict.problems, verdict.usage)
        return self._given_up(verdict)

    async def written(self, document: object, notes: tuple[str, ...]) -> PlanReady | TurnFailed | Rejected:
        """A plan that was written down as an answer; `Rejected` is to go back to the model."""
        verdict = await self._verdict(document, notes)
        return PlanReady(verdict.plan, verdict.notes) if isinstance(verdict, Accepted) else self._given_up(verdict) or verdict

    def again(self, rejected: Rejected) -> PlanningRetry:
        """What is told when a plan goes back."""
        return PlanningRetry(self.corrections + 1, MAX_CORRECTIONS + 1, rejected.problems)

    async def _verdict(self, document: object, notes: tuple[str, ...]) -> Accepted | Rejected:
        tell_all = self.around.asker.gate.open
        return await asyncio.to_thread(judge, document, self.tools, self.policy, self.dry_run, tell_all=tell_all, notes=notes)

    def _given_up(self, verdict: Rejected) -> PlanReady | TurnFailed | None:
        """The end after too many corrections: what can be shown is shown with its problems; None while the model may try again."""
        self.corrections += 1
        if self.corrections <= MAX_CORRECTIONS:
            return None
        if verdict.plan is not None:
            return PlanReady(verdict.plan)
        return TurnFailed(Problem(FAILED_CODE, FAILED_MESSAGE), verdict.problems)
