"""The app in a terminal of 120 by 40: first frame, keys, settings, completions, and idling.

The first frame is processor time beside a skeleton app, in pairs. All others are what a user waits
for, by the clock, so they need a quiet machine.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import sys
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from bench.runs import prepare, properties
from bench.table import Row
from bench.vaultgen import Generated, generate
from obsidian_agent.agent.context import Mentionable
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.keeper import SNAPSHOT_NAME

OURS = os.fspath(Path(sys.executable).with_name("obsidian-agent"))
SKELETON = """
from textual.app import App
from textual.widgets import Footer, Header, Input, Markdown, OptionList
from textual.widgets import TabbedContent, TabPane, Tree
class Skeleton(App):
    def compose(self):
        yield Header()
        with TabbedContent():
            with TabPane("One"):
                yield OptionList(*(f"option {number}" for number in range(200)))
            with TabPane("Two"):
                yield Markdown("# Title")
            with TabPane("Three"):
                yield Tree("root")
        yield Input()
        yield Footer()
Skeleton().run()
"""
LETTERS = [chr(letter) for letter in range(0x100, 0x180)]
"""Letters that no earlier frame contains."""
KEY_EVERY = 0.05
WIDE = 360_000
"""Bytes of a note that is one line."""
MOVES = [b"\x1b[6~", b"\x1b[C", b"\x1b[5~", b"\x1b[D"] * 10
"""Page down, right, page up, left."""


SETTINGS_OPENED = 10
"""Times that the settings are opened."""
IDLE_AFTER, IDLE_SECONDS = 25, 40
"""Seconds after the start, for the index, imports and the cursor; seconds that are measured."""
STEPS = 10_000
"""Steps of a run."""
KEPT = 20_000
"""Characters of the output that are searched for a text."""
READY = "New line"
"""The last text of the first frame."""


def measure(place: Path, sizes: Sequence[int], rounds: int) -> list[Row]:
    """Return rows for vaults of these numbers of notes, for a run, and for a wide note."""
    place = place.resolve()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = os.fspath(place / "compiled")
    rows = []
    for notes in sizes:
        with _vault(place, notes) as (vault, state):
            rows += _App(vault, state, max(rounds, 5)).rows()
    return [*rows, *_keys_in_a_run(place / "run"), *_wide_note(place / "wide")]


@contextmanager
def _vault(place: Path, notes: int) -> Iterator[tuple[Generated, Path]]:
    vault, state = generate(place / f"app-{notes}", notes), place / f"app-state-{notes}"
    yield vault, state
    shutil.rmtree(vault.folder)
    shutil.rmtree(state)


def _command(vault: Path, state: Path) -> list[str]:
    return [OURS, os.fspath(vault), "--offline", "--state-dir", os.fspath(state)]


class _App:
    """The measurements of the app over one vault."""

    def __init__(self, vault: Generated, state: Path, rounds: int) -> None:
        self.vault, self.state, self.rounds = vault, state, rounds
        self.what = f"{vault.notes:,} notes"
        self.command = _command(vault.folder, state)

    def rows(self) -> list[Row]:
        """Return all rows; the index is built by the first."""
        return [
            *_keys(self.what, "key to paint while indexing", self._keys_while_indexing()),
            self._first_frame(),
            *self._settings(),
            *self._completions(),
            *self._idle(),
        ]

    def _keys_while_indexing(self) -> list[float]:
        """Return the seconds from keys to the paint of their letters, until the index is saved."""
        with _Terminal(self.command) as terminal:
            terminal.until(READY)
            return _type(terminal, until=lambda: any(self.state.rglob(SNAPSHOT_NAME)), at_least=20)

    def _first_frame(self) -> Row:
        skeleton = [sys.executable, "-c", SKELETON]
        pairs = []
        for _ in range(self.rounds + 1):
            pairs.append((_frame(self.command, READY), _frame(skeleton, "palette")))
        mine, its = (statistics.median(each) for each in zip(*pairs[1:], strict=True))
        ratio = statistics.median(a / b for a, b in pairs[1:])
        return Row(
            self.what, "first frame", _ms(mine), "a skeleton app", _ms(its), ratio, "<= 1.25"
        )

    def _settings(self) -> list[Row]:
        """Measure F5 until the last line of the settings is drawn, the first time and later."""
        waits = []
        with _Terminal(self.command) as terminal:
            terminal.until(READY)
            terminal.read(3)
            for _ in range(SETTINGS_OPENED):
                waits.append(terminal.answer(b"\x1b[15~", "in the settings file"))
                terminal.write(b"\x1b")
                terminal.read(0.5)
        first, later = waits[0], sorted(waits[1:])
        return [
            Row(self.what, "settings, first time", _ms(first), "", "", None, "<= 250 ms"),
            Row(self.what, "settings, later", _ms(later[len(later) // 2]), "", "", None, ""),
        ]

    def _completions(self) -> list[Row]:
        """Measure completions of the beginnings of names, then letters typed after an `@`."""
        with VaultStore.open(self.vault.folder) as store:
            view = build_session(Wiring(store, self.state)).vault.view()
            names = Mentionable(view)
            files = list(view.index.files())
        stems = [Path(path.text).stem for path in files if path.is_note]
        waits = []
        for stem in stems[:: max(1, len(stems) // 60)]:
            for length in range(2, min(len(stem), 12) + 1):
                for complete in (names.complete, names.complete_end):
                    began = time.perf_counter()
                    complete(stem[:length])
                    waits.append(time.perf_counter() - began)
        with _Terminal(self.command) as terminal:
            terminal.until(READY)
            terminal.read(3)
            terminal.write(b"@an")
            terminal.read(3)
            keys = _type(terminal, until=lambda: True, at_least=60)
        return [
            *_keys(self.what, "completion of a name, the search", waits, "<= 16 ms"),
            *_keys(self.what, "key to paint while names are completed", keys),
        ]

    def _idle(self) -> list[Row]:
        with _Terminal(self.command) as terminal:
            terminal.read(IDLE_AFTER)
            began, spent = time.monotonic(), terminal.spent_exactly()
            terminal.read(IDLE_SECONDS)
            share = (terminal.spent_exactly() - spent) / (time.monotonic() - began)
            memory = terminal.memory()
        return [
            Row(self.what, "idle, share of a core", f"{share:.2%}", "", "", None, "<= 0.5 %"),
            Row(
                self.what,
                "idle, memory",
                f"{memory / 2**20:.0f} MB",
                "",
                "",
                None,
                "<= 80 MB (10,000 notes)",
            ),
        ]


def _keys_in_a_run(place: Path) -> list[Row]:
    """Measure letters typed into the message while a run of many steps goes on."""
    work, vault, state = properties(STEPS), place / "vault", place / "state"
    prepare(vault, work.start)
    script = place / "plan.jsonl"
    script.write_text(json.dumps({"plan": work.plan}), encoding="utf-8")
    model = f"scripted/{script}"
    command = [OURS, os.fspath(vault), "--model", model, "--state-dir", os.fspath(state)]
    with _Terminal(command) as terminal:
        terminal.until(READY)
        while not any(state.rglob(SNAPSHOT_NAME)):
            terminal.read(0.5)
        terminal.write(b"Set the status to done\r")
        terminal.until(f"Files ({STEPS:,})")
        terminal.read(2)
        terminal.write(b"a")
        terminal.until("elapsed")
        waits = _type(terminal, until=lambda: "Done" in terminal.seen, at_least=1)
    shutil.rmtree(place)
    return _keys(f"a run of {STEPS:,} steps", "key to paint", waits)


def _wide_note(place: Path) -> list[Row]:
    """Measure a key in the pane of a note with one long line, until something is drawn."""
    (place / "vault").mkdir(parents=True)
    (place / "vault" / "Wide.md").write_text("word [[link]] 漢字 " * (WIDE // 21), encoding="utf-8")
    waits = []
    with _Terminal(_command(place / "vault", place / "state")) as terminal:
        terminal.until(READY)
        terminal.read(1)
        for keys in (b"\x0f", b"Wide", b"\r"):
            terminal.write(keys)
            terminal.read(1.5)
        for move in MOVES:
            waits.append(terminal.drawn_after(move))
            terminal.read(KEY_EVERY)
    shutil.rmtree(place)
    return _keys(f"a line of {WIDE // 1000} KB", "key in the note until it is drawn", waits)


def _type(terminal: _Terminal, *, until: Callable[[], bool], at_least: int) -> list[float]:
    """Type letters that no earlier frame holds. Return the seconds until each is drawn."""
    waits = []
    for number in count():
        waits.append(terminal.key(LETTERS[number % len(LETTERS)]))
        terminal.read(KEY_EVERY)
        if number + 1 >= at_least and until():
            break
    return waits


def _keys(what: str, figure: str, waits: list[float], goal: str = "<= 50 ms") -> list[Row]:
    ordered = sorted(waits)
    p95 = f"{_ms(ordered[int(len(ordered) * 0.95)])} of {len(ordered)}"
    return [
        Row(what, f"{figure}, p95", p95, "", "", None, goal),
        Row(what, f"{figure}, longest", _ms(ordered[-1]), "", "", None, ""),
    ]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.{0 if seconds >= 0.01 else 1}f} ms"


def _frame(command: list[str], last: str) -> float:
    """Return the seconds of processor time until the last line of the frame, the keys, is drawn."""
    with _Terminal(command) as terminal:
        terminal.until(last)
        return terminal.spent()


class _Terminal:
    """A program in a terminal of 120 by 40 that answers nothing; it is killed at the end."""

    def __init__(self, command: list[str]) -> None:
        self.seen = ""
        """What was drawn since the last wait for a text began."""
        self._decode = getincrementaldecoder("utf-8")(errors="replace").decode
        self._pid, self._handle = pty.fork()
        if not self._pid:
            os.execvpe(
                command[0],
                command,
                {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
            )
        fcntl.ioctl(self._handle, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def __enter__(self) -> _Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._handle)

    def read(self, seconds: float) -> None:
        """Read the output of the next `seconds`."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._read(left)

    def until(self, text: str) -> None:
        """Wait until this is drawn."""
        self.seen, deadline = "", time.monotonic() + 120
        while text not in self.seen:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{text!r} was not drawn in two minutes")
            self._read(1)

    def _read(self, seconds: float) -> None:
        """Read what is there within `seconds`."""
        if select.select([self._handle], [], [], seconds)[0]:
            drawn = self._decode(os.read(self._handle, 1 << 16))
            self.seen = self.seen[-KEPT:] + drawn

    def write(self, keys: bytes) -> None:
        os.write(self._handle, keys)

    def key(self, letter: str) -> float:
        """Type a letter. Return the seconds until it is drawn."""
        return self.answer(letter.encode(), letter)

    def answer(self, keys: bytes, text: str) -> float:
        """Return the seconds from keys until a text is drawn."""
        began = time.perf_counter()
        self.write(keys)
        self.until(text)
        return time.perf_counter() - began

    def drawn_after(self, keys: bytes) -> float:
        """Seconds until anything is drawn after keys, two at most."""
        began = time.perf_counter()
        self.write(keys)
        select.select([self._handle], [], [], 2)
        return time.perf_counter() - began

    def spent(self) -> float:
        """Seconds of processor time up to now, threads that ended included."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def spent_exactly(self) -> float:
        """Return the seconds of processor time of its threads, to the nanosecond."""
        tasks = Path(f"/proc/{self._pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def memory(self) -> int:
        """Return the bytes of its memory (RSS)."""
        status = Path(f"/proc/{self._pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024
