"""One command of a crash test, in a process that can be killed: `driver.py COMMAND BASE`.

BASE holds `vault`, `state` and `beside`, a folder that must stay unchanged.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import redirect_stdout, suppress
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import cast
from unittest.mock import patch

from obsidian_agent.agent.privacy.record import AuditRecord
from obsidian_agent.cli.main import main as doctor
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.journal.recovery import recover
from obsidian_agent.journal.undo import redo, undo
from obsidian_agent.journal.writer import Journal
from obsidian_agent.plan.result import Preview
from obsidian_agent.services.trust import TrustStore
from obsidian_agent.state_files import replace_file
from obsidian_agent.threads.log_store import ThreadStore
from obsidian_agent.vault.filesystem.app_folder import AppFolder
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.keeper import IndexKeeper
from obsidian_agent.vault.paths.path import ROOT
from obsidian_agent.vault.transaction.actions import Action
from obsidian_agent.vault.transaction.apply import Applier
from previews import create, make, modify, move, previewed, restarted, run, trash

OLD = {
    "Daily/one.md": b"# One\r\nsee [[Two]]\r\n",
    "Daily/two.md": b"\xef\xbb\xbf# Two\n",
    "Projects/hub.md": b"# Hub\n" * 200,
    "Projects/Old/deep.md": b"deep\n",
    "a.md": b"A\n",
    "b.md": b"B\n",
    "empty.md": b"",
    "gone.md": b"to the trash\n",
    "Rubbish/x.md": b"x\n",
    "case.md": b"case\n",
}
PRIVATE = "Daily/two.md"


def plan() -> Preview:
    """Return every kind of operation, reused names, and a moved file that changes."""
    return previewed(
        [make("New"), make("New/Deep"), create("New/Deep/note.md", b"new\n" * 100)],
        modify("Daily/one.md", OLD["Daily/one.md"], b"# One\r\nsee [[Zwei]]\r\n"),
        modify(PRIVATE, OLD[PRIVATE], OLD[PRIVATE] + b"more\n"),
        modify("empty.md", b"", b"no longer\n"),
        [
            move("Projects", "Work"),
            modify("Work/hub.md", OLD["Projects/hub.md"], b"# Hub of work\n"),
            make("Projects"),
        ],
        create("Projects/hub.md", b"another hub\n"),
        [
            move("a.md", "t.md", OLD["a.md"]),
            move("b.md", "a.md", OLD["b.md"]),
            move("t.md", "b.md", OLD["a.md"]),
        ],
        move("case.md", "Case.md", OLD["case.md"]),
        [trash("gone.md", OLD["gone.md"]), create("gone.md", b"again\n")],
        trash("Rubbish"),
    )


def lay_out(base: Path) -> None:
    """Create the initial vault, without a state folder."""
    shutil.rmtree(base, ignore_errors=True)
    for name, content in OLD.items():
        path = base / "vault" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (base / "vault" / PRIVATE).chmod(0o600)
    (base / "beside").mkdir()
    (base / "beside" / "other.md").write_bytes(b"not ours")


def cut_off(store: VaultStore, journal: Journal) -> None:
    """Interrupt a run as a power loss does: a torn file, and temporary files that came back."""
    real, done = Applier.carry_out, 0

    def carry_out(self: Applier, action: Action, number: int, content: bytes = b"") -> bool:
        nonlocal done
        done += 1
        if done > 11:
            raise KeyboardInterrupt
        return real(self, action, number, content)

    with patch.object(Applier, "carry_out", carry_out), suppress(KeyboardInterrupt):
        run(plan(), store, journal)
    (record,) = journal.unfinished()
    vault = Path(store.real_path)
    (vault / "New/Deep/note.md").write_bytes(b"new\n" * 10)
    (vault / f"Daily/.{record.token}.3.1").write_bytes(OLD["Daily/one.md"])
    (vault / f".{record.token}.9.2").write_bytes(b"")
    restarted(journal)
    for torn in ("New/Deep/note.md", f".{record.token}.9.2"):
        os.utime(vault / torn, (1, 1))


STATE = ("settings", "trust", "audit", "thread", "macro", "index", "doctor")
"""State outside runs: each is old or new after a crash, and can be written again."""


def write_state(what: str, base: Path, value: str) -> None:
    """Give a piece of state a value."""
    folder = base / "state"
    match what:
        case "settings":
            LiveSettings.load(folder / "config.toml", {}).set("system_message", value)
        case "trust":
            TrustStore(folder / "trusted.json").trust("a.md", value)
        case "audit":
            AuditRecord(folder, _now).append([{"kind": "trust", "path": value}])
        case "thread":
            threads = ThreadStore(folder / "threads", _now)
            if not (folder / "threads").exists():
                threads.create()
            (name,) = os.listdir(folder / "threads")
            threads.rename(name.removesuffix(".jsonl"), value)
        case "macro":
            with VaultStore.open(base / "vault") as store:
                AppFolder(store, "macros").write("m", {"v": value})
        case "index":
            replace_file(base / "vault/a.md", f"#{value}\n".encode())
            _indexed(base, rebuild=True)
        case "doctor":
            if value == "new":
                _doctor(base)
            replace_file(folder / "value", value.encode())
        case _:
            raise ValueError(what)


def read_state(what: str, base: Path) -> str:
    """Return the value of a piece of state. Raise the errors of its reader."""
    folder = base / "state"
    match what:
        case "settings":
            return LiveSettings.load(folder / "config.toml", {}).current.system_message
        case "trust":
            return TrustStore(folder / "trusted.json").hashes()["a.md"]
        case "audit":
            return str(AuditRecord(folder, _now).entries()[-1]["path"])
        case "thread":
            (found,) = ThreadStore(folder / "threads", _now).summaries()
            return found.title
        case "macro":
            with VaultStore.open(base / "vault") as store:
                return str(cast("dict[str, str]", AppFolder(store, "macros").read("m").value)["v"])
        case "index":
            (value,) = _indexed(base)
            assert value != "later" or not list((folder / "index").glob(".*")), (
                "what a kill left goes with the next writing"
            )
            assert (base / "vault/a.md").read_text() == f"#{value}\n"
            return value
        case "doctor":
            _doctor(base)
            assert all(
                (base / "vault" / name).read_bytes() == content for name, content in OLD.items()
            )
            assert not list(folder.rglob("tmp*"))
            return (folder / "value").read_text()
        case _:
            raise ValueError(what)


def _indexed(base: Path, *, rebuild: bool = False) -> list[str]:
    """Return the tags of a note in the index of the vault."""
    with VaultStore.open(base / "vault") as store:
        keeper = IndexKeeper(store, base / "state/index")
        index = keeper.rebuild() if rebuild else keeper.refresh()
        return [value for value in ("old", "new", "later") if index.tagged(value, ROOT)]


def _doctor(base: Path) -> None:
    """Look at everything. OSError when something was found to be wrong."""
    place = [
        "--vault",
        str(base / "vault"),
        "--state-dir",
        str(base / "state"),
        "--config",
        str(base / "config.toml"),
    ]
    with redirect_stdout(StringIO()) as told:
        if doctor(["doctor", *place]):
            raise OSError(told.getvalue())


def _now() -> datetime:
    return datetime(2026, 1, 2, tzinfo=UTC)


def main(command: str, base: Path) -> int:
    """Do one command; the exit status says whether it worked."""
    if command in STATE:
        write_state(command, base, "new")
        return 0
    approved = (
        plan() if command == "run" else None
    )  # made before anything can fail: what it imports is not what is tested
    with VaultStore.open(base / "vault") as store, Journal.open(base / "state", store) as journal:
        match command:
            case "run":
                assert approved is not None
                return 0 if run(approved, store, journal).success else 1
            case "undo":
                return 1 if undo(journal, store).conflicts else 0
            case "redo":
                return 1 if redo(journal, store).conflicts else 0
            case "break":
                cut_off(store, journal)
                return 0
            case "finish" | "roll-back":
                return (
                    1
                    if any(
                        one.problems for one in recover(journal, store, finish=command == "finish")
                    )
                    else 0
                )
            case _:
                raise ValueError(command)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], Path(sys.argv[2])))
    except ObsidianAgentError as error:
        sys.exit(f"{error.code}: {error.message}")
    except OSError as error:
        if sys.argv[1] not in STATE:
            raise
        sys.exit(str(error))
