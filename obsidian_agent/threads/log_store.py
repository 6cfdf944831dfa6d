"""The threads of one vault: a file each in the person's state folder. Everything here may block.

To a thread's file lines are added; a rewrite, which leaves out what no state that can be come back to needs any more, replaces the whole
file or nothing. A kill at any moment loses nothing that `add` has returned from, and a power loss nothing that came before a flush.
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

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import ConfigError
from obsidian_agent.state_files import make_private, replace_file
from obsidian_agent.threads.state import (
    FORMAT,
    VERSIONS_KEPT,
    Record,
    Said,
    ThreadState,
    line_of,
    records_in,
    thread_of,
)

_ADD = os.O_RDWR | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


@dataclass(slots=True)
class ThreadFile:
    """One thread's file. Safe to be used from several threads of the program."""

    path: Path
    size: int = -1
    """Bytes when this program last read or wrote it; -1 before."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def changed(self) -> bool:
        """Whether another program has added to it since."""
        try:
            found = self.path.stat()
            return stat.S_ISREG(found.st_mode) and found.st_size != self.size
        except OSError:
            return False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other programs from working in the same thread. Raises `ConfigError` THREAD_BUSY where one does already."""
        try:
            fd = os.open(self.path, os.O_RDONLY)
        except OSError:
            fd = -1  # saving will say what is wrong
        try:
            if fd >= 0 and not _lock_file(fd):
                message = "This conversation is being worked on in another window."
                raise ConfigError(message, code="THREAD_BUSY", hint="Wait, or begin another one.")
            yield
        finally:
            if fd >= 0:
                os.close(fd)

    def add(self, *records: Record, durable: bool = False, create: bool = False) -> None:
        """Add records; with `durable` they survive a power loss too. Raises `ConfigError` THREAD_NOT_SAVED.

        Without `create` there must be a file: one that was deleted meanwhile does not come back.
        """
        data = b"".join(line_of(record) for record in records)
        with self._lock, _told(self.path):
            fd = os.open(self.path, _ADD | (os.O_CREAT if create else 0), 0o600)
            try:
                if (
                    os.lseek(fd, 0, os.SEEK_END)
                    and os.lseek(fd, -1, os.SEEK_END) >= 0
                    and os.read(fd, 1) != b"\n"
                ):
                    data = b"\n" + data  # a line that a crash cut off stays one of its own
                while data:
                    data = data[os.write(fd, data) :]
                if durable:
                    os.fsync(fd)
                self.size = os.fstat(fd).st_size
            finally:
                os.close(fd)

    def read(self) -> tuple[list[dict[str, object]], int]:
        """All records, and how many lines were damaged. FileNotFoundError when there is none."""
        data = self.path.read_bytes()
        self.size = len(data)
        return records_in(data)

    def replace(self, records: Iterable[Record]) -> None:
        """Put these records in the place of all that are there: all or nothing."""
        data = b"".join(line_of(record) for record in records)
        with self._lock, _told(self.path):
            replace_file(self.path, data)
            self.size = len(data)


def _lock_file(fd: int) -> bool:
    """Whether nobody else holds it. Systems without such locks let everybody in."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


class _told(contextlib.AbstractContextManager["_told"]):
    """Failures of the disk as the error that a person is told."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, OSError):
            reason = error.strerror or type(error).__name__
            message = f"The conversation cannot be saved in {self._path} ({reason})."
            hint = "Make room, or correct the permissions of that file."
            raise ConfigError(message, code="THREAD_NOT_SAVED", hint=hint) from error


WORTH_IT: Final = 64
"""So many records must go before a file is written anew."""


def pruned(records: Sequence[Record]) -> list[Record] | None:
    """The records without what was superseded: pieces of answers that came to their end, and versions that are too old.

    None when that would not save much.
    """
    versions = [at for at, record in enumerate(records) if record["k"] == "version"]
    gone = {*versions[:-VERSIONS_KEPT], *_superseded(records)}
    return (
        [record for at, record in enumerate(records) if at not in gone]
        if len(gone) >= WORTH_IT
        else None
    )


def _superseded(records: Sequence[Record]) -> Iterator[int]:
    """Pieces of answers whose message is there; those of an answer that a crash cut off are all that there is of it."""
    pieces: list[int] = []
    for at, record in enumerate(records):
        match record["k"]:
            case "stream":
                pieces.append(at)
            case "message" if record.get("role") == "assistant":
                yield from pieces
                pieces.clear()
            case "asked" | "version":
                pieces.clear()
            case _:
                pass


_SUFFIX: Final = ".jsonl"
_ID: Final = re.compile(r"[0-9a-f]{16}")
TAIL: Final = 32 * 1024
"""Bytes at the end of a file that are looked at first: the last version tells all that a list shows."""
PREVIEW: Final = 160
TITLE_LENGTH: Final = 80
HITS: Final = 3
"""Characters of a message and of a title in a list of conversations, and passages of one that a search shows."""


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """A thread in a list. Times are ISO 8601; `count` messages of person and model; `preview` is the beginning of what was said last."""

    id: str
    title: str
    created: str
    updated: str
    count: int
    model: str | None = None
    preview: str = ""


@dataclass(frozen=True, slots=True)
class ThreadHit:
    """A thread that a search found, and up to three places in it (none when the title alone matches)."""

    thread: ThreadSummary
    lines: tuple[str, ...]


def _make_smaller(file: ThreadFile) -> None:
    """Leave out what was superseded, of the file as it is once nobody else writes. Raises `ConfigError`."""
    with file.held():
        records, damaged = file.read()
        if not damaged and (shorter := pruned(records)) is not None:
            file.replace(shorter)


def clean_title(title: str) -> str:
    """A title as it is kept. Raises `ConfigError` when nothing is left of it."""
    kept = _one_line(title)[:TITLE_LENGTH].strip()
    if not kept:
        raise ConfigError("A conversation needs a title.", code="ARGUMENT_INVALID")
    return kept


def summary_of(state: ThreadState) -> ThreadSummary:
    """What a list shows of a thread."""
    last = next(
        (said.text for said in reversed(state.said) if said.role in ("person", "model")), ""
    )
    return ThreadSummary(
        state.id,
        state.title,
        state.created,
        state.updated,
        state.count,
        state.model,
        _one_line(last)[:PREVIEW],
    )


@dataclass(frozen=True, slots=True)
class ThreadStore:
    """The folder `threads` of a vault's state."""

    folder: Path
    clock: Callable[[], datetime]

    def now(self) -> str:
        return self.clock().isoformat(timespec="milliseconds")

    def file(self, thread_id: str) -> ThreadFile:
        """The file of a thread, which need not exist. Raises `ConfigError` THREAD_NOT_FOUND for what cannot be an id."""
        if _ID.fullmatch(thread_id) is None:
            raise _unknown(thread_id)
        return ThreadFile(self.folder / f"{thread_id}{_SUFFIX}")

    def create(self, model: str | None = None) -> ThreadState:
        """A new thread. Its title is the time until one is found."""
        identity, now = secrets.token_hex(8), self.now()
        title = f"Conversation {self.clock():%Y-%m-%d %H:%M}"
        with contextlib.suppress(FileExistsError):
            make_private(self.folder)
        head = {"k": "thread", "format": FORMAT, "id": identity, "created": now}
        chosen: dict[str, Any] = {"k": "set", "title": title, "titledBy": "time"} | (
            {"model": model} if model else {}
        )
        self.file(identity).add(head, chosen, create=True)
        state = thread_of([head, chosen])
        assert state is not None
        return state

    def load(self, thread_id: str) -> ThreadState:
        """A thread as it was left. Raises `ConfigError`: THREAD_NOT_FOUND, THREAD_DAMAGED, THREAD_TOO_NEW."""
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
                hint="Move the file away.",
            )
        if not damaged and pruned(records) is not None:
            with contextlib.suppress(ConfigError):  # somebody works in it: another time
                _make_smaller(file)
        return state

    def summaries(self) -> list[ThreadSummary]:
        """All threads that can be read, the one that was used last first."""
        found = [summary for path in self._files() if (summary := _glance(path)) is not None]
        return sorted(found, key=lambda each: (each.updated, each.id), reverse=True)

    def search(self, query: str, limit: int = 50) -> list[ThreadHit]:
        """Threads whose title or words hold all words of the query, newest first."""
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

    def rename(self, thread_id: str, title: str, by: str = "person") -> str:
        """Give a thread a title; says how it is kept: one line, not too long."""
        kept = clean_title(title)
        self._existing(thread_id).add({"k": "set", "title": kept, "titledBy": by})
        return kept

    def choose_model(self, thread_id: str, model: str | None) -> None:
        """Let a thread have a model of its own (`PROVIDER/NAME`); None: the one of the settings."""
        self._existing(thread_id).add({"k": "set", "model": model})

    def delete(self, thread_id: str) -> bool:
        """Remove a thread for good; False when there was none."""
        try:
            self.file(thread_id).path.unlink()
        except FileNotFoundError:
            return False
        return True

    def rewind(self, thread_id: str, version: int) -> ThreadState:
        """Go back to the end of a turn; what came after it stays in the file. Raises `ConfigError` NO_VERSION."""
        state = self.load(thread_id)
        if version not in {each.number for each in state.versions}:
            raise ConfigError(
                f"There is no version {version} of this conversation.",
                code="NO_VERSION",
                hint="The last 20 are kept.",
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
    """What a list shows of a thread, from the end of its file where that tells enough."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL))
            tail = file.read()
            if size > TAIL and (found := _from_tail(path.stem, tail)) is not None:
                return found
            file.seek(0)
            records, damaged = records_in(file.read())
        _check_format(records, path)
    except (OSError, ConfigError):
        return None
    state = thread_of(records, damaged)
    return summary_of(state) if state is not None and state.id == path.stem else None


def _from_tail(identity: str, tail: bytes) -> ThreadSummary | None:
    """From the last version's own words; what was said since is not counted, unless it is a title or a model."""
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
                identity,
                title,
                created,
                time,
                count,
                model if isinstance(model, str) else None,
                preview,
            )
        case _:
            return None


def version_record(number: int, time: str, state: ThreadSummary) -> dict[str, Any]:
    """The end of a turn, with what a list shows."""
    shown = {
        "title": state.title,
        "created": state.created,
        "count": state.count,
        "model": state.model,
        "preview": state.preview,
    }
    return {"k": "version", "n": number, "time": time, **shown}


def _hits(state: ThreadState, words: list[str]) -> tuple[str, ...] | None:
    texts = [state.title, *(said.text for said in state.said if said.role in ("person", "model"))]
    everything = "\n".join(texts).casefold()
    if not all(word in everything for word in words):
        return None
    lines = (
        line for said in state.said if said.role in ("person", "model") for line in _lines(said)
    )
    found = [line for line in lines if any(word in line.casefold() for word in words)]
    return tuple(found[:HITS])


def _lines(said: Said) -> Iterator[str]:
    for line in said.text.splitlines():
        if line.strip():
            yield _one_line(line)[:PREVIEW]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _check_format(records: list[dict[str, Any]], path: Path) -> None:
    made = records[0].get("format") if records else None
    if isinstance(made, int) and made > FORMAT:
        message = f"{path} was written by a newer version of this program."
        raise ConfigError(message, code="THREAD_TOO_NEW", hint="Update the program to read it.")


def _unknown(thread_id: str) -> ConfigError:
    shown = json.dumps(thread_id[:40], ensure_ascii=True)
    return ConfigError(
        f"There is no conversation {shown}.",
        code="THREAD_NOT_FOUND",
        hint="List them to see which there are.",
    )
