"""Fixtures for all tests: temporary vaults on disk. Long tests are excluded by default."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from agents import NOTES, Desk
from obsidian_agent import log
from obsidian_agent.providers import local_models
from obsidian_agent.vault.filesystem.store import VaultStore
from support import MakeVault

REPOSITORY = Path(__file__).resolve().parent.parent

MAX_GARBAGE = 1_000_000
"""Blocks of memory that tests may leave before garbage is collected, about 100 MB."""

NEVER = 1_000_000_000
"""Collections of the middle generation before Python itself collects the oldest."""


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A shell starts background programs with Ctrl+C ignored; children would inherit it.


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import all modules without a look for garbage, of which they leave none."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Exclude long and browser tests unless `make soak`, `make test-companion` or `-m` asks."""
    asked = str(config.getoption("-m"))
    apart = [mark for mark in ("soak", "browser") if mark not in asked]
    left = {item for item in items if any(item.get_closest_marker(mark) for mark in apart)}
    config.hook.pytest_deselected(items=list(left))
    items[:] = [item for item in items if item not in left]


@pytest.fixture
def make_vault(tmp_path: Path) -> Iterator[MakeVault]:
    """Open a vault of these files; a name that ends with "/" is an empty folder."""
    opened: list[VaultStore] = []

    def make(files: Mapping[str, str | bytes]) -> VaultStore:
        root = tmp_path / "vault"
        root.mkdir()
        for name, content in files.items():
            path = root / name
            if name.endswith("/"):
                path.mkdir(parents=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        opened.append(VaultStore.open(root))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Set a home where no Obsidian runs, with a short path, as sockets need."""
    with tempfile.TemporaryDirectory(prefix="oa-", dir="/tmp") as folder:
        for name in ("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "HOME"):
            monkeypatch.setenv(name, folder)
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"):
            monkeypatch.delenv(name, raising=False)
        yield Path(folder)


@pytest.fixture
def desktop(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a desktop whose opener records the requested addresses."""
    program, log = tmp_path / "xdg-open", tmp_path / "opened"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" >> {log}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    return log


@pytest.fixture(scope="session")
def _blocks() -> list[int]:
    """Return the number of memory blocks in use after the last collection of garbage."""
    gc.set_threshold(*gc.get_threshold()[:2], NEVER)
    gc.freeze()
    return [sys.getallocatedblocks()]


@pytest.fixture(autouse=True)
def _seldom_garbage(_blocks: list[int]) -> Iterator[None]:
    """Collect the garbage of tests where there is much of it, without a look at what came before.

    A full pass over all modules and tests takes as long as many a test. It closes vaults, journals
    and indexes that refer to each other, and a process has at most 1024 files.
    """
    yield
    gc.enable()
    if sys.getallocatedblocks() - _blocks[0] > MAX_GARBAGE or len(os.listdir("/dev/fd")) > 200:
        gc.collect()
        # A big plan of a test puts all objects back among those that a pass visits.
        gc.freeze()
        _blocks[0] = sys.getallocatedblocks()


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Reset the log, so that records of one test are not in the log of the next."""
    yield
    log.stop()


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extend the time in which a local service must answer: the machine may be busy."""
    monkeypatch.setattr(local_models, "PATIENCE", 3.0)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder with real vaults and their truth files, or skip the test."""
    folder = Path(os.environ.get("OBSIDIAN_AGENT_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"the shared data is not here ({folder})")
    return folder


hypothesis.settings.register_profile(
    "calm",
    deadline=None,
    derandomize="CI" in os.environ,
    # How fast examples are made depends on what else the machine does.
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("calm")


@pytest.fixture
def make_desk(make_vault: MakeVault, tmp_path: Path) -> Callable[..., Desk]:
    """Make a desk; `files` are added to the usual notes."""

    def make(files: dict[str, str | bytes] | None = None, **fields: Any) -> Desk:
        return Desk(make_vault({**NOTES, **(files or {})}), tmp_path / "state", **fields)

    return make


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    """Return a desk with the default arguments."""
    return make_desk()
