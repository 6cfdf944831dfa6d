"""Every defect around a vault is reported by the check with its name, and by no other."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from obsidian_agent.cli.main import main
from support import MakeVault


class Patient:
    """A vault with a run, a record and an index; all is well."""

    def __init__(self, vault: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.vault, self.folder, self._capsys = vault, folder, capsys
        (folder / "config").mkdir(mode=0o700)
        self.config = folder / "config" / "config.toml"
        self.config.write_text("")
        self.do("rename", "a.md", "b.md", "--yes")
        self.do("index")

    def do(self, *command: str) -> int:
        options = [
            "--vault",
            str(self.vault),
            "--state-dir",
            str(self.folder / "s"),
            "--config",
            str(self.config),
            "--json",
        ]
        return main([*command, *options])

    @property
    def state(self) -> Path:
        (state,) = (self.folder / "s" / "vaults").iterdir()
        return state

    def checks(self) -> dict[str, tuple[bool, str]]:
        self._capsys.readouterr()
        code = self.do("doctor")
        document = json.loads(self._capsys.readouterr().out)
        assert (code == 0) == document["ok"]
        return {check["name"]: (check["ok"], check["detail"]) for check in document["checks"]}


@pytest.fixture
def patient(
    tmp_path: Path, home: Path, make_vault: MakeVault, capsys: pytest.CaptureFixture[str]
) -> Patient:
    return Patient(Path(make_vault({"a.md": "one\n"}).real_path), tmp_path, capsys)


def test_all_is_well(patient: Patient) -> None:
    checks = patient.checks()
    assert [name for name, (ok, _) in checks.items() if not ok] == []
    assert checks["journal and disk"][1].endswith("1 unchanged since")
    assert checks["record"][1] == "2 entries, 0 about data sent to models"
    assert checks["model"][1] == "none: the offline planner"
    assert checks["index"][1] == "1 file"
    assert "limit" in checks["watcher"][1] or "system" in checks["watcher"][1]
    (patient.vault / "b.md").write_text("edited since\n")
    assert patient.checks()["journal and disk"][0], "a later edit is not a defect"


def _change(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text().replace(old, new, 1))


def _leave_behind(patient: Patient) -> None:
    file = patient.vault / ".oa-0123abcd"
    file.write_text("half")
    os.utime(file, (1, 1))


@pytest.mark.parametrize(
    ("harm", "check", "words"),
    [
        (_leave_behind, "temporary files", ".oa-0123abcd"),
        (lambda patient: patient.state.chmod(0o755), "state is private", "chmod go-rwx"),
        (lambda patient: patient.config.parent.chmod(0o777), "config folder", "chmod go-w"),
        (
            lambda patient: _change(patient.state / "audit.jsonl", "approval", "approvaL"),
            "record",
            "Entry 1",
        ),
        (lambda patient: patient.config.write_text('model = "openai/gpt-4o"\n'), "model", "key"),
        (
            lambda patient: (patient.state / "index" / "snapshot").write_bytes(b"x" * 100),
            "index",
            "rebuilt",
        ),
    ],
)
def test_a_defect_is_reported_by_its_check_alone(
    patient: Patient,
    harm: Callable[[Patient], object],
    check: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    harm(patient)
    checks = patient.checks()
    assert [name for name, (ok, _) in checks.items() if not ok] == [check]
    assert words in checks[check][1]


def test_rules_that_match_nothing_are_named(patient: Patient) -> None:
    (patient.vault / "A[b]").mkdir()
    patient.config.write_text(
        'share_allow = ["b.md", "Projcts/**"]\nshare_deny = ["Privat"]\nwrite_deny = ["A[b]"]\n'
    )
    ok, detail = patient.checks()["rules"]
    assert ok
    assert detail == (
        "4 rules; match nothing in this vault: share_allow Projcts/**, share_deny Privat"
    )


def test_a_rule_without_a_meaning_is_an_error(patient: Patient) -> None:
    patient.config.write_text('write_deny = ["!b.md"]\n')
    ok, detail = patient.checks()["rules"]
    assert not ok
    assert "'!b.md' is not allowed" in detail
