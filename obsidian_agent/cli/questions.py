"""`ask`: questions about the vault, answered by recipes that only read, or by a model when one is chosen."""

from __future__ import annotations

import argparse
from typing import Any

from obsidian_agent.agent.document import candidate_document
from obsidian_agent.agent.events import Answer, Candidate, NeedsInput, TurnEvent, TurnFailed
from obsidian_agent.agent.session import Session
from obsidian_agent.cli.exits import Exit, of_problems
from obsidian_agent.cli.opening import open_session, parameters
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.plans import candidate_lines
from obsidian_agent.errors import Problem


def ask_command(options: argparse.Namespace, out: Output) -> Exit:
    """Answer a question; nothing is ever changed. With `--offline`, or without a model, recipes answer."""
    session = open_session(options)
    if session.models is None:
        return _told(_offline(session, options), out)
    from obsidian_agent.cli.model_answer import answer_with_model

    return answer_with_model(session, options.question, out, pick=options.pick, params=parameters(options))


def _offline(session: Session, options: argparse.Namespace) -> TurnEvent:
    from obsidian_agent.agent.planner import PlanRequest

    return session.offline.ask(PlanRequest(options.question, session.context({}), params=parameters(options), pick=options.pick))


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
