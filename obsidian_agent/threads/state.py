"""The state of a thread, folded from its records. No other file stores a thread.

A thread's file has one JSON object per line, in chronological order. `k` is the kind of the line:

thread     {format, id, created}      the first line
set        {title?, titledBy?, model?, assistant?, mode?}
                                      a setting of the thread, by the user or the program
asked      {text, time}               the user's message, written before anything is done with it
message    {role, text, calls?, callId?, time}
                                      a message as models get it
stream     {text}                     a piece of a streaming answer; void once its message follows
said       {role, text, time, data?}  an entry that users see and models do not: a look, a notice,
                                      a plan, a run
sources    {paths, `besides`}         the notes cited by the last answer, and those also sent
usage      {...}                      the tokens that a turn has used
shared     {shared, told, plain}      the content of the vault in the messages, and their recipient
moved      {}                         the model gets none of the messages so far any more
compacted  {upTo, summary}            a summary replaces the first messages for the model
done       {index, on}                a task of the thread was ticked or unticked
version    {n, time, ...summary}      the end of a turn: a point to return to
rewound    {n}                        back to such a point

Lines are only appended; unreadable lines are skipped. A thread is exported as an ActionPlan that
creates a note, so it has a preview and can be undone like everything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, get_args

import frontmatter
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from obsidian_agent.agent.conversation import BROKEN_MARK, CANCELLED, CUT_MARK_END, Conversation
from obsidian_agent.agent.events import TokensUsed
from obsidian_agent.agent.privacy.consent import Level, SharedPart
from obsidian_agent.providers.base import ChatMessage, ToolCall
from obsidian_agent.vault.paths.path import clean_component

FORMAT: Final = 1
"""Version of the file format. Files of a later one are not touched."""
MAX_VERSIONS: Final = 20
"""Number of versions to rewind to: meant for undoing slips, not as an archive."""
CRASH_MARK: Final = "\n\n[The program ended here, before the answer did.]"
FOLDER: Final = "Conversations"
"""Folder of the vault for exported conversations."""

Record = Mapping[str, Any]
EntryRole = Literal["person", "model", "look", "notice", "plan", "run", "failed"]
EntryState = Literal["whole", "cut", "unsent"]
"""`cut`: the answer was interrupted. `unsent`: the program ended before sending the request."""

_MESSAGE_ROLES: Final = ("system", "user", "assistant", "tool")
_ENTRY_ROLES: Final[Mapping[str, EntryRole]] = {
    name: name for name in get_args(EntryRole) if name != "person"
}
_INTERRUPTED: Final = (CRASH_MARK, BROKEN_MARK, CUT_MARK_END)
"""Ends of interrupted answers."""


def line_of(record: Record) -> bytes:
    """Return a record as a line of the file."""
    return (
        json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "backslashreplace"
        )
        + b"\n"
    )


def records_in(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the records and the number of unreadable lines, not counting a truncated last one."""
    records: list[dict[str, Any]] = []
    damaged = 0
    *lines, last = data.split(b"\n")
    for line in (*lines, last):
        record = _read(line)
        if record is not None:
            records.append(record)
        elif line.strip(b" \0") and line is not last:
            damaged += 1
    return records, damaged


def message_record(message: ChatMessage, time: str) -> Record:
    """Return the record of a message."""
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
    """Return the message in a record; None if it is malformed."""
    role, text, call_id = record.get("role"), record.get("text"), record.get("callId", "")
    if role not in _MESSAGE_ROLES or not isinstance(text, str) or not isinstance(call_id, str):
        return None
    calls = record.get("calls", ())
    if not isinstance(calls, list | tuple):
        return None
    return ChatMessage(role, text, tuple(_calls(calls)), call_id)


def usage_record(used: TokensUsed) -> Record:
    """Return the record of the tokens that a turn has used."""
    figures = {
        name: round(value, 6) if isinstance(value, float) else value
        for name, value in asdict(used).items()
    }
    return {"k": "usage", **figures}


def usage_in(record: Record) -> TokensUsed | None:
    """Return the usage in a record; None if it is malformed."""
    match record:
        case {"model": str(model), "prompt": int(prompt), "completion": int(completion)}:
            names = ("requests", "cached", "cost", "seconds", "first", "tools")
            optional = {
                name: record[name] for name in names if isinstance(record.get(name), int | float)
            }
            return TokensUsed(model, prompt, completion, **optional)
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


class ThreadEntry(Struct, frozen=True):
    """A displayed entry of a thread.

    `time` is ISO 8601; `data` depends on the role (see `threads.recorder`).
    """

    role: EntryRole
    text: str
    time: str = ""
    state: EntryState = "whole"
    data: Mapping[str, Any] = field(default_factory=dict)


class Version(Struct, frozen=True, kw_only=True):
    """The end of a turn. `entries` and `messages` are their numbers at that time."""

    number: int
    time: str
    entries: int
    messages: int
    question: str = ""
    """The message that the turn answered."""


class ThreadState(Struct):
    """The state of a thread: models get `messages`, users see `entries`.

    `model` is None where the settings decide; `recipient` is the provider that the messages were
    sent to; `plain` are the providers that refused tools.
    """

    id: str
    created: str
    title: str = ""
    titled_by: str = ""
    model: str | None = None
    assistant: str | None = None
    """Name of the vault's agent whose instructions apply."""
    mode: str = ""
    """The mode that an editor has chosen, for its next sessions with the thread."""
    updated: str = ""
    messages: list[ChatMessage] = field(default_factory=list)
    entries: list[ThreadEntry] = field(default_factory=list)
    shared: dict[str, SharedPart] = field(default_factory=dict)
    recipient: str = ""
    plain: set[str] = field(default_factory=set)
    usage: list[TokensUsed] = field(default_factory=list)
    done: dict[str, bool] = field(default_factory=dict)
    versions: list[Version] = field(default_factory=list)
    version: int | None = None
    """Number of the version that the thread is at; None when a turn began since."""
    damaged: int = 0

    @property
    def count(self) -> int:
        """Number of messages of the user and of models."""
        return sum(1 for entry in self.entries if entry.role in ("person", "model"))

    def conversation(self) -> Conversation:
        """Return a conversation to continue. Permissions given earlier do not carry over."""
        ids = {call.id for message in self.messages for call in message.calls}
        return Conversation(
            id=self.id,
            messages=list(self.messages),
            shared=dict(self.shared),
            recipient=self.recipient,
            plain=set(self.plain),
            _ids=ids,
        )


def thread_of(records: Iterable[Record], damaged: int = 0) -> ThreadState | None:
    """Return the state that the records describe; None without a valid first line."""
    fold: ThreadFold | None = None
    for record in records:
        if fold is None:
            identity, created = record.get("id"), record.get("created")
            if record["k"] == "thread" and isinstance(identity, str) and isinstance(created, str):
                fold = ThreadFold(ThreadState(identity, created, updated=created))
            continue
        fold.apply(record)
    return fold.end(damaged) if fold is not None else None


class ThreadFold(Struct):
    """A fold of records; `state` is the result so far, `history` the earlier ones by version."""

    state: ThreadState
    stream: list[str] = field(default_factory=list)
    unsent: int | None = None
    """Index in `state.entries` of the user's message that was not sent yet."""
    history: dict[int, tuple[list[ChatMessage], list[ThreadEntry], dict[str, SharedPart]]] = field(
        default_factory=dict
    )

    def apply(self, record: Record) -> None:
        """Apply one record. Malformed ones are ignored."""
        state = self.state
        if isinstance(time := record.get("time"), str):
            state.updated = time
        match record:
            case {"k": "set"}:
                self._set(record)
            case {"k": "asked", "text": str(text)}:
                self.finish_stream()
                self.unsent = len(state.entries)
                state.version = None
                state.entries.append(ThreadEntry("person", text, str(time or ""), "unsent"))
            case {"k": "message"} if (message := message_in(record)) is not None:
                self._message(message, str(time or ""))
            case {"k": "stream", "text": str(text)}:
                self.stream.append(text)
            case {"k": "said", "role": str(role), "text": str(text)}:
                self._entry(role, text, str(time or ""), record.get("data"))
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
                messages, entries, shared = self.history[number]
                state.messages, state.entries = list(messages), list(entries)
                state.shared = dict(shared)
                state.version = number
                self.stream.clear()
                self.unsent = None
            case _:
                pass

    def end(self, damaged: int) -> ThreadState:
        """Return the final state: an unfinished answer is marked, every call has a result."""
        self.finish_stream()
        self.state.damaged = damaged
        self.state.messages = with_results(self.state.messages)
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
        if isinstance(record.get("mode"), str):
            state.mode = record["mode"]

    def _message(self, message: ChatMessage, time: str) -> None:
        state = self.state
        state.messages.append(message)
        if message.role == "user":
            self._sent()
        if message.role == "assistant":
            self.stream.clear()
            if message.text.strip():
                is_cut = message.text.endswith(_INTERRUPTED)
                entry_state: EntryState = "cut" if is_cut else "whole"
                state.entries.append(ThreadEntry("model", message.text, time, entry_state))

    def _sent(self) -> None:
        """Mark the user's message as sent."""
        if self.unsent is not None:
            entries = self.state.entries
            entries[self.unsent] = replace(entries[self.unsent], state="whole")
            self.unsent = None

    def _entry(self, role: str, text: str, time: str, data: Any) -> None:
        state = self.state
        known = _ENTRY_ROLES.get(role)
        if known is None:
            return
        entry = ThreadEntry(known, text, time, data=data if isinstance(data, dict) else {})
        state.entries.append(entry)
        if known == "run" and state.version in self.history:
            # The run of this version's plan: a thread that returns to the version must not offer
            # the plan again.
            self.history[state.version][1].append(entry)

    def _sources(self, paths: list[str], also_sent: list[str]) -> None:
        """Add the sources to the last answer."""
        entries = self.state.entries
        for at in range(len(entries) - 1, -1, -1):
            if entries[at].role == "model":
                data = {**entries[at].data, "sources": paths, "besides": also_sent}
                entries[at] = replace(entries[at], data=data)
                return

    def _shared(self, record: Record) -> None:
        state, shared = self.state, record.get("shared")
        state.shared = {}
        for path, entry in shared.items() if isinstance(shared, dict) else ():
            match entry:
                case [1 | 2 | 3 as level, int(characters)]:
                    state.shared[path] = SharedPart(path, Level(level), characters)
                case _:
                    continue
        recipient = record.get("told")
        state.recipient = recipient if isinstance(recipient, str) else ""
        plain = record.get("plain")
        state.plain = (
            {name for name in plain if isinstance(name, str)} if isinstance(plain, list) else set()
        )

    def _version(self, number: int, time: str) -> None:
        state = self.state
        self._sent()
        self.finish_stream()
        self.history[number] = (list(state.messages), list(state.entries), dict(state.shared))
        state.versions = [known for known in state.versions if known.number != number]
        question = next(
            (entry.text for entry in reversed(state.entries) if entry.role == "person"), ""
        )
        state.versions.append(
            Version(
                number=number,
                time=time,
                entries=len(state.entries),
                messages=len(state.messages),
                question=question,
            )
        )
        state.version = number
        for old in state.versions[:-MAX_VERSIONS]:
            self.history.pop(old.number, None)
        state.versions = state.versions[-MAX_VERSIONS:]

    def finish_stream(self) -> None:
        """Turn the pieces of an unfinished answer into a marked message."""
        text = "".join(self.stream)
        self.stream.clear()
        if text.strip():
            self._message(ChatMessage("assistant", f"{text}{CRASH_MARK}"), self.state.updated)
        self.unsent = None


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def with_results(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with exactly one result per call, directly after it, as services expect.

    A call without a result gets `CANCELLED`; a result without a call is dropped.
    """
    complete: list[ChatMessage] = []
    waiting: list[str] = []

    def cancel_waiting() -> None:
        complete.extend(ChatMessage("tool", CANCELLED, call_id=call_id) for call_id in waiting)
        waiting.clear()

    for message in messages:
        if message.role == "tool":
            if message.call_id in waiting:
                waiting.remove(message.call_id)
                complete.append(message)
            continue
        cancel_waiting()
        complete.append(message)
        waiting = [call.id for call in message.calls]
    cancel_waiting()
    return complete


def export_plan(state: ThreadState, path: str | None = None) -> dict[str, Any]:
    """Return the document of a plan that exports a thread as a note.

    Without `path` the note is named after the title in the folder `FOLDER`, with a number if that
    name exists.
    """
    target = path or f"{FOLDER}/{clean_component(state.title or state.id)}.md"
    conflict: dict[str, Any] = {"onConflict": "suffix"} if path is None else {"ifNotExists": False}
    args = {"path": _literal(target), "content": _literal(note_of(state)), **conflict}
    step = {
        "id": "note",
        "tool": "vault.createFile",
        "args": args,
        "preview": f"Create {_literal(target)}",
    }
    return {
        "version": "1.0",
        "goal": f"Export the conversation “{state.title}” as a note",
        "riskLevel": "writes",
        "steps": [step],
    }


def note_of(state: ThreadState) -> str:
    """Return the thread in Markdown, with a heading per message and the property `created`."""
    parts = [f"# {state.title}"]
    for entry in state.entries:
        match entry.role:
            case "person":
                parts += [f"## You, {_time(entry)}", entry.text.strip()]
            case "model":
                parts += [f"## Agent, {_time(entry)}", _lowered(entry.text.strip())]
                for label, key in (("Sources", "sources"), ("Also sent", "besides")):
                    if paths := entry.data.get(key):
                        links = ", ".join(f"[[{str(path).removesuffix('.md')}]]" for path in paths)
                        parts.append(f"{label}: {links}")
            case "plan" | "run":
                parts.append(f"> {entry.text.strip()}")
            case "look" | "notice" | "failed":
                continue
    post = frontmatter.Post("\n\n".join(parts), created=state.created[:19])
    return f"{frontmatter.dumps(post)}\n"


def _time(entry: ThreadEntry) -> str:
    return entry.time[:16].replace("T", " ")


def _lowered(text: str) -> str:
    """Return the text with its headings below those of the messages."""
    return re.sub(r"^(#{1,4})(?= )", r"##\1", text, flags=re.MULTILINE)


def _literal(text: str) -> str:
    """Escape a text for an argument of a plan."""
    return text.replace("${", "$${")
