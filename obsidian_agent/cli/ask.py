"""Questions to a model: what it looks at on standard error, its answer as it comes on standard output.

`ask`: questions about the vault, answered by recipes that only read, or by a model when one is chosen.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from obsidian_agent.agent.document import asked_document, candidate_document
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    Candidate,
    NeedsInput,
    Notice,
    PlanningRetry,
    PreviewReady,
    RoundsUsedUp,
    TextDelta,
    TokensUsed,
    ToolCallFinished,
    ToolCallStarted,
    TurnEvent,
    TurnFailed,
)
from obsidian_agent.agent.session import Session
from obsidian_agent.cli.consent import approval
from obsidian_agent.cli.exits import PERMISSION_CODES, Exit, of_problems
from obsidian_agent.cli.output import Output, on_terminal
from obsidian_agent.cli.plans import candidate_lines
from obsidian_agent.cli.session_factory import open_session, parameters
from obsidian_agent.errors import Problem
from obsidian_agent.plan.result import Preview
from obsidian_agent.terminal_text import block

_OWN_FAILURES = frozenset({"LEDGER_ERROR", "INTERNAL_ERROR"})
_WRONG_USE = frozenset({"NO_MODEL", "CONFIG_INVALID", "BASE_URL_REFUSED", "USAGE"})


@dataclass(slots=True)
class Told:
    """What has come of a question so far."""

    text: str = ""
    sources: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()
    usage: TokensUsed | None = None
    asked: NeedsInput | None = None
    problems: tuple[Problem, ...] = ()
    outcome: str = "error"
    exit: Exit = Exit.SERVICE
    streamed: str = field(default="")

    def piece(self, text: str) -> str:
        """A piece of the answer as it is written: indented on a terminal, so that none of its lines looks like the program's."""
        if not on_terminal(sys.stdout):
            return text
        return ("" if self.streamed else "  ") + text.replace("\n", "\n  ")


def answer_with_model(
    session: Session, question: str, out: Output, *, pick: int | None = None, params: Mapping[str, str] | None = None
) -> Exit:
    """Let the session's model answer; it reads only what rules, `--share` and, on a terminal, the person allow.

    `pick`: the candidate of this number, of those that the same question was asked back with; `params` are values for it.
    """
    told = Told()
    asyncio.run(_listen(session, question, told, out, pick, params or {}))
    if out.as_json:
        usage = told.usage
        counted = {"promptTokens": usage.prompt_tokens, "completionTokens": usage.completion_tokens} if usage is not None else None
        document = {"answer": told.text, "sources": list(told.sources), "usage": counted, "outcome": told.outcome}
        document |= {"alsoSent": list(told.besides)} if told.besides else {}
        if told.asked is not None:
            document |= asked_document(told.asked)
        out.document(document | ({"errors": [problem.to_json() for problem in told.problems]} if told.problems else {}))
    out.problems(told.problems)
    for line in candidate_lines(told.asked.candidates) if told.asked is not None else ():
        out.line(line)
    return told.exit


async def _listen(session: Session, question: str, told: Told, out: Output, pick: int | None, params: Mapping[str, str]) -> None:
    async for event in session.answer(question, approval(out), propose=False, pick=pick, params=params):
        _hear(event, told, out)
    if told.streamed:
        out.line()
    if told.sources:
        out.note(f"From {', '.join(told.sources)}")
    if told.besides:
        out.note(f"Also sent: {', '.join(told.besides)}")
    if out.verbose and told.usage is not None:
        out.note(f"{told.usage.prompt_tokens:,} tokens in, {told.usage.completion_tokens:,} out, {told.usage.requests} requests")


def _hear(event: AgentEvent, told: Told, out: Output) -> None:
    match event:
        case TextDelta(text, thinking):
            if not thinking and not out.as_json:
                sys.stdout.write(told.piece(block(text)))
                sys.stdout.flush()
                told.streamed += text
        case ToolCallStarted():
            if told.streamed:
                out.line()
                told.streamed = ""
            out.note(f"{event.purpose}: {json.dumps(dict(event.args), ensure_ascii=False)}")
        case ToolCallFinished(problem=Problem() as problem):
            out.note(f"{problem.code}: {problem.message}")
        case Notice(problem):
            out.note(problem.message)
        case PlanningRetry():
            out.note(f"Asking again ({event.attempt} of {event.attempts}).")
        case TokensUsed():
            told.usage = event
        case Answer(text, sources, besides):
            told.text, told.sources, told.besides = text, sources, besides
            told.outcome, told.exit = "done", Exit.DONE
        case PreviewReady(preview):
            _outputs(preview, told, out)
        case RoundsUsedUp(rounds):
            told.problems = (Problem("ROUNDS_USED_UP", f"The model looked around {rounds} times without an answer. Ask more narrowly."),)
            told.outcome, told.exit = "needs-input", Exit.NOT_APPROVED
        case NeedsInput(message):
            told.asked = event
            told.problems, told.outcome, told.exit = (Problem("NEEDS_INPUT", message),), "needs-input", Exit.NOT_APPROVED
        case TurnFailed(problem, problems):
            told.problems, told.exit = problems or (problem,), _exit_of(problem)
            told.outcome = "refused" if told.exit in (Exit.INVALID, Exit.NOT_APPROVED) else "error"
        case _:
            pass


def _outputs(preview: Preview, told: Told, out: Output) -> None:
    """A model that cannot look around answers with a plan that reads; its outputs, which stay here, are the answer."""
    told.problems = preview.errors
    if preview.errors:
        told.exit, told.outcome = Exit.INVALID, "refused"
        return
    told.text = json.dumps(preview.outputs, ensure_ascii=False, indent=2)
    told.outcome, told.exit = "done", Exit.DONE
    out.line(preview.plan.goal)
    out.answer(told.text)


def _exit_of(problem: Problem) -> Exit:
    if problem.code in PERMISSION_CODES:
        return Exit.NOT_APPROVED
    if problem.code in _OWN_FAILURES:
        return Exit.FAILED
    return Exit.INVALID if problem.code in _WRONG_USE else Exit.SERVICE


def ask_command(options: argparse.Namespace, out: Output) -> Exit:
    """Answer a question; nothing is ever changed. With `--offline`, or without a model, recipes answer."""
    session = open_session(options)
    if session.models is None:
        return _told(_offline(session, options), out)

    return answer_with_model(session, options.question, out, pick=options.pick, params=parameters(options))


def _offline(session: Session, options: argparse.Namespace) -> TurnEvent:
    return session.offline.ask(session.request(options.question, parameters(options), options.pick))


def _told(event: TurnEvent, out: Output) -> Exit:
    match event:
        case Answer(text, sources):
            _document(out, text, sources, "done")
            out.answer(text)
            return Exit.DONE
        case NeedsInput(message, candidates, missing):
            return _asked_back(message, candidates, missing, out)
        case TurnFailed(problem, problems):
            _document(out, "", (), "refused", problems or (problem,))
            out.problems(problems or (problem,))
            return of_problems(problems or (problem,))
        case _:
            raise TypeError(f"no answer to a question: {event!r}")


def _asked_back(message: str, candidates: tuple[Candidate, ...], missing: tuple[str, ...], out: Output) -> Exit:
    told = {"message": message, "missing": list(missing), "candidates": [candidate_document(each) for each in candidates]}
    _document(out, "", (), "needs-input", (Problem("NEEDS_INPUT", message),), told)
    out.line(message)
    for line in candidate_lines(candidates):
        out.line(line)
    if candidates:
        out.line("Take one with --pick N, and give what is missing with --param NAME=VALUE.")
    return Exit.NOT_APPROVED


def _document(
    out: Output,
    text: str,
    sources: tuple[str, ...],
    outcome: str,
    problems: tuple[Problem, ...] = (),
    more: dict[str, Any] | None = None,
) -> None:
    """The command's document; without a model nothing was used."""
    if out.as_json:
        errors = {"errors": [problem.to_json() for problem in problems]} if problems else {}
        out.document({"answer": text, "sources": list(sources), "usage": None, "outcome": outcome} | errors | (more or {}))
