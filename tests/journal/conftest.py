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
from previews import (
    Picture,
    create,
    make,
    modify,
    move,
    picture,
    previewed,
    restarted,
    run,
    trash,
)
from support import MakeVault

INNER = b"inner\n" * 100
FILES = {"one.md": b"one\n", "two.md": b"two\r\n", "Folder/inner.md": INNER}

FOLDER_STORIES: dict[str, list[Operation]] = {
    "edited": [
        modify("Folder/inner.md", INNER, b"changed\n"),
        modify("one.md", b"one\n", b"ONE\n"),
    ],
    "created": [create("Folder/new.md", b"new\n"), modify("one.md", b"one\n", b"ONE\n")],
    "moved out": [move("Folder/inner.md", "inner.md", INNER), modify("one.md", b"one\n", b"ONE\n")],
    "moved in": [move("two.md", "Folder/two.md", b"two\r\n"), modify("one.md", b"one\n", b"ONE\n")],
    "folder in it": [make("Folder/New"), modify("one.md", b"one\n", b"ONE\n")],
    "trashed": [trash("Folder/inner.md", INNER), modify("one.md", b"one\n", b"ONE\n")],
}
"""Runs that change the folder in different ways, and a note beside it."""


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

    def link_folder_away(self, tmp_path: Path) -> Path:
        """Move the folder out of the vault and leave a link to it."""
        away = tmp_path / "other disk"
        (self.root / "Folder").rename(away)
        (self.root / "Folder").symlink_to(away)
        return away

    def reopened(self) -> Home:
        """Return the same vault as another process opens it."""
        return Home(self.store, Journal.open(self.state, self.store), self.state)


@pytest.fixture
def home(make_vault: MakeVault, tmp_path: Path) -> Iterator[Home]:
    store = make_vault(FILES)
    with Journal.open(tmp_path / "state", store) as journal:
        yield Home(store, journal, tmp_path / "state")


@pytest.fixture(params=FOLDER_STORIES)
def folder_story(request: pytest.FixtureRequest) -> list[Operation]:
    return FOLDER_STORIES[request.param]
