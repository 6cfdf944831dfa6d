"""`schedule …`: a timer is shown and asked about before it is installed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from cli.conftest import MakeCommands
from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.main import main
from obsidian_agent.services import schedule
from support import MakeVault


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the crontab of a system with cron; without a table the file does not exist."""
    timer = partial(schedule.timer, platform="linux", has_systemd=False)
    monkeypatch.setattr(schedule, "timer", timer)
    table, programs = tmp_path / "table", tmp_path / "bin"
    programs.mkdir()
    program = programs / "crontab"
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = - ]; then cat > "{table}"; elif [ -e "{table}" ]; '
        f'then cat "{table}"; else echo no crontab for ada >&2; exit 1; fi\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return table


def test_a_timer_starts_in_another_folder(
    table: Path, make_vault: MakeVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = make_vault({"a.md": ""}).real_path
    monkeypatch.chdir(tmp_path)
    options = ["--vault", vault, "--state-dir", "state", "--config", "config.toml"]
    assert main(["schedule", "install", "--yes", *options]) == Exit.DONE
    assert f"--state-dir {tmp_path}/state --config {tmp_path}/config.toml" in table.read_text()


def test_a_timer_is_asked_about_installed_and_removed(table: Path, commands: MakeCommands) -> None:
    call = commands({"a.md": ""}).json
    assert call("schedule", "install")[0] == Exit.NOT_APPROVED
    assert not table.exists()
    assert call("schedule", "status") == (Exit.DONE, {"installed": False, "kind": "cron"})
    assert call("schedule", "install", "--every", "7")[0] == Exit.INVALID
    installed = {"installed": True, "kind": "cron"}
    assert call("schedule", "install", "--every", "15", "--yes") == (Exit.DONE, installed)
    assert table.read_text().startswith("*/15 * * * * ")
    assert " rule run " in table.read_text()
    assert call("schedule", "status") == (Exit.DONE, installed)
    assert call("schedule", "remove")[0] == Exit.NOT_APPROVED
    removed = {"installed": False, "kind": "cron"}
    assert call("schedule", "remove", "--yes") == (Exit.DONE, removed)
    assert table.read_text() == ""
    assert call("schedule", "remove") == (Exit.DONE, removed)
