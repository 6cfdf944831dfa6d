"""Scanning many files for a snapshot: in parts, each by a process of its own where that pays.

A part writes the texts of its notes into one pack (the search engine's copy of the vault) and hands back what the snapshot keeps of each
file.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from obsidian_agent.vault.index_facts import asks_content, holds_facts
from obsidian_agent.vault.index_paths import KnownPaths
from obsidian_agent.vault.index_snapshot import NO_FACTS, NOT_PACKED, UNSETTLED, Packed, Row
from obsidian_agent.vault.index_walk import Stamp
from obsidian_agent.vault.index_worker import Job, Scanned, scan_part, worker
from obsidian_agent.vault.store import VaultStore

SETTLED_NS: Final = 2_000_000_000
"""A file counts as settled when its last change lies this far back: as coarse as the clock of the coarsest file system."""

WORTH_A_PROCESS: Final = 1_500
"""Notes for which a second process is started."""

WORKERS: Final = 2


class Built(NamedTuple):
    """Rows for a snapshot, and the names of the packs with their texts."""

    rows: list[Row]
    packs: list[str]


def scan_files(
    store: VaultStore,
    files: Sequence[tuple[str, Stamp]],
    folder: Path,
    first_pack: int = 0,
    cancelled: Callable[[], bool] = lambda: False,
) -> Built | None:
    """Rows for `files`, in their order, with the texts of the notes in new packs in `folder`; None when cancelled."""
    started_ns = time.time_ns()
    known = KnownPaths()
    wanted = [text for text, _ in files if asks_content(text) and holds_facts(known(text))]
    parts = _parts(wanted)
    packs = [f"{secrets.token_hex(6)}.pack" for _ in parts]
    jobs = [Job(store.real_path, part, str(folder / pack)) for part, pack in zip(parts, packs, strict=True)]
    scanned: dict[str, tuple[int, Scanned]] = {}
    for number, (part, results) in enumerate(zip(parts, _all_parts(jobs, cancelled), strict=False), first_pack):
        scanned.update(zip(part, ((number, each) for each in results), strict=True))
    if cancelled():
        return None
    return Built([_row(text, stamp, scanned.get(text), started_ns) for text, stamp in files], packs)


def _all_parts(jobs: Sequence[Job], cancelled: Callable[[], bool]) -> Iterator[list[Scanned]]:
    if len(jobs) == 1:
        yield scan_part(*jobs[0])
        return
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(job)) for job in jobs]
        for job, results in zip(jobs, workers, strict=True):
            if cancelled():
                return
            yield results() or scan_part(*job)


def _parts(wanted: list[str]) -> list[list[str]]:
    """As many parts as there are workers, where a second one pays; always one."""
    if len(wanted) < WORTH_A_PROCESS or (os.cpu_count() or 1) < WORKERS:
        return [wanted]
    middle = -(-len(wanted) // WORKERS)
    return [wanted[at : at + middle] for at in range(0, len(wanted), middle)]


def _row(text: str, stamp: Stamp, found: tuple[int, Scanned] | None, started_ns: int) -> Row:
    if found is None:
        return Row(text, stamp, NO_FACTS, (), (), NOT_PACKED, 0)
    pack, scanned = found
    settled = not scanned.failed and is_settled(stamp, started_ns)
    packed = Packed(pack, scanned.start, scanned.size)
    return Row(text, stamp if settled else UNSETTLED, scanned.facts, scanned.tags, scanned.targets, packed, scanned.flags)


def is_settled(stamp: Stamp, now_ns: int) -> bool:
    """Whether a later change of the file would show in its stamp, whatever the resolution of its times."""
    return max(stamp.mtime_ns, stamp.ctime_ns) < now_ns - SETTLED_NS
