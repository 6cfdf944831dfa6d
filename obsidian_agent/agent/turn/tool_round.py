"""One round of calls: read in parallel, ask one question at a time, return results in call order.

Models get results as data in a fence, and errors as a small object without details of this machine.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, assert_never

from msgspec import Struct, field

from obsidian_agent.agent.events import Emit, ToolCallFinished, ToolCallStarted
from obsidian_agent.agent.privacy.consent import ShareRequest
from obsidian_agent.agent.privacy.ledger import Sending
from obsidian_agent.agent.privacy.untrusted_text import fence, neutral
from obsidian_agent.agent.turn.calls import (
    BadCall,
    HelpCall,
    ParsedCall,
    ProposalCall,
    ReadCall,
    ServerCall,
    with_arguments,
)
from obsidian_agent.agent.turn.model_tools import DESCRIBE_TOOLS, PROPOSE_PLAN
from obsidian_agent.agent.turn.preparation import Preparation
from obsidian_agent.agent.turn.read_calls import Permission, ReadFindings, Shared, prepare
from obsidian_agent.errors import ObsidianAgentError, Problem
from obsidian_agent.providers.errors import redact

MAX_CHARACTERS: Final = 200_000
"""Characters of one result; a longer one is truncated, with a note."""
MAX_PARALLEL: Final = 4
"""Calls that run at the same time."""
MAX_CALLS: Final = 32
"""Calls of each kind carried out in one round; the model must repeat the others."""
MAX_CHANGES: Final = 20
"""Changes that the user may make to the arguments of one call."""

NOT_SHARED: Final = '{"note": "The user did not share this. Continue without it, or ask the user."}'
NOT_CALLED: Final = (
    '{"note": "The user did not allow this call. Continue without it, or ask the user."}'
)
ACCEPTED: Final = (
    '{"status": "shown", "note": "The plan is valid and was shown to the user, who decides."}'
)

MAX_MESSAGE: Final = 2_000
"""Characters of a message that a model or another program gets; headings of notes can be long."""

_QUOTED_PATH: Final = re.compile(r"""(['"])(?:/|[A-Za-z]:[\\/]|\\\\)[^'"\n]*\1""")

Value = TypeVar("Value")


class Scrubber(Struct, frozen=True):
    """A filter that removes paths on this machine and keys from messages."""

    roots: tuple[str, ...]

    @classmethod
    def of(cls, *folders: str) -> Scrubber:
        """Return a scrubber for these folders, the home folder and the temporary folder."""
        known = {*folders, str(Path.home()), tempfile.gettempdir()}
        return cls(tuple(sorted((root for root in known if len(root) > 1), key=len, reverse=True)))

    def clean(self, message: str) -> str:
        """Return the message, or its beginning, with `…` in place of each absolute path."""
        if len(message) > MAX_MESSAGE:
            message = f"{message[:MAX_MESSAGE]}…"
        message = _QUOTED_PATH.sub("'…'", message)
        for root in self.roots:
            message = re.sub(rf"{re.escape(root)}(?=[/\\\s'\".,:;)]|$)[^\s'\"]*", "…", message)
        return neutral(redact(message)).replace("\n", " ")


def error_text(problems: Iterable[Problem], scrubber: Scrubber, usage: Sequence[str] = ()) -> str:
    """Return `{"error": {code, message}}` with all `problems`, if several, and correct `usage`."""
    cleaned = [
        {name: scrubber.clean(value) for name, value in problem.to_json().items()}
        for problem in problems
    ]
    document: dict[str, Any] = {"error": cleaned[0]}
    if len(cleaned) > 1:
        document["error"] = {"code": cleaned[0]["code"], "message": cleaned[0]["message"]}
        document["problems"] = cleaned
    if usage:
        document["usage"] = list(usage)
    return json.dumps(document, ensure_ascii=False)


def result_text(label: str, document: Mapping[str, Any], mark: str) -> str:
    """Return an output as data: one JSON object, then each file's content in its own fence."""
    contents: list[tuple[str, str]] = []
    bare = _without_contents(document, contents)
    text = json.dumps(bare, ensure_ascii=False, default=str)
    parts = [fence(label, _truncated(text), mark)]
    parts += [fence(f"content of {name}", _truncated(text), mark) for name, text in contents]
    return "\n\n".join(parts)


def _without_contents(value: Any, contents: list[tuple[str, str]]) -> Any:
    match value:
        case {"path": str(path), "content": str(text), **rest}:
            contents.append((neutral(json.dumps(path, ensure_ascii=False)), text))
            return {
                "path": path,
                "content": "(below)",
                **{name: _without_contents(item, contents) for name, item in rest.items()},
            }
        case dict():
            return {name: _without_contents(item, contents) for name, item in value.items()}
        case list():
            return [_without_contents(item, contents) for item in value]
        case _:
            return value


def _truncated(text: str) -> str:
    excess = len(text) - MAX_CHARACTERS
    if excess <= 0:
        return text
    return f"{text[:MAX_CHARACTERS]}\n[truncated: {excess:,} more characters; ask for less]"


class Result(Struct, frozen=True):
    """The result of a call for the model, with its entry for the ledger."""

    text: str
    sending: Sending | None = None
    problem: Problem | None = None
    complete: bool = True


class ToolRound(Struct):
    """The calls of one answer of the model, and their `results` by call id.

    `refused` are the keys of calls that the user refused in this turn; they are refused again
    without a question.
    """

    prepared: Preparation
    scrubber: Scrubber
    refused: set[str]
    results: dict[str, Result] = field(default_factory=dict)

    async def run(self, calls: Sequence[ParsedCall], emit: Emit) -> None:
        """Run all calls except proposals, and emit their events."""
        reads: list[ReadCall] = []
        server_calls: list[ServerCall] = []
        for call in calls:
            match call:
                case ReadCall() if len(reads) < MAX_CALLS:
                    reads.append(call)
                    await emit(
                        ToolCallStarted(
                            call_id=call.id,
                            tool=call.tool.name,
                            purpose=call.read.purpose,
                            args=call.args,
                            why=call.why,
                        )
                    )
                case ServerCall() if len(server_calls) < MAX_CALLS:
                    server_calls.append(call)
                case ReadCall() | ServerCall():
                    message = (
                        f"Only {MAX_CALLS} calls are carried out at once. Make this one again."
                    )
                    self._fail(call.id, Problem("TOO_MANY_CALLS", message))
                case BadCall():
                    await emit(
                        ToolCallStarted(
                            call_id=call.id, tool=call.called[:60], purpose="Unknown", args={}
                        )
                    )
                    self._fail(call.id, call.problem)
                case HelpCall():
                    await emit(
                        ToolCallStarted(
                            call_id=call.id,
                            tool=DESCRIBE_TOOLS,
                            purpose="Read descriptions of tools",
                            args={"names": list(call.names)},
                        )
                    )
                    self.results[call.id] = Result(call.answer)
                case ProposalCall():
                    await emit(
                        ToolCallStarted(
                            call_id=call.id, tool=PROPOSE_PLAN, purpose="Propose a plan", args={}
                        )
                    )
                case _:
                    assert_never(call)
        await self._read(reads, emit)
        for server_call in server_calls:
            tool = server_call.tool
            purpose = f"Ask the MCP server {tool.server}"
            await emit(
                ToolCallStarted(
                    call_id=server_call.id,
                    tool=tool.offer.name,
                    purpose=purpose,
                    args=server_call.args,
                )
            )
            await self._call_server(server_call, emit)
        for call in calls:
            if call.id in self.results:
                await emit(self._finished(call))

    def reject(
        self, call: ProposalCall, problems: Sequence[Problem], usage: Sequence[str] = ()
    ) -> None:
        """Set the problems of a proposal as its result."""
        self.results[call.id] = Result(
            error_text(problems, self.scrubber, usage), problem=problems[0]
        )

    def accept(self, call: ProposalCall) -> None:
        """Set "shown to the user" as the result of a proposal."""
        self.results[call.id] = Result(ACCEPTED)

    def finished(self, call: ProposalCall) -> ToolCallFinished:
        """Return the event for the end of a proposal."""
        return ToolCallFinished(
            call_id=call.id, tool=PROPOSE_PLAN, problem=self.results[call.id].problem
        )

    def _fail(self, call_id: str, problem: Problem) -> None:
        self.results[call_id] = Result(error_text([problem], self.scrubber), problem=problem)

    def _finished(self, call: ParsedCall) -> ToolCallFinished:
        result = self.results[call.id]
        parts = result.sending.parts if result.sending is not None else ()
        return ToolCallFinished(
            call_id=call.id,
            tool=_name(call),
            paths=tuple(part.path for part, _ in parts),
            characters=len(result.text),
            complete=result.complete,
            problem=result.problem,
        )

    async def _read(self, reads: Sequence[ReadCall], emit: Emit) -> None:
        prepared = self.prepared
        await _in_parallel([partial(prepared.asker.note_denied, call) for call in reads])
        outcomes = await _in_parallel(
            [partial(prepare, call, prepared.open_view(), prepared.context) for call in reads]
        )
        ready: list[tuple[ReadCall, ReadFindings]] = []
        for call, outcome in zip(reads, outcomes, strict=True):
            if isinstance(outcome, Problem):
                self._fail(call.id, outcome)
            else:
                ready.append((call, outcome))
        questions = [
            call.id
            for call, findings in ready
            if prepared.asker.must_ask(self._request(call, findings))
        ]
        decided: list[tuple[ReadCall, ReadFindings, Permission]] = []
        for call, findings in ready:
            number = questions.index(call.id) + 1 if call.id in questions else 1
            numbering = (number, max(1, len(questions)))
            decision = await self._decide(call, findings, numbering, emit)
            if decision is not None:
                decided.append(decision)
        results = await _in_parallel(
            [partial(findings.shared, permission.paths) for _, findings, permission in decided]
        )
        for (call, _, permission), shared in zip(decided, results, strict=True):
            if isinstance(shared, Problem):
                self._fail(call.id, shared)
            else:
                self.results[call.id] = self._result(call, shared, permission)

    async def _decide(
        self, call: ReadCall, findings: ReadFindings, numbering: tuple[int, int], emit: Emit
    ) -> tuple[ReadCall, ReadFindings, Permission] | None:
        """Ask about one call until the user decides.

        If the user changes its arguments, it is read again and asked about again; return None if
        that fails. `numbering` is the number of this question and of all questions.
        """
        asker = self.prepared.asker
        for _ in range(MAX_CHANGES):
            request = self._request(call, findings, *numbering)
            if call.key in self.refused:
                return call, findings, Permission(asker.granted(request))
            permission = await asker.ask(request, emit)
            if permission.args is None:
                if findings.items and not permission.allowed:
                    self.refused.add(call.key)
                return call, findings, permission
            (changed,) = await _in_parallel([partial(self._read_again, call, permission.args)])
            if isinstance(changed, Problem):
                self._fail(call.id, changed)
                return None
            call, findings = changed
        return call, findings, Permission()

    def _read_again(self, call: ReadCall, args: Mapping[str, Any]) -> tuple[ReadCall, ReadFindings]:
        changed = with_arguments(call, args)
        return changed, prepare(changed, self.prepared.open_view(), self.prepared.context)

    def _request(
        self, call: ReadCall, findings: ReadFindings, number: int = 1, total: int = 1
    ) -> ShareRequest:
        provider = self.prepared.provider
        return ShareRequest(
            call_id=call.id,
            kind=findings.kind,
            tool=call.tool.name,
            purpose=call.read.purpose,
            args=call.args,
            items=findings.items,
            provider=provider.name,
            address=provider.address,
            number=number,
            total=total,
        )

    async def _call_server(self, call: ServerCall, emit: Emit) -> None:
        """Call a tool of an MCP server with the user's permission. Its answer is untrusted data."""
        servers, asker = self.prepared.config.servers, self.prepared.asker
        assert servers is not None
        answer = None
        if call.key not in self.refused:
            try:
                answer = await servers.call(
                    call.tool,
                    call.args,
                    asker.approve,
                    grants=asker.gate.grants,
                    emit=emit,
                    call_id=call.id,
                )
            except ObsidianAgentError as error:
                self._fail(call.id, error.problem())
                return
        if answer is None:
            self.refused.add(call.key)
            self.results[call.id] = Result(NOT_CALLED, complete=False)
            return
        name, kind, problem = call.tool.offer.name, "result", None
        if answer.failed:
            kind, problem = "error", Problem("MCP_TOOL_FAILED", f"{name} reported an error.")
        text = fence(f"{kind} of {name}", _truncated(answer.text), self.prepared.mark)
        self.results[call.id] = Result(text, problem=problem)

    def _result(self, call: ReadCall, shared: Shared, permission: Permission) -> Result:
        if shared.document is None:
            return Result(NOT_SHARED, complete=False)
        document = shared.document
        if call.changed:
            document = {"argumentsByTheUser": dict(call.args), **document}
        text = result_text(f"result of {call.tool.name}", document, self.prepared.mark)
        parts = tuple((part, permission.allowed[part.path]) for part in shared.parts)
        sending = Sending(call.tool.name, call.id, text, parts) if parts else None
        return Result(text, sending, complete=shared.complete)


def _name(call: ParsedCall) -> str:
    match call:
        case ReadCall():
            return call.tool.name
        case ServerCall():
            return call.tool.offer.name
        case BadCall():
            return call.called[:60]
        case HelpCall():
            return DESCRIBE_TOOLS
        case ProposalCall():
            return PROPOSE_PLAN
        case _:
            assert_never(call)


async def _in_parallel(jobs: Sequence[Callable[[], Value]]) -> list[Value | Problem]:
    """Run each function in a thread, a few at a time. A failure is returned as a problem."""
    slots = asyncio.Semaphore(MAX_PARALLEL)

    async def run(job: Callable[[], Value]) -> Value | Problem:
        async with slots:
            try:
                return await asyncio.to_thread(job)
            except ObsidianAgentError as error:
                return error.problem()
            except Exception as error:
                return Problem(
                    "INTERNAL_ERROR", f"The tool failed unexpectedly ({type(error).__name__})."
                )

    return await asyncio.gather(*(run(job) for job in jobs))
