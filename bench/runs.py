"""Runs of many files against a bare loop that makes the same files durable one by one."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.table import Row

BODY = "A line of a note that somebody wrote, with a [[link]] and a #tag in it.\n" * 30
NOTE = "---\ntitle: Note {n}\nstatus: draft\ntags:\n  - project\n---\n# Note {n}\n\n" + BODY


@dataclass(frozen=True, slots=True)
class Workload:
    """A plan, its vault, and the files (name and bytes) that the baseline writes in a bare loop."""

    name: str
    count: int
    plan: dict[str, Any]
    files: list[tuple[str, bytes]]
    start: list[tuple[str, bytes]]


def creates(count: int) -> Workload:
    """One step that creates `count` notes of 2.2 KB."""
    items = [{"n": n} for n in range(count)]
    step = {
        "id": "make",
        "tool": "vault.createFile",
        "foreach": {"from": items, "itemName": "item"},
        "args": {"path": "Notes/Note ${item.n}.md", "content": NOTE.replace("{n}", "${item.n}")},
    }
    files = [(f"Note {n}.md", NOTE.replace("{n}", str(n)).encode()) for n in range(count)]
    return Workload("create", count, _plan([step]), files, [])


def properties(count: int) -> Workload:
    """Two steps that set one property in `count` notes."""
    steps = [
        {"id": "list", "tool": "vault.listFiles", "args": {"folder": "Notes", "extension": "md"}},
        {
            "id": "edit",
            "tool": "vault.setFrontmatter",
            "foreach": {"from": "$steps.list.files", "itemName": "file"},
            "args": {"path": "${file.path}", "set": {"status": "done"}},
        },
    ]
    start = [(f"Note {n}.md", NOTE.replace("{n}", str(n)).encode()) for n in range(count)]
    files = [(name, data.replace(b"status: draft", b"status: done")) for name, data in start]
    return Workload("frontmatter", count, _plan(steps), files, start)


def _plan(steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {"version": "1.0", "goal": "measure", "riskLevel": "writes", "steps": steps}


def bare_loop(folder: Path, files: list[tuple[str, bytes]]) -> float:
    """Seconds of the baseline: temp, write, fsync, rename, folder fsync, for each file."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    started = time.perf_counter()
    for number, (name, data) in enumerate(files):
        temp = folder / f".t{number}"
        file = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(file, data)
        os.fsync(file)
        os.close(file)
        os.rename(temp, folder / name)
        os.fsync(handle)
    elapsed = time.perf_counter() - started
    os.close(handle)
    return elapsed


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of our process: total seconds, peak memory in bytes, and its result document."""

    seconds: float
    memory: int
    result: dict[str, Any]


def our_process(vault: Path, state: Path, plan: Path) -> Measured:
    """`run PLAN --yes --json` as a whole process."""
    command = [sys.executable, "-m", "obsidian_agent", "run", str(plan), "--yes", "--json"]
    command += ["--vault", str(vault), "--state-dir", str(state)]
    with open(plan.with_suffix(".out"), "wb") as out:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    result = json.loads(plan.with_suffix(".out").read_bytes())
    if process.returncode or not result["success"]:
        raise RuntimeError(f"the run failed: {result['errors'][:3]}")
    return Measured(seconds, usage.ru_maxrss * 1024, result)


def prepare(folder: Path, files: list[tuple[str, bytes]]) -> Path:
    """Create a vault with these notes in Notes/, durable before the clock starts."""
    shutil.rmtree(folder, ignore_errors=True)
    notes = folder / "Notes"
    notes.mkdir(parents=True)
    for name, data in files:
        (notes / name).write_bytes(data)
    os.sync()
    return notes


def compare(workload: Workload, place: Path, rounds: int) -> list[Row]:
    """Rows of one workload: whole process, journal and apply, memory, first screen."""
    bare, whole, apply, memory, first = [], [], [], [], []
    plan = place / "plan.json"
    plan.write_text(json.dumps(workload.plan), encoding="utf-8")
    for _ in range(rounds):
        bare.append(bare_loop(prepare(place / "bare", workload.start), workload.files))
        prepare(place / "vault", workload.start)
        shutil.rmtree(place / "state", ignore_errors=True)
        ours = our_process(place / "vault", place / "state", plan)
        timings = ours.result["timings"]
        whole.append(ours.seconds)
        apply.append((timings["journalMs"] + timings["applyMs"]) / 1000)
        memory.append(ours.memory)
        first.append(timings["firstScreenMs"] / timings["previewMs"])
        check(place, workload)
    for name in ("bare", "vault", "state"):
        shutil.rmtree(place / name, ignore_errors=True)
    what = f"{workload.count:,} {workload.name}s"
    loop = "bare loop, fsync per file"
    large = workload.count >= 10_000
    return [
        Row(
            what,
            "run --yes, whole process",
            _s(whole),
            loop,
            _s(bare),
            _ratio(whole, bare),
            "<= 1.5" if large else "<= 3",
        ),
        Row(
            what,
            "journal and apply",
            _s(apply),
            loop,
            _s(bare),
            _ratio(apply, bare),
            "<= 1.0" if large else "",
        ),
        Row(what, "peak memory", f"{max(memory) / 2**20:.0f} MB", "", "", None, "< 300 MB"),
        Row(
            what,
            "first screen of the preview",
            "",
            "whole preview",
            "",
            statistics.median(first),
            "< 0.2" if large else "",
        ),
    ]


def check(place: Path, workload: Workload) -> None:
    """Both sides made the same files."""
    for name, data in workload.files:
        if (place / "vault" / "Notes" / name).read_bytes() != data or (
            place / "bare" / "Notes" / name
        ).read_bytes() != data:
            raise RuntimeError(f"{name} is not what it should be")


def flushes(workload: Workload, place: Path) -> Row | None:
    """fsync, fdatasync, syncfs and sync_file_range of one run, counted by strace."""
    if shutil.which("strace") is None:
        return None
    prepare(place / "vault", workload.start)
    shutil.rmtree(place / "state", ignore_errors=True)
    plan, log = place / "plan.json", place / "strace.log"
    plan.write_text(json.dumps(workload.plan), encoding="utf-8")
    command = [sys.executable, "-m", "obsidian_agent", "run", str(plan), "--yes", "--json"]
    command += ["--vault", str(place / "vault"), "--state-dir", str(place / "state")]
    trace = [
        "strace",
        "-f",
        "-qq",
        "-o",
        str(log),
        "-e",
        "trace=fsync,fdatasync,syncfs,sync_file_range,sync,msync",
    ]
    subprocess.run([*trace, *command], check=True, stdout=subprocess.DEVNULL)
    count = len([line for line in log.read_text().splitlines() if "(" in line])
    allowed = 4 + workload.count // 250
    return Row(
        f"{workload.count:,} {workload.name}s",
        "flushes (strace)",
        str(count),
        "",
        "",
        None,
        f"<= {allowed}",
    )


def fsync_cost(place: Path) -> str:
    """Return the milliseconds of one fsync of a small file here, and the file system."""
    times = []
    for number in range(50):
        file = os.open(place / f"fsync{number}", os.O_WRONLY | os.O_CREAT)
        os.write(file, b"x" * 2_000)
        started = time.perf_counter()
        os.fsync(file)
        times.append((time.perf_counter() - started) * 1000)
        os.close(file)
        os.unlink(place / f"fsync{number}")
    return f"{file_system(place)}; one fsync {statistics.median(times):.2f} ms"


def file_system(place: Path) -> str:
    """Type and mount point of the file system, where the platform tells."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return "unknown file system"
    matching = [(mount, kind) for mount, kind in mounts if str(place.resolve()).startswith(mount)]
    mount, kind = max(matching, key=lambda pair: len(pair[0]))
    return f"{kind} on {mount}"


def measure(place: Path, rounds: int) -> list[Row]:
    """All rows of this module."""
    makers: list[tuple[Callable[[int], Workload], int]] = [
        (creates, 10_000),
        (properties, 10_000),
        (creates, 1_000),
        (properties, 1_000),
    ]
    rows = [Row("file system", fsync_cost(place), "", "", "", None, "")]
    for maker, count in makers:
        rows.extend(compare(maker(count), place, rounds))
    for maker, count in makers:
        row = flushes(maker(count), place)
        rows.extend([row] if row is not None else [])
    return rows


def _s(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} s"


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
