"""Scan of many files for a snapshot, in chunks that worker processes share if that pays."""

from __future__ import annotations

import os
import secrets
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import accumulate, chain, islice, pairwise
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.chunk import Chunk, scan_chunk
from obsidian_agent.vault.index.columns import (
    FAILED,
    ID_TYPE,
    LONG_TYPE,
    LinkSources,
    Records,
    TaggedNotes,
    join_sources,
    join_tags,
)
from obsidian_agent.vault.index.gc_pause import gc_paused
from obsidian_agent.vault.index.index import has_facts_by_name
from obsidian_agent.vault.index.stamps import UNSTABLE, FileStamp, is_stable
from obsidian_agent.vault.index.worker import IndexingCancelled, WorkerProcess, run_workers

PARALLEL_FROM: Final = 1_500
"""Number of files from which workers are started."""

WORKERS: Final = 2
"""Number of processes that scan, while this one serves the screen."""

_WORKER_MODULE: Final = "obsidian_agent.vault.index.chunk"

Progress: TypeAlias = Callable[[int, int], None]
"""A listener that receives the number of scanned files and of all files to scan."""


class Job(NamedTuple):
    """The files of one chunk: the vault's folder, their ids and paths, and the pack to create."""

    real_path: str
    ids: list[int]
    paths: list[str]
    pack: str


class ScanResult(NamedTuple):
    """Records for a snapshot, and the names of the packs with the texts."""

    records: Records
    packs: list[str]


def scan_files(
    store: VaultStore,
    stamps: Iterable[tuple[str, FileStamp]],
    folder: Path,
    *,
    first_pack: int = 0,
    is_cancelled: Callable[[], bool] = lambda: False,
    progress: Progress = lambda done, total: None,
) -> ScanResult:
    """Scan files and write the texts of the notes into new packs in `folder`.

    The records are sorted by path. Raise IndexingCancelled.
    """
    started_ns = time.time_ns()
    with ExitStack() as stack, gc_paused():
        walk = iter(stamps)
        first = list(islice(walk, PARALLEL_FROM))
        workers: list[WorkerProcess] = []
        # Python takes as long to start as a walk over thousands of files, so the workers are
        # started before the number of files is known.
        if len(first) == PARALLEL_FROM and (os.cpu_count() or 1) >= WORKERS:
            workers = [stack.enter_context(WorkerProcess(_WORKER_MODULE)) for _ in range(WORKERS)]
        files = sorted(chain(first, walk))
        jobs = _divide(store, files, folder, len(workers) or 1)
        records = Records.blank(
            [path for path, _ in files],
            [stamp if is_stable(stamp, started_ns) else UNSTABLE for _, stamp in files],
        )
        chunks = _JobRunner(jobs, is_cancelled, progress).run(workers)
    _fill(records, jobs, chunks, first_pack)
    return ScanResult(records, [os.path.basename(job.pack) for job in jobs])


def _divide(
    store: VaultStore, files: list[tuple[str, FileStamp]], folder: Path, parts: int
) -> list[Job]:
    """Divide the files with facts into jobs of about the same number of bytes."""
    numbers = [number for number, (path, _) in enumerate(files) if has_facts_by_name(path)]
    ends = list(accumulate(max(files[number][1].size, 0) for number in numbers))
    bounds = [0]
    if ends:
        bounds += [bisect_left(ends, ends[-1] * part // parts) for part in range(1, parts)]
    bounds.append(len(numbers))
    jobs = []
    for first, last in pairwise(bounds):
        ids = numbers[first:last]
        pack = os.path.join(folder, f"{secrets.token_hex(6)}.pack")
        jobs.append(Job(store.real_path, ids, [files[number][0] for number in ids], pack))
    return jobs


class _JobRunner:
    """The jobs of one scan, and their common progress."""

    def __init__(
        self, jobs: Sequence[Job], is_cancelled: Callable[[], bool], progress: Progress
    ) -> None:
        self._jobs = jobs
        self._is_cancelled = is_cancelled
        self._progress = progress
        self._done = [0] * len(jobs)
        self._total = sum(len(job.paths) for job in jobs)

    def run(self, workers: Sequence[WorkerProcess]) -> list[Chunk]:
        """Return the chunks in the order of the jobs.

        A job without a worker, or whose worker failed, is run in this process.
        """
        workers = workers[: len(self._jobs)]
        results = []
        if workers:
            tasks = [tuple(job) for job in self._jobs[: len(workers)]]
            results = run_workers(workers, tasks, self._report, self._is_cancelled)
        results += [None] * (len(self._jobs) - len(results))
        return [
            self._run_here(number) if columns is None else Chunk(*columns)
            for number, columns in enumerate(results)
        ]

    def _run_here(self, number: int) -> Chunk:
        return scan_chunk(
            *self._jobs[number], on_progress=lambda count: self._report(number, count)
        )

    def _report(self, number: int, count: int) -> None:
        if self._is_cancelled():
            raise IndexingCancelled
        self._done[number] = count
        self._progress(sum(self._done), self._total)


def _fill(records: Records, jobs: Sequence[Job], chunks: Sequence[Chunk], first_pack: int) -> None:
    packs, starts, sizes = records.packed
    for pack, (job, chunk) in enumerate(zip(jobs, chunks, strict=True), first_pack):
        fact_sizes = array(ID_TYPE, chunk.fact_sizes)
        chunk_starts = array(LONG_TYPE, chunk.starts)
        chunk_sizes = array(LONG_TYPE, chunk.sizes)
        for row, number in enumerate(job.ids):
            records.fact_sizes[number] = fact_sizes[row]
            packs[number], starts[number], sizes[number] = pack, chunk_starts[row], chunk_sizes[row]
            if flags := chunk.flags[row]:
                records.flags[number] = flags & ~FAILED
                if flags & FAILED:
                    records.stamps[number] = UNSTABLE
    records.facts = b"".join(chunk.facts for chunk in chunks)
    records.aliases = [alias for chunk in chunks for alias in chunk.aliases]
    records.tagged = join_tags([TaggedNotes(*row) for row in chunk.tagged] for chunk in chunks)
    records.sources = join_sources(
        [[LinkSources(*row) for row in chunk.sources] for chunk in chunks]
    )
