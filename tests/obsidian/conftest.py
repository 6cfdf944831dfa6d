from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.cli.main import main
from obsidian_agent.obsidian.live import Obsidian
from obsidian_stand_in import Cli, StandIn, stand_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    vault = (tmp_path / "vault").resolve()
    vault.mkdir()
    return vault


@pytest.fixture
def running(home: Path, folder: Path) -> Iterator[StandIn]:
    """Start an Obsidian that has the vault in `folder` open."""
    with stand_in(folder, home) as started:
        yield started


@pytest.fixture
def obsidian(home: Path, folder: Path) -> Obsidian:
    return Obsidian(str(folder), lambda: None)


@pytest.fixture
def cli(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command on the vault. Return its document, with the exit code."""

    def call(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        places = [
            "--vault",
            str(folder),
            "--state-dir",
            str(tmp_path / "state"),
            "--config",
            str(tmp_path / "none.toml"),
        ]
        code = main([*arguments, *places, "--json"])
        return {**json.loads(capsys.readouterr().out), "exit": code}

    return call
