"""`ask`: answer a question with recipes that only read, passages of notes, or a model.

The reads of a model are reported on standard error. Its answer streams to standard output.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from obsidian_agent.cli.exits import PERMISSION_CODES, Exit, of_problems
from obsidian_agent.cli.output import Output, on_terminal
from obsidian_agent.cli.parser import Commands, context_options, planner_options, whole_number
from obsidian_agent.cli.session_factory import open_session, parameters
from obsidian_agent.errors import Problem
from obsidian_agent.terminal_text import block

if TYPE_CHECKING:
    from obsidian_agent.agent.events import AgentEvent, NeedsInput, TokensUsed
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.services.session import Session

_INTERNAL_CODES: Final = frozenset({"LEDGER_ERROR", "INTERNAL_ERROR"})
"""Codes of internal errors."""

_USAGE_CODES: Final = frozenset({"NO_MODEL", "CONFIG_INVALID", "BASE_URL_REFUSED", "USAGE"})
"""Codes of invalid options or settings."""


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    examples = [
        'ask "Which notes link to Ideas?" --vault ~/Notes',
        'ask "What did I plan for May?" --model ollama/qwen3 --share Plans',
    ]
    command = commands.add(
        "ask", ask_command, context_options(), planner_options(), examples=examples
    )
    command.add_argument("question", metavar="QUESTION")
    command.add_argument(
        "--pick",
        type=whole_number,
        metavar="N",
        help="choose the Nth candidate of this question; add values with --param",
    )


def ask_command(options: argparse.Namespace, out: Output) -> Exit:
    """Answer a question without changing anything.

    Without a model, the answer comes from recipes or passages of notes.
    """
    import asyncio

    session = open_session(options)
    reply = CollectedAnswer()
    if not session.has_model:
        _answer_offline(session, options, reply, out)
    else:
        asyncio.run(_answer(session, options, reply, out))
    if out.as_json:
        out.document(reply.document())
    out.problems(reply.problems)
    if reply.needs_input is not None:
        from obsidian_agent.cli.report import print_candidates

        print_candidates(reply.needs_input.candidates, out)
    return reply.exit


class CollectedAnswer(Struct, kw_only=True):
    """The answer to a question, collected from events."""

    text: str = ""
    sources: tuple[str, ...] = ()
    also_sent: tuple[str, ...] = ()
    usage: TokensUsed | None = None
    needs_input: NeedsInput | None = None
    problems: tuple[Problem, ...] = ()
    outcome: str = "error"
    exit: Exit = Exit.SERVICE
    streamed: str = ""

    def document(self) -> dict[str, Any]:
        """Return `{answer, sources[], usage, outcome}`, and the errors if there is no answer.

        Without a model `usage` is null.
        """
        from obsidian_agent.agent.event_documents import needs_input_document

        usage = None
        if self.usage is not None:
            usage = {
                "promptTokens": self.usage.prompt,
                "completionTokens": self.usage.completion,
            }
        document: dict[str, Any] = {
            "answer": self.text,
            "sources": list(self.sources),
            "usage": usage,
            "outcome": self.outcome,
        }
        if self.also_sent:
            document["alsoSent"] = list(self.also_sent)
        if self.needs_input is not None:
            document |= needs_input_document(self.needs_input)
        if self.problems:
            document["errors"] = [problem.to_json() for problem in self.problems]
        return document

    def stream(self, text: str) -> None:
        """Write a part of the answer, indented on a terminal.

        The indent distinguishes its lines from the program's own.
        """
        if on_terminal(sys.stdout):
            text = ("" if self.streamed else "  ") + text.replace("\n", "\n  ")
        sys.stdout.write(text)
        sys.stdout.flush()

    def request_input(self, event: NeedsInput) -> None:
        """Record that the user must choose or enter something before there is an answer."""
        self.needs_input, self.outcome, self.exit = event, "needs-input", Exit.NOT_APPROVED
        self.problems = (Problem("NEEDS_INPUT", event.message),)


def _answer_offline(
    session: Session, options: argparse.Namespace, reply: CollectedAnswer, out: Output
) -> None:
    from obsidian_agent.agent.events import Answer, NeedsInput, TurnFailed
    from obsidian_agent.cli.health import with_findings
    from obsidian_agent.services.offline_answer import answer

    request = session.request(options.question, parameters(options), options.pick)
    match answer(session.offline, request):
        case Answer() as verdict:
            verdict = with_findings(verdict, session, options)
            reply.text, reply.sources = verdict.text, verdict.sources
            reply.outcome, reply.exit = "done", Exit.DONE
            out.answer(verdict.text)
        case NeedsInput() as event:
            reply.request_input(event)
        case TurnFailed(problem, problems):
            reply.problems = problems or (problem,)
            reply.outcome, reply.exit = "refused", of_problems(reply.problems)
        case event:
            raise TypeError(f"unexpected verdict on a question: {event!r}")


async def _answer(
    session: Session, options: argparse.Namespace, reply: CollectedAnswer, out: Output
) -> None:
    """Let the model answer. It reads only what the sharing rules, `--share` and the user allow."""
    from obsidian_agent.cli.consent import share_approval

    turn = session.answer(
        options.question,
        share_approval(out),
        propose=False,
        pick=options.pick,
        params=parameters(options),
    )
    async for event in turn:
        _collect(event, reply, out)
    if reply.streamed:
        out.line()
    if reply.sources:
        out.note(f"From {', '.join(reply.sources)}")
    if reply.also_sent:
        out.note(f"Also sent: {', '.join(reply.also_sent)}")
    if out.verbose and reply.usage is not None:
        usage = reply.usage
        out.note(f"{usage.prompt:,} tokens in, {usage.completion:,} out, {usage.requests} requests")


def _collect(event: AgentEvent, reply: CollectedAnswer, out: Output) -> None:
    from obsidian_agent.agent import events

    match event:
        case events.TextDelta(text, thinking):
            if not thinking:
                if not out.as_json:
                    reply.stream(block(text))
                reply.streamed += text
        case events.ToolCallStarted():
            _discard_streamed(reply, out)
            out.note(f"{event.purpose}: {json.dumps(dict(event.args), ensure_ascii=False)}")
        case events.ToolCallFinished(problem=Problem() as problem):
            out.problems([problem])
        case events.Notice(problem):
            out.problems([problem])
        case events.PlanningRetry():
            _discard_streamed(reply, out)
            out.note(f"Asking again ({event.attempt} of {event.attempts}).")
        case events.TokensUsed():
            reply.usage = event
        case events.Answer(text, sources, also_sent):
            reply.text, reply.sources, reply.also_sent = text, sources, also_sent
            reply.outcome, reply.exit = "done", Exit.DONE
        case events.PreviewReady(preview):
            _answer_with_outputs(preview, reply, out)
        case events.RoundsUsedUp(rounds):
            message = (
                f"The model searched and read {rounds} times without an answer. "
                "Ask a narrower question."
            )
            reply.problems = (Problem("ROUNDS_USED_UP", message),)
            reply.outcome, reply.exit = "needs-input", Exit.NOT_APPROVED
        case events.NeedsInput():
            reply.request_input(event)
        case events.TurnFailed(problem, problems):
            reply.text = reply.streamed  # an interrupted answer is incomplete, not lost
            reply.problems, reply.exit = problems or (problem,), _exit_of(problem)
            is_refused = reply.exit in (Exit.INVALID, Exit.NOT_APPROVED)
            reply.outcome = "refused" if is_refused else "error"
        case _:
            pass


def _discard_streamed(reply: CollectedAnswer, out: Output) -> None:
    """End the line of streamed text that is not part of the answer."""
    if reply.streamed:
        out.line()
        reply.streamed = ""


def _answer_with_outputs(preview: Preview, reply: CollectedAnswer, out: Output) -> None:
    """Use the outputs of a plan that only reads as the answer.

    A model that cannot call tools answers with such a plan. Its outputs are not sent to the model.
    """
    reply.problems = preview.errors
    if preview.errors:
        reply.exit, reply.outcome = Exit.INVALID, "refused"
        return
    reply.text = json.dumps(preview.outputs, ensure_ascii=False, indent=2)
    reply.outcome, reply.exit = "done", Exit.DONE
    out.line(preview.plan.goal)
    out.answer(reply.text)


def _exit_of(problem: Problem) -> Exit:
    if problem.code in PERMISSION_CODES:
        return Exit.NOT_APPROVED
    if problem.code in _INTERNAL_CODES:
        return Exit.FAILED
    return Exit.INVALID if problem.code in _USAGE_CODES else Exit.SERVICE
