"""Scanning many files for a snapshot: in chunks, each by a process of its own where that pays.

A chunk writes the texts of its notes into one pack (the search engine's copy of the vault) and hands back what the snapshot keeps of each
file. A process is a module of this package, started anew: no fork (the program may have threads), no import of the program's main module.
Question and answer go over pipes, as Python serialises plain values. A process that fails costs nothing but time: then the work is done by
whoever asked.
"""

from __future__ import annotations

import marshal
import os
import queue
import secrets
import sys
import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from itertools import accumulate, chain, islice, pairwise
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, NamedTuple, Self, TypeAlias

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.filesystem.walk import FILE_FLAGS, NOFOLLOW
from obsidian_agent.vault.index.gc_pause import gc_paused
from obsidian_agent.vault.index.index import (
    PathCache,
    canvas_facts,
    has_facts_by_name,
    note_facts,
    pack_facts,
    tag_key,
)
from obsidian_agent.vault.index.snapshot_file import (
    FAILED,
    FOLDS_ODDLY,
    IDS,
    LONG,
    LOSSY,
    REFERS,
    UNSTABLE,
    FileStamp,
    LinkSources,
    Records,
    Tagged,
    joined_sources,
    joined_tags,
)
from obsidian_agent.vault.index.text_search import folds_oddly
from obsidian_agent.vault.links.resolve import target_name
from obsidian_agent.vault.markdown.canvas import CANVAS
from obsidian_agent.vault.markdown.note import names_in

_LENGTH: Final = 8
_LOOK_SECONDS: Final = 0.1


class Cancelled(Exception):
    """The caller wants no index any more. A signal, never seen outside of the index."""


class ChildProcess:
    """A process that waits for its question. It ends with the block, and with the program that asked, however that ends."""

    def __init__(self, module: str) -> None:
        """Start a module whose main calls `answer`. OSError when the system does not let it."""
        import subprocess  # not in the process itself

        # -P: the folder one happens to be in may be a vault, and nothing in a vault is ever imported.
        command = [sys.executable, "-P", "-m", module]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        with suppress(BrokenPipeError):
            self._questions.close()
        self._process.wait()

    def ask(self, question: object, report: Callable[[Any], None]) -> Any:
        """Hand over the question and wait for the answer, None when the process failed; `report` is told what it says meanwhile."""
        try:
            _put(self._questions, question)
            while True:
                is_answer, message = _get(self._answers)
                if is_answer:
                    return message
                report(message)
        except (OSError, EOFError, ValueError, TypeError):
            return None
        finally:
            self._answers.close()


def ask_all(
    children: Sequence[ChildProcess],
    questions: Sequence[object],
    report: Callable[[int, Any], None],
    cancelled: Callable[[], bool],
) -> list[Any]:
    """The answers of some processes, each to its own question; `report` is told in this thread what they say meanwhile. Raises Cancelled."""
    heard: queue.SimpleQueue[tuple[int, bool, Any]] = queue.SimpleQueue()

    def wait(number: int, child: ChildProcess, question: object) -> None:
        answer = child.ask(question, lambda message: heard.put((number, False, message)))
        heard.put((number, True, answer))

    for number, (child, question) in enumerate(zip(children, questions, strict=True)):
        threading.Thread(
            target=wait, args=(number, child, question), name="index-child", daemon=True
        ).start()
    answers: list[Any] = [None] * len(children)
    waiting = len(children)
    while waiting:
        if cancelled():
            raise Cancelled
        try:
            number, is_answer, message = heard.get(timeout=_LOOK_SECONDS)
        except queue.Empty:
            continue
        if is_answer:
            answers[number], waiting = message, waiting - 1
        else:
            report(number, message)
    return answers


def answer(work: Callable[[Any, Callable[[object], None]], object]) -> None:
    """In such a process: answer the one question. `work` gets it, and a function that tells the program something meanwhile."""
    question = _get(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    out = sys.stdout.buffer
    _put(out, (True, work(question, lambda message: _put(out, (False, message)))))


def _end_with_parent() -> None:
    # The pipe closes when the program that asked is gone. Not through `sys.stdin`: an interpreter cannot end while a thread waits in there.
    os.read(0, 1)
    os._exit(1)


def _put(file: IO[bytes], message: Any) -> None:
    data = marshal.dumps(message)
    file.write(len(data).to_bytes(_LENGTH, "big") + data)
    file.flush()


def _get(file: IO[bytes]) -> Any:
    length = int.from_bytes(file.read(_LENGTH), "big")
    return marshal.loads(file.read(length))


STABLE_NS: Final = 2_000_000_000
"""A file counts as settled when its last change lies this far back: as coarse as the clock of the coarsest file system."""

WORTH_A_PROCESS: Final = 1_500
"""Files for which processes are started."""

CHILDREN: Final = 2
"""Processes that scan; this one serves the screen meanwhile."""

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how many files of how many are done."""


class Job(NamedTuple):
    """The vault's folder, ids and paths of the files to scan, and the new file that gets the texts of the notes among them."""

    real_path: str
    ids: list[int]
    paths: list[str]
    pack: str


class Built(NamedTuple):
    """Records for a snapshot, and the names of the packs with their texts."""

    records: Records
    packs: list[str]


def scan_files(
    store: VaultStore,
    found: Iterable[tuple[str, FileStamp]],
    folder: Path,
    *,
    first_pack: int = 0,
    cancelled: Callable[[], bool] = lambda: False,
    progress: Progress = lambda done, total: None,
) -> Built:
    """Records of files, sorted by path, with the texts of the notes in new packs in `folder`. Raises Cancelled."""
    started_ns = time.time_ns()
    with ExitStack() as stack, gc_paused():
        walk = iter(found)
        first = list(islice(walk, WORTH_A_PROCESS))
        # Python takes as long to start as a walk through thousands of files; so it starts before it is known how many there are.
        enough = len(first) == WORTH_A_PROCESS and (os.cpu_count() or 1) >= CHILDREN
        children = (
            [stack.enter_context(ChildProcess(__name__)) for _ in range(CHILDREN)] if enough else []
        )
        files = sorted(chain(first, walk))
        jobs = _jobs(store, files, folder, len(children) or 1)
        records = Records.blank(
            [text for text, _ in files],
            [stamp if is_stable(stamp, started_ns) else UNSTABLE for _, stamp in files],
        )
        chunks = _Chunks(jobs, cancelled, progress).results(children)
    _fill(records, jobs, chunks, first_pack)
    return Built(records, [os.path.basename(job.pack) for job in jobs])


def _jobs(
    store: VaultStore, files: list[tuple[str, FileStamp]], folder: Path, parts: int
) -> list[Job]:
    """The files to scan, in parts of about as many bytes."""
    wanted = [number for number, (text, _) in enumerate(files) if has_facts_by_name(text)]
    ends = list(accumulate(max(files[number][1].size, 0) for number in wanted))
    cuts = [
        0,
        *(bisect_left(ends, ends[-1] * part // parts) for part in range(1, parts) if ends),
        len(wanted),
    ]
    return [
        Job(
            store.real_path,
            ids,
            [files[number][0] for number in ids],
            os.path.join(folder, f"{secrets.token_hex(6)}.pack"),
        )
        for ids in (wanted[first:last] for first, last in pairwise(cuts))
    ]


class _Chunks:
    """The chunks of one build on their way."""

    def __init__(
        self, jobs: Sequence[Job], cancelled: Callable[[], bool], progress: Progress
    ) -> None:
        self._jobs = jobs
        self._cancelled = cancelled
        self._progress = progress
        self._done = [0] * len(jobs)
        self._total = sum(len(job.paths) for job in jobs)

    def results(self, children: Sequence[ChildProcess]) -> list[Chunk]:
        """What was found, in the order of the jobs; by processes, or here where there are none or one failed."""
        asked = children[: len(self._jobs)]
        found = (
            ask_all(
                asked,
                [tuple(job) for job in self._jobs[: len(asked)]],
                self._report,
                self._cancelled,
            )
            if asked
            else []
        )
        found += [None] * (len(self._jobs) - len(found))
        return [
            self._here(number) if columns is None else Chunk(*columns)
            for number, columns in enumerate(found)
        ]

    def _here(self, number: int) -> Chunk:
        return scan_chunk(*self._jobs[number], report=lambda count: self._report(number, count))

    def _report(self, number: int, count: int) -> None:
        if self._cancelled():
            raise Cancelled
        self._done[number] = count
        self._progress(sum(self._done), self._total)


def _fill(records: Records, jobs: Sequence[Job], parts: Sequence[Chunk], first_pack: int) -> None:
    packs, starts, sizes = records.packed
    for pack, (job, part) in enumerate(zip(jobs, parts, strict=True), first_pack):
        lengths, begins, ends = (
            array(IDS, part.fact_sizes),
            array(LONG, part.starts),
            array(LONG, part.sizes),
        )
        for at, number in enumerate(job.ids):
            records.fact_sizes[number] = lengths[at]
            packs[number], starts[number], sizes[number] = pack, begins[at], ends[at]
            if flags := part.flags[at]:
                records.flags[number] = flags & ~FAILED
                if flags & FAILED:
                    records.stamps[number] = UNSTABLE
    records.facts = b"".join(part.facts for part in parts)
    records.aliases = [(number, alias) for part in parts for number, alias in part.aliases]
    records.tagged = joined_tags([Tagged(*each) for each in part.tagged] for part in parts)
    records.sources = joined_sources(
        [[LinkSources(*each) for each in part.sources] for part in parts]
    )


def is_stable(stamp: FileStamp, now_ns: int) -> bool:
    """Whether a later change of the file would show in its stamp, whatever the resolution of its times."""
    return max(stamp.mtime_ns, stamp.ctime_ns) < now_ns - STABLE_NS


# --- one chunk ------------------------------------------------------------------------------------------

REPORTED: Final = 250
"""Files after which progress is told."""

_AT_ONCE: Final = 1 << 16
_BUFFERED: Final = 1 << 20


class Chunk(NamedTuple):
    """What is found in some files, in columns; lists of numbers are bytes of arrays (`IDS`; `LONG` for `starts` and `sizes`).

    `tagged`, `sources` and `aliases` are as in `Records`, as plain tuples: this travels between processes.
    """

    facts: bytes
    fact_sizes: bytes
    starts: bytes
    sizes: bytes
    flags: bytes
    tagged: list[tuple[str, bytes]]
    sources: list[tuple[str, str, bytes]]
    aliases: list[tuple[int, str]]


def scan_chunk(
    real_path: str,
    ids: Sequence[int],
    paths: Sequence[str],
    pack: str,
    report: Callable[[int], None],
) -> Chunk:
    """Scan notes and canvases of the vault at `real_path`; their texts go into the file `pack`. `report` is told how many are done."""
    with (
        gc_paused(),
        VaultStore.open(real_path) as store,
        open(pack, "wb", opener=_private) as file,
    ):
        reader = _Reader(store)
        columns = _Columns()
        try:
            for count, (number, text) in enumerate(zip(ids, paths, strict=True)):
                if count % REPORTED == 0:
                    report(count)
                columns.add(number, text, reader.read(text))
                if columns.pending_size > _BUFFERED:
                    file.writelines(columns.taken())
        finally:
            reader.close()
        file.writelines(columns.taken())
        file.flush()
        os.fsync(file.fileno())
        return columns.done()


class _Columns:
    def __init__(self) -> None:
        self._facts: list[bytes] = []
        self._starts, self._sizes, self._flags = array(LONG), array(LONG), bytearray()
        self._tagged: dict[str, array[int]] = {}
        self._sources: dict[str, array[int]] = {}
        self._aliases: list[tuple[int, str]] = []
        self._pending: list[bytes] = []
        self._end = 0
        self.pending_size = 0

    def add(self, number: int, text: str, data: bytes | None) -> None:
        if data is None:
            self._row(b"", 0, FAILED)
            return
        is_canvas = text[-len(CANVAS) :].lower() == CANVAS
        facts = canvas_facts(data) if is_canvas else note_facts(names_in(data), data)
        if not is_canvas:
            self._pending += (data, b"\n")
            self.pending_size += len(data) + 1
        flags = (
            (LOSSY if facts.lossy else 0)
            | (FOLDS_ODDLY if folds_oddly(data) else 0)
            | (REFERS if facts.references else 0)
        )
        self._row(pack_facts(facts), 0 if is_canvas else len(data), flags)
        self._end += 0 if is_canvas else len(data) + 1
        for alias in facts.aliases:
            self._aliases.append((number, alias))
        for name in facts.tags:
            self._tagged.setdefault(tag_key(name), array(IDS)).append(number)
        for target in facts.targets:
            self._sources.setdefault(target, array(IDS)).append(number)

    def _row(self, facts: bytes, size: int, flags: int) -> None:
        self._facts.append(facts)
        self._starts.append(self._end)
        self._sizes.append(size)
        self._flags.append(flags)

    def taken(self) -> list[bytes]:
        """The texts that have not been written yet."""
        pending, self._pending, self.pending_size = self._pending, [], 0
        return pending

    def done(self) -> Chunk:
        return Chunk(
            b"".join(self._facts),
            array(IDS, map(len, self._facts)).tobytes(),
            self._starts.tobytes(),
            self._sizes.tobytes(),
            bytes(self._flags),
            sorted((key, ids.tobytes()) for key, ids in self._tagged.items()),
            sorted(
                (target_name(target), target, ids.tobytes())
                for target, ids in self._sources.items()
            ),
            sorted(self._aliases),
        )


class _Reader:
    """Reads files in the order of their folders, over one handle a folder. What is not a plain file goes through the store."""

    def __init__(self, store: VaultStore) -> None:
        self._store = store
        self._path = PathCache()
        self._folder: str | None = None
        self._handle = -1

    def read(self, text: str) -> bytes | None:
        """The bytes of a file; None when it cannot be read."""
        folder, _, name = text.rpartition("/")
        try:
            if folder != self._folder:
                self._enter(folder, text)
            if self._handle >= 0 and (data := self._plain(name)):
                return data
            return self._store.read(self._path(text))
        except VaultError:
            return None

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._folder, self._handle = None, -1

    def _enter(self, folder: str, text: str) -> None:
        self.close()
        if self._store.root_fd >= 0:
            self._handle = self._store.open_folder(self._path(text).parent)
        self._folder = folder

    def _plain(self, name: str) -> bytes:
        """The bytes of a small file; none when it is not one, is empty, or is a link."""
        try:
            handle = os.open(name, FILE_FLAGS | NOFOLLOW, dir_fd=self._handle)
        except OSError:
            return b""
        try:
            data = os.read(handle, _AT_ONCE)
        except OSError:
            return b""
        finally:
            os.close(handle)
        return data if len(data) < _AT_ONCE else b""


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o600)


def _main(
    question: tuple[str, list[int], list[str], str], report: Callable[[int], None]
) -> tuple[object, ...]:
    return tuple(scan_chunk(*question, report=report))


if __name__ == "__main__":
    answer(_main)
