"""The store: opening, reading, listing, and writing outside of runs."""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from obsidian_agent.errors import ConfigError, VaultError
from obsidian_agent.vault.filesystem.store import CONFIG_LIMIT, VaultStore, vault_error
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse

Build = Callable[[Sequence[Sequence[str]]], None]


def at(text: str) -> VaultPath:
    return parse(text, PathUse.READ)


def refusal(attempt: Callable[[], object]) -> VaultError:
    with pytest.raises(VaultError) as caught:
        attempt()
    return caught.value


# --- opening ---


def test_open_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    cases: list[tuple[str | Path, str]] = [
        (tmp_path / "nope", "There is no folder"),
        (tmp_path / "file", "is a file"),
        ("a\x00b", "cannot be opened"),
    ]
    for folder, words in cases:
        with pytest.raises(ConfigError, match=words) as caught:
            VaultStore.open(folder)
        assert caught.value.message.count(": ") >= 1


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind this user"
)
def test_a_folder_that_cannot_be_read(vault: Path) -> None:
    vault.chmod(0)
    with pytest.raises(ConfigError, match="permissions"):
        VaultStore.open(vault)


def test_a_vault_opened_by_a_link(vault: Path, tmp_path: Path, build: Build) -> None:
    build([["file", "a.md"]])
    link = tmp_path / "v"
    link.symlink_to(vault)
    with VaultStore.open(link) as store:
        link.unlink()
        assert (store.name, store.real_path) == ("VAULT", str(vault.resolve()))
        assert store.read(at("a.md")) == b"content of a.md\n"
        assert store.is_writable()


def test_close_gives_the_handle_back(vault: Path) -> None:
    with VaultStore.open(vault) as store:
        fd = store.root_fd
        os.fstat(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    store.close()


# --- reading ---


def test_bytes_come_as_they_are(store: VaultStore, vault: Path) -> None:
    data = b"\xef\xbb\xbf---\r\na: 1\r\n---\r\n\x00\xff\x1a text"
    (vault / "odd.md").write_bytes(data)
    (vault / "empty.md").write_bytes(b"")
    assert store.read(at("odd.md")) == data
    assert store.read(at("empty.md")) == b""


def test_the_limit_is_exact(store: VaultStore, vault: Path) -> None:
    (vault / "ten.md").write_bytes(b"0123456789")
    assert store.read(at("ten.md"), limit=10) == b"0123456789"
    error = refusal(lambda: store.read(at("ten.md"), limit=9))
    assert (error.code, error.path) == ("FILE_TOO_LARGE", "ten.md")


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="needs a file that does not know its size"
)
def test_a_file_that_does_not_tell_its_size(vault: Path) -> None:
    with VaultStore.open("/proc/self") as store:
        assert store.stat(at("status"))[0].st_size == 0  # type: ignore[index]
        assert b"Pid:" in store.read(at("status"))
        assert refusal(lambda: store.read(at("status"), limit=100)).code == "FILE_TOO_LARGE"


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder"])
def test_special_files_are_refused_at_once(store: VaultStore, build: Build, kind: str) -> None:
    build([[kind, "x.md"], ["link", "l.md", "x.md"]])
    assert refusal(lambda: store.read(at("x.md"))).code == "NOT_TEXT"
    assert refusal(lambda: store.read(at("l.md"))).code == "NOT_TEXT"
    assert refusal(lambda: store.read(ROOT)).code == "NOT_TEXT"


@pytest.mark.parametrize(
    ("number", "code", "retryable"),
    [
        (errno.ENOENT, "FILE_NOT_FOUND", False),
        (errno.ENOTDIR, "NOT_A_FOLDER", False),
        (errno.ELOOP, "PATH_OUTSIDE_VAULT", False),
        (errno.EXDEV, "PATH_OUTSIDE_VAULT", False),
        (errno.ENAMETOOLONG, "PATH_INVALID", False),
        (errno.EISDIR, "NOT_TEXT", False),
        (errno.EIO, "IO_ERROR", True),
        (errno.EACCES, "IO_ERROR", True),
        (errno.EMFILE, "IO_ERROR", True),
    ],
)
def test_system_errors_have_codes(number: int, code: str, retryable: bool) -> None:
    error = vault_error(OSError(number, os.strerror(number)), at("a.md"))
    assert (error.code, error.retryable, error.path) == (code, retryable, "a.md")
    assert "a.md" in error.message


def test_a_name_too_long_for_the_disk(store: VaultStore) -> None:
    path = at("é" * 200 + ".md")
    assert refusal(lambda: store.read(path)).code == "PATH_INVALID"


# --- looking ---


def test_scan_tells_kinds_and_links(store: VaultStore, build: Build) -> None:
    build(
        [
            ["file", "a.md"],
            ["folder", "d"],
            ["fifo", "pipe"],
            ["link", "to-file", "a.md"],
            ["link", "to-folder", "d"],
            ["link", "out", "../.."],
        ]
    )
    build(
        [
            ["link", "nowhere", "gone"],
            ["link", "secret", ".obsidian/app.json"],
            ["file", ".obsidian/app.json"],
        ]
    )
    assert sorted(store.scan(ROOT)) == [
        (".obsidian", "folder", False),
        ("a.md", "file", False),
        ("d", "folder", False),
        ("nowhere", "other", True),
        ("out", "other", True),
        ("pipe", "other", False),
        ("secret", "other", True),
        ("to-file", "file", True),
        ("to-folder", "folder", True),
    ]
    assert refusal(lambda: store.scan(at("nope"))).code == "FILE_NOT_FOUND"
    assert refusal(lambda: store.scan(at("a.md"))).code == "NOT_A_FOLDER"
    assert refusal(lambda: store.scan(at("out"))).code == "PATH_OUTSIDE_VAULT"


def test_status_of_links_and_targets(store: VaultStore, vault: Path, build: Build) -> None:
    build(
        [
            ["file", "a.md"],
            ["link", "l.md", "a.md"],
            ["link", "out.md", "../../x"],
            ["link", "gone.md", "nope"],
        ]
    )
    link, target = store.lstat(at("l.md")), store.stat(at("l.md"))
    assert link is not None
    assert target is not None
    assert stat.S_ISLNK(link.st_mode)
    assert os.path.samestat(target[0], (vault / "a.md").stat())
    assert store.lstat(at("out.md")) is not None
    assert refusal(lambda: store.stat(at("out.md"))).code == "PATH_OUTSIDE_VAULT"
    for text in ("nope.md", "nope/x.md", "a.md/x.md"):
        assert store.lstat(at(text)) is None
        assert store.stat(at(text)) is None
    assert store.stat(at("gone.md")) is None
    assert os.path.samestat(store.lstat(ROOT), vault.stat())  # type: ignore[arg-type]
    assert os.path.samestat(store.stat(ROOT)[0], vault.stat())  # type: ignore[index]


def test_birth_does_not_move_with_the_content(store: VaultStore, vault: Path) -> None:
    start = time.time_ns()
    (vault / "a.md").write_bytes(b"one")
    status = store.stat(at("a.md"))
    assert status is not None
    born = status[1]
    assert abs(born - start) < 60_000_000_000
    changed = status[0].st_ctime_ns
    while (vault / "a.md").stat().st_ctime_ns == changed:
        (vault / "a.md").write_bytes(b"two")
    later = store.stat(at("a.md"))
    assert later is not None
    # A disk that keeps no birth time gives the change time; where it is kept it stays.
    assert later[1] in (born, later[0].st_ctime_ns)


def test_case_is_found_out_by_looking(store: VaultStore, vault: Path, build: Build) -> None:
    build([["file", "Note.md"]])
    folds = (vault / "nOTE.MD").exists()
    assert store.case_insensitive is folds
    assert os.listdir(vault) == ["Note.md"]


def test_case_of_an_empty_vault_is_the_platforms(vault: Path) -> None:
    with VaultStore.open(vault) as store:
        assert isinstance(store.case_insensitive, bool)
    assert os.listdir(vault) == []


# --- writing outside of runs ---


def test_write_keeps_the_mode_and_leaves_no_litter(
    store: VaultStore, vault: Path, build: Build
) -> None:
    build([["file", "d/a.md"]])
    (vault / "d/a.md").chmod(0o640)
    store.write_atomic(at("d/a.md"), b"new")
    store.write_atomic(at("d/b.md"), b"other")
    assert (vault / "d/a.md").read_bytes() == b"new"
    assert stat.S_IMODE((vault / "d/a.md").stat().st_mode) == 0o640
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((vault / "d/b.md").stat().st_mode) == 0o666 & ~umask
    assert sorted(os.listdir(vault / "d")) == ["a.md", "b.md"]


def test_write_goes_through_a_link(store: VaultStore, vault: Path, build: Build) -> None:
    build([["file", "d/a.md"], ["link", "l.md", "d/a.md"], ["link", "out.md", "../out.md"]])
    store.write_atomic(at("l.md"), b"new")
    assert (vault / "l.md").is_symlink()
    assert (vault / "d/a.md").read_bytes() == b"new"
    assert refusal(lambda: store.write_atomic(at("out.md"), b"new")).code == "PATH_OUTSIDE_VAULT"
    assert not (vault.parent / "out.md").exists()


def test_a_write_that_fails_changes_nothing(
    store: VaultStore, build: Build, snapshot: Callable[[], dict[str, object]]
) -> None:
    build([["file", "d/a.md"], ["folder", "d/folder.md"]])
    before = snapshot()
    assert refusal(lambda: store.write_atomic(at("d/folder.md"), b"x")).code in (
        "NOT_TEXT",
        "IO_ERROR",
    )
    assert refusal(lambda: store.write_atomic(at("nope/a.md"), b"x")).code == "FILE_NOT_FOUND"
    assert refusal(lambda: store.write_atomic(at("d/a.md/b.md"), b"x")).code == "NOT_A_FOLDER"
    assert snapshot() == before


def test_a_short_write_is_completed(
    store: VaultStore, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:3])))
    store.write_atomic(at("a.md"), b"0123456789")
    monkeypatch.undo()
    assert (vault / "a.md").read_bytes() == b"0123456789"


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_leaves_the_old_file(
    store: VaultStore, build: Build, snapshot: Callable[[], dict[str, object]], call: str
) -> None:
    build([["file", "a.md"]])
    before = snapshot()

    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, call, fail)
        error = refusal(lambda: store.write_atomic(at("a.md"), b"new"))
    assert (error.code, error.retryable) == ("IO_ERROR", True)
    assert snapshot() == before


def test_folders_are_made_with_their_parents(store: VaultStore, vault: Path, build: Build) -> None:
    build([["file", "a.md"], ["folder", "Real"], ["link", "l", "Real"]])
    for text in ("x/y/z", "x/y", "l", "l/in"):
        store.make_folder(at(text))
    store.make_folder(ROOT)
    assert (vault / "x/y/z").is_dir()
    assert (vault / "Real/in").is_dir()
    assert refusal(lambda: store.make_folder(at("a.md"))).code == "NOT_A_FOLDER"
    assert refusal(lambda: store.make_folder(at("a.md/b"))).code == "NOT_A_FOLDER"


def test_remove_takes_the_link_not_the_target(store: VaultStore, vault: Path, build: Build) -> None:
    build([["file", "a.md"], ["link", "l.md", "a.md"], ["folder", "d"]])
    assert store.remove(at("l.md")) is True
    assert store.remove(at("l.md")) is False
    assert store.remove(at("a.md/x")) is False
    assert (vault / "a.md").exists()
    assert refusal(lambda: store.remove(at("d"))).code in ("IO_ERROR", "NOT_TEXT")


# --- Obsidian's own config ---


def test_config_is_read_by_fixed_names(store: VaultStore, vault: Path) -> None:
    assert store.obsidian_config("app") is None
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian/app.json").write_text('{"newLinkFormat": "shortest"}')
    (vault / ".obsidian/daily-notes.json").write_text("{ broken")
    (vault / ".obsidian/hotkeys.json").write_text("[" * 100_000)
    (vault / ".obsidian/types.json").write_text(json.dumps("x" * CONFIG_LIMIT))
    (vault / ".obsidian/workspace.json").mkdir()
    assert store.obsidian_config("app") == {"newLinkFormat": "shortest"}
    for name in ("daily-notes", "hotkeys", "types", "workspace", "templates"):
        assert store.obsidian_config(name) is None
    with pytest.raises(ValueError, match="not one of"):
        store.obsidian_config("../secret")  # type: ignore[arg-type]


@pytest.mark.parametrize("link", ["folder", "file"])
def test_config_behind_a_link_is_not_read(
    store: VaultStore, vault: Path, build: Build, link: str
) -> None:
    build([["file", "../OUT/app.json"]])
    (vault.parent / "OUT/app.json").write_text("{}")
    if link == "folder":
        build([["link", ".obsidian", "../OUT"]])
    else:
        build([["link", ".obsidian/app.json", "../../OUT/app.json"]])
    assert store.obsidian_config("app") is None
