"""Changes of an open vault: a renamed hub, a burst of another program's files, a changed note."""

from __future__ import annotations

import os
import shutil
import statistics
import threading
import time
from pathlib import Path

from bench.table import Row
from bench.vaultgen import Generated, generate
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.services.session import Session
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.keeper import IndexKeeper
from obsidian_agent.vault.index.watcher import VaultWatcher
from obsidian_agent.vault.paths.path import PathUse, parse

BURST = 30_000
SETTLED_SECONDS = 2.2
"""Age from which the record of a file counts: the rename is measured in a quiet vault."""


def measure(place: Path, sizes: tuple[int, ...], rounds: int) -> list[Row]:
    """Rows for vaults of these numbers of notes."""
    rows = []
    for notes in sizes:
        vault = generate(place / f"changes-{notes}", notes)
        rows += _hub(vault, place, rounds)
        shutil.rmtree(vault.folder)
    return [*rows, *_burst(place)]


# --- a hub is renamed ---


def _hub(vault: Generated, place: Path, rounds: int) -> list[Row]:
    dry, whole, undone = [], [], []
    with VaultStore.open(vault.folder) as store:
        session = build_session(Wiring(store, place / "state-changes"))
        for _ in range(rounds):
            referrers = _settled(session, vault)
            raw = _raw_loop(vault, referrers, place / "raw")
            started = time.perf_counter()
            ready = session.plans.dry_run(_plan(vault))
            previewed = time.perf_counter()
            assert session.plans.apply(ready, lambda _: None, threading.Event()).success
            applied = time.perf_counter()
            session.runs.undo(None)
            dry.append((previewed - started) / raw)
            whole.append((applied - started) / raw)
            undone.append((time.perf_counter() - applied) / (applied - started))
    what = f"{vault.notes:,} notes"
    each = f"{len(referrers):,} referrers"
    return [
        Row(
            what,
            "hub renamed: preview",
            each,
            "raw read, temp, rename",
            "",
            statistics.median(dry),
            "",
        ),
        Row(
            what,
            "hub renamed: preview, journal and writes",
            each,
            "raw read, temp, rename",
            "",
            statistics.median(whole),
            "<= 4.5",
        ),
        Row(what, "hub renamed: undo", each, "the run", "", statistics.median(undone), "<= 0.6"),
    ]


def _settled(session: Session, vault: Generated) -> list[str]:
    time.sleep(SETTLED_SECONDS)
    index = session.vault.view().index
    return [path.text for path in index.backlinks(parse(vault.hub, PathUse.READ))]


def _plan(vault: Generated) -> dict[str, object]:
    folder = vault.hub.rpartition("/")[0]
    args = {"from": vault.hub, "to": f"{folder}/A hub by another name.md"}
    step = {"id": "rename", "tool": "vault.rename", "args": args}
    return {"version": "1.0", "goal": "Rename the hub", "riskLevel": "writes", "steps": [step]}


def _raw_loop(vault: Generated, referrers: list[str], place: Path) -> float:
    """Return the seconds to read copies of the files, write temporary files and rename them."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    copies = []
    for number, text in enumerate(referrers):
        copies.append(os.fspath(place / f"{number}.md"))
        shutil.copy(vault.folder / text, copies[-1])
    started = time.perf_counter()
    for name in copies:
        handle = os.open(name, os.O_RDONLY)
        data = os.read(handle, 1 << 20)
        os.close(handle)
        handle = os.open(f"{name}.new", os.O_WRONLY | os.O_CREAT)
        os.write(handle, data.replace(b"[[", b"[["))
        os.close(handle)
        os.rename(f"{name}.new", name)
    return time.perf_counter() - started


# --- a burst ---


def _burst(place: Path) -> list[Row]:
    folder = place / "burst"
    (folder / "Sub").mkdir(parents=True)
    changed = threading.Condition()
    with VaultStore.open(folder) as store:
        keeper = IndexKeeper(store, place / "state-burst")
        keeper.use_process(lambda done, total: None)

        def told() -> None:
            with changed:
                changed.notify_all()

        watcher = VaultWatcher(store.real_path, keeper, told)
        watcher.start()
        time.sleep(1.0)
        _many_files(folder / "Sub")
        started = time.perf_counter()
        with changed:
            changed.wait_for(lambda: _known(keeper) == BURST, timeout=120)
        seconds = time.perf_counter() - started
        lost = BURST - _known(keeper)
        watcher.stop()
        reading = time.perf_counter()
        for entry in os.scandir(folder / "Sub"):
            Path(entry.path).read_bytes()
        reading = time.perf_counter() - reading
    shutil.rmtree(folder)
    return [
        Row("burst", f"{BURST:,} files made at once: lost", f"{lost}", "", "", None, "0"),
        Row(
            "burst",
            "until all can be asked about",
            f"{seconds:.2f} s",
            "reading them",
            f"{reading:.2f} s",
            None,
            "<= 2 s and parsing",
        ),
    ]


def _many_files(folder: Path) -> None:
    data = b"---\ntags: [a]\n---\n# Title\n\nSome text and a [[link]].\n"
    handle = os.open(folder, os.O_RDONLY)
    for number in range(BURST):
        file = os.open(f"{number}.md", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=handle)
        os.write(file, data)
        os.close(file)
    os.close(handle)


def _known(keeper: IndexKeeper) -> int:
    latest = keeper.latest
    return 0 if latest is None else sum(1 for _ in latest.file_paths())
