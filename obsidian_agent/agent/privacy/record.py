"""The audit record of a vault: one line of JSON per entry, chained by hashes.

A line is `{"n": NUMBER, "prev": HASH, "time": ISO, "kind": KIND, …, "hash": HASH}`. Its hash covers
everything before it in the line, and `prev` is the hash of the previous line, so a changed, added
or removed line is detected and reported. The last number and hash are also in a file of their own,
so that a missing end is detected, and each run of the journal must have an entry. The hashes have
no key: a program that can write to the folder can write a new consistent record. The record holds
no text of notes.

| kind | fields |
|---|---|
| sent | provider, address, conversation, tool, callId, characters, sha256, files. |
| | Written before the content is sent. |
| grant, refusal | The user's answer: to share `paths` with `provider` (`scope`), or about a plan |
| | (`planHash`, `goal`). |
| approval | planHash, goal, `by` "person", "options" (--yes) or "settings". |
| denial | Forbidden by a rule, or not sent because no question could be asked: goal or provider, |
| | `denied` with code, path and rule of each. |
| proposal | A plan that waits for the user: client, planId, goal. |
| call | agent, tool, decision, rule: a request of another agent, or its report ("own") of an |
| | action. server, tool, allowedBy, characters, sha256: a call of an MCP server's tool; |
| | with resource instead of tool: a text of the server, sent to the model. |
| alarm | agent, message: changes in the vault during another agent's turn without a plan. |
| trust | path (mcp/SERVER/TOOL for a tool of an MCP server), sha256 (null: trust withdrawn). |
| command | id, name, ok: a command run in Obsidian. |
| run, undo, redo, recover | runId, and the number of changes by kind. |
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from msgspec import Struct

from obsidian_agent.errors import JournalError, Problem
from obsidian_agent.state_files import file_lock, make_private, open_append, replace_file, write_all

Kind = Literal[
    "sent",
    "grant",
    "refusal",
    "approval",
    "denial",
    "proposal",
    "call",
    "alarm",
    "trust",
    "command",
    "run",
    "undo",
    "redo",
    "recover",
]
"""The kind of an entry; the table above lists its fields."""
KINDS: Final = frozenset(get_args(Kind))
START: Final = "0" * 64

MAX_BYTES: Final = 4 * 1024 * 1024
"""Bytes of one file; a further line begins a new file, which continues the chain."""

MAX_DENIED: Final = 20
"""Paths of one denial: a plan over a whole folder may have thousands of the same kind."""

_LINE: Final = re.compile(
    rb'(\{"n": (\d+), "prev": "([0-9a-f]{64})".*), "hash": "([0-9a-f]{64})"\}\n', re.DOTALL
)
_TAIL: Final = 65_536
"""Bytes at the end of the file in which its last line is looked for."""


class ChainEnd(NamedTuple):
    """A line's number and hash."""

    n: int
    hash: str


class Verified(Struct, frozen=True):
    """The result of a verification: the number of intact lines.

    `first_bad` is the number of the first changed or missing line, `reason` the finding.
    """

    entries: int
    first_bad: int | None = None
    reason: str = ""


class AuditRecord(Struct, frozen=True):
    """The files of the record in a folder of the user's state.

    `audit.jsonl` is the current one; older ones are `audit-NUMBER.jsonl`, after their first line.
    """

    folder: Path
    clock: Callable[[], datetime]

    @property
    def file(self) -> Path:
        """The file for the next line."""
        return self.folder / "audit.jsonl"

    @property
    def head(self) -> Path:
        """The file with the last number and hash."""
        return self.folder / "audit.head"

    def append(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Write entries durably, each with its `kind`. After an OSError none counts as written."""
        make_private(self.folder)
        time = self.clock().isoformat(timespec="milliseconds")
        with self._open() as (fd, last):
            lines = b""
            for entry in entries:
                body = json.dumps(
                    {"n": last.n + 1, "prev": last.hash, "time": time, **entry}, ensure_ascii=True
                )[:-1].encode("ascii")
                last = ChainEnd(last.n + 1, hashlib.sha256(body).hexdigest())
                lines += body + f', "hash": "{last.hash}"}}\n'.encode("ascii")
            write_all(fd, lines)
            os.fsync(fd)
            self._write_head(last)

    def note(self, kind: Kind, **details: Any) -> tuple[Problem, ...]:
        """Append an entry and return the problem, if any, for callers that must not fail.

        Blocks until the entry is on disk.
        """
        try:
            self.append([{"kind": kind, **details}])
        except OSError as error:
            reason = error.strerror or type(error).__name__
            message = f"The record {self.file} cannot be written: {reason}."
            return (Problem("RECORD_ERROR", message, path=None),)
        return ()

    def entries(self) -> list[dict[str, Any]]:
        """Return all entries, oldest first. Unreadable lines are skipped."""
        entries = []
        for line in self._lines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                entries.append(
                    {name: value for name, value in entry.items() if name not in ("prev", "hash")}
                )
        return entries

    def set_aside(self) -> list[dict[str, Any]]:
        """Rename the files of the record to make room for a new one.

        Return the entries without their numbers.
        """
        entries = [{key: entry[key] for key in entry if key != "n"} for entry in self.entries()]
        for file in (*self._older(), self.file, self.head):
            with contextlib.suppress(FileNotFoundError):
                file.replace(file.with_name(f"set-aside-{file.name}"))
        return entries

    def verify(self, runs: Sequence[str] = ()) -> Verified:
        """Verify every line, the last number, and that each run id of the journal has an entry."""
        checked = self._verify_chain()
        if checked.first_bad is not None or not runs:
            return checked
        known = {entry.get("runId") for entry in self.entries()}
        missing = [run for run in runs if run not in known]
        if not missing:
            return checked
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        reason = f"it is missing: the journal has run {missing[0]}{more}, the record has not"
        return Verified(checked.entries, checked.entries + 1, reason)

    def _verify_chain(self) -> Verified:
        last = ChainEnd(0, START)
        for line in self._lines():
            match = _LINE.fullmatch(line)
            if match is None or hashlib.sha256(match[1]).hexdigest().encode() != match[4]:
                return Verified(last.n, last.n + 1, "it was changed or is incomplete")
            if int(match[2]) != last.n + 1:
                return Verified(last.n, last.n + 1, "it is missing")
            if match[3] != last.hash.encode():
                return Verified(last.n, last.n + 1, "it does not follow the line before it")
            last = ChainEnd(last.n + 1, match[4].decode())
        written = self._read_head()
        if written is None and last.n == 0:
            return Verified(0)
        if written is None:
            reason = f"{self.head.name}, which names the last line, is gone or damaged"
            return Verified(last.n, last.n, reason)
        if written.n > last.n:
            return Verified(last.n, last.n + 1, "it is missing, and so is every line after it")
        if written.n == last.n and written.hash != last.hash:
            return Verified(last.n - 1, last.n, "it is not the line that was written")
        return Verified(last.n)

    # --- files ---

    def _older(self) -> list[Path]:
        return sorted(self.folder.glob("audit-*.jsonl"))

    def _lines(self) -> Iterator[bytes]:
        for file in (*self._older(), self.file):
            try:
                data = file.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise JournalError(
                    f"The record {file} cannot be read: {reason}.",
                    code="RECORD_ERROR",
                    hint="Check its permissions, or restore the file from a backup.",
                ) from error
            yield from re.findall(rb"[^\n]*\n|[^\n]+\Z", data)

    def _read_head(self) -> ChainEnd | None:
        try:
            number, hash = self.head.read_text("ascii").split()
            return ChainEnd(int(number), hash)
        except (OSError, ValueError):
            return None

    def _write_head(self, end: ChainEnd) -> None:
        """Write the end of the chain. It is not flushed: after a crash the last line counts."""
        data = f"{end.n} {end.hash}\n".encode("ascii")
        if not self.head.exists():
            replace_file(self.head, data)
            return
        flags = os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        fd = os.open(self.head, flags)
        try:
            write_all(fd, data)
            os.ftruncate(fd, len(data))
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _open(self) -> Iterator[tuple[int, ChainEnd]]:
        """Open and lock the file for the next lines; yield it with the end of the chain."""
        with file_lock(self.folder / "audit.lock"):
            with contextlib.suppress(FileNotFoundError):
                if self.file.stat().st_size > MAX_BYTES:
                    os.replace(self.file, self._older_name())
            fd = open_append(self.file)
            try:
                yield fd, self._last(fd)
            finally:
                os.close(fd)

    def _older_name(self) -> Path:
        with self.file.open("rb") as stream:
            match = re.match(rb'\{"n": (\d+),', stream.read(40))
        return self.folder / f"audit-{int(match[1]) if match else len(self._older()) + 1:09}.jsonl"

    def _last(self, fd: int) -> ChainEnd:
        """Return the end of the chain.

        A crash can leave a line that is newer than the head; then that line is the end. An
        incomplete last line is removed; it never counted as written.
        """
        size = os.fstat(fd).st_size
        os.lseek(fd, max(0, size - _TAIL), os.SEEK_SET)
        tail = os.read(fd, _TAIL)
        if not tail.endswith(b"\n"):
            os.ftruncate(fd, size - len(tail) + tail.rfind(b"\n") + 1)
        head = self._read_head() or ChainEnd(0, START)
        match = re.fullmatch(rb'(?s:.*)"n": (\d+), .*"hash": "([0-9a-f]{64})"\}\n(?s:[^\n]*)', tail)
        if match is not None and int(match[1]) > head.n:
            return ChainEnd(int(match[1]), match[2].decode())
        return head


def entry_text(entry: Mapping[str, Any]) -> str:
    """Return the details of an entry (without number, time and kind) as one line."""
    return ", ".join(
        f"{name} {_value(value)}"
        for name, value in entry.items()
        if name not in ("n", "time", "kind") and value not in (None, 0, [])
    )


def _value(value: object) -> str:
    match value:
        case Mapping():
            return " ".join(_value(item) for item in value.values())
        case list():
            return "; ".join(_value(item) for item in value)
        case _:
            return str(value)
