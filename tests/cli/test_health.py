"""health: the findings as a document, their repairs as a plan that runs and is undone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.cli.main import main
from support import MakeVault

Call = Callable[..., tuple[int, Any]]

FILES = {
    "Kick-off notes.md": "See [[Projects]].\n",
    "Projects.md": "[[kickoff notes]] and [[Nowhere]]\n",
    "Empty.md": "",
}


@pytest.fixture
def call(tmp_path: Path, make_vault: MakeVault, capsys: pytest.CaptureFixture[str]) -> Call:
    vault = make_vault(FILES).real_path
    places = ["--vault", vault, "--state-dir", str(tmp_path / "state")]

    def run(*arguments: str) -> tuple[int, Any]:
        config = ["--config", str(tmp_path / "none.toml")]
        code = main([*arguments, "--json", *places, *config])
        return code, json.loads(capsys.readouterr().out)

    return run


def test_findings_are_printed_with_evidence_and_repairs(call: Call) -> None:
    code, document = call("health")
    assert code == 1
    assert document["counts"] == {"unresolved-link": 2, "empty-note": 1}
    kickoff = document["findings"][1]
    assert kickoff.keys() == {"id", "kind", "path", "line", "text", "evidence", "repair"}
    assert kickoff["repair"]["preselected"] is True
    assert kickoff["repair"]["choices"][0] == {
        "title": "[[kickoff notes]] → [[Kick-off notes]]",
        "steps": [
            {
                "tool": "vault.retargetLinks",
                "args": {"path": "Projects.md", "name": "kickoff notes", "to": "Kick-off notes.md"},
            }
        ],
    }


def test_one_kind_can_be_asked_for_and_an_unknown_one_is_an_error(call: Call) -> None:
    code, document = call("health", "--only", "empty-note")
    assert (code, document["counts"]) == (1, {"empty-note": 1})
    code, document = call("health", "--only", "dust")
    assert (code, document["errors"][0]["code"]) == (2, "USAGE")


def test_an_ignored_finding_is_left_out_until_it_is_wanted_again(call: Call) -> None:
    _, document = call("health", "--only", "empty-note")
    finding = document["findings"][0]["id"]
    call("health", "--ignore", finding, "--reason", "filled later")
    assert call("health", "--only", "empty-note") == (
        0,
        {"findings": [], "counts": {}, "ignored": 1},
    )
    assert call("health", "--unignore", finding)[0] == 0
    assert call("health", "--only", "empty-note")[0] == 1


def test_the_plan_repairs_what_is_without_doubt_and_is_undone(call: Call, tmp_path: Path) -> None:
    plan = tmp_path / "repairs.json"
    call("health", "--plan", str(plan))
    vault = tmp_path / "vault"
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}
    assert call("run", str(plan), "--yes")[0] == 0
    assert (vault / "Projects.md").read_text() == "[[Kick-off notes]] and [[Nowhere]]\n"
    assert call("undo", "--yes")[0] == 0
    assert {path: path.read_bytes() for path in vault.rglob("*.md")} == before
