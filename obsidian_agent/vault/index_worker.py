"""Scanning one part of a vault, here or in a process of its own.

The process is this module, started anew: no fork (the program may have threads), no import of the program's main module. A process that
fails costs nothing but time: then the part is scanned here.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.index_facts import Facts, facts_of
from obsidian_agent.vault.index_paths import KnownPaths
from obsidian_agent.vault.index_snapshot import FOLDS_ODDLY, LOSSY, NO_FACTS, pack_facts
from obsidian_agent.vault.search_needle import folds_oddly
from obsidian_agent.vault.store import VaultStore


class Job(NamedTuple):
    """The vault's folder, the files to scan, and the new file that gets the texts of the notes among them."""

    real_path: str
    paths: Sequence[str]
    pack: str


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


@contextmanager
def worker(job: Job) -> Iterator[Callable[[], list[Scanned] | None]]:
    """Start a process for a job; the function waits for its results, None when it failed. It ends with the block."""
    # -P: the folder one happens to be in may be a vault, and nothing in a vault is ever imported.
    command = [sys.executable, "-P", "-m", __name__]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(pickle.dumps(tuple(job)))
            process.stdin.close()
        answers = process.stdout
        yield lambda: _answer(answers.read())
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def _answer(data: bytes) -> list[Scanned] | None:
    try:
        return [Scanned(*fields) for fields in pickle.loads(data)]
    except (EOFError, pickle.UnpicklingError):
        return None


def _main() -> None:
    job = Job(*pickle.load(sys.stdin.buffer))
    sys.stdout.buffer.write(pickle.dumps([tuple(each) for each in scan_part(*job)], pickle.HIGHEST_PROTOCOL))


if __name__ == "__main__":
    _main()
