"""Scanning many files for a snapshot: in parts, each by a process of its own where that pays.

A part writes the texts of its notes into one pack (the search engine's copy of the vault) and hands back what the snapshot keeps of each
file.
"""

from __future__ import annotations

import os
import queue
import secrets
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.chunk import Part, scan_part
from obsidian_agent.vault.index.facts import asks_content
from obsidian_agent.vault.index.gc_policy import no_collection
from obsidian_agent.vault.index.snapshot_file import FAILED, IDS, LONG, UNSETTLED, Records, Sources, Tagged, joined_sources, joined_tags
from obsidian_agent.vault.index.stamps import Stamp
from obsidian_agent.vault.index.worker import Job, Worker

SETTLED_NS: Final = 2_000_000_000
"""A file counts as settled when its last change lies this far back: as coarse as the clock of the coarsest file system."""

WORTH_A_PROCESS: Final = 1_500
"""Files for which processes are started."""

WORKERS: Final = 2
_LOOK_SECONDS: Final = 0.1

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how many files of how many are done."""


class Built(NamedTuple):
    """Records for a snapshot, and the names of the packs with their texts."""

    records: Records
    packs: list[str]


class Cancelled(Exception):
    """The caller wants no index any more. A signal, never seen outside of the index."""


def scan_files(
    store: VaultStore,
    found: Iterable[tuple[str, Stamp]],
    folder: Path,
    *,
    first_pack: int = 0,
    cancelled: Callable[[], bool] = lambda: False,
    progress: Progress = lambda done, total: None,
) -> Built:
    """Records of files, sorted by path, with the texts of the notes in new packs in `folder`. Raises Cancelled."""
    started_ns = time.time_ns()
    with ExitStack() as stack, no_collection():
        walk = iter(found)
        first = list(islice(walk, WORTH_A_PROCESS))
        # Python takes as long to start as a walk through thousands of files; so it starts before it is known how many there are.
        enough = len(first) == WORTH_A_PROCESS and (os.cpu_count() or 1) >= WORKERS
        workers = [stack.enter_context(Worker()) for _ in range(WORKERS)] if enough else []
        files = sorted(chain(first, walk))
        paths = [text for text, _ in files]
        jobs = _jobs(store, paths, folder, len(workers) or 1)
        records = Records.blank(paths, [stamp if is_settled(stamp, started_ns) else UNSETTLED for _, stamp in files])
        parts = _Parts(jobs, cancelled, progress).results(workers)
    _fill(records, jobs, parts, first_pack)
    return Built(records, [os.path.basename(job.pack) for job in jobs])


def _jobs(store: VaultStore, paths: list[str], folder: Path, parts: int) -> list[Job]:
    wanted = [number for number, text in enumerate(paths) if asks_content(text)]
    size = max(-(-len(wanted) // parts), 1)
    ranges = [wanted[at : at + size] for at in range(0, len(wanted), size)] or [[]]
    return [
        Job(store.real_path, ids, [paths[number] for number in ids], os.path.join(folder, f"{secrets.token_hex(6)}.pack")) for ids in ranges
    ]


class _Parts:
    """The parts of one build on their way."""

    def __init__(self, jobs: Sequence[Job], cancelled: Callable[[], bool], progress: Progress) -> None:
        self._jobs = jobs
        self._cancelled = cancelled
        self._progress = progress
        self._done = [0] * len(jobs)
        self._total = sum(len(job.paths) for job in jobs)

    def results(self, workers: Sequence[Worker]) -> list[Part]:
        """What was found, in the order of the jobs; by workers, or here where there are none or one failed."""
        found = self._by(workers[: len(self._jobs)]) if workers else [None] * len(self._jobs)
        return [part or self._here(number) for number, part in enumerate(found)]

    def _by(self, workers: Sequence[Worker]) -> list[Part | None]:
        answers: queue.SimpleQueue[tuple[int, int | Part | None]] = queue.SimpleQueue()

        def wait(number: int, worker: Worker) -> None:
            answers.put((number, worker.scan(self._jobs[number], lambda count: answers.put((number, count)))))

        for number, worker in enumerate(workers):
            threading.Thread(target=wait, args=(number, worker), name="index-part", daemon=True).start()
        parts: list[Part | None] = [None] * len(workers)
        waiting = len(workers)
        while waiting:
            if self._cancelled():
                raise Cancelled
            try:
                number, answer = answers.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue
            if isinstance(answer, int):
                self._report(number, answer)
            else:
                parts[number], waiting = answer, waiting - 1
        return parts

    def _here(self, number: int) -> Part:
        return scan_part(*self._jobs[number], report=lambda count: self._report(number, count))

    def _report(self, number: int, count: int) -> None:
        if self._cancelled():
            raise Cancelled
        self._done[number] = count
        self._progress(sum(self._done), self._total)


def _fill(records: Records, jobs: Sequence[Job], parts: Sequence[Part], first_pack: int) -> None:
    packs, starts, sizes = records.packed
    for pack, (job, part) in enumerate(zip(jobs, parts, strict=True), first_pack):
        lengths, begins, ends = array(IDS, part.fact_sizes), array(LONG, part.starts), array(LONG, part.sizes)
        for at, number in enumerate(job.ids):
            records.fact_sizes[number] = lengths[at]
            packs[number], starts[number], sizes[number] = pack, begins[at], ends[at]
            if flags := part.flags[at]:
                records.flags[number] = flags & ~FAILED
                if flags & FAILED:
                    records.stamps[number] = UNSETTLED
    records.facts = b"".join(part.facts for part in parts)
    records.aliases = [(number, alias) for part in parts for number, alias in part.aliases]
    records.tagged = joined_tags([Tagged(*each) for each in part.tagged] for part in parts)
    records.sources = joined_sources([[Sources(*each) for each in part.sources] for part in parts])


def is_settled(stamp: Stamp, now_ns: int) -> bool:
    """Whether a later change of the file would show in its stamp, whatever the resolution of its times."""
    return max(stamp.mtime_ns, stamp.ctime_ns) < now_ns - SETTLED_NS
