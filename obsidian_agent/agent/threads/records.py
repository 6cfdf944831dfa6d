"""What a thread's file is made of: one JSON object a line, in the order in which things happened.

`k` says what a line is:

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
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from obsidian_agent.providers.base import ChatMessage, ToolCall

FORMAT: Final = 1
"""Files of a later format are not touched."""

Record = Mapping[str, Any]
_ROLES: Final = ("system", "user", "assistant", "tool")


def line_of(record: Record) -> bytes:
    """A record as a line."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"


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
    """A message as a record."""
    record: dict[str, Any] = {"k": "message", "role": message.role, "text": message.text, "time": time}
    if message.calls:
        record["calls"] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.calls]
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
