"""audit from the command line: runs and what was sent, by time."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from obsidian_agent.agent.privacy.consent import Level, Part
from obsidian_agent.agent.privacy.ledger import Ledger, Sending
from obsidian_agent.agent.privacy.record import Record
from obsidian_agent.cli.main import main
from obsidian_agent.journal.state_folder import vault_key
from support import MakeVault


def test_what_was_done_and_what_was_sent(tmp_path: Path, make_vault: MakeVault, capsys: pytest.CaptureFixture[str]) -> None:
    vault = make_vault({"a.md": "one\n", "b.md": "two\n"}).real_path
    place = ["--vault", vault, "--state-dir", str(tmp_path / "s"), "--config", str(tmp_path / "none")]
    ledger = Ledger(Record(tmp_path / "s" / "vaults" / vault_key(vault), lambda: datetime(2020, 1, 1, tzinfo=UTC)))
    part = Part("b.md", Level.TEXT, 4)
    ledger.write(
        [Sending("vault.readFile", "c1", "two\n", ((part, "once"),))], provider="openai", address="https://a.test", conversation="t"
    )
    main(["rename", "a.md", "c.md", "--yes", *place])
    capsys.readouterr()
    assert main(["audit", "--json", *place]) == 0
    sent, run = json.loads(capsys.readouterr().out)["entries"]
    assert (sent["kind"], sent["provider"], sent["files"][0]["path"]) == ("sent", "openai", "b.md")
    assert (run["kind"], run["status"], run["effects"]["renamed"]) == ("run", "done", [{"from": "a.md", "to": "c.md"}])
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
    place = ["--vault", vault, "--state-dir", str(tmp_path / "s"), "--config", str(tmp_path / "none"), "--json"]
    main(["audit", "--verify", *place])
    for command in (["rename", "a.md", "b.md", "--yes"], ["undo", "--yes"], ["redo", "--yes"]):
        assert main([*command, *place]) == 0
    capsys.readouterr()
    assert main(["audit", "--verify", *place]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "entries": 3}
    main(["audit", *place])
    assert [entry["kind"] for entry in json.loads(capsys.readouterr().out)["entries"]] == ["run", "undo", "redo"]
    (file,) = (tmp_path / "s").rglob("audit.jsonl")
    file.write_text(file.read_text().replace('"restored": 1', '"restored": 0', 1))
    assert main(["audit", "--verify", *place]) == 1
    assert json.loads(capsys.readouterr().out)["firstBad"] == 2
