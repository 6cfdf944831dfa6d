"""Writing one record: actions and contents go in part by part, and become durable all at once."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from obsidian_agent.journal import integrity
from obsidian_agent.journal.blobs import Part, PartBuilder
from obsidian_agent.journal.boot import boot_id
from obsidian_agent.journal.db import journal_errors
from obsidian_agent.journal.records import NewRecord, Record
from obsidian_agent.journal.step_boundaries import Cut, pack_cuts
from obsidian_agent.vault.transaction.actions import Action

_WORKERS: Final = 2
_WAITING_BYTES: Final = 16 << 20
"""Contents that may wait to be written: a bound for memory."""


class RecordWriter:
    """Adds to one record within an open transaction; `commit` ends both. Contents are compressed in other threads meanwhile."""

    def __init__(
        self, connection: sqlite3.Connection, file: Path, new: NewRecord, last: tuple[int, bytes], flush: Callable[[], None]
    ) -> None:
        """`last`: number and hash of the record before it, whether it is still there or not."""
        self._connection = connection
        self._file = file
        self._flush = flush
        self._new = new
        self._seq, self._previous = last[0] + 1, last[1]
        self._moment = datetime.now(UTC)
        self._token = f"oa{secrets.token_hex(4)}"
        self._run_id = f"{self._moment:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self._count = 0
        self._packed = 0
        self._bytes = 0
        self._parts = 0
        self._builder = PartBuilder()
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[tuple[int, int, Future[Part]]] = deque()
        self._waiting_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def add(self, action: Action, images: Iterable[tuple[str, bytes]] = (), origin: int | None = None) -> int:
        """Add an action with the contents it is about; its number."""
        number = self._count
        self._builder.add(action, number if origin is None else origin, images)
        self._count += 1
        if self._builder.full:
            self._pool = self._pool or ThreadPoolExecutor(_WORKERS, thread_name_prefix="journal")
            self._waiting.append((self._packed, self._builder.size, self._pool.submit(self._builder.pack)))
            self._waiting_bytes += self._builder.size
            self._packed, self._builder = self._count, PartBuilder()
            while self._waiting_bytes > _WAITING_BYTES:
                self._write_oldest()
        return number

    def commit(self, *, durable: bool = True, cuts: Sequence[Cut] = ()) -> Record:
        """Make the record durable. JournalError when it cannot be, and then it isn't there. `cuts`: where a run can be cut in two.

        Without `durable` a power loss may take it: enough for a run that changes nothing.
        """
        while self._waiting:
            self._write_oldest()
        if not self._builder.empty:
            self._write(self._packed, self._builder.pack())
        new = self._new
        plan = None if new.plan is None else zlib.compress(json.dumps(dict(new.plan), ensure_ascii=False).encode(), 1)
        moment = self._moment.isoformat(timespec="seconds")
        with journal_errors(self._file):
            self._connection.execute(
                "INSERT INTO record (seq, run_id, kind, time, unix, goal, plan, plan_hash, status, token, source, run, count, bytes, cuts,"
                " boot) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'applying', ?, ?, ?, ?, ?, ?, ?)",
                (self._seq, self._run_id, new.kind, moment, time.time(), new.goal, plan, new.plan_hash, self._token)
                + (new.source, new.run, self._count, self._bytes, pack_cuts(cuts), boot_id()),
            )
            integrity.close(self._connection, self._seq, self._previous)
            self._connection.execute("COMMIT")
            try:
                if durable:
                    self._flush()
            except OSError:
                self._withdraw()
                raise
        return Record(
            seq=self._seq,
            run_id=self._run_id,
            kind=new.kind,
            time=moment,
            goal=new.goal,
            plan_hash=new.plan_hash,
            status="applying",
            token=self._token,
            source=new.source,
            run=new.run,
            count=self._count,
            applied=None,
            reversed=frozenset(),
            undone=False,
            has_images=True,
            boot=boot_id(),
        )

    def _withdraw(self) -> None:
        """The record is there but may not be on the disk: nothing will be done under it, so it must not look interrupted."""
        with suppress(sqlite3.Error):
            self._connection.execute("DELETE FROM part WHERE record = ?", (self._seq,))
            self._connection.execute("DELETE FROM record WHERE seq = ?", (self._seq,))

    def _write_oldest(self) -> None:
        first, size, part = self._waiting.popleft()
        self._waiting_bytes -= size
        self._write(first, part.result())

    def _write(self, first: int, part: Part) -> None:
        with journal_errors(self._file):
            self._connection.execute(
                "INSERT INTO part (record, number, first, actions, images, checksum) VALUES (?, ?, ?, ?, ?, ?)",
                (self._seq, self._parts, first, part.actions, part.images, part.checksum),
            )
        self._parts += 1
        self._bytes += len(part.actions) + len(part.images)
