"""Scanning many files for a snapshot: in parts, each by a process of its own where that pays.

A part writes the texts of its notes into one pack (the search engine's copy of the vault) and hands back what the snapshot keeps of each
file. Workers are processes started anew, never forks: the program may have threads.
"""

from __future__ import annotations

import gc
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.index_facts import Facts, asks_content, facts_of, holds_facts
from obsidian_agent.vault.index_paths import KnownPaths
from obsidian_agent.vault.index_snapshot import FOLDS_ODDLY, LOSSY, NO_FACTS, NOT_PACKED, UNSETTLED, Packed, Row, pack_facts
from obsidian_agent.vault.index_walk import Stamp
from obsidian_agent.vault.search_needle import folds_oddly
from obsidian_agent.vault.store import VaultStore

SETTLED_NS: Final = 2_000_000_000
"""A file counts as settled when its last change lies this far back: as coarse as the clock of the coarsest file system."""

WORTH_A_PROCESS: Final = 1_500
"""Notes for which a second process is started."""

WORKERS: Final = 2


class Scanned(NamedTuple):
    """What a part says of one file, in the order in which it was asked."""

    facts: bytes
    tags: tuple[str, ...]
    targets: tuple[str, ...]
    start: int
    size: int
    flags: int
    failed: bool


UNKNOWN: Final = Scanned(NO_FACTS, (), (), 0, 0, 0, True)


class Built(NamedTuple):
    """Rows for a snapshot, and the names of the packs with their texts."""

    rows: list[Row]
    packs: list[str]


@contextmanager
def no_collection() -> Iterator[None]:
    """Without garbage collection while very many objects come to be: each pass would look at all of them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def scan_part(real_path: str, paths: Sequence[str], pack: str) -> list[Scanned]:
    """Scan files of the vault at `real_path` and put the texts of the notes among them into the file `pack`."""
    with no_collection(), VaultStore.open(real_path) as store, open(pack, "wb", opener=_private) as file:
        known = KnownPaths()
        at = 0
        found = []
        for text in paths:
            path = known(text)
            try:
                data = store.read(path)
            except VaultError:
                found.append(UNKNOWN)
                continue
            facts = facts_of(path, data)
            start = at
            if path.is_note:
                at += file.write(data) + file.write(b"\n")
            size = at - start - 1 if path.is_note else 0
            found.append(Scanned(pack_facts(facts), facts.tags, facts.targets, start, size, _flags(facts, data), False))
        file.flush()
        os.fsync(file.fileno())
    return found


def _flags(facts: Facts, data: bytes) -> int:
    return (LOSSY if facts.lossy else 0) | (FOLDS_ODDLY if folds_oddly(data) else 0)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o600)


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
    jobs = [(store.real_path, part, str(folder / pack)) for part, pack in zip(parts, packs, strict=True)]
    scanned: dict[str, tuple[int, Scanned]] = {}
    for number, (part, results) in enumerate(zip(parts, _all_parts(jobs, cancelled), strict=False), first_pack):
        scanned.update(zip(part, ((number, each) for each in results), strict=True))
    if cancelled():
        return None
    return Built([_row(text, stamp, scanned.get(text), started_ns) for text, stamp in files], packs)


def _all_parts(jobs: Sequence[tuple[str, Sequence[str], str]], cancelled: Callable[[], bool]) -> Iterable[list[Scanned]]:
    if len(jobs) == 1:
        yield scan_part(*jobs[0])
        return
    with ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
        futures = [pool.submit(scan_part, *job) for job in jobs]
        for future in futures:
            if cancelled():
                pool.shutdown(wait=False, cancel_futures=True)
                return
            yield future.result()


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
