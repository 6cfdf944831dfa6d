"""The keeper of a vault's index: it loads, builds, refreshes and saves the index.

The index is never older than the last comparison with the disk: the record of a file is used only
while size, times and inode are those with which it was read. If its files are damaged or missing,
the next start builds them again. The vault itself is only read.

For a program with a screen, another process does the scanning. Scanning holds Python's global lock
most of the time, so in the same process the screen would wait for it at every key. That process
runs this module and writes the files that the program would have written.
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

from msgspec import Struct

from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.state_files import make_private
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.columns import Records
from obsidian_agent.vault.index.gc_pause import gc_paused
from obsidian_agent.vault.index.index import NO_FACTS, PathCache, has_facts, scan_facts
from obsidian_agent.vault.index.packs import WORDS_SUFFIX, Packs
from obsidian_agent.vault.index.snapshot import Snapshot, merge_snapshot, write_snapshot
from obsidian_agent.vault.index.snapshot_file import UnusableIndex
from obsidian_agent.vault.index.stamps import (
    UNSTABLE,
    FileStamp,
    is_stable,
    read_stamp,
    walk_stamps,
)
from obsidian_agent.vault.index.stored import SnapshotChanges, StoredIndex
from obsidian_agent.vault.index.worker import IndexingCancelled, WorkerProcess, run_workers, serve
from obsidian_agent.vault.paths.path import VaultPath

SNAPSHOT_NAME: Final = "snapshot"
SAVED_AFTER: Final = 200
"""Number of changed files after which the snapshot is written again; more in a large vault."""

REBUILT_AFTER: Final = 8
"""Number of packs after which all texts are packed again, because packs also hold stale texts."""

PROCESS_AFTER: Final = 1_500
"""Number of files from which on another process is worth its start."""

_LEFTOVER_SECONDS: Final = 600
_BATCH: Final = 1_000
_NICENESS: Final = 10
_WORDS_MODULE: Final = "obsidian_agent.vault.index.words"


class IndexStatus(Struct, frozen=True, kw_only=True):
    """The state of a vault's index, for display."""

    ready: bool
    """True if queries are answered at once."""
    files: int
    seconds: float
    """The duration of the last refresh."""
    done: int = 0
    """The number of files scanned so far; 0 if no scan is running."""
    total: int = 0
    """The number of files to scan; 0 if no scan is running."""
    reused: int = 0
    """The number of records that were still valid, over all comparisons with the disk."""
    read: int = 0
    """The number of files that had to be read, over all comparisons with the disk."""


class IndexKeeper:
    """The index of one vault, stored in one folder. Threads may share it.

    During a long comparison with the disk, the other threads wait.
    """

    def __init__(
        self, store: VaultStore, folder: Path, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Create a keeper without touching the disk.

        `progress` receives the numbers of scanned files and of all files to scan, and (0, 0) at the
        end.
        """
        self.store = store
        self._folder = folder
        self._uses_process = False
        self._progress = progress
        self._lock = threading.RLock()
        self._words_lock = threading.Lock()
        self._index: StoredIndex | None = None
        self._vault_path = PathCache()
        self._seconds = 0.0
        self._in_memory = False
        self._scanned = (0, 0)
        self._reused = self._read = 0

    @property
    def status(self) -> IndexStatus:
        """The current state. Never blocks."""
        index = self._index
        done, total = self._scanned
        return IndexStatus(
            ready=index is not None,
            files=0 if index is None else len(index.snapshot),
            seconds=self._seconds,
            done=done,
            total=total,
            reused=self._reused,
            read=self._read,
        )

    @property
    def latest(self) -> StoredIndex | None:
        """The index as of the last comparison with the disk, or None. Never blocks."""
        return self._index

    @property
    def folder(self) -> Path:
        """The folder of the snapshot and the packs."""
        return self._folder

    def use_process(self, progress: Callable[[int, int], None]) -> None:
        """Scan many files in another process from now on, and report to `progress`.

        For programs whose threads must not be blocked.
        """
        self._uses_process = True
        self._progress = progress

    def refresh(self, is_cancelled: Callable[[], bool] = lambda: False) -> StoredIndex:
        """Compare the index with every file on disk, and return it.

        The first call loads it, or builds it if there is none. Raise VaultError (CANCELLED).
        """
        with self._lock, gc_paused():
            started = time.perf_counter()
            try:
                if self._index is None:
                    self._index = self._load()
                if self._index is not None:
                    index = self._compare(self._index, is_cancelled)
                else:
                    index = self._build(is_cancelled)
                self._index = self._save(index, is_cancelled)
            except IndexingCancelled:
                raise VaultError("Indexing was cancelled.", code="CANCELLED") from None
            finally:
                if self._scanned != (0, 0):
                    self._report(0, 0)
            self._seconds = time.perf_counter() - started
            return self._index

    def rebuild(self) -> StoredIndex:
        """Delete the index and build it again."""
        with self._lock:
            self._index = None
            with suppress(OSError):
                for file in list(self._folder.iterdir()):
                    file.unlink()
            return self.refresh()

    def prepare_words(self, is_cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Store the words of the notes, in another process, for programs that stay open.

        Searches are fast from then on; in a small vault they are without. May take long. Return
        whether the words are stored.
        """
        index = self._index
        if index is None or self._in_memory or len(index.snapshot) < PROCESS_AFTER:
            return False
        missing = index.packs.without_words()
        if not missing:
            return True
        if not self._words_lock.acquire(blocking=False):
            return False
        try:
            with WorkerProcess(_WORDS_MODULE) as worker:
                task = [tuple(pack) for pack in missing]
                return bool(run_workers([worker], [task], lambda *_: None, is_cancelled)[0])
        except (OSError, IndexingCancelled):
            return False
        finally:
            self._words_lock.release()

    def update_paths(self, paths: Iterable[VaultPath]) -> StoredIndex | None:
        """Compare only the files at these paths, and return the index.

        A path without a file counts as deleted. Return None before the first `refresh`.
        """
        with self._lock:
            if self._index is None:
                return None
            changed = self._index.changed.copy()
            for path in paths:
                self._update(changed, path, read_stamp(self.store, path), time.time_ns())
            self._index = self._index.with_changes(changed)
            return self._index

    # --- loading and building ---------------------------------------------------------------------

    def _load(self) -> StoredIndex | None:
        try:
            return self._open()
        except (UnusableIndex, OSError):
            return None

    def _open(self) -> StoredIndex:
        snapshot = Snapshot(self._folder / SNAPSHOT_NAME)
        for pack in snapshot.packs:
            (self._folder / pack).stat()
        return self._index_of(snapshot)

    def _index_of(self, snapshot: Snapshot) -> StoredIndex:
        return StoredIndex(snapshot, SnapshotChanges(), self.store, Packs(snapshot, self._folder))

    def _build(self, is_cancelled: Callable[[], bool]) -> StoredIndex:
        if (
            self._is_large()
            and (is_complete := self._refresh_in_process(is_cancelled)) is not None
            and (index := self._load()) is not None
        ):
            # It is newer than this call. Files that were changing then are compared the next time.
            return index if is_complete else self._compare(index, is_cancelled, may_rebuild=False)
        from obsidian_agent.vault.index.scan import scan_files

        try:
            make_private(self._folder)
            result = scan_files(
                self.store,
                walk_stamps(self.store),
                self._folder,
                is_cancelled=is_cancelled,
                progress=self._report,
            )
            self._write(result.records, result.packs)
            self._read += len(result.records.paths)
            del result  # as large as the index that is opened next
            return self._open()
        except (OSError, UnusableIndex):
            # If it cannot be stored, the index stays in memory, as if every file had just changed.
            self._in_memory = True
            return self._compare(self._index_of(Snapshot(None)), is_cancelled)

    def _is_large(self) -> bool:
        """Return whether a scan of the vault would be noticed."""
        return (
            self._uses_process
            and len(list(islice(walk_stamps(self.store), PROCESS_AFTER))) == PROCESS_AFTER
        )

    def _refresh_in_process(self, is_cancelled: Callable[[], bool]) -> bool | None:
        """Refresh the stored index in another process, if this keeper uses one.

        Return whether the result is stored completely, or None if there is no result.
        """
        if not self._uses_process:
            return None
        try:
            worker = WorkerProcess(__name__)
        except OSError:
            return None
        task = self.store.real_path, os.fspath(self._folder)
        with worker:
            results: list[bool | None] = run_workers(
                [worker], [task], lambda _, counts: self._report(*counts), is_cancelled
            )
        return results[0]

    def _report(self, done: int, total: int) -> None:
        self._scanned = (done, total)
        if self._progress is not None:
            self._progress(done, total)

    # --- comparing with the disk ------------------------------------------------------------------

    def _compare(
        self, index: StoredIndex, is_cancelled: Callable[[], bool], *, may_rebuild: bool = True
    ) -> StoredIndex:
        """Return the index with the files that differ on disk read again."""
        known = _stamps_by_path(index.snapshot)
        stale, stamps = index.changed.delta.stale, index.changed.stamps
        now_ns = time.time_ns()
        different: list[tuple[str, FileStamp]] = []
        file_count = 0
        for text, stamp in walk_stamps(self.store):
            file_count += 1
            before = known.pop(text, None)
            if before != stamp or text in stale:
                different.append((text, stamp))
        changed_files = [
            (text, stamp)
            for text, stamp in different
            if text not in stale or stamps.get(text) != stamp
        ]
        existing = {text for text, _ in different}
        deleted = [text for text in known if text not in stale]
        deleted += [text for text in index.changed.delta.files if text not in existing]
        self._reused += file_count - len(changed_files)
        if not changed_files and not deleted:
            return index
        if (
            may_rebuild
            and not self._in_memory
            and len(changed_files) > max(SAVED_AFTER, len(index.snapshot) // 2)
        ):
            return self._build(is_cancelled)
        changed = index.changed.copy()
        for text in deleted:
            self._update(changed, self._vault_path(text), None, now_ns)
        for count, (text, stamp) in enumerate(changed_files):
            if count % _BATCH == 0 and is_cancelled():
                raise IndexingCancelled
            self._update(changed, self._vault_path(text), stamp, now_ns)
        return index.with_changes(changed)

    def _update(
        self, changed: SnapshotChanges, path: VaultPath, stamp: FileStamp | None, now_ns: int
    ) -> None:
        """Read a file again; without a stamp it is deleted."""
        changed.stamps.pop(path.text, None)
        self._read += stamp is not None
        if stamp is None:
            changed.delta.remove(path)
            return
        if not has_facts(path):
            changed.delta.update(path, NO_FACTS)
            changed.stamps[path.text] = stamp
            return
        try:
            facts = scan_facts(path, self.store.read(path))
        except VaultError as error:
            changed.delta.update(path, NO_FACTS, error.problem())
            return
        changed.delta.update(path, facts)
        if is_stable(stamp, now_ns):
            changed.stamps[path.text] = stamp

    # --- saving -----------------------------------------------------------------------------------

    def _save(self, index: StoredIndex, is_cancelled: Callable[[], bool]) -> StoredIndex:
        """Write the index if enough of it is new, and return it."""
        new = len(index.changed.delta.stale)
        if self._in_memory or new <= max(SAVED_AFTER, len(index.snapshot) // 50):
            return index
        try:
            if (
                len(index.snapshot) >= PROCESS_AFTER
                and self._refresh_in_process(is_cancelled) is not None
                and (saved := self._load()) is not None
            ):
                return self._compare(saved, is_cancelled, may_rebuild=False)
            if len(index.snapshot.packs) >= REBUILT_AFTER or new > len(index.snapshot) // 2:
                return self._build(is_cancelled)
            return self._merge(index)
        except (OSError, UnusableIndex, PathRefused):
            return index

    def _merge(self, index: StoredIndex) -> StoredIndex:
        """Write a snapshot of the current state. The texts of changed notes get a new pack."""
        from obsidian_agent.vault.index.scan import scan_files

        snapshot, delta = index.snapshot, index.changed.delta
        stamps = [(text, index.changed.stamps.get(text, UNSTABLE)) for text in delta.files]
        result = scan_files(
            self.store, stamps, self._folder, first_pack=len(snapshot.packs), progress=self._report
        )
        records = merge_snapshot(snapshot, delta.stale, result.records)
        self._write(records, [*snapshot.packs, *result.packs])
        return self._open()

    def _write(self, records: Records, packs: list[str]) -> None:
        replaced = self._index.snapshot.packs if self._index is not None else ()
        write_snapshot(self._folder / SNAPSHOT_NAME, records, packs)
        os.chmod(self._folder, 0o700)
        for file in self._folder.iterdir():
            pack = file.name.removesuffix(WORDS_SUFFIX)
            if file.name != SNAPSHOT_NAME and pack not in packs:
                with suppress(OSError):
                    if pack in replaced or time.time() - file.stat().st_mtime > _LEFTOVER_SECONDS:
                        file.unlink()


def _stamps_by_path(snapshot: Snapshot) -> dict[str, tuple[int, int, int, int]]:
    """Return the stamps of a snapshot's files.

    In batches: one long call would block all other threads, for instance that of the screen.
    """
    stamps_by_path: dict[str, tuple[int, int, int, int]] = {}
    stamps = snapshot.stamps()
    for start in range(0, len(snapshot), _BATCH):
        batch = snapshot.paths[start : start + _BATCH]
        stamps_by_path.update(zip(batch, islice(stamps, len(batch)), strict=True))
    return stamps_by_path


def _main(task: tuple[str, str], on_progress: Callable[[tuple[int, int]], None]) -> bool:
    """Refresh an index in a worker process, at low priority.

    Return whether the result is stored completely.
    """
    real_path, folder = task
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    with VaultStore.open(real_path) as store:
        keeper = IndexKeeper(store, Path(folder), lambda done, total: on_progress((done, total)))
        return not keeper.refresh().changed.delta.stale


if __name__ == "__main__":
    serve(_main)
