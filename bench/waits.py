"""The waits of a user: the installed command as a whole process, and the app in a terminal.

The baselines are the least that any such program has to do. Figures are processor time of the
process and its children, which other work on the machine changes least. Peers are optional:
`python -m venv peers && peers/bin/pip install headless-vault-kit obsidiantools`, then
`BENCH_PEERS=peers/bin make bench`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from bench.changes import SETTLED_SECONDS
from bench.index import ripgrep
from bench.table import Row
from bench.vaultgen import COMMON, Generated, generate
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.services.plans import PreviewOptions
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.keeper import SNAPSHOT_NAME

OURS = os.fspath(Path(sys.executable).with_name("obsidian-agent"))
PASS = [sys.executable, "-c", "pass"]
WALK = """
import os, sys
pending, read = [sys.argv[1]], len(sys.argv) > 2
while pending:
    for entry in os.scandir(pending.pop()):
        if entry.name[0] == ".":
            continue
        if entry.is_dir(follow_symlinks=False):
            pending.append(entry.path)
            continue
        entry.stat()
        if read:
            handle = os.open(entry.path, os.O_RDONLY)
            os.read(handle, 1 << 20)
            os.close(handle)
"""
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
REWRITE = """
import os, sys
for name in os.listdir(sys.argv[1]):
    name = os.path.join(sys.argv[1], name)
    handle = os.open(name, os.O_RDONLY)
    data = os.read(handle, 1 << 20)
    os.close(handle)
    handle = os.open(name + ".new", os.O_WRONLY | os.O_CREAT)
    os.write(handle, data)
    os.close(handle)
    os.rename(name + ".new", name)
"""
GATHER = (
    "import pathlib, sys, obsidiantools.api as o; "
    "o.Vault(pathlib.Path(sys.argv[1])).connect().gather()"
)
SMALL, SLOW = 44, 2_000
"""Notes: in the small vault a command is only its start; with more, obsidiantools takes minutes."""
LETTERS = [chr(letter) for letter in range(0x100, 0x180)]
"""Letters that no earlier frame contains."""
KEY_EVERY = 0.05
WIDE = 360_000
"""Bytes of a note that is one line."""
MOVES = [b"\x1b[6~", b"\x1b[C", b"\x1b[5~", b"\x1b[D"] * 10
"""Page down, right, page up, left."""


def measure(place: Path, sizes: Sequence[int], rounds: int) -> list[Row]:
    """Return rows for vaults of these numbers of notes, and for a small one."""
    place = place.resolve()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = os.fspath(place / "compiled")
    vaults = (
        _Vault(generate(place / f"waits-{notes}", notes), place / f"state-{notes}", rounds)
        for notes in (SMALL, *sizes)
    )
    return [*(row for vault in vaults for row in vault.rows()), *_wide_note(place / "wide")]


class _Seen(Exception):
    """The first screen is known."""


def _see(_: object) -> None:
    raise _Seen


class _Vault:
    def __init__(self, vault: Generated, state: Path, rounds: int) -> None:
        self.vault, self.state, self.rounds = vault, state, max(rounds, 3)
        self.folder = os.fspath(vault.folder)
        self.what = f"{vault.notes:,} notes"

    def rows(self) -> list[Row]:
        """All that is measured in one vault, which is gone afterwards."""
        walk, read = (
            [sys.executable, "-c", WALK, self.folder],
            [sys.executable, "-c", WALK, self.folder, "read"],
        )
        hub = self.vault.hub.rpartition("/")[2].removesuffix(".md")
        goal, least = ("<= 16", "<= 25") if self.vault.notes == SMALL else ("", "")
        sentence = self._ours("do", f'append "x" to "{hub}"', "--offline", "--yes")
        rows = [
            self._row("--version", [OURS, "--version"], "python -c pass", PASS, "<= 3"),
            self._row(
                "index --rebuild",
                self._ours("index", "--rebuild"),
                "walk, stat, read",
                read,
                "<= 12 (100,000 notes)",
                rounds=3,
            ),
            self._row("index, nothing changed", self._ours("index"), "walk, stat", walk, ""),
            self._row("search, a name", self._ours("search", hub), "python -c pass", PASS, goal),
            self._row("links", self._ours("links"), "python -c pass", PASS, goal),
            self._row("do, a certain sentence", sentence, "python -c pass", PASS, least),
        ]
        if self.vault.notes > SMALL:
            literal = self._ours("search", COMMON, "--mode", "content")
            if (program := ripgrep()) is not None:
                rows.append(
                    self._row(
                        "search, a literal",
                        literal,
                        "ripgrep",
                        [program, "-i", "-l", COMMON, self.folder],
                        "<= 2 (100,000 notes)",
                    )
                )
            rows.append(
                self._row(
                    "health, nothing changed",
                    self._ours("health"),
                    "walk, stat, read",
                    read,
                    "<= 2,000 ms (10,000 notes)",
                    exit_code=1,  # there are findings
                )
            )
            rows += [*self._renamed(), *self._all_changed(), *self._peers(literal), *self._app()]
        shutil.rmtree(self.folder)
        shutil.rmtree(self.state)
        return rows

    def _ours(self, *arguments: str) -> list[str]:
        return [
            OURS,
            *arguments,
            "--vault",
            self.folder,
            "--state-dir",
            os.fspath(self.state),
            "--json",
        ]

    def _row(
        self,
        figure: str,
        ours: list[str],
        baseline: str,
        theirs: list[str],
        goal: str,
        *,
        rounds: int = 0,
        exit_code: int = 0,
    ) -> Row:
        _spent(ours, exit_code=exit_code)
        rounds = rounds or self.rounds * (3 if self.vault.notes <= SLOW else 1)
        pairs = [(_spent(ours, exit_code=exit_code)[0], _spent(theirs)[0]) for _ in range(rounds)]
        mine, its = (statistics.median(each) for each in zip(*pairs, strict=True))
        ratio = statistics.median(a / b for a, b in pairs)
        return Row(self.what, figure, _ms(mine), baseline, _ms(its), ratio, goal)

    def _renamed(self) -> list[Row]:
        """Rename the most linked note to another name and back, in a quiet vault with an index."""
        old, new = self.vault.hub, f"{self.vault.hub.rpartition('/')[0]}/A hub by another name.md"
        copies = self.state / "referrers"
        copies.mkdir()
        linking = json.loads(
            subprocess.run(self._ours("links", old), check=True, capture_output=True).stdout
        )[old]["backlinks"]
        for number, text in enumerate(linking):
            shutil.copy(self.vault.folder / text, copies / f"{number}.md")
        pairs = []
        for _ in range(self.rounds + 1):
            time.sleep(SETTLED_SECONDS)
            _spent(self._ours("index"))
            pairs.append(
                (
                    _spent(self._ours("rename", old, new, "--yes"))[0],
                    _spent([sys.executable, "-c", REWRITE, os.fspath(copies)])[0],
                )
            )
            old, new = new, old
        if old != self.vault.hub:
            _spent(self._ours("rename", old, new, "--yes"))
        mine, its = (statistics.median(each) for each in zip(*pairs[1:], strict=True))
        figure, baseline = (
            f"rename of a note with {len(linking):,} links to it",
            "read, temp, rename of them in a process",
        )
        return [
            Row(
                self.what,
                figure,
                _ms(mine),
                baseline,
                _ms(its),
                statistics.median(a / b for a, b in pairs[1:]),
                "<= 4.5",
            )
        ]

    def _all_changed(self) -> list[Row]:
        """Preview a change to every note."""
        plan = self.state / "plan.json"
        steps = [
            {
                "id": "edit",
                "tool": "vault.replaceText",
                "args": {"find": "## Heading", "replace": "### Heading"},
            }
        ]
        plan.write_text(
            json.dumps(
                {"version": "1.0", "goal": "measure", "riskLevel": "writes", "steps": steps}
            ),
            encoding="utf-8",
        )
        seconds, memory = _spent(self._ours("preview", os.fspath(plan)))
        figure = "preview of a change to every note"
        return [
            Row(self.what, figure, _ms(seconds), "", "", None, "<= 25,000 ms (100,000 notes)"),
            Row(
                self.what,
                f"{figure}, first screen",
                _ms(self._first_screen(plan)),
                "",
                "",
                None,
                "as for 1,000 notes",
            ),
            Row(
                self.what,
                f"{figure}, memory",
                f"{memory / 2**20:.0f} MB",
                "",
                "",
                None,
                "<= 1,024 MB",
            ),
        ]

    def _first_screen(self, plan: Path) -> float:
        """Return the seconds until the first screen of its preview, with an index in memory."""
        with VaultStore.open(self.vault.folder) as store:
            plans = build_session(Wiring(store, self.state)).plans
            plans.vault.view().index.files()
            began = time.perf_counter()
            with contextlib.suppress(_Seen):
                plans.dry_run(
                    json.loads(plan.read_bytes()), options=PreviewOptions(on_first_screen=_see)
                )
        return time.perf_counter() - began

    def _peers(self, literal: list[str]) -> list[Row]:
        folder = Path(os.environ.get("BENCH_PEERS", "peers/bin"))
        kit, tools = folder / "hvk", folder / "python"
        if not kit.exists():
            return [
                Row(self.what, "peers", "skipped: not installed", "set BENCH_PEERS", "", None, "")
            ]
        its = ["--vault", self.folder, "--index", os.fspath(self.state / "peer"), "--json"]
        rebuild, name = self._ours("index", "--rebuild"), "headless-vault-kit"
        rows = [
            self._row(
                "index --rebuild, a peer",
                rebuild,
                name,
                [os.fspath(kit), "rebuild", *its],
                "",
                rounds=1,
            ),
            self._row(
                "index, nothing changed, a peer",
                self._ours("index"),
                name,
                [os.fspath(kit), "scan", *its],
                "",
                rounds=3,
            ),
            self._row(
                "search, a literal, a peer",
                literal,
                name,
                [os.fspath(kit), "search", COMMON, *its],
                "",
            ),
        ]
        if self.vault.notes <= SLOW:
            rows.append(
                self._row(
                    "index --rebuild, a slow peer",
                    rebuild,
                    "obsidiantools",
                    [os.fspath(tools), "-c", GATHER, self.folder],
                    "",
                    rounds=1,
                )
            )
        return rows

    def _app(self) -> list[Row]:
        skeleton, ours = (
            [sys.executable, "-c", SKELETON],
            [OURS, self.folder, "--offline", "--state-dir", os.fspath(self.state)],
        )
        pairs = []
        for _ in range(self.rounds + 1):
            pairs.append((_first_frame(ours, "New line"), _first_frame(skeleton, "palette")))
        mine, its = (statistics.median(each) for each in zip(*pairs[1:], strict=True))
        ratio = statistics.median(a / b for a, b in pairs[1:])
        keys = sorted(self._keys_while_indexing(ours))
        p95, figure = keys[int(len(keys) * 0.95)], "key to paint while indexing"
        return [
            Row(self.what, "first frame", _ms(mine), "a skeleton app", _ms(its), ratio, "<= 1.5"),
            Row(
                self.what,
                f"{figure}, p95",
                f"{_ms(p95)} of {len(keys)} keys",
                "",
                "",
                None,
                "<= 20 ms",
            ),
            Row(self.what, f"{figure}, longest", _ms(keys[-1]), "", "", None, "<= 200 ms"),
        ]

    def _keys_while_indexing(self, ours: list[str]) -> list[float]:
        """Return the seconds from keys to the paint of their letters, until the index is saved."""
        for file in self.state.rglob(SNAPSHOT_NAME):
            file.unlink()
        waits = []
        with _Terminal(ours) as terminal:
            terminal.until("New line")
            for number in count():
                waits.append(terminal.key(LETTERS[number % len(LETTERS)]))
                terminal.read(KEY_EVERY)
                if number >= 20 and any(self.state.rglob(SNAPSHOT_NAME)):
                    return waits
        return waits


def _wide_note(place: Path) -> list[Row]:
    """Measure a key in the pane of a note with one long line, until something is drawn."""
    (place / "vault").mkdir(parents=True)
    (place / "vault" / "Wide.md").write_text("word [[link]] 漢字 " * (WIDE // 21), encoding="utf-8")
    waits = []
    with _Terminal(
        [OURS, os.fspath(place / "vault"), "--offline", "--state-dir", os.fspath(place / "state")]
    ) as terminal:
        terminal.until("New line")
        terminal.read(1)
        for keys in (b"\x0f", b"Wide", b"\r"):
            terminal.write(keys)
            terminal.read(1.5)
        for move in MOVES:
            waits.append(terminal.drawn_after(move))
            terminal.read(KEY_EVERY)
    shutil.rmtree(place)
    waits.sort()
    what, figure = f"a line of {WIDE // 1000} KB", "a key in the note until it is drawn"
    return [
        Row(
            what,
            f"{figure}, p95",
            f"{_ms(waits[int(len(waits) * 0.95)])} of {len(waits)} keys",
            "",
            "",
            None,
            "<= 50 ms",
        ),
        Row(what, f"{figure}, longest", _ms(waits[-1]), "", "", None, ""),
    ]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _spent(
    command: Sequence[str], output: str | Path = os.devnull, *, exit_code: int = 0
) -> tuple[float, int]:
    """Seconds of processor time, of children too, and the most memory in bytes."""
    with open(output, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
        assert process.stderr is not None
        told = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != exit_code:
        raise RuntimeError(
            f"{command} ended with {process.returncode}: {told[-500:].decode(errors='replace')}"
        )
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def _first_frame(command: list[str], last: str) -> float:
    """Return the seconds of processor time until the last line of the frame, the keys, is drawn."""
    with _Terminal(command) as terminal:
        terminal.until(last)
        return terminal.spent()


class _Terminal:
    """A program in a terminal of 120 by 40 that answers nothing; it is killed at the end."""

    def __init__(self, command: list[str]) -> None:
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

    def read(self, seconds: float) -> bytes:
        """Return the output of the next `seconds`, or at once any that is waiting."""
        until, drawn = time.monotonic() + seconds, b""
        while (left := until - time.monotonic()) > 0:
            if select.select([self._handle], [], [], left)[0]:
                drawn += os.read(self._handle, 1 << 16)
        return drawn

    def until(self, text: str) -> None:
        """Wait until this is drawn."""
        drawn, deadline = b"", time.monotonic() + 60
        while text.encode() not in drawn:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{text!r} was not drawn in a minute")
            if select.select([self._handle], [], [], 1)[0]:
                drawn = drawn[-1_000:] + os.read(self._handle, 1 << 16)

    def write(self, keys: bytes) -> None:
        os.write(self._handle, keys)

    def key(self, letter: str) -> float:
        """Type a letter; seconds until it is drawn."""
        began = time.perf_counter()
        self.write(letter.encode())
        self.until(letter)
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
