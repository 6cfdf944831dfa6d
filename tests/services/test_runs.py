"""Undo of chosen files of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsidian_agent.journal.writer import Journal
from obsidian_agent.services.runs import Runs
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.views.changes import Operation
from previews import create, make, modify, move, picture, previewed, run, trash
from support import MakeVault

FILES = {"one.md": b"one\n", "two.md": b"two\n", "Old/three.md": b"three\n", "gone.md": b"gone\n"}


class Home:
    """A vault with one run, and the runs of it."""

    def __init__(self, store: VaultStore, state: Path, *operations: Operation) -> None:
        self.root = Path(store.real_path)
        self.before = picture(self.root)
        with Journal.open(state, store) as journal:
            run_id = run(previewed(*operations), store, journal).run_id
        assert run_id is not None
        self.run_id = run_id
        self.after = picture(self.root)
        self.runs = Runs(store, state)

    def text(self, path: str) -> str | None:
        file = self.root / path
        return file.read_text() if file.exists() else None


@pytest.fixture
def home(make_vault: MakeVault, tmp_path: Path) -> Home:
    return Home(
        make_vault(FILES),
        tmp_path / "state",
        modify("one.md", b"one\n", b"ONE\n"),
        modify("two.md", b"two\n", b"TWO\n"),
        make("New"),
        create("New/a.md", b"a\n"),
        create("New/b.md", b"b\n"),
        move("Old/three.md", "New/3.md", b"three\n"),
        modify("New/3.md", b"three\n", b"THREE\n"),
        trash("gone.md", b"gone\n"),
    )


def test_chosen_files_are_undone_and_the_rest_stays_in_effect(home: Home) -> None:
    preview = home.runs.undo_preview(home.run_id, only=["one.md"])
    assert preview.restored == ("one.md",)
    assert picture(home.root) == home.after, "a preview changes nothing"
    result = home.runs.undo(home.run_id, only=["one.md"])
    assert (result.restored, result.conflicts) == (("one.md",), ())
    assert (home.text("one.md"), home.text("two.md")) == ("one\n", "TWO\n")
    assert home.runs.history()[0].current_status == "partly undone"
    home.runs.undo(home.run_id)
    assert picture(home.root) == home.before
    assert home.runs.history()[0].current_status == "undone"


def test_a_renamed_file_is_chosen_by_either_path_and_keeps_its_folder(home: Home) -> None:
    home.runs.undo(home.run_id, only=["New/3.md"])
    assert home.text("Old/three.md") == "three\n"
    assert home.text("New/a.md") == "a\n"
    home.runs.redo()
    assert picture(home.root) == home.after
    home.runs.undo(home.run_id, only=["Old/three.md"])
    assert home.text("Old/three.md") == "three\n"


def test_a_new_folder_goes_with_the_last_of_its_files(home: Home) -> None:
    home.runs.undo(home.run_id, only=["New/a.md"])
    assert (home.text("New/a.md"), home.text("New/b.md")) == (None, "b\n")
    result = home.runs.undo(home.run_id, only=["New/b.md", "New/3.md"])
    assert not (home.root / "New").exists()
    assert home.text("one.md") == "ONE\n"
    assert result.files == 2, "folders are not counted"


def test_a_deleted_file_comes_back_alone(home: Home) -> None:
    home.runs.undo(home.run_id, only=["gone.md"])
    assert home.text("gone.md") == "gone\n"
    assert home.text("one.md") == "ONE\n"


def test_a_chosen_file_that_was_edited_since_is_a_conflict(home: Home) -> None:
    (home.root / "one.md").write_text("mine\n")
    preview = home.runs.undo_preview(home.run_id, only=["one.md", "two.md"])
    assert [conflict.path for conflict in preview.conflicts] == ["one.md"]
    home.runs.undo(home.run_id, force=["one.md"], only=["one.md", "two.md"])
    assert (home.text("one.md"), home.text("two.md")) == ("one\n", "two\n")
    assert home.text("gone.md") is None


def test_an_undo_of_one_new_note_in_a_new_folder_counts_one_file(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    home = Home(make_vault(FILES), tmp_path / "state", make("Log"), create("Log/day.md", b"x"))
    preview = home.runs.undo_preview(home.run_id)
    assert preview.restored == ("Log", "Log/day.md")
    assert preview.files == 1
