"""The walk stays in the vault: links of every kind, closed handles, and a swapping program."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.vault.filesystem import walk
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import ROOT, PathUse, parse, trash_path

Build = Callable[[Sequence[Sequence[str]]], None]

pytestmark = pytest.mark.skipif(
    not walk.HAS_HANDLES, reason="this platform has no directory handles"
)


def open_handles() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.fixture
def root_fd(vault: Path) -> Iterator[int]:
    fd = os.open(vault, walk.FOLDER_FLAGS)
    yield fd
    os.close(fd)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("../OUT", errno.EXDEV),
        ("/etc", errno.EXDEV),
        ("l", errno.ELOOP),
        ("l/x.md", errno.ELOOP),
        ("d/../../OUT", errno.EXDEV),
        ("no", errno.ENOENT),
    ],
)
def test_openat2_goes_nowhere_else(root_fd: int, build: Build, text: str, number: int) -> None:
    if not walk.has_openat2(root_fd):
        pytest.skip("this kernel has no openat2")
    build([["folder", "d"], ["file", "../OUT/x.md"], ["link", "l", "d"]])
    with pytest.raises(OSError) as caught:
        walk.open_without_links(root_fd, text, walk.FILE_FLAGS)
    assert caught.value.errno == number


def test_without_openat2_the_walk_is_used(
    vault: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    build([["file", "a/b.md"]])
    monkeypatch.setattr(walk, "_libc", None)
    with VaultStore.open(vault) as store:
        assert store.read(parse("a/b.md", PathUse.READ)) == b"content of a/b.md\n"


def test_handles_lead_to_the_folder_named(
    handle_store: VaultStore, vault: Path, build: Build
) -> None:
    build([["file", "a/b/c.md"], ["link", "l", "a"], ["link", "a/up", "../a/b/"]])
    for text, real in [("", "."), ("a", "a"), ("a/b", "a/b"), ("l/b", "a/b"), ("l/up", "a/b")]:
        fd = handle_store.open_folder(parse(text, PathUse.FOLDER))
        assert os.path.samestat(os.fstat(fd), os.stat(vault / real))
        assert os.listdir(fd) == os.listdir(vault / real)
        os.close(fd)


def test_real_places_of_linked_paths(store: VaultStore, build: Build) -> None:
    build(
        [
            ["file", "a/b/c.md"],
            ["link", "l", "a"],
            ["link", "a/up", "../a/b/"],
            ["link", "c.md", "l/up/c.md"],
        ]
    )
    for text, real in [
        ("a/b/c.md", "a/b/c.md"),
        ("l/up/c.md", "a/b/c.md"),
        ("c.md", "a/b/c.md"),
        ("l/new.md", "a/new.md"),
        ("a/up", "a/b"),
    ]:
        assert store.resolve(parse(text, PathUse.READ)).text == real


@pytest.mark.parametrize("count", [walk.MAX_LINKS, walk.MAX_LINKS + 1])
def test_chains_of_links_end(store: VaultStore, build: Build, count: int) -> None:
    build(
        [
            ["file", "n.md"],
            *(
                ["link", f"l{at}", f"l{at + 1}" if at + 1 < count else "n.md"]
                for at in range(count)
            ),
        ]
    )
    path = parse("l0", PathUse.READ)
    if count > walk.MAX_LINKS:
        with pytest.raises(PathRefused, match="circles"):
            store.read(path)
    else:
        assert store.read(path) == b"content of n.md\n"


def test_trash_is_never_a_link(store: VaultStore, vault: Path, build: Build) -> None:
    build([["file", "Notes/x.md"], ["link", ".trash", "Notes"]])
    with pytest.raises(PathRefused):
        store.read(trash_path("x.md"))
    with pytest.raises(PathRefused):
        store.write_atomic(trash_path("y.md"), b"")
    assert os.listdir(vault / "Notes") == ["x.md"]


def test_trash_is_reached_by_its_own_door(handle_store: VaultStore, build: Build) -> None:
    build([["file", ".trash/x.md"]])
    assert handle_store.read(trash_path("x.md")) == b"content of .trash/x.md\n"
    os.close(handle_store.open_folder(trash_path("x.md").parent))


def test_no_handle_stays_open(handle_store: VaultStore, build: Build) -> None:
    build(
        [
            ["file", "a/b/c.md"],
            ["link", "a/out", "../../OUT"],
            ["link", "loop", "loop"],
            ["link", "l", "a/b"],
            ["fifo", "a/pipe"],
            ["folder", ".git"],
        ]
    )
    build([["link", "git", ".git"], ["link", "a/b/deep", "../../../../../.."]])
    before = open_handles()
    for text in [
        "a/b/c.md",
        "a/out/x",
        "loop",
        "l/c.md",
        "a/pipe",
        "git/config",
        "a/b/deep/etc",
        "nope/x",
        "a/b/c.md/d",
        "a",
    ]:
        path = parse(text, PathUse.READ)
        for attempt in (
            handle_store.read,
            handle_store.lstat,
            handle_store.stat,
            handle_store.resolve,
            handle_store.scan,
            handle_store.remove,
        ):
            if attempt == handle_store.remove and text == "a/b/c.md":
                continue
            try:
                attempt(path)
            except VaultError:
                continue
    assert open_handles() == before


def test_the_root_survives_a_move(handle_store: VaultStore, vault: Path, build: Build) -> None:
    build([["file", "a.md"]])
    vault.rename(vault.with_name("moved"))
    vault.mkdir()
    assert handle_store.read(parse("a.md", PathUse.READ)) == b"content of a.md\n"
    assert [name for name, _, _ in handle_store.scan(ROOT)] == ["a.md"]


ATTACKER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
one, other = (os.fsencode(name) for name in sys.argv[1:])
print("ready", flush=True)
while True:
    if libc.renameat2(-100, one, -100, other, 2) != 0:
        sys.exit(f"renameat2: {os.strerror(ctypes.get_errno())}")
"""


@pytest.fixture
def swapped() -> tuple[str, str]:
    """Return the path that the attacker exchanges with a link, and the path outside."""
    return "Notes", "../OUT"


@pytest.fixture
def attacker(vault: Path, build: Build, swapped: tuple[str, str]) -> Iterator[Path]:
    """Swap an entry of the vault with a link to the outside, repeatedly. Yield the outer folder."""
    if not sys.platform.startswith("linux"):
        pytest.skip("renameat2 is Linux's")
    build(
        [
            ["file", "Notes/Sub/n.md"],
            ["file", "../OUT/Sub/n.md"],
            ["link", "swap", os.path.abspath(vault / swapped[1])],
        ]
    )
    (vault.parent / "OUT/Sub/n.md").write_bytes(b"secret")
    with subprocess.Popen(
        [sys.executable, "-c", ATTACKER, str(vault / swapped[0]), str(vault / "swap")],
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            pytest.skip("the attacker did not start")
        yield vault.parent / "OUT"
        assert process.poll() is None, "the attacker gave up"
        process.kill()


def rounds(attempt: Callable[[int], None], *, least: int, most: int) -> tuple[int, int]:
    """Repeat an attempt until it ran `least` times, with successes and refusals."""
    won = refused = 0
    while won + refused < least or (min(won, refused) < 20 and won + refused < most):
        try:
            attempt(won + refused)
        except VaultError:
            refused += 1
        else:
            won += 1
    return won, refused


@pytest.mark.parametrize("least", [4000, pytest.param(40_000, marks=pytest.mark.soak)])
def test_no_write_escapes_a_swapping_program(
    handle_store: VaultStore, attacker: Path, least: int
) -> None:
    outside = os.stat(attacker / "Sub")

    def write(number: int) -> None:
        folder = handle_store.open_folder(parse("Notes/Sub", PathUse.FOLDER))
        try:
            os.close(os.open(f"{number}.md", os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=folder))
            os.unlink(f"{number}.md", dir_fd=folder)
            assert not os.path.samestat(os.fstat(folder), outside)
        finally:
            os.close(folder)
        if number % 4 == 0:
            handle_store.write_atomic(parse("Notes/Sub/atomic.md", PathUse.UPDATE), b"x")

    won, refused = rounds(write, least=least, most=200_000)
    assert won
    assert refused
    assert sorted(os.listdir(attacker / "Sub")) == ["n.md"]


@pytest.mark.usefixtures("attacker")
@pytest.mark.parametrize(
    "swapped",
    [("Notes", "../OUT"), ("Notes/Sub", "../OUT/Sub"), ("Notes/Sub/n.md", "../OUT/Sub/n.md")],
)
def test_no_read_escapes_a_swapping_program(handle_store: VaultStore) -> None:
    path = parse("Notes/Sub/n.md", PathUse.READ)

    def read(_: int) -> None:
        assert handle_store.read(path) == b"content of Notes/Sub/n.md\n"

    won, refused = rounds(read, least=4000, most=200_000)
    assert won
    assert refused
