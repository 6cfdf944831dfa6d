from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from obsidian_agent.obsidian.live import Obsidian
from obsidian_stand_in import StandIn, stand_in


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of its own, where no Obsidian runs. Its path is short, as those of sockets must be."""
    with tempfile.TemporaryDirectory(prefix="oa-", dir="/tmp") as folder:
        for name in ("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "HOME"):
            monkeypatch.setenv(name, folder)
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"):
            monkeypatch.delenv(name, raising=False)
        yield Path(folder)


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
