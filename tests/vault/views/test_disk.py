"""The view of the disk: look-up by NFC, twins by case, listings that end."""

from __future__ import annotations

import errno
import os
import sys
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from faults import refused
from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.vault.filesystem.store import ScanKind, VaultStore
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.view import VaultEntry, VaultView

Build = Callable[[Sequence[Sequence[str]]], None]

NFC, NFD = (unicodedata.normalize(form, "Café/Crème.md") for form in ("NFC", "NFD"))
BYTES_IN_NAMES = sys.platform.startswith("linux")


def at(text: str) -> VaultPath:
    return parse(text, PathUse.READ)


@pytest.fixture
def view(store: VaultStore) -> DiskView:
    return DiskView(store)


def texts(entries: Sequence[VaultEntry]) -> list[str]:
    return [entry.path.text for entry in entries]


def test_it_is_a_vault_view(view: DiskView) -> None:
    checked: VaultView = view
    assert checked.locate(ROOT) == VaultEntry(ROOT, "folder")


# --- one entry ---


def test_locate_finds_exact_names_only(view: DiskView, build: Build) -> None:
    build([["file", "Notes/A.md"]])
    assert view.locate(at("Notes/A.md")) == VaultEntry(at("Notes/A.md"), "file")
    assert view.locate(at("Notes")) == VaultEntry(at("Notes"), "folder")
    for text in ("Notes/a.md", "notes/A.md", "Notes/B.md", "Nope/x.md", "Notes/A.md/x"):
        assert view.locate(at(text)) is None


@pytest.mark.skipif(not BYTES_IN_NAMES, reason="this disk may compose names itself")
@pytest.mark.parametrize(("on_disk", "asked"), [(NFD, NFC), (NFC, NFD)])
def test_names_are_found_in_either_composition(
    view: DiskView, build: Build, on_disk: str, asked: str
) -> None:
    build([["file", on_disk]])
    entry = view.locate(at(asked))
    assert entry is not None
    assert entry.path.text == on_disk
    assert view.read(at(asked)) == f"content of {on_disk}\n".encode()
    assert view.stat(at(asked)).size == len(view.read(at(on_disk)))
    assert view.twin(at(asked)) == entry.path
    assert texts(view.children(at(asked).parent)) == [on_disk]


@pytest.mark.skipif(not BYTES_IN_NAMES, reason="this disk may compose names itself")
def test_of_two_compositions_each_finds_itself(view: DiskView, build: Build) -> None:
    build([["file", "Café.md"], ["file", unicodedata.normalize("NFD", "Café.md")]])
    for form in ("NFC", "NFD"):
        path = at(unicodedata.normalize(form, "Café.md"))
        entry = view.locate(path)
        assert entry is not None
        assert entry.path == path
        assert view.read(path) == f"content of {path.text}\n".encode()


def test_twins_differ_in_case_along_the_whole_path(view: DiskView, build: Build) -> None:
    build([["file", "Notes/Sub/A.md"], ["file", "straße.md"]])
    for text in ("notes/SUB/a.md", "Notes/Sub/A.md", "NOTES/sub/A.MD"):
        assert view.twin(at(text)) == at("Notes/Sub/A.md")
    assert view.twin(at("STRASSE.md")) == at("straße.md")
    assert view.twin(at("notes")) == at("Notes")
    assert view.twin(ROOT) == ROOT
    for text in ("Notes/Sub/B.md", "Note/Sub/A.md", "Notes/Sub/A.md/x", "Strase.md"):
        assert view.twin(at(text)) is None


def test_twins_in_folders_that_are_twins(view: DiskView, vault: Path, build: Build) -> None:
    build([["file", "Notes/a.md"]])
    if (vault / "notes").exists():
        pytest.skip("this disk folds case")
    build([["file", "notes/b.md"], ["file", "NOTES/B.md"]])
    assert view.twin(at("Notes/B.md")) in (at("notes/b.md"), at("NOTES/B.md"))
    assert view.twin(at("notes/b.md")) == at("notes/b.md")
    assert view.twin(at("notes/A.MD")) == at("Notes/a.md")


@pytest.mark.parametrize("kind", ["fifo", "socket"])
def test_special_files_are_in_the_way_but_not_listed(
    view: DiskView, build: Build, kind: str
) -> None:
    build([[kind, "x.md"]])
    assert view.locate(at("x.md")) is None
    assert view.children(ROOT) == []
    assert view.twin(at("X.md")) == at("x.md")
    for ask in (view.read, view.stat):
        with refused("NOT_TEXT"):
            ask(at("x.md"))


def test_files_have_sizes_and_times(view: DiskView, vault: Path, build: Build) -> None:
    build([["file", "a.md"], ["folder", "d"]])
    os.utime(vault / "a.md", ns=(0, 1_700_000_000_123_456_789))
    stat = view.stat(at("a.md"))
    assert stat.size == len(b"content of a.md\n")
    assert stat.mtime_ms == pytest.approx(1_700_000_000_123.4568)
    assert stat.created_ms > 1_700_000_000_000
    for text, code in [
        ("nope.md", "FILE_NOT_FOUND"),
        ("d", "NOT_TEXT"),
        ("a.md/b", "FILE_NOT_FOUND"),
    ]:
        with refused(code):
            view.stat(at(text))


def test_reading_has_codes(view: DiskView, build: Build) -> None:
    build([["file", "Note.md"], ["folder", "d"]])
    assert view.read(at("Note.md")) == b"content of Note.md\n"
    for text, code in [
        ("note.md", "FILE_NOT_FOUND"),
        ("é.md", "FILE_NOT_FOUND"),
        ("d", "NOT_TEXT"),
        ("Note.md/x.md", "FILE_NOT_FOUND"),
    ]:
        with refused(code):
            view.read(at(text))


def test_case_counts_where_the_disk_folds_it(
    view: DiskView, store: VaultStore, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    build([["file", "Note.md"], ["file", "d/a.md"]])
    read = store.read
    folded = {"note.md": at("Note.md"), "D/a.md": at("d/a.md")}
    monkeypatch.setattr(store, "read", lambda path: read(folded.get(path.text) or path))
    monkeypatch.setattr(store, "_case_insensitive", True)
    assert view.read(at("Note.md")) == b"content of Note.md\n"
    for text in folded:
        with refused("FILE_NOT_FOUND"):
            view.read(at(text))


def test_on_disk_nothing_has_moved(view: DiskView, build: Build) -> None:
    build([["file", "a.md"]])
    assert view.origin(at("a.md")) == view.current(at("a.md")) == at("a.md")
    assert view.origin(at("b.md")) is view.current(at("b.md")) is None


# --- listings ---


def test_walk_is_sorted_by_text_as_a_whole(view: DiskView, build: Build) -> None:
    build(
        [["file", name] for name in ("a/z.md", "a.md", "a b.md", "a/b/c.md", "B.md")]
        + [["folder", "empty"]]
    )
    found = texts(list(view.walk(ROOT)))
    assert (
        found
        == sorted(found)
        == ["B.md", "a", "a b.md", "a.md", "a/b", "a/b/c.md", "a/z.md", "empty"]
    )
    assert texts(list(view.walk(at("a")))) == ["a/b", "a/b/c.md", "a/z.md"]
    assert texts(view.children(ROOT)) == ["B.md", "a", "a b.md", "a.md", "empty"]


def test_listings_have_codes(view: DiskView, build: Build) -> None:
    build([["file", "a.md"]])
    for text, code in [
        ("nope", "FILE_NOT_FOUND"),
        ("a.md", "NOT_A_FOLDER"),
        ("a.md/b", "FILE_NOT_FOUND"),
    ]:
        for ask in (view.children, view.walk):
            with refused(code):
                ask(at(text))


def test_protected_names_do_not_exist(view: DiskView, build: Build) -> None:
    build(
        [
            ["file", name]
            for name in (
                ".obsidian/app.json",
                ".git/config",
                ".trash/x.md",
                "d/.hidden.md",
                "opencode.json",
                "a.md",
                "..b.md",
            )
        ]
    )
    assert texts(list(view.walk(ROOT))) == ["..b.md", "a.md", "d"]
    assert view.unreadable_names == 0
    assert view.trash_names() == {"x.md"}


def test_no_trash_has_no_names(view: DiskView) -> None:
    assert view.trash_names() == set()


@pytest.mark.skipif(not BYTES_IN_NAMES, reason="this disk takes text names only")
def test_names_that_are_no_text_are_counted(view: DiskView, vault: Path, build: Build) -> None:
    build([["file", "ok.md"]])
    for name in (b"latin-\xe9.md", b"line\nbreak.md", b"back\\slash.md", b"esc\x1b[31m.md"):
        Path(os.fsdecode(os.fsencode(vault) + b"/" + name)).write_bytes(b"x")
    assert texts(list(view.walk(ROOT))) == ["ok.md"]
    assert view.unreadable_names == 4


def test_links_are_listed_once_and_loops_end(view: DiskView, build: Build) -> None:
    build([["file", "Real/n.md"], ["link", "Alias", "Real"], ["link", "Alias.md", "Real/n.md"]])
    build(
        [
            ["folder", "A"],
            ["folder", "B"],
            ["link", "A/b", "../B"],
            ["link", "B/a", "../A"],
            ["link", "self", "self"],
            ["link", "A/up", ".."],
        ]
    )
    assert texts(list(view.walk(ROOT))) == [
        "A",
        "A/b",
        "Alias",
        "Alias.md",
        "B",
        "B/a",
        "Real",
        "Real/n.md",
    ]
    assert view.locate(at("Alias")) == VaultEntry(at("Alias"), "folder")
    assert texts(view.children(at("Alias"))) == ["Alias/n.md"]
    assert view.read(at("Alias/n.md")) == b"content of Real/n.md\n"
    assert view.stat(at("Alias.md")).size == view.stat(at("Real/n.md")).size


def test_a_folder_link_that_is_asked_for_is_walked(view: DiskView, build: Build) -> None:
    build([["file", "Real/Sub/n.md"], ["link", "Alias", "Real"]])
    assert texts(list(view.walk(at("Alias")))) == ["Alias/Sub", "Alias/Sub/n.md"]


def test_a_closed_folder_does_not_hide_the_rest(
    view: DiskView, store: VaultStore, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    build([["file", "a/x.md"], ["file", "closed/y.md"], ["file", "gone/z.md"]])
    scan = store._list

    def refuse(folder: VaultPath) -> list[tuple[str, ScanKind | None]]:
        if folder.text in ("closed", "gone"):
            number = errno.EACCES if folder.text == "closed" else errno.ENOENT
            raise OSError(number, os.strerror(number))
        return scan(folder)

    monkeypatch.setattr(store, "_list", refuse)
    assert texts(list(view.walk(ROOT))) == ["a", "a/x.md", "closed", "gone"]
    assert view.unreadable_names == 1
    for ask in (view.children, view.walk):
        with pytest.raises(VaultError, match="permissions"):
            ask(at("closed"))


def test_a_failing_disk_is_not_taken_for_an_empty_one(
    view: DiskView, store: VaultStore, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    build([["file", "a/x.md"]])
    scan = store._list

    def fail(folder: VaultPath) -> list[tuple[str, ScanKind | None]]:
        if folder.text == "a":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return scan(folder)

    monkeypatch.setattr(store, "_list", fail)
    with refused("IO_ERROR"):
        view.walk(ROOT)


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("../OUT", "PATH_OUTSIDE_VAULT", "out of the vault"),
        (".obsidian", "PATH_NOT_ALLOWED", "protected"),
        ("l", "PATH_OUTSIDE_VAULT", "circles"),
        ("gone", "PATH_OUTSIDE_VAULT", "does not exist"),
        ("/etc", "PATH_OUTSIDE_VAULT", "absolute"),
    ],
)
def test_bad_links_say_why(
    view: DiskView, build: Build, target: str, code: str, words: str
) -> None:
    build([["folder", ".obsidian"], ["file", "../OUT/x.md"], ["link", "l", target]])
    assert view.children(ROOT) == []
    for ask in (view.locate, view.twin):
        with pytest.raises(PathRefused, match=words) as caught:
            ask(at("l/x.md"))
        assert caught.value.code == code
    assert view.twin(at("L")) == at("l")


# --- what is remembered ---


def test_one_listing_serves_ten_thousand_questions(
    store: VaultStore, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    build([["file", f"Notes/n{number}.md"] for number in range(50)])
    view, listed = DiskView(store), []
    scan = store.scan
    monkeypatch.setattr(store, "scan", lambda folder: (listed.append(folder.text), scan(folder))[1])
    for number in range(10_000):
        path = at(f"Notes/n{number}.md")
        assert (view.locate(path) is not None) == (number < 50)
        assert (view.twin(at(f"notes/N{number}.md")) is not None) == (number < 50)
    assert listed == ["", "Notes"]


def test_a_view_keeps_to_what_it_has_listed(view: DiskView, build: Build) -> None:
    build([["file", "d/a.md"]])
    before = list(view.walk(ROOT))
    build([["file", "d/b.md"], ["file", "new/z.md"]])
    assert view.locate(at("d/b.md")) is None
    assert list(view.walk(ROOT)) == before
