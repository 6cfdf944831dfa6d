"""A thread as its records tell it. Reading is a fold: nothing else knows what a thread was like when the program ended.

A thread's file has one JSON object a line, in the order in which things happened. `k` says what a line is:

thread     {format, id, created}               the first line
set        {title?, titledBy?, model?, assistant?}  what the person or the program chose for the thread
asked      {text, time}                        the person's words, before anything is done with them
message    {role, text, calls?, callId?, time} a message as models get it
stream     {text}                              a piece of an answer that is still coming; void once its message is there
said       {role, text, time, data?}           something that people see and models don't: a look, a notice, a plan, a run
sources    {paths, besides}                    the notes that the last answer rests on, and what else the model was shown
usage      {...}                               what a turn has used
shared     {shared, told, plain}               what of the vault is in the messages, and where they were sent
moved      {}                                  the messages so far are not for the model any more
compacted  {upTo, summary}                     the first messages, for the model, are this summary from now on
done       {index, on}                         a task of the thread was ticked
version    {n, time, ...summary}               the end of a turn: a point to come back to
rewound    {n}                                 back to such a point

Lines are only ever added; a line that cannot be read is left out when the file is read.
As a note a thread is an ActionPlan that creates it, so that it is previewed and can be undone like everything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, get_args

import frontmatter

from obsidian_agent.agent.conversation import BROKEN_MARK, CANCELLED, CUT_MARK, Conversation
from obsidian_agent.agent.events import TokensUsed
from obsidian_agent.agent.privacy.consent import Level, Part
from obsidian_agent.dataclass import asdict, dataclass, field, replace
from obsidian_agent.providers.base import ChatMessage, ToolCall
from obsidian_agent.vault.paths.path import clean_component

FORMAT: Final = 1
"""Files of a later format are not touched."""

Record = Mapping[str, Any]
_ROLES: Final = ("system", "user", "assistant", "tool")


def line_of(record: Record) -> bytes:
    return (
        json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "backslashreplace"
        )
        + b"\n"
    )


def records_in(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """The records in a file's bytes, and how many lines could not be read (a torn last one is not counted)."""
    found: list[dict[str, Any]] = []
    damaged = 0
    *lines, last = data.split(b"\n")
    for line in (*lines, last):
        record = _read(line)
        if record is not None:
            found.append(record)
        elif line.strip(b" \0") and line is not last:
            damaged += 1
    return found, damaged


def message_record(message: ChatMessage, time: str) -> Record:
    record: dict[str, Any] = {
        "k": "message",
        "role": message.role,
        "text": message.text,
        "time": time,
    }
    if message.calls:
        record["calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.calls
        ]
    if message.call_id:
        record["callId"] = message.call_id
    return record


def message_in(record: Record) -> ChatMessage | None:
    """The message in a record; None when it is none."""
    role, text, call_id = record.get("role"), record.get("text"), record.get("callId", "")
    if role not in _ROLES or not isinstance(text, str) or not isinstance(call_id, str):
        return None
    calls = record.get("calls", ())
    if not isinstance(calls, list | tuple):
        return None
    return ChatMessage(role, text, tuple(_calls(calls)), call_id)


def usage_record(used: TokensUsed) -> Record:
    """What a turn has used as a record."""
    return {
        "k": "usage",
        **{
            name: round(value, 6) if isinstance(value, float) else value
            for name, value in asdict(used).items()
        },
    }


def usage_in(record: Record) -> TokensUsed | None:
    """What a turn has used, of a record; None when it is none."""
    match record:
        case {"model": str(model), "prompt": int(prompt), "completion": int(completion)}:
            rest = ("requests", "cached", "cost", "seconds", "first", "tools")
            return TokensUsed(
                model,
                prompt,
                completion,
                **{
                    name: record[name] for name in rest if isinstance(record.get(name), int | float)
                },
            )
        case _:
            return None


def _calls(calls: Iterable[Any]) -> Iterable[ToolCall]:
    for call in calls:
        match call:
            case {"id": str(identity), "name": str(name), "arguments": str(arguments)}:
                yield ToolCall(identity, name, arguments)
            case _:
                continue


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("k"), str) else None


VERSIONS_KEPT: Final = 20
"""Of a conversation that was rewound: to go back is for slips, not for an archive."""
CRASH_MARK: Final = "\n\n[The program ended here, before the answer did.]"

_CUTS: Final = (CRASH_MARK, CUT_MARK, BROKEN_MARK)

SaidRole = Literal["person", "model", "look", "notice", "plan", "run", "failed"]
SaidState = Literal["whole", "cut", "unsent"]
"""`cut`: the answer broke off, by whatever; `unsent`: the program ended before the model was asked."""


_SAID_ROLES: Final[Mapping[str, SaidRole]] = {
    name: name for name in get_args(SaidRole) if name != "person"
}


@dataclass(frozen=True, slots=True)
class Said:
    """Something in a thread as people read it. `time` is ISO 8601; `data` depends on the role (see `recording`)."""

    role: SaidRole
    text: str
    time: str = ""
    state: SaidState = "whole"
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Version:
    """The end of a turn. `said` and `messages` are how many there were."""

    number: int
    time: str
    said: int
    messages: int


@dataclass(slots=True)
class ThreadState:
    """A thread, read. `messages` are what a model gets; `said` what people see; `model` is None where the settings decide."""

    id: str
    created: str
    title: str = ""
    titled_by: str = ""
    model: str | None = None
    assistant: str | None = None
    """The agent of the vault whose instructions hold, by name."""
    updated: str = ""
    messages: list[ChatMessage] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    shared: dict[str, Part] = field(default_factory=dict)
    told: str = ""
    plain: set[str] = field(default_factory=set)
    usage: list[TokensUsed] = field(default_factory=list)
    done: dict[str, bool] = field(default_factory=dict)
    versions: list[Version] = field(default_factory=list)
    damaged: int = 0

    @property
    def count(self) -> int:
        """How many messages of the person and of models there are."""
        return sum(1 for each in self.said if each.role in ("person", "model"))

    def conversation(self) -> Conversation:
        """The conversation to go on with. What the person allowed earlier is asked for again."""
        ids = {call.id for message in self.messages for call in message.calls}
        return Conversation(
            id=self.id,
            messages=list(self.messages),
            shared=dict(self.shared),
            told=self.told,
            plain=set(self.plain),
            _ids=ids,
        )


def thread_of(records: Iterable[Record], damaged: int = 0) -> ThreadState | None:
    """The thread that records tell of; None when there is no first line."""
    folding: ThreadFold | None = None
    for record in records:
        if folding is None:
            identity, created = record.get("id"), record.get("created")
            if record["k"] == "thread" and isinstance(identity, str) and isinstance(created, str):
                folding = ThreadFold(ThreadState(identity, created, updated=created))
            continue
        folding.take(record)
    return folding.end(damaged) if folding is not None else None


@dataclass(slots=True)
class ThreadFold:
    """A thread on the way; `state` is what it is so far. `history` holds, by version, what a model got then."""

    state: ThreadState
    stream: list[str] = field(default_factory=list)
    asked: int | None = None
    """Where in `said` the person's words stand that no message holds yet."""
    history: dict[int, tuple[list[ChatMessage], list[Said], dict[str, Part]]] = field(
        default_factory=dict
    )

    def take(self, record: Record) -> None:
        """One more record. What is not understood is left out."""
        state = self.state
        if isinstance(time := record.get("time"), str):
            state.updated = time
        match record:
            case {"k": "set"}:
                self._set(record)
            case {"k": "asked", "text": str(text)}:
                self.settle()
                self.asked = len(state.said)
                state.said.append(Said("person", text, str(time or ""), "unsent"))
            case {"k": "message"} if (message := message_in(record)) is not None:
                self._message(message, str(time or ""))
            case {"k": "stream", "text": str(text)}:
                self.stream.append(text)
            case {"k": "said", "role": str(role), "text": str(text)}:
                self._said(role, text, str(time or ""), record.get("data"))
            case {"k": "sources", "paths": list(paths)}:
                self._sources(_texts(paths), _texts(record.get("besides")))
            case {"k": "usage"} if (usage := usage_in(record)) is not None:
                state.usage.append(usage)
            case {"k": "shared"}:
                self._shared(record)
            case {"k": "moved"}:
                state.messages.clear()
                state.shared.clear()
            case {"k": "compacted", "upTo": int(count), "summary": str(summary)}:
                state.messages[:count] = [ChatMessage("user", summary)]
            case {"k": "done", "index": str(task), "on": bool(on)}:
                state.done[task] = on
            case {"k": "version", "n": int(number)}:
                self._version(number, str(time or ""))
            case {"k": "rewound", "n": int(number)} if number in self.history:
                messages, said, shared = self.history[number]
                state.messages, state.said, state.shared = list(messages), list(said), dict(shared)
                self.stream.clear()
                self.asked = None
            case _:
                pass

    def end(self, damaged: int) -> ThreadState:
        """The thread, with an answer that was still coming marked as cut, and every call with its result."""
        self.settle()
        self.state.damaged = damaged
        self.state.messages = whole(self.state.messages)
        return self.state

    def _set(self, record: Record) -> None:
        state = self.state
        title, by = record.get("title"), record.get("titledBy")
        if isinstance(title, str):
            state.title, state.titled_by = title, by if isinstance(by, str) else ""
        if "model" in record and (record["model"] is None or isinstance(record["model"], str)):
            state.model = record["model"]
        if "assistant" in record and (
            record["assistant"] is None or isinstance(record["assistant"], str)
        ):
            state.assistant = record["assistant"]

    def _message(self, message: ChatMessage, time: str) -> None:
        state = self.state
        state.messages.append(message)
        if message.role == "user":
            self._sent()
        if message.role == "assistant":
            self.stream.clear()
            if message.text.strip():
                state.said.append(
                    Said(
                        "model",
                        message.text,
                        time,
                        "cut" if message.text.endswith(_CUTS) else "whole",
                    )
                )

    def _sent(self) -> None:
        """The person's words have found their place."""
        if self.asked is not None:
            said = self.state.said
            said[self.asked] = replace(said[self.asked], state="whole")
            self.asked = None

    def _said(self, role: str, text: str, time: str, data: Any) -> None:
        if (known := _SAID_ROLES.get(role)) is not None:
            self.state.said.append(
                Said(known, text, time, data=data if isinstance(data, dict) else {})
            )

    def _sources(self, paths: list[str], besides: list[str]) -> None:
        said = self.state.said
        at = next((at for at in range(len(said) - 1, -1, -1) if said[at].role == "model"), None)
        if at is not None:
            said[at] = replace(
                said[at], data={**said[at].data, "sources": paths, "besides": besides}
            )

    def _shared(self, record: Record) -> None:
        state, shared = self.state, record.get("shared")
        state.shared = {}
        for path, entry in shared.items() if isinstance(shared, dict) else ():
            match entry:
                case [1 | 2 | 3 as level, int(characters)]:
                    state.shared[path] = Part(path, Level(level), characters)
                case _:
                    continue
        state.told = told if isinstance(told := record.get("told"), str) else ""
        plain = record.get("plain")
        state.plain = (
            {name for name in plain if isinstance(name, str)} if isinstance(plain, list) else set()
        )

    def _version(self, number: int, time: str) -> None:
        state = self.state
        self._sent()
        self.settle()
        self.history[number] = (list(state.messages), list(state.said), dict(state.shared))
        state.versions = [each for each in state.versions if each.number != number]
        state.versions.append(Version(number, time, len(state.said), len(state.messages)))
        for old in state.versions[:-VERSIONS_KEPT]:
            self.history.pop(old.number, None)
        state.versions = state.versions[-VERSIONS_KEPT:]

    def settle(self) -> None:
        """What was coming and did not come to its end, as the message that it has become."""
        text = "".join(self.stream)
        self.stream.clear()
        if text.strip():
            self._message(ChatMessage("assistant", f"{text}{CRASH_MARK}"), self.state.updated)
        self.asked = None


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def whole(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The messages with exactly one result for every call, directly after it: what services accept."""
    found: list[ChatMessage] = []
    waiting: list[str] = []

    def give_up() -> None:
        found.extend(ChatMessage("tool", CANCELLED, call_id=each) for each in waiting)
        waiting.clear()

    for message in messages:
        if message.role == "tool":
            if message.call_id in waiting:
                waiting.remove(message.call_id)
                found.append(message)
            continue
        give_up()
        found.append(message)
        waiting = [call.id for call in message.calls]
    give_up()
    return found


FOLDER: Final = "Conversations"


def export_plan(state: ThreadState, path: str | None = None) -> dict[str, Any]:
    """The plan's document. `path` None: a note named after the title in the folder Conversations, numbered where the name is taken."""
    where = path or f"{FOLDER}/{clean_component(state.title or state.id)}.md"
    taken: dict[str, Any] = {"onConflict": "suffix"} if path is None else {"ifNotExists": False}
    args = {"path": _literal(where), "content": _literal(note_of(state)), **taken}
    step = {
        "id": "note",
        "tool": "vault.createFile",
        "args": args,
        "preview": f"Create {_literal(where)}",
    }
    return {
        "version": "1.0",
        "goal": f"Export the conversation “{state.title}” as a note",
        "riskLevel": "writes",
        "steps": [step],
    }


def note_of(state: ThreadState) -> str:
    """The conversation in Markdown, a heading for each side's words; when it began is a property."""
    parts = [f"# {state.title}"]
    for said in state.said:
        match said.role:
            case "person":
                parts += [f"## You, {_time(said)}", said.text.strip()]
            case "model":
                parts += [f"## Agent, {_time(said)}", _lowered(said.text.strip())]
                for title, key in (("Sources", "sources"), ("Also sent", "besides")):
                    if paths := said.data.get(key):
                        parts.append(
                            f"{title}: "
                            + ", ".join(f"[[{str(path).removesuffix('.md')}]]" for path in paths)
                        )
            case "plan" | "run":
                parts.append(f"> {said.text.strip()}")
            case "look" | "notice" | "failed":
                continue
    return (
        frontmatter.dumps(frontmatter.Post("\n\n".join(parts), created=state.created[:19])) + "\n"
    )


def _time(said: Said) -> str:
    return said.time[:16].replace("T", " ")


def _lowered(text: str) -> str:
    """The text with its headings below the ones of the roles."""
    return re.sub(r"^(#{1,4})(?= )", r"##\1", text, flags=re.MULTILINE)


def _literal(text: str) -> str:
    """The text as a plan's argument that means just this text."""
    return text.replace("${", "$${")
