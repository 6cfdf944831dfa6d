"""A window of the stand-in for Obsidian over a vault of a test's own; without a browser these tests are skipped, and say why."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from companion.window import Rig, Window, missing

OpenWindow = Callable[[Mapping[str, str | bytes]], Window]


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """The browser, once for all tests."""
    lacking = missing()
    if lacking is not None:
        pytest.skip(f"{lacking}; `make test-companion` installs what these tests need")
    rig = Rig()
    yield rig
    rig.close()


@pytest.fixture
def open_window(rig: Rig, tmp_path: Path) -> Iterator[OpenWindow]:
    """Open a vault of the given files in the stand-in; what the page says went wrong fails the test."""
    opened: list[Window] = []
    with tempfile.TemporaryDirectory(prefix="oa-") as runtime:  # a socket's path is short

        def open_one(files: Mapping[str, str | bytes]) -> Window:
            folder = tmp_path / "vault"
            (folder / ".obsidian").mkdir(parents=True)
            for name, content in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
            opened.append(Window(rig, folder, Path(runtime) / ".obsidian-cli.sock"))
            return opened[-1]

        yield open_one
        for window in opened:
            assert window.errors() == []
        rig.do("close")
