"""The index and the search against a walk with stat, reading every note, ripgrep and rapidfuzz.

Subject and reference are measured in turn, in one process, on one vault; the ratio is the median of
the pairs.
"""

from __future__ import annotations

import gc
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.table import Row
from bench.vaultgen import COMMON, NEEDLE, Generated, generate
from obsidian_agent.tools.search.search import SearchRequest, search
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.index import tag_key, tag_within
from obsidian_agent.vault.index.keeper import SNAPSHOT_NAME, IndexKeeper
from obsidian_agent.vault.index.name_search import NameSearch
from obsidian_agent.vault.index.snapshot import Snapshot
from obsidian_agent.vault.index.stamps import walk_stamps
from obsidian_agent.vault.index.stored import StoredIndex
from obsidian_agent.vault.index.text_search import exact_needle, folded_needle
from obsidian_agent.vault.paths.path import PathUse, parse

Act = Callable[[], object]

QUERIES = ("re", "rese", "bela", "kala no", "xiyo")


def measure(place: Path, sizes: tuple[int, ...], rounds: int = 5) -> list[Row]:
    """All rows, for vaults of these numbers of notes made in `place`."""
    rows: list[Row] = []
    for notes in sizes:
        vault = generate(place / f"vault-{notes}", notes)
        rows += _Bench(vault, place / f"state-{notes}", rounds).rows()
    return rows


class _Bench:
    def __init__(self, vault: Generated, state: Path, rounds: int) -> None:
        self.vault = vault
        self.state = state
        self.rounds = rounds
        self.root = os.fspath(vault.folder)
        self.store = VaultStore.open(vault.folder)
        self.what = f"{vault.notes:,} notes"

    def rows(self) -> list[Row]:
        """Return the rows of one vault."""
        gc.disable()
        cold = self._cold(min(5, self.rounds))
        # Times of files must lie back before their records count.
        time.sleep(2.1)
        IndexKeeper(self.store, self.state).rebuild()
        index = IndexKeeper(self.store, self.state).refresh()
        rows = [
            *cold,
            self._row(
                "every path, for names",
                lambda: list(walk_stamps(self.store)),
                "scandir, stat",
                self._stat_all,
                "<= 1.5",
            ),
            self._row(
                "warm start",
                lambda: IndexKeeper(self.store, self.state).refresh(),
                "scandir, stat",
                self._stat_all,
                "<= 3",
            ),
            *self._names(index),
            *self._contents(index),
            *self._relations(index),
            *self._one_change(),
            *self._sizes(),
        ]
        gc.enable()
        return rows

    def _cold(self, rounds: int) -> list[Row]:
        """Return the build by the clock and by processor time.

        Two processes share its work, and on a busy machine the clock counts other programs too.
        """
        ours, theirs = [], []
        for _ in range(rounds):
            theirs.append(_both(self._read_all))
            ours.append(_both(self._build))
            gc.collect()
        rows = []
        for at, figure, goal in (
            (0, "cold index, built and saved", "<= 9"),
            (1, "cold index, processor time of all processes", ""),
        ):
            mine, its = [each[at] for each in ours], [each[at] for each in theirs]
            ratio = statistics.median(a / b for a, b in zip(mine, its, strict=True))
            rows.append(
                Row(self.what, figure, _ms(mine), "walk, stat, read", _ms(its), ratio, goal)
            )
        return rows

    # --- references ---

    def _listed(self) -> Iterator[os.DirEntry[str]]:
        pending = [self.root]
        while pending:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.name[0] == ".":
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        yield entry

    def _stat_all(self) -> list[tuple[str, int, int]]:
        found = []
        for entry in self._listed():
            info = entry.stat(follow_symlinks=False)
            found.append((entry.path, info.st_size, info.st_mtime_ns))
        return found

    def _read_all(self) -> int:
        total = 0
        for path, _, _ in self._stat_all():
            handle = os.open(path, os.O_RDONLY)
            total += len(os.read(handle, 1 << 16))
            os.close(handle)
        return total

    # --- subjects ---

    def _build(self) -> StoredIndex:
        shutil.rmtree(self.state, ignore_errors=True)
        return IndexKeeper(self.store, self.state).refresh()

    def _names(self, index: StoredIndex) -> Iterator[Row]:
        from rapidfuzz import fuzz, process

        paths = list(index.file_paths())
        subject = NameSearch(paths)
        for query in QUERIES:
            yield self._row(
                f"name search, {query!r}",
                partial(subject.search, query, 50),
                "rapidfuzz partial_ratio",
                partial(process.extract, query, paths, scorer=fuzz.partial_ratio, limit=50),
                "<= 0.35",
                before=lambda: subject.search("zzzz", 1),
            )

    def _contents(self, index: StoredIndex) -> Iterator[Row]:
        packs = index.packs
        for label, text in (("rare", NEEDLE), ("common", COMMON), ("absent", "zzzabsent")):
            exact, folded = exact_needle(text), folded_needle(text)
            assert exact is not None
            assert folded is not None
            yield self._against_rg(
                f"literal, {label}", partial(packs.candidates, exact), [text], "<= 0.5"
            )
            yield self._against_rg(
                f"literal, any case, {label}",
                partial(packs.candidates, folded),
                ["-i", text],
                "<= 0.5",
            )
        first = SearchRequest(COMMON, "content", limit=50)
        yield self._against_rg(
            "first 50 of a common word, ranked, and how many there are",
            lambda: search(index, first),
            [COMMON],
            "",
        )
        for pattern in (r"res\w+ch \w+a", r"(See|The) \w+fern"):
            request = SearchRequest(pattern, "content", regex=True, case_sensitive=True)
            yield self._against_rg(
                f"lines of {pattern}", partial(search, index, request), [pattern], "<= 1.2"
            )
        words = SearchRequest(f"{COMMON} {NEEDLE}", "content")
        yield self._against_rg(
            "two words, ranked", lambda: search(index, words), ["-i", COMMON], ""
        )

    def _against_rg(self, figure: str, subject: Act, arguments: list[str], goal: str) -> Row:
        program = ripgrep()
        if program is None:
            return self._row(figure, subject, "walk, stat, read (no ripgrep)", self._read_all, "")
        command = [program, "-l", *arguments, "-g", "*.md", self.root]
        return self._row(
            figure,
            subject,
            "ripgrep -l",
            lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=False),
            goal,
        )

    def _relations(self, index: StoredIndex) -> Iterator[Row]:
        snapshot = index.snapshot
        hub = parse(self.vault.hub, PathUse.READ)
        other = parse(snapshot.paths[len(snapshot) // 2], PathUse.READ)
        every = [
            (file, index.facts(parse(path, PathUse.READ)))
            for file, path in enumerate(snapshot.paths)
        ]
        links = [(file, target) for file, facts in every for target in facts.targets]
        tag = max(snapshot.tag_rows(), key=lambda pair: len(pair[1]))[0]
        tags = [(file, tag_key(name)) for file, facts in every for name in facts.tags]
        name = self.vault.hub.rpartition("/")[2][:-3].lower()
        scan = (
            "comparing all links",
            lambda: [file for file, target in links if target.lower().endswith(name)],
        )
        yield self._row(
            "backlinks of a note", lambda: index.backlink_paths(other), *scan, "<= 0.03"
        )
        yield self._row("backlinks of the hub", lambda: index.backlink_paths(hub), *scan, "<= 0.03")
        yield self._row(
            "notes with a tag",
            lambda: {file for row in snapshot.tagged(tag) for file in row},
            "comparing all tags",
            lambda: {file for file, name in tags if tag_within(name, tag)},
            "<= 0.02",
        )

    def _one_change(self) -> Iterator[Row]:
        keeper = IndexKeeper(self.store, self.state)
        keeper.refresh()
        path = parse(self.vault.hub, PathUse.READ)
        file = self.vault.folder / self.vault.hub
        data = file.read_bytes()
        seconds = []
        for number in range(50):
            file.write_bytes(data + f"\n[[changed {number}]]\n".encode())
            started = time.perf_counter()
            index = keeper.update_paths([path])
            assert index is not None
            assert index.facts(path).targets[-1] == f"changed {number}"
            seconds.append(time.perf_counter() - started)
        file.write_bytes(data)
        seconds.sort()
        yield Row(
            self.what,
            "a file changed until it can be asked about, p95",
            _ms(seconds[47:48]),
            "",
            "",
            None,
            "<= 5 ms",
        )

    def _sizes(self) -> Iterator[Row]:
        disk = sum(file.stat().st_size for file in self.state.iterdir())
        yield Row(
            self.what,
            "disk beside the vault",
            f"{disk / 2**20:.1f} MB",
            "text",
            "",
            disk / self.vault.size,
            "<= 1.3",
        )
        tracemalloc.start()
        snapshot = Snapshot(self.state / SNAPSHOT_NAME)
        names = NameSearch(snapshot.paths)
        memory = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert names.search("zzzz", 1).total == 0
        yield Row(
            self.what,
            "memory a note, with names",
            f"{memory / self.vault.notes:.0f} B",
            "",
            "",
            None,
            "<= 1,000 B",
        )

    def _row(
        self,
        figure: str,
        subject: Act,
        baseline: str,
        reference: Act,
        goal: str,
        *,
        rounds: int | None = None,
        before: Act = lambda: None,
    ) -> Row:
        ours, theirs = [], []
        for _ in range(rounds or self.rounds):
            theirs.append(_seconds(reference))
            before()
            ours.append(_seconds(subject))
            gc.collect()
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        return Row(self.what, figure, _ms(ours), baseline, _ms(theirs), ratio, goal)


def ripgrep() -> str | None:
    """Return the ripgrep next to this Python or on the path, or None."""
    beside = Path(sys.executable).with_name("rg")
    return os.fspath(beside) if beside.exists() else shutil.which("rg")


def growth(rows: list[Row]) -> list[Row]:
    """How the figures in milliseconds grow from each vault to the next larger one."""
    found = []
    by_figure: dict[str, list[Row]] = {}
    for row in rows:
        if re.fullmatch(r"[\d.]+ ms", row.ours):
            by_figure.setdefault(row.figure, []).append(row)
    for figure, same in by_figure.items():
        for small, large in zip(same, same[1:], strict=False):
            times = float(large.ours[:-3]) / max(float(small.ours[:-3]), 0.001)
            found.append(
                Row(
                    f"{small.what} to {large.what}",
                    f"growth: {figure}",
                    f"{times:.1f}x",
                    "",
                    "",
                    None,
                    "<= 11x",
                )
            )
    return found


def _both(act: Act) -> tuple[float, float]:
    """Seconds by the clock, and of processor time here and in the processes that were started."""
    started, before = time.perf_counter(), _processor_seconds()
    act()
    return time.perf_counter() - started, _processor_seconds() - before


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _seconds(act: Act) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def _ms(values: list[float]) -> str:
    return f"{statistics.median(values) * 1000:.3f} ms"
