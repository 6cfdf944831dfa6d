"""Vaults on disk, reached in each of the ways that the store has."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from obsidian_agent.vault.filesystem import walk
from obsidian_agent.vault.filesystem.store import VaultStore

Opener = Callable[[Path], VaultStore]


def _by_openat2(folder: Path) -> VaultStore:
    fd = os.open(folder, walk.FOLDER_FLAGS)
    if not walk.has_openat2(fd):
        os.close(fd)
        pytest.skip("this kernel has no openat2")
    return VaultStore(os.path.realpath(folder), fd, openat2=True)


def _by_walk(folder: Path) -> VaultStore:
    if not walk.HAS_HANDLES:
        pytest.skip("this platform has no directory handles")
    return VaultStore(os.path.realpath(folder), os.open(folder, walk.FOLDER_FLAGS))


def _by_path(folder: Path) -> VaultStore:
    return VaultStore(os.path.realpath(folder), None)


OPENERS: dict[str, Opener] = {"openat2": _by_openat2, "walk": _by_walk, "path": _by_path}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Create an empty vault inside a folder of its own, which shows files that leave it."""
    folder = tmp_path / "around" / "VAULT"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(params=list(OPENERS))
def store(request: pytest.FixtureRequest, vault: Path) -> Iterator[VaultStore]:
    """Open the vault's store, once for each way to reach the disk."""
    opened = OPENERS[request.param](vault)
    yield opened
    opened.close()


@pytest.fixture(params=["openat2", "walk"])
def handle_store(request: pytest.FixtureRequest, vault: Path) -> Iterator[VaultStore]:
    """Open the vault's store over directory handles."""
    opened = OPENERS[request.param](vault)
    yield opened
    opened.close()


@pytest.fixture
def build(vault: Path) -> Callable[[Sequence[Sequence[str]]], None]:
    """Make entries from `[kind, path, link target]`; `VAULT/` in a target is the vault's path."""

    def make(setup: Sequence[Sequence[str]]) -> None:
        for kind, path, *target in setup:
            place = vault / path
            place.parent.mkdir(parents=True, exist_ok=True)
            match kind:
                case "file":
                    place.write_bytes(f"content of {path}\n".encode())
                case "folder":
                    place.mkdir(parents=True, exist_ok=True)
                case "link":
                    place.symlink_to(
                        target[0].replace("VAULT/", f"{vault}/", 1)
                        if target[0].startswith("VAULT/")
                        else target[0]
                    )
                case "fifo":
                    os.mkfifo(place)
                case "socket":
                    _bind(place)
                case _:
                    raise ValueError(kind)

    return make


def _bind(place: Path) -> None:
    """Create a socket at a path that may be longer than a socket's address."""
    here = os.getcwd()
    os.chdir(place.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(place.name)
    finally:
        os.chdir(here)


def tree_of(folder: Path) -> dict[str, object]:
    """Everything below a folder: bytes of files, targets of links, kinds of the rest."""
    found: dict[str, object] = {}
    for here, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(here, name)
            if path.is_symlink():
                found[str(path)] = ("link", os.readlink(path))
            elif path.is_file():
                found[str(path)] = path.read_bytes()
            else:
                found[str(path)] = path.lstat().st_mode
    return found


@pytest.fixture
def snapshot(vault: Path) -> Callable[[], dict[str, object]]:
    """Return the state of the vault and of everything around it."""
    return lambda: tree_of(vault.parent)
