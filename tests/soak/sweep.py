"""Kill a command, or let its system calls fail, wherever it touches a folder (with strace)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

EVERY = int(os.environ.get("OBSIDIAN_AGENT_SOAK_EVERY", "1"))
"""Try only every so many-th point: for a short look."""

Tell = Callable[[str, int, Sequence[str]], None]
"""Takes a fault, the number of points, and the violations; fails when there are some."""

STRACE = shutil.which("strace")
HERE = Path(__file__).resolve().parent
_CALLS = (
    "openat,openat2,open,creat,read,write,pwrite64,writev,fsync,fdatasync,syncfs,rename,renameat,renameat2,link,linkat,symlinkat,unlink,unlinkat,"
    "mkdir,mkdirat,rmdir,ftruncate,truncate,chmod,fchmod,fchmodat,fchown,utimensat,flock,close"
)
_READING = frozenset({"openat", "openat2", "open", "read"})


@dataclass(frozen=True)
class Point:
    """The `count`-th call of a name on the main thread (strace counts so), and what it does."""

    name: str
    count: int
    what: str


def command(name: str, base: Path) -> list[str]:
    """Return the command line of a driver command."""
    return [sys.executable, str(HERE / "driver.py"), name, str(base)]


def points(argv: Sequence[str], base: Path, *, reading: bool) -> list[Point]:
    """Every call of the command that touches `base`; with `reading` also those that only read."""
    assert STRACE is not None
    log = base.parent / "strace.log"
    subprocess.run(
        [STRACE, "-f", "-y", "-qq", "-s", "8", "-o", log, "-e", f"trace={_CALLS}", "--", *argv],
        env=_environment(),
        capture_output=True,
        check=False,
    )
    counted: Counter[str] = Counter()
    found: list[Point] = []
    main: str | None = None
    for line in log.read_text(errors="replace").splitlines():
        match = re.match(r"(\d+)\s+(\w+)\(", line)
        if match is None:
            continue
        main = main or match[1]
        if match[1] != main:
            continue
        name = match[2]
        counted[name] += 1
        if str(base) in line and (reading or not _only_reads(name, line)):
            found.append(Point(name, counted[name], line[:160]))
    return found


def _only_reads(name: str, line: str) -> bool:
    return name in _READING and not re.search(r"O_WRONLY|O_RDWR|O_CREAT", line)


def run_with(argv: Sequence[str], point: Point, fault: str) -> subprocess.CompletedProcess[str]:
    """Run the command with a fault at a point: "signal=KILL", "error=EIO"; "+" from there on."""
    assert STRACE is not None
    sticky = fault.endswith("+")
    inject = f"inject={point.name}:{fault.rstrip('+')}:when={point.count}{'+' if sticky else ''}"
    started = [
        STRACE,
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        f"trace={point.name}",
        "-e",
        inject,
        "--",
        *argv,
    ]
    return subprocess.run(
        started,
        env=_environment(),
        capture_output=True,
        check=False,
        timeout=120,
        text=True,
        errors="replace",
    )


def flushes(argv: Sequence[str], log: Path) -> int:
    """Return the number of flushes of any kind in the whole process."""
    assert STRACE is not None
    trace = "trace=fsync,fdatasync,syncfs,sync_file_range,sync,msync"
    subprocess.run(
        [STRACE, "-f", "-qq", "-o", log, "-e", trace, "--", *argv],
        env=_environment(),
        capture_output=True,
        check=True,
    )
    return sum("sync" in line for line in log.read_text().splitlines())


def stages(set_up: Callable[[], None], found: Sequence[Point]) -> Iterator[Point]:
    """Try every point in turn, with a fresh setup before it."""
    for point in found:
        set_up()
        yield point


def _environment() -> dict[str, str]:
    tests = HERE.parent
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tests.parent), str(tests)]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
