"""audit from the command line: runs and what was sent, by time."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest

from agents import Desk, Person, call, calls, only, scripted
from obsidian_agent.agent.privacy.consent import Level, SharedPart, SharingRules
from obsidian_agent.agent.privacy.ledger import Ledger, Sending
from obsidian_agent.agent.privacy.record import KINDS, AuditRecord
from obsidian_agent.bootstrap import Wiring, build_session, build_shared_vault, open_record
from obsidian_agent.cli.main import main
from obsidian_agent.errors import VaultError
from obsidian_agent.journal.state_folder import vault_key
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.transaction.apply import Applier
from obsidian_stand_in import stand_in
from support import MakeVault, options_for


def test_what_was_done_and_what_was_sent(
    tmp_path: Path, make_vault: MakeVault, capsys: pytest.CaptureFixture[str]
) -> None:
    vault = make_vault({"a.md": "one\n", "b.md": "two\n"}).real_path
    place = [
        *options_for(vault, tmp_path),
    ]
    ledger = Ledger(
        AuditRecord(
            tmp_path / "state" / "vaults" / vault_key(vault),
            lambda: datetime(2020, 1, 1, tzinfo=UTC),
        )
    )
    part = SharedPart("b.md", Level.TEXT, 4)
    ledger.write(
        [Sending("vault.readFile", "c1", "two\n", ((part, "once"),))],
        provider="openai",
        address="https://a.test",
        conversation="t",
    )
    main(["rename", "a.md", "c.md", "--yes", *place])
    capsys.readouterr()
    assert main(["audit", "--json", *place]) == 0
    sent, approval, run = json.loads(capsys.readouterr().out)["entries"]
    assert (approval["kind"], approval["by"]) == ("approval", "options")
    assert (sent["kind"], sent["provider"], sent["files"][0]["path"]) == ("sent", "openai", "b.md")
    assert (run["kind"], run["status"], run["effects"]["renamed"]) == (
        "run",
        "done",
        [{"from": "a.md", "to": "c.md"}],
    )
    main(["audit", "--tail", "1", "--json", *place])
    assert [entry["kind"] for entry in json.loads(capsys.readouterr().out)["entries"]] == ["run"]
    main(["audit", *place])
    told = capsys.readouterr().out
    assert "text of b.md, allowed by once" in told
    assert "1 renamed" in told


def test_what_happened_is_recorded_and_the_record_can_be_checked(
    tmp_path: Path, make_vault: MakeVault, capsys: pytest.CaptureFixture[str]
) -> None:
    vault = make_vault({"a.md": "one\n"}).real_path
    place = [
        *options_for(vault, tmp_path),
        "--json",
    ]
    main(["audit", "--verify", *place])
    for command in (["rename", "a.md", "b.md", "--yes"], ["undo", "--yes"], ["redo", "--yes"]):
        assert main([*command, *place]) == 0
    capsys.readouterr()
    assert main(["audit", "--verify", *place]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "entries": 4}
    main(["audit", *place])
    assert [entry["kind"] for entry in json.loads(capsys.readouterr().out)["entries"]] == [
        "approval",
        "run",
        "undo",
        "redo",
    ]
    (file,) = (tmp_path / "state").rglob("audit.jsonl")
    file.write_text(file.read_text().replace('"restored": 1', '"restored": 0', 1))
    assert main(["audit", "--verify", *place]) == 1
    assert json.loads(capsys.readouterr().out)["firstBad"] == 3


@pytest.mark.parametrize("options", [["--verify"], []])
def test_a_folder_in_place_of_the_record_is_reported(
    tmp_path: Path, make_vault: MakeVault, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    place = ["--vault", make_vault({"a.md": ""}).real_path, "--state-dir", str(tmp_path / "state")]
    place.append("--json")
    assert main(["rename", "a.md", "b.md", "--yes", *place]) == 0
    (file,) = (tmp_path / "state").rglob("audit.jsonl")
    file.unlink()
    file.mkdir()
    capsys.readouterr()
    assert main(["audit", *options, *place]) == 1
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert error["code"] == "RECORD_ERROR"
    assert f"{file} cannot be read: Is a directory." in error["message"]


@pytest.mark.parametrize("harm", ["all gone", "written again", "end removed"])
def test_a_record_without_the_runs_of_the_journal_is_not_whole(
    tmp_path: Path, make_vault: MakeVault, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    vault = make_vault({"a.md": "one\n"}).real_path
    place = options_for(vault, tmp_path)
    for old, new in (("a.md", "b.md"), ("b.md", "c.md")):
        assert main(["rename", old, new, "--yes", *place]) == 0
    (file,) = (tmp_path / "state").rglob("audit.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    file.unlink()
    file.with_name("audit.head").unlink()
    entries = 0
    if harm == "written again":
        AuditRecord(file.parent, lambda: datetime(2020, 1, 1, tzinfo=UTC)).note(
            "grant", paths=["x"]
        )
        entries = 1
    if harm == "end removed":
        file.write_text("".join(lines[:2]))
        last = json.loads(lines[1])
        file.with_name("audit.head").write_text(f"{last['n']} {last['hash']}\n")
        entries = 2
    capsys.readouterr()
    assert main(["audit", "--verify", "--json", *place]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["entries"], told["firstBad"]) == (False, entries, entries + 1)
    assert "the journal has run" in told["reason"]
    assert ("and 1 more" in told["reason"]) == (harm != "end removed")
    main(["doctor", *place])
    assert "FAIL record: Entry" in capsys.readouterr().out


DELETE = {
    "version": "1.0",
    "goal": "g",
    "riskLevel": "writes",
    "steps": [{"id": "d", "tool": "vault.delete", "args": {"path": "a.md"}}],
}
BOLD = {
    "version": "1.0",
    "goal": "g",
    "riskLevel": "commands",
    "steps": [{"id": "b", "tool": "commands.run", "args": {"id": "editor:toggle-bold"}}],
}


class Recorded:
    """A vault that things are done to, and the record of it."""

    def __init__(self, vault: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.vault, self.folder, self.monkeypatch = vault, folder, monkeypatch
        self.place = [
            "--vault",
            vault,
            "--state-dir",
            str(folder / "s"),
            "--config",
            str(folder / "config.toml"),
            "--json",
        ]

    def do(self, *command: str, plan: object = None) -> int:
        if plan is not None:
            (self.folder / "plan.json").write_text(json.dumps(plan))
            command = (command[0], str(self.folder / "plan.json"), *command[1:])
        return main([*command, *self.place])

    @property
    def wiring(self) -> Wiring:
        return Wiring(VaultStore.open(Path(self.vault)), self.folder / "s")

    # --- one method a kind: do what leaves such a line

    def run(self) -> None:
        assert self.do("rename", "a.md", "b.md", "--yes") == 0

    approval = run

    def undo(self) -> None:
        self.run()
        assert self.do("undo", "--yes") == 0

    def redo(self) -> None:
        self.undo()
        assert self.do("redo", "--yes") == 0

    def recover(self) -> None:
        with patch.object(Applier, "carry_out", side_effect=KeyboardInterrupt):
            assert self.do("rename", "a.md", "b.md", "--yes") == 130
        assert self.do("recover", "--roll-back") == 0

    def denial(self) -> None:
        assert self.do("run", "--yes", plan=DELETE) == 3

    def refusal(self) -> None:
        self.monkeypatch.setattr("obsidian_agent.cli.report.on_terminal", lambda stream: True)
        self.monkeypatch.setattr("builtins.input", lambda question: "no")
        self.place.remove("--json")
        assert self.do("rename", "a.md", "b.md") == 3

    def trust(self) -> None:
        self.run()
        (run,) = build_session(self.wiring).runs.history()
        assert self.do("macro", "save", "Again", "--run", run.run_id) == 0

    def command(self) -> None:
        home = Path(os.environ["HOME"])
        with stand_in(Path(self.vault), home):
            assert self.do("run", "--yes", "--allow-commands", plan=BOLD) == 0

    def proposal(self) -> None:
        build_shared_vault(self.wiring).propose({**DELETE, "riskLevel": "read-only", "steps": []})

    def call(self) -> None:
        with pytest.raises(VaultError):
            build_shared_vault(self.wiring).read("vault.readFile", {"path": "a.md"})

    async def ask(self) -> None:
        """Let a model ask for three notes: one denied by a rule, one shared, one not."""
        rules = SharingRules.of(deny=["Private"])
        desk = Desk(
            VaultStore.open(Path(self.vault)), self.folder / "s", Person(only("a.md")), rules
        )
        reads = calls(call("vault__readFiles", filePaths=["a.md", "c.md", "Private/d.md"]))
        await desk.turn(scripted(reads, {"text": "Done."}))


@pytest.fixture
def recorded(
    tmp_path: Path, home: Path, make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> Recorded:
    vault = make_vault({"a.md": "one\n", "c.md": "three\n", "Private/d.md": "four\n"}).real_path
    return Recorded(vault, tmp_path, monkeypatch)


LINES: dict[str, tuple[str, ...]] = {
    "approval": ("planHash", "goal", "by"),
    "run": ("runId", "planHash", "status"),
    "undo": ("runId", "restored"),
    "redo": ("runId", "restored"),
    "recover": ("runId", "finished"),
    "denial": ("denied",),
    "refusal": ("planHash", "goal"),
    "trust": ("path", "sha256"),
    "command": ("id", "name", "ok"),
    "proposal": ("client", "planId", "goal"),
    "call": ("agent", "tool", "decision", "rule"),
}


@pytest.mark.parametrize("kind", LINES)
def test_each_thing_that_is_done_decided_or_forbidden_leaves_its_line(
    recorded: Recorded, kind: str
) -> None:
    getattr(recorded, kind)()
    record = open_record(recorded.wiring)
    found = [entry for entry in record.entries() if entry["kind"] == kind]
    assert found, record.entries()
    assert all(entry.get(name) is not None for entry in found for name in LINES[kind]), found
    assert record.verify().first_bad is None


async def test_what_a_model_asks_for_leaves_lines_of_what_was_granted_refused_denied_and_sent(
    recorded: Recorded,
) -> None:
    await recorded.ask()
    entries = AuditRecord(recorded.folder / "s", lambda: datetime.now(UTC)).entries()
    assert {each["kind"]: each["paths"] for each in entries if "paths" in each} == {
        "grant": ["a.md"],
        "refusal": ["c.md"],
    }
    assert [each["denied"][0]["path"] for each in entries if each["kind"] == "denial"] == [
        "Private/d.md"
    ]
    assert [each["files"][0]["path"] for each in entries if each["kind"] == "sent"] == ["a.md"]
    assert set(LINES) | {"grant", "sent", "alarm"} == KINDS, (
        "each kind of the table has its test; the alarm in test_acp"
    )


def test_the_record_is_filtered_by_kind_time_and_path(
    recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.denial()
    recorded.undo()

    def kinds(*options: str) -> list[str]:
        capsys.readouterr()
        assert recorded.do("audit", *options) == 0
        return [entry["kind"] for entry in json.loads(capsys.readouterr().out)["entries"]]

    assert kinds() == ["denial", "approval", "run", "undo"]
    assert kinds("--kind", "run", "--kind", "denial") == ["denial", "run"]
    assert kinds("--path", "a.md") == ["run"]
    assert kinds("--since", "2999-01-01") == []
    assert recorded.do("audit", "--kind", "nothing") == 2
