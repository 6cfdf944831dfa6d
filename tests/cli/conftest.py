"""A vault, and commands run on it: `call` with `--json` for the document, `say` for the text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from obsidian_agent.cli.main import main
from support import MakeVault, options_for


class Said(NamedTuple):
    """The output of a command for users."""

    code: int
    out: str
    err: str


class Commands:
    """Runs command lines on one vault, with a state folder and a settings file of its own."""

    def __init__(self, vault: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.vault = vault
        self.folder = folder
        self.config = folder / "config.toml"
        self.place = options_for(vault, folder)
        self._capsys = capsys

    def json(self, *arguments: str) -> tuple[int, Any]:
        """Return the exit code and the document."""
        said = self.say(*arguments, "--json")
        return said.code, json.loads(said.out)

    def say(self, *arguments: str) -> Said:
        """Return the exit code and the text for users."""
        self._capsys.readouterr()
        code = main([*arguments, *self.place])
        return Said(code, *self._capsys.readouterr())

    def plan(self, *steps: Mapping[str, Any], **more: Any) -> str:
        """Write a plan file of these steps."""
        file = self.folder / "plan.json"
        file.write_text(
            json.dumps(
                {"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": list(steps)} | more
            ),
            "utf-8",
        )
        return str(file)


MakeCommands = Callable[[Mapping[str, str | bytes]], Commands]


CommandsOn = Callable[[str | Path], Commands]


@pytest.fixture
def commands_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandsOn:
    """Run commands on a vault."""
    return lambda vault: Commands(Path(vault), tmp_path, capsys)


@pytest.fixture
def commands(make_vault: MakeVault, commands_on: CommandsOn) -> MakeCommands:
    """Make a vault of the given files, and run commands on it."""
    return lambda files: commands_on(make_vault(files).real_path)
