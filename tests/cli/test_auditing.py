"""audit from the command line: runs and what was sent, by time."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from obsidian_agent.agent.privacy.consent import Level, Part
from obsidian_agent.agent.privacy.ledger import Ledger, Sending
from obsidian_agent.cli.main import main
from obsidian_agent.journal.state_folder import vault_key
from support import MakeVault


def test_what_was_done_and_what_was_sent(tmp_path: Path, make_vault: MakeVault, capsys: pytest.CaptureFixture[str]) -> None:
    vault = make_vault({"a.md": "one\n", "b.md": "two\n"}).real_path
    place = ["--vault", vault, "--state-dir", str(tmp_path / "s"), "--config", str(tmp_path / "none")]
    ledger = Ledger(tmp_path / "s" / "vaults" / vault_key(vault) / "sent.jsonl", lambda: datetime(2020, 1, 1, tzinfo=UTC))
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
