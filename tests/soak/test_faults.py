"""Faults other than kills: state files, full disks, exchanged folders, clocks, terminals."""

from __future__ import annotations

import os
import pty
import random
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from obsidian_agent.agent.privacy.record import AuditRecord
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.journal.recovery import interrupted, recover
from obsidian_agent.journal.undo import undo
from obsidian_agent.journal.writer import Journal
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.transaction import apply
from previews import modify, move, picture, previewed, run

sys.path.insert(0, str(Path(__file__).resolve().parent))

import driver
import sweep
from sweep import EVERY, Tell

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


# --- state files ---


@pytest.mark.skipif(sweep.STRACE is None, reason="strace is not here")
@pytest.mark.parametrize(
    "fault",
    ["signal=KILL", "error=EIO", "error=ENOSPC", "error=EMFILE", "error=EROFS", "error=ENOSPC+"],
)
@pytest.mark.parametrize("what", driver.STATE)
def test_what_is_written_of_the_state_is_old_or_new(
    base: Path, what: str, fault: str, tell: Tell
) -> None:
    def set_up() -> None:
        driver.lay_out(base)
        driver.write_state(what, base, "old")

    set_up()
    argv = sweep.command(what, base)
    found = sweep.points(argv, base, reading=not fault.startswith("signal"))[::EVERY]
    violations = []
    for point in sweep.stages(set_up, found):
        ended = sweep.run_with(argv, point, fault)
        try:
            value = driver.read_state(what, base)
            driver.write_state(what, base, "later")
            wrong = (
                ""
                if value in ("old", "new") and driver.read_state(what, base) == "later"
                else f"reads {value!r}"
            )
            if ended.returncode == 0 and value != "new":
                wrong = f"said to be done, and reads {value!r}"
            if (
                what == "audit"
                and (bad := AuditRecord(base / "state", driver._now).verify()).first_bad is not None
            ):
                wrong = str(bad)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        if "Traceback" in ended.stderr:
            wrong += f" uncaught: {ended.stderr[-600:]}"
        if wrong:
            violations.append(
                f"{point.name}#{point.count} status {ended.returncode}: {wrong} | {point.what}"
            )
    tell(f"{what} written: {fault}", len(found), violations)


# --- full disks ---


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[None]:
    """Mount a disk at a folder; skip if that needs more rights."""
    place.mkdir(parents=True, exist_ok=True)
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place],
        capture_output=True,
        check=False,
    ).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize(
    ("which", "size", "steps"), [("vault", "128k", range(26)), ("state", "1m", range(0, 200, 5))]
)
def test_a_disk_with_little_room(
    base: Path, which: str, size: str, steps: range, tell: Tell
) -> None:
    """Write short for real: the vault's disk is full and the journal's not, or the reverse."""
    violations = []
    pages = list(steps)[::EVERY]
    for left in pages:
        shutil.rmtree(base, ignore_errors=True)
        with small_disk(base / which, size):
            for name, content in driver.OLD.items():
                path = base / "vault" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            big = (base / "vault" / "Projects/hub.md").read_bytes()
            (base / "state").mkdir(exist_ok=True)
            filler = base / which / "filler.bin"
            with suppress(OSError), filler.open("wb", buffering=0) as stream:
                while stream.write(bytes(4096)) == 4096:
                    pass
            os.truncate(filler, max(0, filler.stat().st_size // 4096 - left) * 4096)
            before = picture(base / "vault")
            after = b"# Large\n" * 4000
            with VaultStore.open(base / "vault") as store:
                with suppress(ObsidianAgentError), Journal.open(base / "state", store) as journal:
                    run(
                        previewed(
                            modify("Projects/hub.md", big, after), move("a.md", "t.md", b"A\n")
                        ),
                        store,
                        journal,
                    )
                os.truncate(filler, 0)
                with Journal.open(base / "state", store) as journal:
                    problems = [
                        problem
                        for one in recover(journal, store, finish=False)
                        for problem in one.problems
                    ]
                    if journal.last_undoable() is not None:
                        undone = undo(journal, store)
                        problems += [*undone.conflicts, *undone.errors]  # type: ignore[list-item]
            now = picture(base / "vault")
            now.pop("filler.bin", None)
            before.pop("filler.bin", None)
            if problems or now != before:
                violations.append(
                    f"{left} pages left: {problems} {sorted(set(now.items()) ^ set(before.items()))[:3]}"
                )
    tell(f"little room on the disk of the {which}", len(pages), violations)


# --- things that change places ---


def _swap_in(kind: str, path: Path, outside: Path) -> None:
    """Put something else where a note was; the note lies beside the vault then."""
    path.rename(outside.parent / "kept.md")
    match kind:
        case "link":
            path.symlink_to(outside / "secret.md")
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.write_bytes(b"somebody else's\n")


@pytest.mark.parametrize(
    "when", ["after the preview", "after the approval", "while it is replaced"]
)
def test_something_else_in_the_place_of_a_note(base: Path, when: str, tell: Tell) -> None:
    violations = []
    kinds = ("link", "fifo", "folder", "file", "folder above a link")
    for kind in kinds:
        driver.lay_out(base)
        outside = base / "beside"
        (outside / "secret.md").write_bytes(b"secret\n")
        (outside / "one.md").write_bytes(driver.OLD["Daily/one.md"])
        was = picture(outside)
        note = base / "vault" / "Daily/one.md"

        def happen(kind: str = kind, note: Path = note, outside: Path = outside) -> None:
            if kind == "folder above a link":
                note.parent.rename(outside.parent / "Daily")
                note.parent.symlink_to(outside)
            else:
                _swap_in(kind, note, outside)

        preview = previewed(modify("Daily/one.md", driver.OLD["Daily/one.md"], b"new\n"))
        with (
            VaultStore.open(base / "vault") as store,
            Journal.open(base / "state", store) as journal,
        ):
            if when == "after the preview":
                happen()
                result = run(preview, store, journal)
            else:
                target, name = (
                    (apply.Applier, "carry_out")
                    if when == "after the approval"
                    else (apply, "exchange")
                )
                with patch.object(target, name, _once_before(getattr(target, name), happen)):
                    result = run(preview, store, journal)
        place = outside.parent / ("Daily/one.md" if kind == "folder above a link" else "kept.md")
        # An open folder is written into even if it moves at that moment (dirhandles.MAX_AGE).
        if result.success and not (
            kind == "folder above a link" and place.read_bytes() == b"new\n"
        ):
            violations.append(f"{kind}: counted as done")
        if picture(outside) != was:
            violations.append(f"{kind}: something outside the vault changed")
        if place.read_bytes() not in (driver.OLD["Daily/one.md"], b"new\n"):
            violations.append(f"{kind}: the note itself is {place.read_bytes()!r}")
        if kind == "file" and b"somebody else's\n" not in [
            each.read_bytes()
            for each in (base / "vault").rglob("*")
            if each.is_file() and not each.is_symlink()
        ]:
            violations.append("the file of another program is gone")
    tell(f"something else in a note's place {when}", len(kinds), violations)


def _once_before(real: Callable[..., object], happen: Callable[[], None]) -> Callable[..., object]:
    left = [happen]

    def wrapped(*args: object, **more: object) -> object:
        if left:
            left.pop()()
        return real(*args, **more)

    return wrapped


# --- the journal, and the clock ---


def test_a_journal_that_is_cut_at_any_byte_of_its_register_or_is_another_vaults(
    base: Path, tell: Tell
) -> None:
    """The next start does not fail, and tells it; nothing of the vault changes by looking."""
    driver.lay_out(base)
    for name in ("run", "undo", "redo"):
        assert driver.main(name, base) == 0
    (register,) = (base / "state").rglob("journal.register")
    whole = register.read_bytes()
    vault = picture(base / "vault")
    violations = []
    harms = [(f"cut at {length}", whole[:length]) for length in range(0, len(whole), EVERY)]
    harms += [
        (f"bit at {at}", whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        for at in range(0, len(whole), EVERY)
    ]
    harms += [("gone", b""), ("another's", whole.replace(b"1", b"7"))]
    for what, content in harms:
        register.unlink() if what == "gone" else register.write_bytes(content)
        try:
            with (
                VaultStore.open(base / "vault") as store,
                Journal.open(base / "state", store) as journal,
            ):
                told, runs = journal.examine(), journal.history(10)
            if not told and len(runs) != 1:
                violations.append(f"{what}: {len(runs)} runs, and nothing told")
        except ObsidianAgentError:
            pass
        except Exception as error:
            violations.append(f"{what}: {type(error).__name__} {error}")
        if picture(base / "vault") != vault:
            violations.append(f"{what}: the vault changed")
    tell("the journal's register cut, flipped, gone or another's", len(harms), violations)


def test_a_clock_that_goes_back_a_day(base: Path, tell: Tell) -> None:
    """The last run is the last by number, whatever the clock said."""
    driver.lay_out(base)
    violations = []
    real = time.time
    with VaultStore.open(base / "vault") as store, Journal.open(base / "state", store) as journal:
        assert run(previewed(modify("a.md", b"A\n", b"B\n")), store, journal).success
        with patch("time.time", lambda: real() - 86_400):
            assert run(
                previewed(modify("a.md", b"B\n", b"C\n"), goal="Second"), store, journal
            ).success
            if journal.history(1)[0].goal != "Second":
                violations.append("the older run counts as the last one")
            if undo(journal, store).conflicts or (base / "vault/a.md").read_bytes() != b"B\n":
                violations.append("undo took another run")
    tell("a clock that goes back a day", 1, violations)


# --- the app in a terminal ---


class Terminal:
    """The app in a terminal of its own, with a plan that is approved."""

    def __init__(self, base: Path) -> None:
        plan = "append 'Call Ada' to \"a\""
        place = ["--state-dir", str(base / "state"), "--config", str(base / "config.toml")]
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # pragma: no cover
            os.environ.update(TERM="xterm-256color", COLUMNS="120", LINES="40")
            os.execv(
                sys.executable,
                [sys.executable, "-m", "obsidian_agent", str(base / "vault"), "--offline", *place],
            )
        self.seen = b""
        self.until(b"offline planner", 30)
        self.drain(0.3)
        os.write(self.fd, plan.encode() + b"\r")

    def drain(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                with suppress(OSError):
                    self.seen += os.read(self.fd, 65536)

    def until(self, what: bytes, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while what not in self.seen and time.monotonic() < end:
            self.drain(0.1)
        return what in self.seen

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        with suppress(OSError):
            os.close(self.fd)


KILLS = max(1, 500 // EVERY)


def test_killed_stopped_or_hung_up_at_any_moment_in_the_app(base: Path, tell: Tell) -> None:
    chance = random.Random(14)
    violations, approved = [], 0
    for number in range(KILLS):
        driver.lay_out(base)
        old = picture(base / "vault")
        app = Terminal(base)
        try:
            if not app.until(b"Plan:", 20):
                violations.append(f"{number}: no plan was shown")
            app.drain(1.0)
            os.write(app.fd, b"a")
            time.sleep(chance.random() * 0.5)
            match number % 3:
                case 0:
                    os.kill(app.pid, signal.SIGKILL)
                case 1:
                    os.close(app.fd)  # the window is closed
                    time.sleep(0.5)
                case _:
                    os.kill(app.pid, signal.SIGTSTP)
                    time.sleep(0.1)
                    os.kill(app.pid, signal.SIGCONT)
                    time.sleep(chance.random() * 0.2)
        finally:
            app.end()
        with (
            VaultStore.open(base / "vault") as store,
            Journal.open(base / "state", store) as journal,
        ):
            recover(journal, store, finish=False)
            if interrupted(journal, store):
                violations.append(f"{number}: still interrupted")
            if journal.last_undoable() is not None:
                approved += 1
                if undo(journal, store).conflicts:
                    violations.append(f"{number}: cannot be undone")
        now = picture(base / "vault")
        if now != old:
            violations.append(f"{number}: {sorted(set(now.items()) ^ set(old.items()))[:4]}")
    if not approved and KILLS >= 10:
        violations.append("no plan was ever carried out: the kills struck nothing")
    tell("killed, hung up or stopped in the app", KILLS, violations)


def test_two_at_once_in_one_vault(base: Path, tell: Tell) -> None:
    """Only one writes at a time; the second is refused, or sees what the first one wrote."""
    driver.lay_out(base)
    with VaultStore.open(base / "vault") as store, Journal.open(base / "state", store):
        pass
    rounds = max(1, 20 // EVERY)
    violations = []
    for number in range(rounds):
        results: list[str] = []

        def work(name: str, number: int = number, results: list[str] = results) -> None:
            now = (base / "vault/a.md").read_bytes()
            with (
                VaultStore.open(base / "vault") as store,
                Journal.open(base / "state", store) as journal,
            ):
                try:
                    results.append(
                        run(
                            previewed(modify("a.md", now, f"{name} {number}\n".encode())),
                            store,
                            journal,
                        ).status
                    )
                except ObsidianAgentError as error:
                    results.append(error.code)

        both = [threading.Thread(target=work, args=(name,)) for name in "AB"]
        for each in both:
            each.start()
        for each in both:
            each.join()
        if "done" not in results or not set(results) <= {
            "done",
            "conflict",
            "failed",
            "VAULT_BUSY",
        }:
            violations.append(f"{number}: {results}")
        if (base / "vault/a.md").read_bytes() not in (
            f"A {number}\n".encode(),
            f"B {number}\n".encode(),
        ):
            violations.append(f"{number}: {(base / 'vault/a.md').read_bytes()!r}")
    tell("two at once in one vault", rounds, violations)
