"""`ask`: questions about the vault, answered by recipes that only read, or by a model when one is chosen.

What a model looks at goes to standard error, its answer as it comes to standard output.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from obsidian_agent.cli.exits import PERMISSION_CODES, Exit, of_problems
from obsidian_agent.cli.output import Output, on_terminal
from obsidian_agent.cli.parser import Commands, context, planner, whole_number
from obsidian_agent.cli.session_factory import open_session, parameters
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import Problem
from obsidian_agent.terminal_text import block

if TYPE_CHECKING:
    from obsidian_agent.agent.events import AgentEvent, NeedsInput, TokensUsed
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.services.session import Session

_OWN_FAILURES = frozenset({"LEDGER_ERROR", "INTERNAL_ERROR"})
_WRONG_USE = frozenset({"NO_MODEL", "CONFIG_INVALID", "BASE_URL_REFUSED", "USAGE"})


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    examples = [
        'ask "Which notes link to Ideas?" --vault ~/Notes',
        'ask "What did I plan for May?" --model ollama/qwen3 --share Plans',
    ]
    command = commands.add("ask", ask_command, context(), planner(), examples=examples)
    command.add_argument("question", metavar="QUESTION")
    command.add_argument(
        "--pick",
        type=whole_number,
        metavar="N",
        help="take the Nth candidate of the same question; values by --param",
    )


def ask_command(options: argparse.Namespace, out: Output) -> Exit:
    """Answer a question; nothing is ever changed. With `--offline`, or without a model, recipes answer."""
    import asyncio

    session = open_session(options)
    told = Told()
    if session.models is None:
        _answer_offline(session, options, told, out)
    else:
        asyncio.run(_listen(session, options, told, out))
    if out.as_json:
        out.document(told.document())
    out.problems(told.problems)
    if told.asked is not None:
        from obsidian_agent.cli.report import show_candidates

        show_candidates(told.asked.candidates, out)
    return told.exit


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
    streamed: str = ""

    def document(self) -> dict[str, Any]:
        """The command's document: `{answer, sources[], usage, outcome}`, and why there is no answer; without a model nothing was used."""
        from obsidian_agent.agent.event_documents import needs_input_document

        used = self.usage
        counted = (
            {"promptTokens": used.prompt, "completionTokens": used.completion}
            if used is not None
            else None
        )
        document = {
            "answer": self.text,
            "sources": list(self.sources),
            "usage": counted,
            "outcome": self.outcome,
        }
        document |= {"alsoSent": list(self.besides)} if self.besides else {}
        document |= needs_input_document(self.asked) if self.asked is not None else {}
        return document | (
            {"errors": [problem.to_json() for problem in self.problems]} if self.problems else {}
        )

    def piece(self, text: str) -> str:
        """A piece of the answer as it is written: indented on a terminal, so that none of its lines looks like the program's."""
        if not on_terminal(sys.stdout):
            return text
        return ("" if self.streamed else "  ") + text.replace("\n", "\n  ")

    def ask_back(self, event: NeedsInput) -> None:
        """The person must say more first."""
        self.asked, self.outcome, self.exit = event, "needs-input", Exit.NOT_APPROVED
        self.problems = (Problem("NEEDS_INPUT", event.message),)


def _answer_offline(session: Session, options: argparse.Namespace, told: Told, out: Output) -> None:
    from obsidian_agent.agent.events import Answer, NeedsInput, TurnFailed

    match session.offline.decide(
        session.request(options.question, parameters(options), options.pick), questions=True
    ):
        case Answer(text, sources):
            told.text, told.sources, told.outcome, told.exit = text, sources, "done", Exit.DONE
            out.answer(text)
        case NeedsInput() as event:
            told.ask_back(event)
        case TurnFailed(problem, problems):
            told.problems = problems or (problem,)
            told.outcome, told.exit = "refused", of_problems(told.problems)
        case event:
            raise TypeError(f"no answer to a question: {event!r}")


async def _listen(session: Session, options: argparse.Namespace, told: Told, out: Output) -> None:
    """Let the session's model answer; it reads only what rules, `--share` and, on a terminal, the person allow."""
    from obsidian_agent.cli.consent import approval

    turn = session.answer(
        options.question,
        approval(out),
        propose=False,
        pick=options.pick,
        params=parameters(options),
    )
    async for event in turn:
        _hear(event, told, out)
    if told.streamed:
        out.line()
    if told.sources:
        out.note(f"From {', '.join(told.sources)}")
    if told.besides:
        out.note(f"Also sent: {', '.join(told.besides)}")
    if out.verbose and told.usage is not None:
        out.note(
            f"{told.usage.prompt:,} tokens in, {told.usage.completion:,} out, {told.usage.requests} requests"
        )


def _hear(event: AgentEvent, told: Told, out: Output) -> None:
    from obsidian_agent.agent import events

    match event:
        case events.TextDelta(text, thinking):
            if not thinking:
                if not out.as_json:
                    sys.stdout.write(told.piece(block(text)))
                    sys.stdout.flush()
                told.streamed += text
        case events.ToolCallStarted():
            _forget_streamed(told, out)
            out.note(f"{event.purpose}: {json.dumps(dict(event.args), ensure_ascii=False)}")
        case events.ToolCallFinished(problem=Problem() as problem):
            out.problems([problem])
        case events.Notice(problem):
            out.problems([problem])
        case events.PlanningRetry():
            _forget_streamed(told, out)
            out.note(f"Asking again ({event.attempt} of {event.attempts}).")
        case events.TokensUsed():
            told.usage = event
        case events.Answer(text, sources, besides):
            told.text, told.sources, told.besides = text, sources, besides
            told.outcome, told.exit = "done", Exit.DONE
        case events.PreviewReady(preview):
            _outputs(preview, told, out)
        case events.RoundsUsedUp(rounds):
            told.problems = (
                Problem(
                    "ROUNDS_USED_UP",
                    f"The model looked around {rounds} times without an answer. Ask more narrowly.",
                ),
            )
            told.outcome, told.exit = "needs-input", Exit.NOT_APPROVED
        case events.NeedsInput():
            told.ask_back(event)
        case events.TurnFailed(problem, problems):
            told.text = told.streamed  # an answer that breaks off is incomplete, not lost
            told.problems, told.exit = problems or (problem,), _exit_of(problem)
            told.outcome = "refused" if told.exit in (Exit.INVALID, Exit.NOT_APPROVED) else "error"
        case _:
            pass


def _forget_streamed(told: Told, out: Output) -> None:
    """End the line of text that turned out to be no part of the answer."""
    if told.streamed:
        out.line()
        told.streamed = ""


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
