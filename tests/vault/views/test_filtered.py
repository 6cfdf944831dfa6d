from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agents import NOTES
from obsidian_agent.errors import VaultError
from obsidian_agent.vault.filesystem.store import missing
from obsidian_agent.vault.links.resolve import file_name
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.views.changes import CreateFile, DeleteEntry, Move, RenameEntry
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.filtered import FilteredView
from obsidian_agent.vault.views.overlay import OverlayVault
from support import MakeVault, symbolic_link


def hidden(where: VaultPath) -> bool:
    """Private and everything in it, and one file."""
    return where.key in ("private", "finance/bank.md") or where.key.startswith("private/")


def path(text: str) -> VaultPath:
    return parse(text, PathUse.FOLDER)


@pytest.fixture
def view(make_vault: MakeVault) -> FilteredView:
    store = make_vault(NOTES)
    return FilteredView(DiskView(store), hidden)


@pytest.mark.parametrize(
    "text", ["Private", "Private/diary.md", "Finance/bank.md", "Private/nothing.md"]
)
def test_what_is_hidden_is_missing(view: FilteredView, text: str) -> None:
    where = path(text)
    assert view.locate(where) is None
    assert view.twin(where) is None
    assert view.origin(where) is None
    assert view.current(where) is None
    for ask in (view.read, view.stat, view.children, lambda folder: list(view.walk(folder))):
        with pytest.raises(VaultError) as caught:
            ask(where)
        assert caught.value.code == "FILE_NOT_FOUND"
        assert caught.value.message == f"{text} does not exist."


@pytest.mark.parametrize("link", [symbolic_link, os.link])
def test_every_link_to_what_is_hidden_is_hidden(
    make_vault: MakeVault, link: Callable[[Path, Path], None]
) -> None:
    store = make_vault(NOTES)
    root = Path(store.real_path)
    link(root / "Private/diary.md", root / "Projects/alias.md")
    os.link(root / "Garden.md", root / "Projects/twin.md")
    view = FilteredView(DiskView(store), hidden)
    assert view.locate(path("Projects/alias.md")) is None
    assert (
        view.index.text(path("Projects/alias.md")) == missing(path("Projects/alias.md")).problem()
    )
    assert view.locate(path("Projects/twin.md")) is not None
    overlay = OverlayVault(DiskView(store), 0.0)
    overlay.apply([RenameEntry(path("Projects/alias.md"), path("Projects/b.md"))], 0)
    assert FilteredView(overlay, hidden).is_hidden(path("Projects/b.md"))


@pytest.mark.parametrize("link", [symbolic_link, os.link])
def test_no_listing_has_a_link_to_what_is_hidden(
    make_vault: MakeVault, link: Callable[[Path, Path], None]
) -> None:
    store = make_vault({**NOTES, "Links/seen.md": "", "Only/keep.txt": ""})
    root = Path(store.real_path)
    (root / "Only/keep.txt").unlink()
    link(root / "Private/diary.md", root / "Links/alias.md")
    link(root / "Private/diary.md", root / "Only/alias.md")
    (root / "Folder").symlink_to("Private")
    (root / "Emptied").symlink_to("Only")
    view = FilteredView(DiskView(store), hidden)
    names = ["Garden.md", "Links", "Links/seen.md", "Projects", "Projects/Log.md"]
    names += ["Projects/Plan.md"]
    assert [entry.path.text for entry in view.walk(ROOT)] == names
    assert [entry.path.text for entry in view.children(ROOT)] == ["Garden.md", "Links", "Projects"]
    assert [entry.path.text for entry in view.children(path("Links"))] == ["Links/seen.md"]
    files = [name for name in names if name.endswith(".md")]
    assert sorted(file.text for file in view.index.files()) == files
    assert sorted(note.text for note in view.index.notes(ROOT)) == files
    for folder in ("Only", "Emptied", "Folder"):
        assert view.locate(path(folder)) is None


def test_what_is_left_is_as_it_was(view: FilteredView, make_vault: MakeVault) -> None:
    assert [entry.path.text for entry in view.walk(ROOT)] == [
        "Garden.md",
        "Projects",
        "Projects/Log.md",
        "Projects/Plan.md",
    ]
    assert [entry.path.text for entry in view.children(ROOT)] == ["Garden.md", "Projects"]
    garden = path("Garden.md")
    assert view.read(garden).decode() == NOTES["Garden.md"]
    assert view.stat(garden).size == len(NOTES["Garden.md"])
    assert view.origin(garden) == view.current(garden) == garden
    assert view.twin(path("garden.MD")) == garden


def test_another_spelling_finds_nothing(view: FilteredView) -> None:
    assert view.twin(path("private/DIARY.md")) is None
    assert view.twin(path("PRIVATE")) is None


def test_the_index_is_that_of_what_is_left(make_vault: MakeVault) -> None:
    store = make_vault(
        {
            "A/x.md": "#t [[secret]] [[diary]]\n",
            "B/diary.md": "#t needle\n",
            "Private/diary.md": "#t needle [[x]]\n",
            "Private/secret.md": "[[A/x]]\n\n[r]: ../A/x.md\n",
            "Private/broken.md": b"\xff",
        }
    )
    (Path(store.real_path) / "alias.md").symlink_to("Private/diary.md")
    index = FilteredView(DiskView(store), hidden).index
    x, diary = path("A/x.md"), path("B/diary.md")
    assert list(index.tagged("t", ROOT)) == [x, diary]
    assert [note.path for note in index.texts(ROOT, None)] == [x, diary]
    assert index.resolve("diary", x) == diary, "the hidden one of that name is no candidate"
    assert index.resolve("secret", x) is None
    assert index.backlinks(x) == []
    assert index.backlinks(diary) == [x]
    assert [each for each in index.files() if each.text.startswith("Private")] == []
    assert index.facts(path("Private/diary.md")).tags == ()
    assert index.facts(path("alias.md")).tags == ()
    assert index.files_named(file_name(diary)) == [diary]
    assert index.bases() == []
    assert index.notes_with_references() == []
    assert not [text for text in index.problems if "Private" in text]


def test_what_changes_over_it_is_seen(make_vault: MakeVault) -> None:
    store = make_vault({"A/x.md": "#t\n", "Private/y.md": "#t\n"})
    overlay = OverlayVault(FilteredView(DiskView(store), hidden), 0.0)
    overlay.apply([CreateFile(parse("A/new.md", PathUse.CREATE), b"#t\n")], 0)
    assert [found.text for found in overlay.index.tagged("t", ROOT)] == ["A/new.md", "A/x.md"]


def test_an_overlay_binds_what_moves_and_knows_the_trash_also_where_something_is_hidden(
    make_vault: MakeVault,
) -> None:
    store = make_vault({"A/x.md": "x", "n.md": "", ".trash/n.md": "old"})
    overlay = OverlayVault(FilteredView(DiskView(store), hidden), 0.0)
    overlay.apply([RenameEntry(path("A"), path("B")), DeleteEntry(path("n.md"))], 0)
    moves = [
        owned.operation
        for owned in overlay.change_set().operations
        if isinstance(owned.operation, Move)
    ]
    assert [move.inventory is not None for move in moves] == [True, False]
    assert moves[1].new_path.name == "n 2.md"


@pytest.mark.parametrize("name", ["Hidden", "Hidden/Deep", "A/Hidden"])
def test_a_folder_in_which_every_file_is_hidden_is_missing(
    make_vault: MakeVault, name: str
) -> None:
    """As a pattern such as `Hidden/**` leaves it, which does not name the folder itself."""
    store = make_vault(
        {"A/x.md": "", "A/Hidden/s.md": "", "Hidden/s.md": "", "Hidden/Deep/s.md": ""}
    )
    (Path(store.real_path) / "Empty").mkdir()
    view = FilteredView(DiskView(store), lambda where: where.name == "s.md")
    assert [entry.path.text for entry in view.walk(ROOT)] == ["A", "A/x.md", "Empty"]
    assert [entry.path.text for entry in view.children(ROOT)] == ["A", "Empty"]
    assert view.locate(path(name)) is None
    assert not view.twins(path(name))
    with pytest.raises(VaultError) as there:
        view.children(path(name))
    with pytest.raises(VaultError) as missing:
        DiskView(store).children(path("Nowhere"))
    assert there.value.code == missing.value.code == "FILE_NOT_FOUND"
