"""Partial undo: a further undo continues it, and redo repeats only the undone part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from faults import disk_failing_at, power_cut
from obsidian_agent.errors import VaultError
from obsidian_agent.journal.recovery import interrupted, recover
from obsidian_agent.journal.undo import redo, undo
from previews import create, make, modify, move

if TYPE_CHECKING:
    from tests.journal.conftest import Home

CHANGED = [
    modify("one.md", b"one\n", b"ONE\n"),
    create("new.md", b"new\n"),
    modify("two.md", b"two\r\n", b"TWO\r\n"),
]


def test_an_undo_that_failed_at_a_file_is_gone_on_with(home: Home) -> None:
    before = home.seen()
    older = home.run(create("older.md", b"older\n")).run_id
    newer = home.run(*CHANGED).run_id
    with disk_failing_at("one.md"):
        result = undo(home.journal, home.store)
    assert [problem.path for problem in result.errors] == ["one.md"]
    assert [entry.undone for entry in home.journal.history()] == [False, False]
    result = undo(home.journal, home.store)
    assert (result.run_id, result.restored) == (newer, ("one.md",))
    assert [entry.undone for entry in home.journal.history()] == [True, False]
    assert undo(home.journal, home.store).run_id == older
    assert home.seen() == before


def test_an_undo_that_met_an_edited_file_is_gone_on_with(home: Home) -> None:
    home.run(create("older.md", b"older\n"))
    newer = home.run(*CHANGED).run_id
    (home.root / "one.md").write_bytes(b"edited\n")
    assert undo(home.journal, home.store).conflicts
    again = undo(home.journal, home.store)
    assert (again.run_id, [one.path for one in again.conflicts]) == (newer, ["one.md"])
    assert (home.root / "older.md").exists()
    (home.root / "one.md").write_bytes(b"ONE\n")
    assert undo(home.journal, home.store).restored == ("one.md",)


def test_what_was_left_in_a_folder_is_found_where_that_has_moved_back_to(home: Home) -> None:
    before = home.seen()
    home.run(
        [
            move("Folder", "Moved"),
            modify("Moved/inner.md", b"inner\n" * 100, b"INNER\n"),
            move("Moved", "Again"),
        ]
    )
    after = home.seen()
    with disk_failing_at("Moved/inner.md"):
        assert [problem.path for problem in undo(home.journal, home.store).errors] == [
            "Moved/inner.md"
        ]
    assert (home.root / "Folder/inner.md").read_bytes() == b"INNER\n"
    (home.root / "Folder/inner.md").write_bytes(b"edited\n")
    assert [one.path for one in undo(home.journal, home.store).conflicts] == ["Folder/inner.md"]
    assert undo(home.journal, home.store, force=["Moved/inner.md"]).restored == ("Folder/inner.md",)
    assert home.seen() == before
    redo(home.journal, home.store)
    (home.root / "Folder/inner.md").write_bytes(b"INNER\n")
    redo(home.journal, home.store)
    assert home.seen() == after


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("undoing", [True, False])
def test_what_recovery_could_not_do_is_done_when_it_is_asked_again(
    home: Home, finish: bool, undoing: bool
) -> None:
    """Of an interrupted run, or of an interrupted undo of it."""
    before = home.seen()
    if undoing:
        home.run(*CHANGED)
    after = home.seen()
    with power_cut(2):
        if undoing:
            undo(home.journal, home.store)
        else:
            home.run(*CHANGED)
    with (
        disk_failing_at("one.md", "two.md"),
        pytest.raises(VaultError, match="could not be written"),
    ):
        recover(home.journal, home.store, finish=finish)
    assert len(interrupted(home.journal, home.store)) == 1
    (done,) = recover(home.journal, home.store, finish=finish)
    assert done.problems == ()
    if undoing and not finish:
        assert home.seen() == after
    if home.journal.last_undoable() is not None:
        assert undo(home.journal, home.store).errors == ()
    assert home.seen() == before


def test_what_was_skipped_is_still_in_effect(home: Home) -> None:
    before = home.seen()
    home.run(create("older.md", b"older\n"))
    home.run(*CHANGED)
    undo(home.journal, home.store, skip=["one.md"])
    assert undo(home.journal, home.store).restored == ("one.md",)
    undo(home.journal, home.store)
    assert home.seen() == before


def test_a_folder_stays_in_effect_with_what_was_left_in_it(home: Home) -> None:
    before = home.seen()
    home.run([make("A"), make("A/B"), create("A/B/new.md", b"new\n")])
    (home.root / "A/B/new.md").write_bytes(b"edited\n")
    assert [one.path for one in undo(home.journal, home.store).conflicts] == ["A/B/new.md"]
    assert undo(home.journal, home.store, force=["A/B/new.md"]).restored == (
        "A",
        "A/B",
        "A/B/new.md",
    )
    assert home.seen() == before


def test_a_folder_that_holds_what_others_made_is_done_with(home: Home) -> None:
    home.run(make("A"))
    (home.root / "A/mine.md").write_bytes(b"mine")
    assert undo(home.journal, home.store).skipped == ("A",)
    assert home.journal.last_undoable() is None


def test_redo_goes_on_with_what_it_left_out(home: Home) -> None:
    home.run(*CHANGED)
    after = home.seen()
    undo(home.journal, home.store)
    (home.root / "two.md").write_bytes(b"edited\n")
    assert [one.path for one in redo(home.journal, home.store).conflicts] == ["two.md"]
    (home.root / "two.md").write_bytes(b"two\r\n")
    assert redo(home.journal, home.store).restored == ("two.md",)
    assert home.seen() == after


def test_a_folder_that_redo_could_not_make_gets_nothing_put_into_it(home: Home) -> None:
    """`Folder` will still leave: files put into it would leave with it."""
    home.run([move("Folder", "Moved"), make("Folder"), create("Folder/new.md", b"new\n")])
    after = home.seen()
    undo(home.journal, home.store)
    with disk_failing_at("Folder"):
        assert redo(home.journal, home.store).restored == ()
    assert "Folder/new.md" not in home.seen()
    redo(home.journal, home.store)
    assert home.seen() == after
