"""The keeper of a vault's index: loads it, builds it when there is none, compares it with the disk, and saves what was learnt.

Nothing it says is older than the last look at the disk: a file's record counts only while size, times and inode are those with which it was
read. Whatever happens to its files, the next start builds them anew; the vault itself is only read.

For a program with a screen to keep alive a process of its own does the scanning, which holds Python's one lock for most of its time: a screen
in the same process would wait for it at every key. The process is this module, started anew, and writes the files that the program would
have written.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.state_files import make_private
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.build import (
    Cancelled,
    ChildProcess,
    answer,
    ask_all,
    is_stable,
    scan_files,
)
from obsidian_agent.vault.index.gc_pause import gc_paused
from obsidian_agent.vault.index.index import NO_FACTS, PathCache, has_facts, scan_facts
from obsidian_agent.vault.index.snapshot import Packs, Snapshot, merged, write_snapshot
from obsidian_agent.vault.index.snapshot_file import (
    UNSTABLE,
    FileStamp,
    Records,
    UnusableIndex,
    stamp,
    walk_stamps,
)
from obsidian_agent.vault.index.stored import SnapshotChanges, StoredIndex
from obsidian_agent.vault.paths.path import VaultPath

SNAPSHOT_NAME: Final = "snapshot"
SAVED_AFTER: Final = 200
"""Files that may differ from the snapshot before it is written again; a larger vault may have more."""

REBUILT_AFTER: Final = 8
"""Packs of texts after which everything is packed anew: texts that are no longer valid lie in them too."""

PROCESS_AFTER: Final = 1_500
"""Files from which on a process is worth its start."""

_LEFTOVER_SECONDS: Final = 600
_MANY: Final = 1_000
_NICENESS: Final = 10


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """What the keeper is at: `ready` once questions are answered at once, `files` that it knows, how long the last refresh took.

    While files are being scanned `done` of `total` are; else both are 0. At the comparisons with the disk so far the records of `reused` files
    were still good, and those of `read` files had to be made.
    """

    ready: bool
    files: int
    seconds: float
    done: int = 0
    total: int = 0
    reused: int = 0
    read: int = 0


class IndexKeeper:
    """One vault's index in one folder of the state. Threads may share it; a long look at the disk makes the others wait."""

    def __init__(
        self, store: VaultStore, folder: Path, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """`progress` is told how many files of how many are scanned, and (0, 0) when that is over."""
        self.store = store
        self._folder = folder
        self._uses_process = False
        self._tell = progress
        self._lock = threading.RLock()
        self._index: StoredIndex | None = None
        self._path = PathCache()
        self._seconds = 0.0
        self._in_memory = False
        self._scanned = (0, 0)
        self._reused = self._read = 0

    @property
    def status(self) -> IndexStatus:
        """Never blocks."""
        index = self._index
        return IndexStatus(
            index is not None,
            0 if index is None else len(index.snapshot),
            self._seconds,
            *self._scanned,
            self._reused,
            self._read,
        )

    @property
    def latest(self) -> StoredIndex | None:
        """The index as of the last look at the disk, None before the first. Never blocks."""
        return self._index

    @property
    def folder(self) -> Path:
        """Where the snapshot and the packs are."""
        return self._folder

    def use_process(self, progress: Callable[[int, int], None]) -> None:
        """Let another process scan many files from now on, for a program whose threads must not be held up, and tell `progress`."""
        self._uses_process, self._tell = True, progress

    def refresh(self, cancelled: Callable[[], bool] = lambda: False) -> StoredIndex:
        """Compare with every file on disk; load or build first where that was not done. The index as the disk is now."""
        with self._lock, gc_paused():
            started = time.perf_counter()
            try:
                if self._index is None:
                    self._index = self._loaded()
                index = (
                    self._compared(self._index, cancelled)
                    if self._index is not None
                    else self._built(cancelled)
                )
                self._index = self._saved(index, cancelled)
            except Cancelled:
                raise VaultError("Indexing was cancelled.", code="CANCELLED") from None
            finally:
                if self._scanned != (0, 0):
                    self._report(0, 0)
            self._seconds = time.perf_counter() - started
            return self._index

    def rebuild(self) -> StoredIndex:
        """Forget everything and build anew."""
        with self._lock:
            self._index = None
            with suppress(OSError):
                for file in list(self._folder.iterdir()):
                    file.unlink()
            return self.refresh()

    def update_paths(self, paths: Iterable[VaultPath]) -> StoredIndex | None:
        """Compare only these paths (files; a path with nothing there counts as gone). None before the first `refresh`."""
        with self._lock:
            if self._index is None:
                return None
            changed = self._index.changed.copy()
            for path in paths:
                self._learn(changed, path, stamp(self.store, path), time.time_ns())
            self._index = self._index.with_changes(changed)
            return self._index

    # --- making ------------------------------------------------------------------------------------------------------------------

    def _loaded(self) -> StoredIndex | None:
        try:
            return self._opened()
        except (UnusableIndex, OSError):
            return None

    def _opened(self) -> StoredIndex:
        snapshot = Snapshot(self._folder / SNAPSHOT_NAME)
        for pack in snapshot.packs:
            (self._folder / pack).stat()
        return self._over(snapshot)

    def _over(self, snapshot: Snapshot) -> StoredIndex:
        return StoredIndex(snapshot, SnapshotChanges(), self.store, Packs(snapshot, self._folder))

    def _built(self, cancelled: Callable[[], bool]) -> StoredIndex:
        if (
            self._is_large()
            and (saved := self._by_another(cancelled)) is not None
            and (index := self._loaded()) is not None
        ):
            # It is as the disk was after this was asked for. Files that were changing then are looked at again the next time.
            return index if saved else self._compared(index, cancelled, rebuild=False)
        try:
            make_private(self._folder)
            built = scan_files(
                self.store,
                walk_stamps(self.store),
                self._folder,
                cancelled=cancelled,
                progress=self._report,
            )
            self._write(built.records, built.packs)
            self._read += len(built.records.paths)
            del built  # as large as what is opened now
            return self._opened()
        except (OSError, UnusableIndex):
            # Without a place to keep it the index lives in memory, as if every file had just changed.
            self._in_memory = True
            return self._compared(self._over(Snapshot(None)), cancelled)

    def _is_large(self) -> bool:
        """Whether scanning the vault would be felt."""
        return (
            self._uses_process
            and len(list(islice(walk_stamps(self.store), PROCESS_AFTER))) == PROCESS_AFTER
        )

    def _by_another(self, cancelled: Callable[[], bool]) -> bool | None:
        """Let a process of its own do what there is to scan and write, where that is wanted; whether all of it is written, None if it failed."""
        if not self._uses_process:
            return None
        try:
            child = ChildProcess(__name__)
        except OSError:
            return None
        question = self.store.real_path, os.fspath(self._folder)
        with child:
            found: bool | None = ask_all(
                [child], [question], lambda _, counts: self._report(*counts), cancelled
            )[0]
            return found

    def _report(self, done: int, total: int) -> None:
        self._scanned = (done, total)
        if self._tell is not None:
            self._tell(done, total)

    def _compared(
        self, index: StoredIndex, cancelled: Callable[[], bool], *, rebuild: bool = True
    ) -> StoredIndex:
        known = _by_path(index.snapshot)
        stale, stamps = index.changed.delta.stale, index.changed.stamps
        now_ns = time.time_ns()
        different: list[tuple[str, FileStamp]] = []
        seen = 0
        for text, found in walk_stamps(self.store):
            seen += 1
            before = known.pop(text, None)
            if before != found or text in stale:
                different.append((text, found))
        news = [
            (text, found)
            for text, found in different
            if text not in stale or stamps.get(text) != found
        ]
        there = {text for text, _ in different}
        gone = [text for text in known if text not in stale] + [
            text for text in index.changed.delta.files if text not in there
        ]
        self._reused += seen - len(news)
        if not news and not gone:
            return index
        if (
            rebuild
            and not self._in_memory
            and len(news) > max(SAVED_AFTER, len(index.snapshot) // 2)
        ):
            return self._built(cancelled)
        changed = index.changed.copy()
        for text in gone:
            self._learn(changed, self._path(text), None, now_ns)
        for count, (text, found) in enumerate(news):
            if count % _MANY == 0 and cancelled():
                raise Cancelled
            self._learn(changed, self._path(text), found, now_ns)
        return index.with_changes(changed)

    def _learn(
        self, changed: SnapshotChanges, path: VaultPath, found: FileStamp | None, now_ns: int
    ) -> None:
        changed.stamps.pop(path.text, None)
        self._read += found is not None
        if found is None:
            changed.delta.forget(path)
            return
        if not has_facts(path):
            changed.delta.update(path, NO_FACTS)
            changed.stamps[path.text] = found
            return
        try:
            facts = scan_facts(path, self.store.read(path))
        except VaultError as error:
            changed.delta.update(path, NO_FACTS, error.problem())
            return
        changed.delta.update(path, facts)
        if is_stable(found, now_ns):
            changed.stamps[path.text] = found

    # --- keeping -----------------------------------------------------------------------------------------------------------------

    def _saved(self, index: StoredIndex, cancelled: Callable[[], bool]) -> StoredIndex:
        """The same index, written if enough of it is new."""
        new = len(index.changed.delta.stale)
        if self._in_memory or new <= max(SAVED_AFTER, len(index.snapshot) // 50):
            return index
        try:
            if (
                len(index.snapshot) >= PROCESS_AFTER
                and self._by_another(cancelled) is not None
                and (saved := self._loaded()) is not None
            ):
                return self._compared(saved, cancelled, rebuild=False)
            if len(index.snapshot.packs) >= REBUILT_AFTER or new > len(index.snapshot) // 2:
                return self._built(cancelled)
            return self._merged(index)
        except (OSError, UnusableIndex, PathRefused):
            return index

    def _merged(self, index: StoredIndex) -> StoredIndex:
        """A snapshot of what is known: the texts of what changed go into one more pack."""
        snapshot, delta = index.snapshot, index.changed.delta
        files = [(text, index.changed.stamps.get(text, UNSTABLE)) for text in delta.files]
        built = scan_files(
            self.store, files, self._folder, first_pack=len(snapshot.packs), progress=self._report
        )
        self._write(merged(snapshot, delta.stale, built.records), [*snapshot.packs, *built.packs])
        return self._opened()

    def _write(self, records: Records, packs: list[str]) -> None:
        replaced = self._index.snapshot.packs if self._index is not None else ()
        write_snapshot(self._folder / SNAPSHOT_NAME, records, packs)
        os.chmod(self._folder, 0o700)
        for file in self._folder.iterdir():
            if file.name != SNAPSHOT_NAME and file.name not in packs:
                with suppress(OSError):
                    if (
                        file.name in replaced
                        or time.time() - file.stat().st_mtime > _LEFTOVER_SECONDS
                    ):
                        file.unlink()


def _by_path(snapshot: Snapshot) -> dict[str, tuple[int, int, int, int]]:
    """The stamps of a snapshot's files, a piece at a time: in one go no other thread, as that of the screen, could run meanwhile."""
    found: dict[str, tuple[int, int, int, int]] = {}
    stamps = snapshot.stamps()
    for at in range(0, len(snapshot), _MANY):
        piece = snapshot.paths[at : at + _MANY]
        found.update(zip(piece, islice(stamps, len(piece)), strict=True))
    return found


def _refresh(question: tuple[str, str], report: Callable[[tuple[int, int]], None]) -> bool:
    """In a process of its own: what `refresh` does, with less claim to the processor than the program that asked. Whether it kept nothing in memory."""
    real_path, folder = question
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    with VaultStore.open(real_path) as store:
        return (
            not IndexKeeper(store, Path(folder), lambda done, total: report((done, total)))
            .refresh()
            .changed.delta.stale
        )


if __name__ == "__main__":
    answer(_refresh)
