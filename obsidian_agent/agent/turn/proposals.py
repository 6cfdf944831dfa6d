"""Plans that a model proposes, by a call or written down: judged, dry-run, sent back with what is wrong a few times, or given up.

What validation finds follows from the document alone, so the model may read all of it. What the dry run finds can quote notes (a name
made from a note's text, for example); of that a model elsewhere is told the step, the code, and what the code means.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, assert_never

from obsidian_agent.agent.events import Answer, PlanningRetry, PlanReady, TurnFailed
from obsidian_agent.agent.turn.calls import ProposalCall
from obsidian_agent.agent.turn.model_tools import usage_of
from obsidian_agent.agent.turn.preparation import Preparation
from obsidian_agent.agent.turn.tool_round import ToolRound
from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.errors import ObsidianAgentError, PlanError, Problem
from obsidian_agent.plan.llm_output import ParsedPlan, ParsedProse, ParseFailed, parse_plan
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.policy import NOT_PERMITTED, Policy
from obsidian_agent.plan.result import Preview
from obsidian_agent.plan.validate import Validated, validate
from obsidian_agent.providers.base import FinishReason
from obsidian_agent.tools.core.tool import Tool
from obsidian_agent.vault.views.view import VaultView

DryRun = Callable[[Validated, VaultView, str], Preview]
"""The preview of a valid plan over what the model may know of, made for the person's message; may block.

Raises `MissingInput` when the person must give values first, else `PlanError` or another of our errors.
"""
FAILED: Final = Problem(
    "LLM_PLAN_INVALID", "LLM failed to generate valid plan. Try rephrasing your request."
)
MAX_CORRECTIONS: Final = 2
"""So often a plan goes back to the model: what is wrong twice is seldom right the third time, and costs as much."""

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
class Rejected:
    """A plan for the model to mend. `problems` may be told it, and `usage`, how tools are used that it uses wrongly; `plan` is what can be
    shown to the person all the same.
    """

    problems: tuple[Problem, ...]
    plan: ActionPlan | None = None
    usage: tuple[str, ...] = ()


def judge(
    document: Any,
    tools: Mapping[str, Tool],
    policy: Policy,
    dry_run: Callable[[Validated], Preview],
    *,
    tell_all: bool,
    notes: tuple[str, ...] = (),
) -> PlanReady | Rejected:
    """What a proposed document amounts to. `tell_all`: the model may know everything that the dry run says. May block.

    `PlanReady` also for a plan that only the person can say something about (a permission, a place out of reach); without a preview where they
    have to give values first.
    """
    checked = validate(document, tools, policy)
    if checked.plan is None:
        if checked.final and checked.draft is not None:
            return PlanReady(checked.draft, notes)
        return Rejected(
            checked.problems, checked.draft, usage_of(checked.problems, document, tools)
        )
    if not checked.plan.steps:
        return Rejected(
            (
                Problem(
                    "NO_STEPS",
                    "The plan has no steps. Answer in words when there is nothing to do.",
                ),
            )
        )
    try:
        done = dry_run(checked)
        errors = done.errors
    except MissingInput:
        return PlanReady(checked.plan, notes)
    except PlanError as error:
        done, errors = None, error.problems
    except ObsidianAgentError as error:
        done, errors = None, (error.problem(),)
    if not errors or any(error.code in NOT_PERMITTED for error in errors):
        return PlanReady(checked.plan, notes, done)
    written = json.dumps(checked.plan.to_json(), ensure_ascii=False)
    told = (
        errors if tell_all else tuple(dict.fromkeys(_blurred(error, written) for error in errors))
    )
    return Rejected(told, checked.plan, usage_of(told, checked.plan.to_json(), tools))


def plan_in(text: str) -> tuple[Any, tuple[str, ...]] | None:
    """The plan's document in an answer that is nothing but a plan, with what was mended; None for words."""
    if not text.lstrip().startswith(("{", "```", "~~~")):
        return None
    parsed = parse_plan(text)
    return (parsed.document, parsed.repairs) if isinstance(parsed, ParsedPlan) else None


def planned(
    text: str, reason: FinishReason, tools: Mapping[str, Tool], policy: Policy, *, propose: bool
) -> PlanReady | Answer | TurnFailed | Rejected:
    """What the answer of a model amounts to that was asked for a plan as JSON. Without `propose` a plan may read, and nothing else."""
    parsed = parse_plan(text, reason)
    match parsed:
        case ParsedProse(prose):
            return Answer(prose)
        case ParseFailed(code, message, retry):
            problem = Problem(code, message)
            return Rejected((problem,)) if retry else TurnFailed(problem)
        case ParsedPlan(document, repairs):
            checked = validate(document, tools, policy)
        case _:
            assert_never(parsed)
    # What the person does not allow, or what lies out of reach, fails as a plan does: asking again would not change it.
    plan = checked.plan or (checked.draft if checked.final else None)
    if plan is None and not checked.final:
        return Rejected(
            checked.problems, checked.draft, usage_of(checked.problems, document, tools)
        )
    if plan is None or (checked.problems and not propose):
        return TurnFailed(checked.problems[0], checked.problems)
    if not plan.steps:
        return Answer(
            "\n".join([plan.goal, *(f"- {assumption}" for assumption in plan.assumptions)])
        )
    return PlanReady(plan, tuple(repairs))


def _blurred(problem: Problem, written: str) -> Problem:
    """A problem without anything that the model did not write itself."""
    path = (
        problem.path
        if problem.path is not None and json.dumps(problem.path, ensure_ascii=False) in written
        else None
    )
    return Problem(
        problem.code, _MEANINGS.get(problem.code, _ANY_MEANING), problem.step_id, None, path
    )


@dataclass(slots=True)
class TurnProposals:
    """The plans of one turn. `whole`: the model may know of everything, so that its dry run is the person's preview too."""

    tools: Mapping[str, Tool]
    policy: Policy
    dry_run: DryRun
    prepared: Preparation
    message: str
    whole: bool
    corrections: int = 0

    async def propose(self, call: ProposalCall, work: ToolRound) -> PlanReady | TurnFailed | None:
        """A plan that was proposed by a call; None when it went back to the model."""
        verdict = await self._verdict(call.document, ())
        if isinstance(verdict, PlanReady):
            work.accept(call)
            return self._ready(verdict)
        work.reject(call, verdict.problems, verdict.usage)
        return self._given_up(verdict)

    async def written(
        self, document: object, notes: tuple[str, ...]
    ) -> PlanReady | TurnFailed | Rejected:
        """A plan that was written down as an answer; `Rejected` is to go back to the model."""
        verdict = await self._verdict(document, notes)
        return (
            self._ready(verdict)
            if isinstance(verdict, PlanReady)
            else self._given_up(verdict) or verdict
        )

    def again(self, rejected: Rejected) -> PlanningRetry:
        """What is told when a plan goes back."""
        return PlanningRetry(self.corrections + 1, MAX_CORRECTIONS + 1, rejected.problems)

    async def _verdict(self, document: object, notes: tuple[str, ...]) -> PlanReady | Rejected:
        def dry_run(checked: Validated) -> Preview:
            return self.dry_run(checked, self.prepared.open_view(), self.message)

        tell_all = self.prepared.asker.gate.open
        return await asyncio.to_thread(
            judge, document, self.tools, self.policy, dry_run, tell_all=tell_all, notes=notes
        )

    def _ready(self, accepted: PlanReady) -> PlanReady:
        return accepted if self.whole else replace(accepted, preview=None)

    def _given_up(self, verdict: Rejected) -> PlanReady | TurnFailed | None:
        """The end after too many corrections: what can be shown is shown with its problems; None while the model may try again."""
        self.corrections += 1
        if self.corrections <= MAX_CORRECTIONS:
            return None
        if verdict.plan is not None:
            return PlanReady(verdict.plan)
        return TurnFailed(FAILED, verdict.problems)
