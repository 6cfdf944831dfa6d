"""A state folder in the vault: refused where plans and models would reach it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.cli.main import main


@pytest.fixture
def here(commands: Callable[..., Any]) -> Any:
    return commands({"a.md": "one\n", "Sub/b.md": "two\n"})


def run(here: Any, state: Path | str, *command: str) -> int:
    place = ["--vault", str(here.vault), "--state-dir", str(state), "--config", str(here.config)]
    return main([*command, *place])


COMMANDS = [
    ("rename", "a.md", "c.md", "--yes"),
    ("do", "create a note called X", "--yes"),
    ("preview", "PLAN"),
    ("ask", "List all tags"),
    ("search", "one"),
    ("index",),
    ("links", "a.md"),
    ("history",),
    ("undo", "--yes"),
    ("audit", "--verify"),
    ("threads", "list"),
    ("policy", "explain", "a.md"),
    ("mcp", "serve"),
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", ["state", "Sub", ".", "new/deep"])
def test_a_visible_place_in_the_vault_is_refused(
    here: Any, capsys: pytest.CaptureFixture[str], place: str, command: tuple[str, ...]
) -> None:
    step = {"id": "s", "tool": "vault.createFile", "args": {"path": "X.md", "content": "x"}}
    plan = here.plan(step)
    before = sorted(here.vault.rglob("*"))
    assert (
        run(here, here.vault / place, *(plan if word == "PLAN" else word for word in command)) == 2
    )
    assert "lies in the vault" in capsys.readouterr().err
    assert sorted(here.vault.rglob("*")) == before


@pytest.mark.parametrize("spelling", ["link", "dots", "relative"])
def test_another_spelling_is_the_same_place(
    here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    (tmp_path / "link").symlink_to(here.vault / "Sub")
    monkeypatch.chdir(here.vault)
    place = {"link": tmp_path / "link" / "s", "dots": tmp_path / "x" / ".." / "vault" / "s"}
    assert run(here, place.get(spelling, "s"), "history") == 2


def test_a_state_folder_in_the_environment_counts(
    here: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OBSIDIAN_AGENT_STATE_DIR", str(here.vault / "state"))
    assert main(["history", "--vault", str(here.vault), "--config", str(here.config)]) == 2


def test_a_hidden_folder_of_the_vault_is_out_of_reach_and_named(
    here: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    state = here.vault / ".local" / "state"
    assert run(here, state, "rename", "a.md", "c.md", "--yes") == 0
    capsys.readouterr()
    assert run(here, state, "search", "journal", "--mode", "name", "--json") == 0
    assert json.loads(capsys.readouterr().out)["items"] == []
    assert run(here, state, "doctor") == 1
    told = capsys.readouterr().out
    assert "FAIL state outside the vault: .local/state in the vault" in told


def test_a_folder_beside_the_vault_is_fine(here: Any, tmp_path: Path) -> None:
    assert run(here, tmp_path / "vault-state", "rename", "a.md", "c.md", "--yes") == 0
    assert os.path.exists(tmp_path / "vault-state" / "vaults")
