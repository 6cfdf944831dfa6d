"""A crash at any system call: every note is old or new, and one command cleans up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.journal.recovery import interrupted, recover
from obsidian_agent.journal.undo import undo
from obsidian_agent.journal.writer import Journal
from obsidian_agent.vault.filesystem.store import VaultStore
from previews import picture

sys.path.insert(0, str(Path(__file__).resolve().parent))

import driver
import sweep
from sweep import EVERY, Tell

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        sweep.STRACE is None, reason="strace is not here: the crash matrix cannot run"
    ),
]


class Stage:
    """The state to start from, and the vault's two legal states."""

    def __init__(self, base: Path, *before: str) -> None:
        """`before`: the commands that lead to the start."""
        self.base = base
        self._before = before
        driver.lay_out(base)
        self.old = picture(base / "vault")
        self.beside = picture(base / "beside")
        assert driver.main("run", base) == 0
        self.new = picture(base / "vault")
        assert self.new != self.old
        self.set_up()

    def set_up(self) -> None:
        """Make the vault again. A copy would not do: the journal also knows entries by inode."""
        driver.lay_out(self.base)
        for name in self._before:
            assert driver.main(name, self.base) == 0, name

    def broken(self) -> str | None:
        """Return the violations in the vault after recovery."""
        with (
            VaultStore.open(self.base / "vault") as store,
            Journal.open(self.base / "state", store) as journal,
        ):
            if interrupted(journal, store):
                return "still interrupted"
            now = picture(self.base / "vault")
            if now not in (self.old, self.new):
                wrong = sorted(set(now.items()) ^ set(self.new.items()))
                return f"neither old nor new: {wrong[:8]}"
            if picture(self.base / "beside") != self.beside:
                return "something beside the vault changed"
            if now == self.new and journal.last_undoable() is not None:
                result = undo(journal, store)
                if result.conflicts or picture(self.base / "vault") != self.old:
                    return f"cannot be undone: {result}"
            return None

    def ended(self, finish: bool) -> str | None:
        """End what was interrupted; what was reported instead of done, if anything."""
        with (
            VaultStore.open(self.base / "vault") as store,
            Journal.open(self.base / "state", store) as journal,
        ):
            problems = [
                problem
                for one in recover(journal, store, finish=finish)
                for problem in one.problems
            ]
        return f"recovery reported {problems}" if problems else None

    def unusable(self) -> str | None:
        """Return the violations of a run that may have stopped half way, which must be undoable."""
        with (
            VaultStore.open(self.base / "vault") as store,
            Journal.open(self.base / "state", store) as journal,
        ):
            if journal.last_undoable() is not None:
                result = undo(journal, store)
                if result.conflicts or result.errors:
                    return f"cannot be undone: {result}"
            if journal.last_undoable() is not None:
                return "not undone by one undo"
            now = picture(self.base / "vault")
            return (
                None
                if now == self.old
                else f"not as before: {sorted(set(now.items()) ^ set(self.old.items()))[:8]}"
            )

    def sweep(self, name: str, fault: str, finish: bool, tell: Tell) -> None:
        """Run a command with a fault at each point, then recover."""
        argv = sweep.command(name, self.base)
        found = sweep.points(argv, self.base, reading=not fault.startswith("signal"))
        assert len(found) > 10
        found = found[::EVERY]
        violations = []
        for point in sweep.stages(self.set_up, found):
            ended = sweep.run_with(argv, point, fault)
            try:
                wrong = self.ended(finish) or (
                    self.broken() if fault.startswith("signal") else self.unusable()
                )
            except ObsidianAgentError as error:
                wrong = f"{error.code}: {error.message}"
            if "Traceback" in ended.stderr:
                wrong = f"{wrong or ''} uncaught: {ended.stderr[-900:]}"
            if wrong:
                violations.append(
                    f"{point.name}#{point.count} status {ended.returncode}: {wrong} | {point.what}"
                )
        how = (
            f"{fault}, then {'finish' if finish else 'roll back'}"
            if fault.startswith("signal")
            else fault
        )
        tell(f"{name}: {how}", len(found), violations)


@pytest.mark.parametrize("finish", [True, False], ids=["finish", "roll back"])
@pytest.mark.parametrize("name", ["run", "undo", "redo"])
def test_killed_at_every_call(base: Path, name: str, finish: bool, tell: Tell) -> None:
    before = {"run": [], "undo": ["run"], "redo": ["run", "undo"]}[name]
    Stage(base, *before).sweep(name, "signal=KILL", finish, tell)


@pytest.mark.parametrize("name", ["finish", "roll-back"])
@pytest.mark.parametrize("finish", [True, False], ids=["then finish", "then roll back"])
def test_recovery_killed_at_every_call(base: Path, name: str, finish: bool, tell: Tell) -> None:
    Stage(base, "break").sweep(name, "signal=KILL", finish, tell)


FAULTS = ["error=EIO", "error=ENOSPC", "error=EIO+", "error=ENOSPC+"]


@pytest.mark.parametrize(
    "fault", [*FAULTS, "error=EACCES", "error=EMFILE", "error=EROFS", "error=EROFS+"]
)
def test_every_call_fails_once_or_for_good(base: Path, fault: str, tell: Tell) -> None:
    Stage(base).sweep("run", fault, finish=False, tell=tell)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["undo", "redo", "finish", "roll-back"])
def test_every_call_of_what_comes_after_a_run_fails_once_or_for_good(
    base: Path, name: str, fault: str, tell: Tell
) -> None:
    before = {"undo": ["run"], "redo": ["run", "undo"]}.get(name, ["break"])
    Stage(base, *before).sweep(name, fault, finish=False, tell=tell)


@pytest.mark.parametrize("name", ["run", "undo", "redo", "finish", "roll-back"])
def test_flushes(base: Path, name: str) -> None:
    """The number is small, whatever the number of files: log, register, vault, and the database.

    Creating the journal and the vault's id takes four more.
    """
    before = {"run": [], "undo": ["run"], "redo": ["run", "undo"]}.get(name, ["break"])
    Stage(base, *before)
    assert (
        1
        <= sweep.flushes(sweep.command(name, base), base.parent / "flushes.log")
        <= (11 if name == "run" else 7)
    )
