"""The waits of a user: the installed command as a whole process.

The baselines are the least that any such program has to do. Figures are processor time of the
process and its children, which other work on the machine changes least. Peers are optional:
`python -m venv peers && peers/bin/pip install headless-vault-kit obsidiantools`, then
`BENCH_PEERS=peers/bin make bench`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.changes import SETTLED_SECONDS
from bench.index import ripgrep
from bench.table import Row
from bench.vaultgen import COMMON, Generated, generate
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.services.plans import PreviewOptions
from obsidian_agent.vault.filesystem.store import VaultStore

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


def measure(place: Path, sizes: Sequence[int], rounds: int) -> list[Row]:
    """Return rows for vaults of these numbers of notes, and for a small one."""
    place = place.resolve()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = os.fspath(place / "compiled")
    vaults = (
        _Vault(generate(place / f"waits-{notes}", notes), place / f"state-{notes}", rounds)
        for notes in (SMALL, *sizes)
    )
    return [row for vault in vaults for row in vault.rows()]


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
            rows += [*self._renamed(), *self._all_changed(), *self._peers(literal)]
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
