"""One round of calls: look in parallel, ask one after the other, hand over in parallel, answer in the order of the calls.

Models get results as data inside a fence, and errors as a small object without anything of this machine in it.
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

from obsidian_agent.agent.events import Emit, ToolCallFinished, ToolCallStarted
from obsidian_agent.agent.privacy.consent import ShareRequest
from obsidian_agent.agent.privacy.record import Sending
from obsidian_agent.agent.privacy.untrusted_text import fence, neutral
from obsidian_agent.agent.turn.calls import (
    BadCall,
    HelpCall,
    ProposalCall,
    ReadCall,
    ServerCall,
    Understood,
    with_arguments,
)
from obsidian_agent.agent.turn.model_tools import DESCRIBE_TOOLS, PROPOSE_PLAN
from obsidian_agent.agent.turn.preparation import Preparation
from obsidian_agent.agent.turn.read_calls import Permission, ReadFindings, Shared, prepare
from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import ObsidianAgentError, Problem
from obsidian_agent.providers.errors import redact

MOST_CHARACTERS: Final = 200_000
"""Characters of one result; what is longer is cut, visibly."""

_QUOTED_PATH = re.compile(r"""(['"])(?:/|[A-Za-z]:[\\/]|\\\\)[^'"\n]*\1""")


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Takes places on this machine and keys out of messages."""

    roots: tuple[str, ...]

    @classmethod
    def of(cls, *folders: str) -> Scrubber:
        """For the vault's own folder and others; the home folder and the one for temporary files are always among them."""
        known = {*folders, str(Path.home()), tempfile.gettempdir()}
        return cls(tuple(sorted((root for root in known if len(root) > 1), key=len, reverse=True)))

    def clean(self, message: str) -> str:
        """The message with `…` for each absolute path."""
        message = _QUOTED_PATH.sub("'…'", message)
        for root in self.roots:
            message = re.sub(rf"{re.escape(root)}(?=[/\\\s'\".,:;)]|$)[^\s'\"]*", "…", message)
        return neutral(redact(message)).replace("\n", " ")


def error_text(problems: Iterable[Problem], scrubber: Scrubber, usage: Sequence[str] = ()) -> str:
    """`{"error": {code, message}}`, with `problems` when there are several, and `usage`: the right signatures."""
    told = [
        {name: scrubber.clean(value) for name, value in problem.to_json().items()}
        for problem in problems
    ]
    document: dict[str, Any] = {
        "error": told[0]
        if len(told) == 1
        else {"code": told[0]["code"], "message": told[0]["message"]}
    }
    if len(told) > 1:
        document["problems"] = told
    if usage:
        document["usage"] = list(usage)
    return json.dumps(document, ensure_ascii=False)


def result_text(label: str, document: Mapping[str, Any], mark: str) -> str:
    """An output as data: one JSON object, and the contents of files after it, each in a fence of its own and as it reads."""
    contents: list[tuple[str, str]] = []
    bare = _without_contents(document, contents)
    parts = [fence(label, _cut(json.dumps(bare, ensure_ascii=False, default=str)), mark)]
    parts += [fence(f"content of {name}", _cut(text), mark) for name, text in contents]
    return "\n\n".join(parts)


def _without_contents(value: Any, contents: list[tuple[str, str]]) -> Any:
    match value:
        case {"path": str(path), "content": str(text), **rest}:
            contents.append((neutral(json.dumps(path, ensure_ascii=False)), text))
            return {
                "path": path,
                "content": "(below)",
                **{name: _without_contents(each, contents) for name, each in rest.items()},
            }
        case dict():
            return {name: _without_contents(each, contents) for name, each in value.items()}
        case list():
            return [_without_contents(each, contents) for each in value]
        case _:
            return value


def _cut(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}\n[cut: {len(text) - MOST_CHARACTERS:,} more characters; ask for less at a time]"


AT_ONCE: Final = 4
MOST_CALLS: Final = 32
"""Calls that are carried out in one round; a model that makes more has to make the others again."""
MOST_CHANGES: Final = 20
"""So often the person may change the arguments of one call."""

Value = TypeVar("Value")

NOT_SHARED = '{"note": "The person did not share this. Go on without it, or ask the person."}'
NOT_CALLED = '{"note": "The person did not allow this call. Go on without it, or ask the person."}'
ACCEPTED = (
    '{"status": "shown", "note": "The plan is valid and was shown to the person, who decides."}'
)


@dataclass(frozen=True, slots=True)
class Result:
    """What the model gets for a call, and what the ledger keeps of it."""

    text: str
    sending: Sending | None = None
    problem: Problem | None = None
    complete: bool = True


@dataclass(slots=True)
class ToolRound:
    """The calls of one answer of the model. `results` holds one for each call that is not a proposal, by its id.

    `refused` are reads that the person refused earlier in the turn: who asks the same again gets the same answer.
    """

    prepared: Preparation
    scrubber: Scrubber
    refused: set[str]
    results: dict[str, Result] = field(default_factory=dict)

    async def carry_out(self, calls: Sequence[Understood], emit: Emit) -> None:
        """Everything but proposals, with the events that belong to it."""
        reads: list[ReadCall] = []
        others: list[ServerCall] = []
        for call in calls:
            match call:
                case ReadCall() if len(reads) < MOST_CALLS:
                    reads.append(call)
                    await emit(
                        ToolCallStarted(
                            call.id, call.tool.name, call.read.purpose, call.args, call.why
                        )
                    )
                case ServerCall() if len(others) < MOST_CALLS:
                    others.append(call)
                case ReadCall() | ServerCall():
                    message = (
                        f"Only {MOST_CALLS} calls are carried out at once. Make this one again."
                    )
                    self._fail(call.id, Problem("TOO_MANY_CALLS", message))
                case BadCall():
                    await emit(ToolCallStarted(call.id, call.called[:60], "Unknown", {}))
                    self._fail(call.id, call.problem)
                case HelpCall():
                    await emit(
                        ToolCallStarted(
                            call.id,
                            DESCRIBE_TOOLS,
                            "Look up how tools are used",
                            {"names": list(call.names)},
                        )
                    )
                    self.results[call.id] = Result(call.answer)
                case ProposalCall():
                    await emit(ToolCallStarted(call.id, PROPOSE_PLAN, "Propose a plan", {}))
                case _:
                    assert_never(call)
        await self._read(reads, emit)
        for other in others:
            await emit(
                ToolCallStarted(
                    other.id,
                    other.tool.offer.name,
                    f"Ask the MCP server {other.tool.server}",
                    other.args,
                )
            )
            await self._ask_server(other, emit)
        for call in calls:
            if call.id in self.results:
                await emit(self._finished(call))

    def reject(
        self, call: ProposalCall, problems: Sequence[Problem], usage: Sequence[str] = ()
    ) -> None:
        """A proposal that goes back to the model."""
        self.results[call.id] = Result(
            error_text(problems, self.scrubber, usage), problem=problems[0]
        )

    def accept(self, call: ProposalCall) -> None:
        self.results[call.id] = Result(ACCEPTED)

    def finished(self, call: ProposalCall) -> ToolCallFinished:
        return ToolCallFinished(call.id, PROPOSE_PLAN, problem=self.results[call.id].problem)

    def _fail(self, call_id: str, problem: Problem) -> None:
        self.results[call_id] = Result(error_text([problem], self.scrubber), problem=problem)

    def _finished(self, call: Understood) -> ToolCallFinished:
        result = self.results[call.id]
        paths = (
            tuple(part.path for part, _ in result.sending.parts)
            if result.sending is not None
            else ()
        )
        return ToolCallFinished(
            call.id, _name(call), paths, len(result.text), result.complete, result.problem
        )

    async def _read(self, reads: Sequence[ReadCall], emit: Emit) -> None:
        prepared = self.prepared
        await _in_parallel([partial(prepared.asker.note_denied, call) for call in reads])
        looked = await _in_parallel(
            [partial(prepare, call, prepared.open_view(), prepared.context) for call in reads]
        )
        found: list[tuple[ReadCall, ReadFindings]] = []
        for call, outcome in zip(reads, looked, strict=True):
            if isinstance(outcome, Problem):
                self._fail(call.id, outcome)
            else:
                found.append((call, outcome))
        questions = [
            call.id
            for call, each in found
            if prepared.asker.open_question(self._request(call, each))
        ]
        settled: list[tuple[ReadCall, ReadFindings, Permission]] = []
        for call, each in found:
            place = (
                questions.index(call.id) + 1 if call.id in questions else 1,
                max(1, len(questions)),
            )
            if (decided := await self._settle(call, each, place, emit)) is not None:
                settled.append(decided)
        handed = await _in_parallel(
            [partial(each.shared, permission.paths) for _, each, permission in settled]
        )
        for (call, _, permission), shared in zip(settled, handed, strict=True):
            if isinstance(shared, Problem):
                self._fail(call.id, shared)
            else:
                self.results[call.id] = self._result(call, shared, permission)

    async def _settle(
        self, call: ReadCall, found: ReadFindings, place: tuple[int, int], emit: Emit
    ) -> tuple[ReadCall, ReadFindings, Permission] | None:
        """Ask about one call until the person has decided; with other arguments of theirs it looks again first. None where that fails."""
        asker = self.prepared.asker
        for _ in range(MOST_CHANGES):
            request = self._request(call, found, *place)
            if call.key in self.refused:
                return call, found, Permission(asker.granted(request))
            permission = await asker.ask(request, emit)
            if permission.args is None:
                if found.items and not permission.allowed:
                    self.refused.add(call.key)
                return call, found, permission
            (again,) = await _in_parallel([partial(self._look_again, call, permission.args)])
            if isinstance(again, Problem):
                self._fail(call.id, again)
                return None
            call, found = again
        return call, found, Permission()

    def _look_again(self, call: ReadCall, args: Mapping[str, Any]) -> tuple[ReadCall, ReadFindings]:
        changed = with_arguments(call, args)
        return changed, prepare(changed, self.prepared.open_view(), self.prepared.context)

    def _request(
        self, call: ReadCall, found: ReadFindings, number: int = 1, total: int = 1
    ) -> ShareRequest:
        provider = self.prepared.provider
        return ShareRequest(
            call_id=call.id,
            kind=found.kind,
            tool=call.tool.name,
            purpose=call.read.purpose,
            args=call.args,
            items=found.items,
            provider=provider.name,
            address=provider.address,
            number=number,
            total=total,
        )

    async def _ask_server(self, call: ServerCall, emit: Emit) -> None:
        """Call a tool of an MCP server, if the person lets it be called; what it answers is data of a stranger."""
        servers, asker, name = (
            self.prepared.config.servers,
            self.prepared.asker,
            call.tool.offer.name,
        )
        assert servers is not None
        try:
            refused = call.key in self.refused
            answered = (
                None
                if refused
                else await servers.call(
                    call.tool, call.args, asker.approve, asker.gate.grants, emit, call.id
                )
            )
        except ObsidianAgentError as error:
            self._fail(call.id, error.problem())
            return
        if answered is None:
            self.refused.add(call.key)
            self.results[call.id] = Result(NOT_CALLED, complete=False)
            return
        text = fence(
            f"{'error' if answered.failed else 'result'} of {name}",
            _cut(answered.text),
            self.prepared.mark,
        )
        problem = (
            Problem("MCP_TOOL_FAILED", f"{name} could not do what it was asked.")
            if answered.failed
            else None
        )
        self.results[call.id] = Result(text, problem=problem)

    def _result(self, call: ReadCall, shared: Shared, permission: Permission) -> Result:
        if shared.document is None:
            return Result(NOT_SHARED, complete=False)
        document = (
            {"argumentsByThePerson": dict(call.args), **shared.document}
            if call.changed
            else shared.document
        )
        text = result_text(f"result of {call.tool.name}", document, self.prepared.mark)
        parts = tuple((part, permission.allowed[part.path]) for part in shared.parts)
        return Result(
            text,
            Sending(call.tool.name, call.id, text, parts) if parts else None,
            None,
            shared.complete,
        )


def _name(call: Understood) -> str:
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


async def _in_parallel(work: Sequence[Callable[[], Value]]) -> list[Value | Problem]:
    """Every piece of work in a thread, a few at a time; a failure as the problem that the model is told."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(piece: Callable[[], Value]) -> Value | Problem:
        async with places:
            try:
                return await asyncio.to_thread(piece)
            except ObsidianAgentError as error:
                return error.problem()
            except Exception as error:
                return Problem(
                    "INTERNAL_ERROR", f"The tool failed unexpectedly ({type(error).__name__})."
                )

    return await asyncio.gather(*(one(piece) for piece in work))
