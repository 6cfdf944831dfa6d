"""A vault with its journal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.agent.events import ExecutionResult
from obsidian_agent.journal.writer import Journal
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.views.changes import Operation
from previews import Picture, picture, previewed, restarted, run
from support import MakeVault

FILES = {"one.md": b"one\n", "two.md": b"two\r\n", "Folder/inner.md": b"inner\n" * 100}


@dataclass(frozen=True)
class Home:
    """A vault on disk and its journal."""

    store: VaultStore
    journal: Journal
    state: Path

    @property
    def root(self) -> Path:
        return Path(self.store.real_path)

    def run(
        self,
        *operations: Operation | list[Operation],
        goal: str = "Test",
        steps: list[dict[str, Any]] | None = None,
    ) -> ExecutionResult:
        return run(previewed(*operations, steps=steps, goal=goal), self.store, self.journal)

    def seen(self) -> Picture:
        return picture(self.root)

    def machine_went_down(self, *torn: Path) -> None:
        """As if the machine had been started since the interrupted record began; files that it tore were written before."""
        restarted(self.journal)
        for path in torn:
            os.utime(path, (1, 1))

    def reopened(self) -> Home:
        """Return the same vault as another process opens it."""
        return Home(self.store, Journal.open(self.state, self.store), self.state)


@pytest.fixture
def home(make_vault: MakeVault, tmp_path: Path) -> Iterator[Home]:
    store = make_vault(FILES)
    with Journal.open(tmp_path / "state", store) as journal:
        yield Home(store, journal, tmp_path / "state")
