"""Plans proposed by a model: validation, dry run, corrections.

Problems of validation depend on the document alone, so the model gets them in full. Problems of the
dry run can quote notes (a name made from a note's text, for example); a remote model gets only the
step, the code and the meaning of the code.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.agent.events import Answer, PlanningRetry, PlanReady, TurnFailed
from obsidian_agent.agent.turn.calls import ProposalCall
from obsidian_agent.agent.turn.model_tools import usage_of
from obsidian_agent.agent.turn.preparation import Preparation
from obsidian_agent.agent.turn.tool_round import ToolRound
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
"""Preview a valid plan, made for the user's message, over the view that the model has.

May block. Raise `MissingInput` if the user must enter values first.
"""
FAILED: Final = Problem(
    "LLM_PLAN_INVALID", "LLM failed to generate valid plan. Try rephrasing your request."
)
MAX_CORRECTIONS: Final = 2
"""Maximum number of corrections in a turn; further attempts seldom succeed."""

_MEANINGS: Final[Mapping[str, str]] = {
    "FILE_EXISTS": (
        "A file or folder exists already. Choose another name, or say what should happen with it."
    ),
    "FILE_NOT_FOUND": "A file or folder that the step names does not exist.",
    "NOT_A_FOLDER": "The step uses a file as a folder.",
    "FOLDER_NOT_EMPTY": "The folder is not empty.",
    "REFERENCE_ERROR": (
        "A reference has no value: the output has no such field, or the list is too short."
    ),
    "MARKER_NOT_FOUND": "The heading or line that the step looks for is not in the note.",
    "NO_SELECTION": "Nothing is selected.",
    "TEXT_NOT_FOUND": "The text that the step looks for is not in the note.",
    "COUNT_MISMATCH": "There are more or fewer matches than the step expects.",
    "FRONTMATTER_INVALID": "The properties of the note are not valid YAML.",
    "NOT_TEXT": "The file that the step names is not a text file.",
    "DUPLICATE_PATH": "Two steps or instances create the same file.",
    "TRUNCATED_LIST": "The loop uses a truncated list: leave `limit` out.",
    "PATH_INVALID": (
        "The resulting path is not valid; put |filename after text that becomes part of a name."
    ),
    "PATH_OUTSIDE_VAULT": "A path would lead out of the vault.",
    "PATH_NOT_ALLOWED": "A path is protected.",
    "ARGUMENT_INVALID": "An argument is not valid once its references are filled in.",
    "PLAN_TOO_LARGE": "The plan's loops run too often.",
}
_ANY_MEANING: Final = "The step cannot be carried out as written."


class Rejected(Struct, frozen=True):
    """A plan that the model must correct.

    `problems` and `usage`, the signatures of wrongly used tools, may be sent to the model. `plan`
    can be displayed to the user despite its problems.
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
    send_details: bool,
    notes: tuple[str, ...] = (),
) -> PlanReady | Rejected:
    """Validate and dry-run a proposed document. May block.

    With `send_details` the model may get the messages of the dry run. A plan that needs a
    permission or values is ready too, because only the user can provide them; if it needs values,
    it has no preview.
    """
    checked = validate(document, tools, policy)
    if checked.plan is None:
        if checked.final and checked.draft is not None:
            return PlanReady(checked.draft, notes)
        return Rejected(
            checked.problems, checked.draft, usage_of(checked.problems, document, tools)
        )
    if not checked.plan.steps:
        message = "The plan has no steps. Answer with text if there is nothing to do."
        return Rejected((Problem("NO_STEPS", message),))
    try:
        preview = dry_run(checked)
        errors = preview.errors
    except MissingInput:
        return PlanReady(checked.plan, notes)
    except PlanError as error:
        preview, errors = None, error.problems
    except ObsidianAgentError as error:
        preview, errors = None, (error.problem(),)
    if not errors or any(error.code in NOT_PERMITTED for error in errors):
        return PlanReady(checked.plan, notes, preview)
    document = checked.plan.to_json()
    if not send_details:
        written = json.dumps(document, ensure_ascii=False)
        errors = tuple(dict.fromkeys(_without_details(error, written) for error in errors))
    return Rejected(errors, checked.plan, usage_of(errors, document, tools))


def plan_in(text: str) -> tuple[Any, tuple[str, ...]] | None:
    """Return the plan that an answer consists of, with the parser's repairs; None for text."""
    if not text.lstrip().startswith(("{", "```", "~~~")):
        return None
    parsed = parse_plan(text)
    return (parsed.document, parsed.repairs) if isinstance(parsed, ParsedPlan) else None


def judge_json_answer(
    text: str, reason: FinishReason, tools: Mapping[str, Tool], policy: Policy, *, propose: bool
) -> PlanReady | Answer | TurnFailed | Rejected:
    """Validate the answer of a model that was asked for a plan as JSON. It may also be text.

    Without `propose` the plan may only read.
    """
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
    # A final problem, such as a missing permission, ends the turn: asking again would not help.
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


def _without_details(problem: Problem, written: str) -> Problem:
    """Return the problem without content that the model did not write itself."""
    path = problem.path
    if path is not None and json.dumps(path, ensure_ascii=False) not in written:
        path = None
    meaning = _MEANINGS.get(problem.code, _ANY_MEANING)
    return Problem(problem.code, meaning, step_id=problem.step_id, path=path)


class TurnProposals(Struct, kw_only=True):
    """The proposals of one turn.

    `unfiltered`: no rule hides files from the model, so its dry run is the user's preview too.
    """

    tools: Mapping[str, Tool]
    policy: Policy
    dry_run: DryRun
    prepared: Preparation
    message: str
    unfiltered: bool
    corrections: int = 0

    async def propose(self, call: ProposalCall, work: ToolRound) -> PlanReady | TurnFailed | None:
        """Handle a proposal by a call. Return None if the model must correct it."""
        verdict = await self._verdict(call.document, ())
        if isinstance(verdict, PlanReady):
            work.accept(call)
            return self._ready(verdict)
        work.reject(call, verdict.problems, verdict.usage)
        return self._after_rejection(verdict)

    async def propose_written(
        self, document: object, notes: tuple[str, ...]
    ) -> PlanReady | TurnFailed | Rejected:
        """Handle a plan that was written as an answer. The model must correct it if `Rejected`."""
        verdict = await self._verdict(document, notes)
        if isinstance(verdict, PlanReady):
            return self._ready(verdict)
        return self._after_rejection(verdict) or verdict

    def retry_event(self, rejected: Rejected) -> PlanningRetry:
        """Return the event for a plan that goes back to the model."""
        return PlanningRetry(self.corrections + 1, MAX_CORRECTIONS + 1, rejected.problems)

    async def _verdict(self, document: object, notes: tuple[str, ...]) -> PlanReady | Rejected:
        def dry_run(checked: Validated) -> Preview:
            return self.dry_run(checked, self.prepared.open_view(), self.message)

        return await asyncio.to_thread(
            judge,
            document,
            self.tools,
            self.policy,
            dry_run,
            send_details=self.prepared.asker.gate.open,
            notes=notes,
        )

    def _ready(self, accepted: PlanReady) -> PlanReady:
        return accepted if self.unfiltered else replace(accepted, preview=None)

    def _after_rejection(self, verdict: Rejected) -> PlanReady | TurnFailed | None:
        """Return None if the model may correct its plan, else the end of the turn.

        The last plan is then displayed with its problems, if it is complete enough.
        """
        self.corrections += 1
        if self.corrections <= MAX_CORRECTIONS:
            return None
        if verdict.plan is not None:
            return PlanReady(verdict.plan)
        return TurnFailed(FAILED, verdict.problems)
