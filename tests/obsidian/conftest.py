from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from obsidian_agent.obsidian.live import Obsidian
from obsidian_stand_in import StandIn, stand_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    vault = (tmp_path / "vault").resolve()
    vault.mkdir()
    return vault


@pytest.fixture
def running(home: Path, folder: Path) -> Iterator[StandIn]:
    """An Obsidian that has the vault in `folder` open."""
    with stand_in(folder, home) as started:
        yield started


@pytest.fixture
def obsidian(home: Path, folder: Path) -> Obsidian:
    return Obsidian(str(folder), lambda: None)
