"""A window of the stand-in for Obsidian over a vault of its own; skipped without a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from companion.window import ID, Rig, Window, missing

OpenWindow = Callable[[Mapping[str, str | bytes]], Window]


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """Start the browser, once for all tests."""
    lacking = missing()
    if lacking is not None:
        pytest.skip(f"{lacking}; `make test-companion` installs what these tests need")
    rig = Rig()
    yield rig
    rig.close()


@pytest.fixture
def open_window(rig: Rig, tmp_path: Path, home: Path) -> Iterator[OpenWindow]:
    """Open a vault of these files in the stand-in. Errors in the page fail the test."""
    opened: list[Window] = []

    def open_one(files: Mapping[str, str | bytes]) -> Window:
        folder = tmp_path / "vault"
        (folder / ".obsidian").mkdir(parents=True)
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        registry = home / "obsidian" / "obsidian.json"
        registry.parent.mkdir()
        registry.write_text(
            json.dumps({"vaults": {ID: {"path": str(folder), "ts": 1, "open": True}}})
        )
        opened.append(Window(rig, folder, home / ".obsidian-cli.sock"))
        return opened[-1]

    yield open_one
    for window in opened:
        assert window.errors() == []
    rig.do("close")
