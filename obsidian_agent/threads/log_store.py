"""The conversation files of one vault, one per thread, in the user's state folder.

Everything here may block. Records are appended. A rewrite drops superseded records and replaces the
file atomically. If the program is killed, the records that `add` has written survive; after a power
loss, those that were written as durable do.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from obsidian_agent.errors import ConfigError
from obsidian_agent.state_files import append, replace_file, try_lock
from obsidian_agent.threads.state import (
    FORMAT,
    MAX_VERSIONS,
    Record,
    ThreadEntry,
    ThreadState,
    line_of,
    records_in,
    thread_of,
)

MIN_PRUNED: Final = 64
"""Number of superseded records from which a file is rewritten."""
_SUFFIX: Final = ".jsonl"
_ID: Final = re.compile(r"[0-9a-f]{16}")
TAIL: Final = 32 * 1024
"""Bytes at the end of a file that are read first: the last version holds what a list displays."""
PREVIEW: Final = 160
"""Characters of a message in a list of conversations."""
TITLE_LENGTH: Final = 80
"""Characters of a title."""
HITS: Final = 3
"""Lines of a conversation in the results of a search."""


class ThreadFile(Struct):
    """The file of one conversation. Safe to use from several threads of the program."""

    path: Path
    size: int = -1
    """Size in bytes when this program last read or wrote the file; -1 before."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def changed(self) -> bool:
        """True if another program has written to the file since."""
        try:
            status = self.path.stat()
            return stat.S_ISREG(status.st_mode) and status.st_size != self.size
        except OSError:
            return False

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the conversation against other programs.

        Raises `ConfigError` THREAD_BUSY if one holds the lock already.
        """
        try:
            fd = os.open(self.path, os.O_RDONLY)
        except OSError:
            fd = -1  # saving reports the reason
        try:
            if fd >= 0 and not try_lock(fd):
                message = "This conversation is in use in another window."
                raise ConfigError(message, code="THREAD_BUSY", hint="Wait, or start a new one.")
            yield
        finally:
            if fd >= 0:
                os.close(fd)

    def add(self, *records: Record, durable: bool = False, create: bool = False) -> None:
        """Append records; with `durable` they survive a power loss too.

        Without `create` the file must exist: one deleted meanwhile is not created again. Raises
        `ConfigError` THREAD_NOT_SAVED.
        """
        data = b"".join(line_of(record) for record in records)
        with self._lock, _disk_errors(self.path):
            self.size = append(self.path, data, create=create, durable=durable)

    def read(self) -> tuple[list[dict[str, object]], int]:
        """Return all records and the number of damaged lines. Raises FileNotFoundError."""
        data = self.path.read_bytes()
        self.size = len(data)
        return records_in(data)

    def replace(self, records: Iterable[Record]) -> None:
        """Replace the content of the file by these records: all or nothing."""
        data = b"".join(line_of(record) for record in records)
        with self._lock, _disk_errors(self.path):
            replace_file(self.path, data)
            self.size = len(data)


@contextlib.contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """Raise errors of the disk as `ConfigError` THREAD_NOT_SAVED."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        message = f"The conversation cannot be saved in {path} ({reason})."
        hint = "Free disk space, or correct the permissions of that file."
        raise ConfigError(message, code="THREAD_NOT_SAVED", hint=hint) from error


def pruned(records: Sequence[Record]) -> list[Record] | None:
    """Return the records without superseded ones; None when that would not save much.

    Superseded are the pieces of finished answers and versions older than `MAX_VERSIONS`.
    """
    versions = [index for index, record in enumerate(records) if record["k"] == "version"]
    superseded = {*versions[:-MAX_VERSIONS], *_finished_pieces(records)}
    if len(superseded) < MIN_PRUNED:
        return None
    return [record for index, record in enumerate(records) if index not in superseded]


def _finished_pieces(records: Sequence[Record]) -> Iterator[int]:
    """Yield the positions of the pieces of answers whose message is recorded.

    The pieces of an answer that a crash interrupted are all that exists of it, and stay.
    """
    pieces: list[int] = []
    for index, record in enumerate(records):
        match record["k"]:
            case "stream":
                pieces.append(index)
            case "message" if record.get("role") == "assistant":
                yield from pieces
                pieces.clear()
            case "asked" | "version":
                pieces.clear()
            case _:
                pass


class ThreadSummary(Struct, frozen=True, kw_only=True):
    """A thread in a list. Times are ISO 8601.

    `count` is the number of messages of user and model, `preview` the beginning of the last one.
    """

    id: str
    title: str
    created: str
    updated: str
    count: int
    model: str | None = None
    preview: str = ""


class ThreadHit(Struct, frozen=True):
    """A search result: a thread and up to three matching lines.

    `lines` is empty if only the title matches.
    """

    thread: ThreadSummary
    lines: tuple[str, ...]


def _prune(file: ThreadFile) -> None:
    """Remove superseded records, read again under the lock. Raises `ConfigError`."""
    with file.locked():
        records, damaged = file.read()
        if not damaged and (shorter := pruned(records)) is not None:
            file.replace(shorter)


def clean_title(title: str) -> str:
    """Return a title as one line of at most `TITLE_LENGTH` characters.

    Raises `ConfigError` ARGUMENT_INVALID if it is empty.
    """
    cleaned = _one_line(title)[:TITLE_LENGTH].strip()
    if not cleaned:
        raise ConfigError("A conversation needs a title.", code="ARGUMENT_INVALID")
    return cleaned


def summary_of(state: ThreadState) -> ThreadSummary:
    """Return the summary of a thread for a list."""
    last = next(
        (entry.text for entry in reversed(state.entries) if entry.role in ("person", "model")), ""
    )
    return ThreadSummary(
        id=state.id,
        title=state.title,
        created=state.created,
        updated=state.updated,
        count=state.count,
        model=state.model,
        preview=_one_line(last)[:PREVIEW],
    )


class ThreadStore(Struct, frozen=True):
    """The `threads` folder in the state of a vault."""

    folder: Path
    clock: Callable[[], datetime]

    def now(self) -> str:
        return self.clock().isoformat(timespec="milliseconds")

    def file(self, thread_id: str) -> ThreadFile:
        """Return the file of a thread, which need not exist.

        Raises `ConfigError` THREAD_NOT_FOUND if `thread_id` is not a valid id.
        """
        if _ID.fullmatch(thread_id) is None:
            raise _unknown(thread_id)
        return ThreadFile(self.folder / f"{thread_id}{_SUFFIX}")

    def create(self, model: str | None = None) -> ThreadState:
        """Create a thread. Its title is the current time until it gets one."""
        identity, now = secrets.token_hex(8), self.now()
        title = f"Conversation {self.clock():%Y-%m-%d %H:%M}"
        head = {"k": "thread", "format": FORMAT, "id": identity, "created": now}
        settings: dict[str, Any] = {"k": "set", "title": title, "titledBy": "time"}
        if model:
            settings["model"] = model
        self.file(identity).add(head, settings, create=True)
        state = thread_of([head, settings])
        assert state is not None
        return state

    def load(self, thread_id: str) -> ThreadState:
        """Read a thread.

        Raises `ConfigError`: THREAD_NOT_FOUND, THREAD_DAMAGED, THREAD_TOO_NEW.
        """
        file = self.file(thread_id)
        try:
            records, damaged = file.read()
        except OSError as error:
            raise _unknown(thread_id) from error
        _check_format(records, file.path)
        state = thread_of(records, damaged)
        if state is None or state.id != thread_id:
            raise ConfigError(
                f"The conversation in {file.path} cannot be read.",
                code="THREAD_DAMAGED",
                hint="Move the file to another folder.",
            )
        if not damaged and pruned(records) is not None:
            with contextlib.suppress(ConfigError):  # another program is using it: next time
                _prune(file)
        return state

    def summaries(self) -> list[ThreadSummary]:
        """Return all readable threads, the most recently used first."""
        summaries = [summary for path in self._files() if (summary := _glance(path)) is not None]
        return sorted(summaries, key=lambda summary: (summary.updated, summary.id), reverse=True)

    def search(self, query: str, limit: int = 50) -> list[ThreadHit]:
        """Return the threads that contain all words of the query in title or text, newest first."""
        words = query.casefold().split()
        hits: list[ThreadHit] = []
        for summary in self.summaries() if words else ():
            with contextlib.suppress(ConfigError):
                state = self.load(summary.id)
                if (lines := _hits(state, words)) is not None:
                    hits.append(ThreadHit(summary, lines))
            if len(hits) >= limit:
                break
        return hits

    def sent_messages(self, limit: int) -> list[str]:
        """Return the latest messages of the user in all threads, without repetitions, newest last.

        Threads are read from the most recently used one on until there are enough messages.
        """
        messages: dict[str, str] = {}
        for summary in self.summaries():
            with contextlib.suppress(ConfigError):
                for entry in self.load(summary.id).entries:
                    if entry.role == "person":
                        messages[entry.text] = max(entry.time, messages.get(entry.text, ""))
            if len(messages) >= limit:
                break
        return sorted(messages, key=lambda message: messages[message])[-limit:]

    def rename(self, thread_id: str, title: str, by: str = "person") -> str:
        """Rename a thread and return the title as stored (see `clean_title`)."""
        cleaned = clean_title(title)
        self._existing(thread_id).add({"k": "set", "title": cleaned, "titledBy": by})
        return cleaned

    def choose_model(self, thread_id: str, model: str | None) -> None:
        """Set the model of a thread (`PROVIDER/NAME`); None for the one in the settings."""
        self._existing(thread_id).add({"k": "set", "model": model})

    def delete(self, thread_id: str) -> bool:
        """Delete a thread permanently; return False if it did not exist."""
        try:
            self.file(thread_id).path.unlink()
        except FileNotFoundError:
            return False
        return True

    def rewind(self, thread_id: str, version: int) -> ThreadState:
        """Go back to the end of an earlier turn; later records stay in the file.

        Raises `ConfigError` NO_VERSION.
        """
        state = self.load(thread_id)
        if version not in {known.number for known in state.versions}:
            raise ConfigError(
                f"There is no version {version} of this conversation.",
                code="NO_VERSION",
                hint=f"Only the last {MAX_VERSIONS} versions are available.",
            )
        self.file(thread_id).add({"k": "rewound", "n": version, "time": self.now()})
        return self.load(thread_id)

    def _existing(self, thread_id: str) -> ThreadFile:
        file = self.file(thread_id)
        if not file.path.is_file():
            raise _unknown(thread_id)
        return file

    def _files(self) -> Iterator[Path]:
        try:
            entries = list(self.folder.iterdir())
        except FileNotFoundError:
            return
        for path in entries:
            if path.suffix == _SUFFIX and _ID.fullmatch(path.stem) is not None:
                yield path


def _glance(path: Path) -> ThreadSummary | None:
    """Read the summary of a thread, from the end of its file if that suffices."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL))
            tail = file.read()
            if size > TAIL and (summary := _from_tail(path.stem, tail)) is not None:
                return summary
            file.seek(0)
            records, damaged = records_in(file.read())
        _check_format(records, path)
    except (OSError, ConfigError):
        return None
    state = thread_of(records, damaged)
    return summary_of(state) if state is not None and state.id == path.stem else None


def _from_tail(identity: str, tail: bytes) -> ThreadSummary | None:
    """Return the summary stored in the last version, with any title or model set since.

    None if the tail holds no version, or a message or a rewind after it.
    """
    records, _ = records_in(tail.partition(b"\n")[2])
    last = next(
        (at for at in range(len(records) - 1, -1, -1) if records[at]["k"] == "version"), None
    )
    if last is None or any(record["k"] in ("asked", "rewound") for record in records[last:]):
        return None
    match records[last]:
        case {
            "title": str(title),
            "created": str(created),
            "time": str(time),
            "count": int(count),
            "preview": str(preview),
            **rest,
        }:
            model = rest.get("model")
            for record in records[last:]:
                if record["k"] == "set":
                    title = record["title"] if isinstance(record.get("title"), str) else title
                    model = record.get("model", model)
            return ThreadSummary(
                id=identity,
                title=title,
                created=created,
                updated=time,
                count=count,
                model=model if isinstance(model, str) else None,
                preview=preview,
            )
        case _:
            return None


def version_record(number: int, time: str, summary: ThreadSummary) -> dict[str, Any]:
    """Return the record that ends a turn. It holds what a list displays."""
    return {
        "k": "version",
        "n": number,
        "time": time,
        "title": summary.title,
        "created": summary.created,
        "count": summary.count,
        "model": summary.model,
        "preview": summary.preview,
    }


def _hits(state: ThreadState, words: list[str]) -> tuple[str, ...] | None:
    """Return up to `HITS` matching lines; None if the thread does not contain all words."""
    messages = [entry for entry in state.entries if entry.role in ("person", "model")]
    everything = "\n".join([state.title, *(entry.text for entry in messages)]).casefold()
    if not all(word in everything for word in words):
        return None
    lines = (line for entry in messages for line in _lines(entry))
    matches = [line for line in lines if any(word in line.casefold() for word in words)]
    return tuple(matches[:HITS])


def _lines(entry: ThreadEntry) -> Iterator[str]:
    for line in entry.text.splitlines():
        if line.strip():
            yield _one_line(line)[:PREVIEW]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _check_format(records: list[dict[str, Any]], path: Path) -> None:
    version = records[0].get("format") if records else None
    if isinstance(version, int) and version > FORMAT:
        message = f"{path} was written by a newer version of this program."
        raise ConfigError(message, code="THREAD_TOO_NEW", hint="Update the program to read it.")


def _unknown(thread_id: str) -> ConfigError:
    quoted = json.dumps(thread_id[:40], ensure_ascii=True)
    return ConfigError(
        f"There is no conversation {quoted}.",
        code="THREAD_NOT_FOUND",
        hint="List the conversations to see their ids.",
    )
