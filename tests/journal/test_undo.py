from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from faults import disk_failing_at, refused
from obsidian_agent.journal.undo import UndoConflict, redo, undo, undo_content, undo_preview
from obsidian_agent.vault.filesystem import dirhandles
from obsidian_agent.vault.transaction.actions import CAN_SET_BIRTH_TIME
from obsidian_agent.vault.views.changes import Operation
from previews import create, make, modify, move, trash

if TYPE_CHECKING:
    from pathlib import Path

    from tests.journal.conftest import Home

CHANGED = [
    modify("one.md", b"one\n", b"ONE\n"),
    create("new.md", b"new\n"),
    modify("two.md", b"two\r\n", b"TWO\r\n"),
]


def test_a_run_is_taken_back_and_brought_back(home: Home) -> None:
    before = home.seen()
    home.run(
        [
            make("A"),
            create("A/new.md", b"n"),
            move("Folder", "A/Folder"),
            modify("A/Folder/inner.md", b"inner\n" * 100, b"x"),
        ],
        trash("one.md", b"one\n"),
    )
    after = home.seen()
    result = undo(home.journal, home.store)
    assert home.seen() == before
    assert result.restored == ("A", "A/new.md", "Folder", "Folder/inner.md", "one.md")
    assert result.conflicts == result.skipped == result.errors == ()
    result = redo(home.journal, home.store)
    assert home.seen() == after
    assert result.restored == (".trash/one.md", "A", "A/Folder", "A/Folder/inner.md", "A/new.md")


def test_undo_survives_a_restart(home: Home) -> None:
    before = home.seen()
    home.run(*CHANGED)
    home.journal.close()
    with home.reopened().journal as journal:
        undo(journal, home.store)
    assert home.seen() == before


def test_runs_are_undone_one_by_one_and_redone_in_turn(home: Home) -> None:
    pictures = [home.seen()]
    for number in range(4):
        home.run(create(f"n{number}.md", b"x"))
        pictures.append(home.seen())
    for wanted in reversed(pictures[:-1]):
        undo(home.journal, home.store)
        assert home.seen() == wanted
    with refused("NOTHING_TO_UNDO"):
        undo(home.journal, home.store)
    for wanted in pictures[1:3]:
        redo(home.journal, home.store)
        assert home.seen() == wanted
    undo(home.journal, home.store)
    assert home.seen() == pictures[1]
    for wanted in pictures[2:]:
        redo(home.journal, home.store)
        assert home.seen() == wanted
    with refused("NOTHING_TO_REDO"):
        redo(home.journal, home.store)


def test_a_new_run_clears_redo(home: Home) -> None:
    home.run(*CHANGED)
    undo(home.journal, home.store)
    home.run(create("other.md", b"x"))
    with refused("NOTHING_TO_REDO"):
        redo(home.journal, home.store)


def test_a_run_that_changed_nothing_does_not_clear_redo(home: Home) -> None:
    home.run(*CHANGED)
    undo(home.journal, home.store)
    home.run()
    assert redo(home.journal, home.store).restored


def test_a_run_by_name_out_of_order(home: Home) -> None:
    first = home.run(create("a.md", b"a"))
    home.run(create("b.md", b"b"))
    assert first.run_id
    undo(home.journal, home.store, first.run_id)
    assert not (home.root / "a.md").exists()
    assert (home.root / "b.md").exists()
    with refused("NOTHING_TO_UNDO"):
        undo(home.journal, home.store, first.run_id)
    with refused("RUN_NOT_FOUND"):
        undo(home.journal, home.store, "20200101-000000-ffffff")


class TestConflicts:
    def test_an_edited_file_is_left_and_the_others_are_restored(self, home: Home) -> None:
        run_id = home.run(*CHANGED).run_id
        (home.root / "one.md").write_bytes(b"edited later\n")
        result = undo(home.journal, home.store)
        assert result.restored == ("new.md", "two.md")
        assert result.conflicts == (UndoConflict("one.md", "its content has changed"),)
        assert (home.root / "one.md").read_bytes() == b"edited later\n"
        assert (home.root / "two.md").read_bytes() == b"two\r\n"
        assert not home.journal.history()[0].undone
        assert undo_content(home.journal, run_id, "one.md") == ("one.md", b"one\n")

    def test_what_was_left_can_be_forced_later_and_nothing_is_lost(self, home: Home) -> None:
        run_id = home.run(*CHANGED).run_id
        (home.root / "one.md").write_bytes(b"edited later\n")
        undo(home.journal, home.store)
        result = undo(home.journal, home.store, run_id, force=["one.md"])
        assert result.restored == ("one.md",)
        assert (home.root / "one.md").read_bytes() == b"one\n"
        redo(home.journal, home.store)
        assert (home.root / "one.md").read_bytes() == b"edited later\n"

    def test_a_file_on_the_skip_list_is_left_even_if_unchanged(self, home: Home) -> None:
        home.run(*CHANGED)
        result = undo(home.journal, home.store, skip=["one.md"])
        assert result.skipped == ("one.md",)
        assert result.conflicts == ()
        assert (home.root / "one.md").read_bytes() == b"ONE\n"

    def test_a_created_file_with_edits_is_kept(self, home: Home) -> None:
        home.run([make("A"), create("A/new.md", b"new\n")])
        (home.root / "A/new.md").write_bytes(b"new\nand more\n")
        result = undo(home.journal, home.store)
        assert [one.path for one in result.conflicts] == ["A/new.md"]
        assert (home.root / "A/new.md").read_bytes() == b"new\nand more\n"

    def test_a_folder_with_other_things_in_it_is_kept(self, home: Home) -> None:
        home.run(make("A"))
        (home.root / "A/mine.md").write_bytes(b"mine")
        result = undo(home.journal, home.store)
        assert result.skipped == ("A",)
        assert result.conflicts == ()
        assert (home.root / "A/mine.md").read_bytes() == b"mine"

    def test_a_renamed_file_with_edits_stays_where_it_is(self, home: Home) -> None:
        home.run([move("one.md", "uno.md", b"one\n"), modify("two.md", b"two\r\n", b"see uno\r\n")])
        (home.root / "uno.md").write_bytes(b"edited\n")
        result = undo(home.journal, home.store)
        assert [one.path for one in result.conflicts] == ["uno.md"]
        assert (home.root / "uno.md").read_bytes() == b"edited\n"
        assert (home.root / "two.md").read_bytes() == b"two\r\n"
        run = home.journal.history()[0].run_id
        assert undo(home.journal, home.store, run, force=["uno.md"]).restored == ("one.md",)
        assert (home.root / "one.md").read_bytes() == b"edited\n"

    def test_a_file_that_was_renamed_and_changed_is_left_as_a_whole(self, home: Home) -> None:
        home.run([move("one.md", "uno.md", b"one\n"), modify("uno.md", b"one\n", b"uno\n")])
        (home.root / "uno.md").write_bytes(b"edited\n")
        result = undo(home.journal, home.store)
        assert [one.path for one in result.conflicts] == ["uno.md"]
        assert home.seen().keys() == {"uno.md", "two.md", "Folder", "Folder/inner.md"}

    def test_a_trashed_file_whose_place_is_taken(self, home: Home) -> None:
        home.run(trash("one.md", b"one\n"))
        (home.root / "one.md").write_bytes(b"another\n")
        result = undo(home.journal, home.store)
        assert [(one.path, one.reason) for one in result.conflicts] == [
            (".trash/one.md", "its target one.md is in use")
        ]
        run = home.journal.history()[0].run_id
        assert undo(home.journal, home.store, run, force=["one.md"]).restored == ("one.md",)
        assert (home.root / "one.md").read_bytes() == b"one\n"
        redo(home.journal, home.store)
        assert (home.root / "one.md").read_bytes() == b"another\n"
        assert (home.root / ".trash/one.md").read_bytes() == b"one\n"

    def test_a_file_that_is_gone_comes_back_by_force(self, home: Home) -> None:
        run = home.run(*CHANGED).run_id
        (home.root / "one.md").unlink()
        result = undo(home.journal, home.store)
        assert result.conflicts == (UndoConflict("one.md", "it is gone"),)
        undo(home.journal, home.store, run, force=["one.md"])
        assert (home.root / "one.md").read_bytes() == b"one\n"

    def test_a_file_comes_back_by_force_with_its_folders_and_redo_takes_them_away(
        self, home: Home
    ) -> None:
        home.run(make("A"), make("A/B"), create("A/B/new.md", b"n"))
        run = home.run(modify("A/B/new.md", b"n", b"more")).run_id
        shutil.rmtree(home.root / "A")
        assert [conflict.forcible for conflict in undo(home.journal, home.store).conflicts] == [
            True
        ]
        assert undo(home.journal, home.store, run, force=["A/B/new.md"]).conflicts == ()
        assert (home.root / "A/B/new.md").read_bytes() == b"n"
        assert redo(home.journal, home.store).conflicts == ()
        assert not (home.root / "A").exists()

    def test_what_is_as_wanted_already_is_no_conflict(self, home: Home) -> None:
        home.run(*CHANGED)
        (home.root / "new.md").unlink()
        (home.root / "one.md").write_bytes(b"one\n")
        result = undo(home.journal, home.store)
        assert result.conflicts == ()
        assert result.skipped == ("new.md", "one.md")
        assert result.restored == ("two.md",)

    def test_an_edit_between_the_look_and_the_write_is_kept(
        self, home: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home.run(*CHANGED)
        real = dirhandles.content_of
        seen: list[object] = []

        def content_of(folder: int, name: str) -> object:
            found = real(folder, name)
            if name == "one.md" and not seen:
                seen.append(name)
                (home.root / "one.md").write_bytes(b"just now\n")
            return found

        monkeypatch.setattr(dirhandles, "content_of", content_of)
        result = undo(home.journal, home.store, skip=["another.md"])
        assert [one.path for one in result.conflicts] == ["one.md"]
        assert (home.root / "one.md").read_bytes() == b"just now\n"
        assert result.restored == ("new.md", "two.md")

    def test_the_preview_says_the_same_and_changes_nothing(self, home: Home) -> None:
        home.run(*CHANGED)
        (home.root / "one.md").write_bytes(b"edited later\n")
        before, history = home.seen(), home.journal.history()
        told = undo_preview(home.journal, home.store)
        assert (home.seen(), home.journal.history()) == (before, history)
        assert replace(undo(home.journal, home.store), warnings=()) == told
        assert undo_preview(home.journal, home.store, redoing=True) == redo(
            home.journal, home.store
        )

    def test_the_preview_names_what_is_moved_back_and_what_is_removed(self, home: Home) -> None:
        home.run(create("made.md", b"x"), move("one.md", "uno.md", b"one\n"))
        told = undo_preview(home.journal, home.store)
        assert told.restored == ("made.md", "one.md")
        assert (told.moved, told.removed) == ((("uno.md", "one.md"),), {"made.md"})


class TestStamps:
    def test_the_time_of_the_last_change_comes_back(self, home: Home) -> None:
        for number, name in enumerate(("one.md", "Folder/inner.md", "two.md"), 1):
            os.utime(home.root / name, ns=(number, 1_500_000_000_123_456_789 + number))
        before = {
            name: (home.root / name).stat().st_mtime_ns
            for name in ("one.md", "Folder/inner.md", "two.md")
        }
        home.run(
            [modify("one.md", b"one\n", b"ONE\n"), move("one.md", "uno.md", b"ONE\n")],
            modify("Folder/inner.md", b"inner\n" * 100, b"x"),
            trash("two.md", b"two\r\n"),
        )
        undo(home.journal, home.store)
        assert {name: (home.root / name).stat().st_mtime_ns for name in before} == before

    def test_what_was_overwritten_by_force_comes_back_with_its_time(self, home: Home) -> None:
        run = home.run(*CHANGED).run_id
        (home.root / "one.md").write_bytes(b"edited later\n")
        os.utime(home.root / "one.md", ns=(5, 1_600_000_000_000_000_005))
        undo(home.journal, home.store, run, force=["one.md"])
        redo(home.journal, home.store)
        assert (home.root / "one.md").read_bytes() == b"edited later\n"
        assert (home.root / "one.md").stat().st_mtime_ns == 1_600_000_000_000_000_005

    @pytest.mark.skipif(CAN_SET_BIRTH_TIME, reason="the creation time comes back here")
    def test_it_is_told_that_the_creation_time_cannot_be_set(self, home: Home) -> None:
        home.run(*CHANGED)
        (warning,) = undo(home.journal, home.store).warnings
        assert (warning.code, warning.message) == (
            "NOT_RESTORED",
            "2 restored notes have a new creation time: this system cannot set it.",
        )
        assert redo(home.journal, home.store).warnings == (), "once for a vault is enough"
        assert undo(home.journal, home.store).warnings == ()
        home.run(create("new.md", b"x"), move("one.md", "uno.md", b"one\n"))
        assert undo(home.journal, home.store).warnings == ()

    @pytest.mark.parametrize("elsewhere", ["also.md", "Folder/also.md", "moved with it"])
    def test_a_note_with_two_names_has_both_again(self, home: Home, elsewhere: str) -> None:
        """Its creation time comes back with them: it is the same file."""
        other = "Folder/also.md" if elsewhere == "moved with it" else elsewhere
        (home.root / other).hardlink_to(home.root / "one.md")
        changes = [modify("one.md", b"one\n", b"ONE\n"), modify("two.md", b"two\r\n", b"TWO\r\n")]
        home.run(*changes, *([move("Folder", "Moved")] if elsewhere == "moved with it" else []))
        assert not (home.root / "one.md").samefile(next(home.root.rglob("also.md")))
        result = undo(home.journal, home.store)
        assert (home.root / "one.md").samefile(home.root / other)
        assert [warning.path for warning in result.warnings] == [None], (
            "the other note has a new creation time"
        )
        redo(home.journal, home.store)
        assert (home.root / "one.md").read_bytes() == b"ONE\n"
        undo(home.journal, home.store)
        assert (home.root / "one.md").samefile(home.root / other)

    @pytest.mark.parametrize("moved", [False, True])
    def test_both_names_that_a_run_changed_are_one_file_again(
        self, home: Home, moved: bool
    ) -> None:
        other = "Folder/also.md"
        (home.root / other).hardlink_to(home.root / "one.md")
        place = "Moved/also.md" if moved else other
        both = [modify("one.md", b"one\n", b"ONE\n"), modify(place, b"one\n", b"ALSO\n")]
        home.run(*([move("Folder", "Moved")] if moved else []), *both)
        for _ in range(2):
            result = undo(home.journal, home.store)
            assert (home.root / "one.md").read_bytes() == b"one\n"
            assert (home.root / "one.md").samefile(home.root / other)
            assert [warning.path for warning in result.warnings if warning.path] == []
            redo(home.journal, home.store)
            assert (home.root / "one.md").read_bytes() == b"ONE\n"
            assert (home.root / place).read_bytes() == b"ALSO\n"

    @pytest.mark.parametrize("moved", [False, True])
    def test_a_name_that_is_forced_later_is_joined_to_the_one_restored_before(
        self, home: Home, moved: bool
    ) -> None:
        other = "Folder/also.md"
        (home.root / other).hardlink_to(home.root / "one.md")
        place = "Moved/also.md" if moved else other
        both = [modify("one.md", b"one\n", b"ONE\n"), modify(place, b"one\n", b"ALSO\n")]
        home.run(*([move("Folder", "Moved")] if moved else []), *both)
        (home.root / "one.md").write_bytes(b"edited\n")
        result = undo(home.journal, home.store)
        assert [conflict.path for conflict in result.conflicts] == ["one.md"]
        assert [warning.path for warning in result.warnings if warning.path] == [place]
        result = undo(home.journal, home.store, force=["one.md"])
        assert (home.root / "one.md").samefile(home.root / other)
        assert [warning.path for warning in result.warnings if warning.path] == []

    def test_a_name_that_nobody_can_ask_for_hinders_nobody(self, home: Home) -> None:
        before = home.seen()
        (home.root / "also.md").hardlink_to(home.root / "one.md")
        (home.root / "tab\there.md").write_bytes(b"not ours")
        home.run(modify("one.md", b"one\n", b"ONE\n"))
        assert undo(home.journal, home.store).restored == ("one.md",)
        assert (home.root / "one.md").samefile(home.root / "also.md")
        assert {name: home.seen()[name] for name in before} == before

    @pytest.mark.parametrize("why", ["outside of the vault", "edited since", "gone"])
    def test_it_is_told_when_a_note_cannot_have_its_other_name_again(
        self, home: Home, why: str, tmp_path: Path
    ) -> None:
        other = tmp_path / "also.md" if why == "outside of the vault" else home.root / "also.md"
        other.hardlink_to(home.root / "one.md")
        home.run(*CHANGED)
        if why == "edited since":
            other.write_bytes(b"edited\n")
        elif why == "gone":
            other.unlink()
        result = undo(home.journal, home.store)
        assert (home.root / "one.md").read_bytes() == b"one\n"
        assert (home.root / "one.md").stat().st_nlink == 1
        assert "one.md" in [
            warning.path for warning in result.warnings if warning.code == "NOT_RESTORED"
        ]
        assert result.conflicts == result.errors == ()


def test_redo_of_an_edited_file_is_a_conflict_too(home: Home) -> None:
    home.run(*CHANGED)
    undo(home.journal, home.store)
    (home.root / "two.md").write_bytes(b"edited\n")
    result = redo(home.journal, home.store)
    assert [one.path for one in result.conflicts] == ["two.md"]
    assert result.restored == ("new.md", "one.md")


def test_an_undo_without_anything_to_do_is_no_undo(home: Home) -> None:
    home.run(modify("one.md", b"one\n", b"ONE\n"))
    (home.root / "one.md").write_bytes(b"edited later\n")
    assert undo(home.journal, home.store).conflicts
    assert not home.journal.history()[0].undone
    (home.root / "one.md").write_bytes(b"ONE\n")
    assert undo(home.journal, home.store).restored == ("one.md",)


def test_the_mode_of_a_created_file_comes_back_with_redo(home: Home) -> None:
    home.run(create("new.md", b"new\n"))
    (home.root / "new.md").chmod(0o600)
    undo(home.journal, home.store)
    redo(home.journal, home.store)
    assert (home.root / "new.md").stat().st_mode & 0o777 == 0o600


def test_the_content_of_a_moved_note_is_found_by_both_its_paths(home: Home) -> None:
    home.run(
        [make("A"), move("Folder", "A/Folder")],
        [
            move("A/Folder/inner.md", "A/moved.md", b"inner\n" * 100),
            modify("A/moved.md", b"inner\n" * 100, b"x"),
        ],
    )
    for path in ("A/moved.md", "Folder/inner.md"):
        assert undo_content(home.journal, None, path) == ("A/moved.md", b"inner\n" * 100)
    with refused("NOTHING_TO_UNDO"):
        undo_content(home.journal, None, "Folder")


class TestPartial:
    """A further undo continues a partial one, and redo repeats only the undone part."""

    def test_an_undo_that_failed_at_a_file_is_gone_on_with(self, home: Home) -> None:
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

    def test_an_undo_that_met_an_edited_file_is_gone_on_with(self, home: Home) -> None:
        home.run(create("older.md", b"older\n"))
        newer = home.run(*CHANGED).run_id
        (home.root / "one.md").write_bytes(b"edited\n")
        assert undo(home.journal, home.store).conflicts
        again = undo(home.journal, home.store)
        assert (again.run_id, [one.path for one in again.conflicts]) == (newer, ["one.md"])
        assert (home.root / "older.md").exists()
        (home.root / "one.md").write_bytes(b"ONE\n")
        assert undo(home.journal, home.store).restored == ("one.md",)

    def test_what_was_left_in_a_folder_is_found_where_that_has_moved_back_to(
        self, home: Home
    ) -> None:
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
        assert undo(home.journal, home.store, force=["Moved/inner.md"]).restored == (
            "Folder/inner.md",
        )
        assert home.seen() == before
        redo(home.journal, home.store)
        (home.root / "Folder/inner.md").write_bytes(b"INNER\n")
        redo(home.journal, home.store)
        assert home.seen() == after

    def test_what_was_skipped_is_still_in_effect(self, home: Home) -> None:
        before = home.seen()
        home.run(create("older.md", b"older\n"))
        home.run(*CHANGED)
        undo(home.journal, home.store, skip=["one.md"])
        assert undo(home.journal, home.store).restored == ("one.md",)
        undo(home.journal, home.store)
        assert home.seen() == before

    def test_a_folder_stays_in_effect_with_what_was_left_in_it(self, home: Home) -> None:
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

    def test_a_folder_that_holds_what_others_made_is_done_with(self, home: Home) -> None:
        home.run(make("A"))
        (home.root / "A/mine.md").write_bytes(b"mine")
        assert undo(home.journal, home.store).skipped == ("A",)
        assert home.journal.last_undoable() is None

    def test_redo_goes_on_with_what_it_left_out(self, home: Home) -> None:
        home.run(*CHANGED)
        after = home.seen()
        undo(home.journal, home.store)
        (home.root / "two.md").write_bytes(b"edited\n")
        assert [one.path for one in redo(home.journal, home.store).conflicts] == ["two.md"]
        (home.root / "two.md").write_bytes(b"two\r\n")
        assert redo(home.journal, home.store).restored == ("two.md",)
        assert home.seen() == after

    def test_a_folder_that_redo_could_not_make_gets_nothing_put_into_it(self, home: Home) -> None:
        """`Folder` will still leave: files put into it would leave with it."""
        home.run([move("Folder", "Moved"), make("Folder"), create("Folder/new.md", b"new\n")])
        after = home.seen()
        undo(home.journal, home.store)
        with disk_failing_at("Folder"):
            assert redo(home.journal, home.store).restored == ()
        assert "Folder/new.md" not in home.seen()
        redo(home.journal, home.store)
        assert home.seen() == after


class TestLinkedAway:
    """A folder or note was moved to another disk and linked back: it is skipped, with a reason."""

    @pytest.mark.parametrize(
        "skip",
        [[], ["Folder/inner.md"], ["one.md"]],
        ids=["plain", "skipping it", "skipping another"],
    )
    def test_undo_takes_back_the_rest(
        self, home: Home, tmp_path: Path, folder_story: list[Operation], skip: list[str]
    ) -> None:
        before = home.seen()
        run_id = home.run(*folder_story).run_id
        away = home.link_folder_away(tmp_path)
        there = {path.name: path.read_bytes() for path in away.iterdir() if path.is_file()}
        assert undo_preview(home.journal, home.store).conflicts
        result = undo(home.journal, home.store, skip=skip)
        assert result.conflicts or skip == ["Folder/inner.md"]
        for conflict in result.conflicts:
            assert "link" in conflict.reason
        assert result.errors == ()
        assert ((home.root / "one.md").read_bytes() == b"one\n") == ("one.md" not in skip)
        assert {path.name: path.read_bytes() for path in away.iterdir() if path.is_file()} == there
        assert home.run(create("later.md", b"x")).success
        undo(home.journal, home.store)
        (home.root / "Folder").unlink()
        away.rename(home.root / "Folder")
        assert undo(home.journal, home.store, run_id).conflicts == ()
        assert home.seen() == before

    def test_redo_brings_back_the_rest(
        self, home: Home, tmp_path: Path, folder_story: list[Operation]
    ) -> None:
        home.run(*folder_story)
        after = home.seen()
        undo(home.journal, home.store)
        away = home.link_folder_away(tmp_path)
        result = redo(home.journal, home.store)
        assert result.conflicts
        assert result.errors == ()
        assert (home.root / "one.md").read_bytes() == b"ONE\n"
        (home.root / "Folder").unlink()
        away.rename(home.root / "Folder")
        assert redo(home.journal, home.store).conflicts == ()
        assert home.seen() == after

    def test_a_note_that_became_a_link_out_of_the_vault(self, home: Home, tmp_path: Path) -> None:
        home.run(modify("two.md", b"two\r\n", b"TWO\r\n"), modify("one.md", b"one\n", b"ONE\n"))
        (home.root / "two.md").rename(tmp_path / "two.md")
        (home.root / "two.md").symlink_to(tmp_path / "two.md")
        result = undo(home.journal, home.store, skip=["nothing.md"])
        assert ([one.path for one in result.conflicts], result.restored) == (
            ["two.md"],
            ("one.md",),
        )
        assert (tmp_path / "two.md").read_bytes() == b"TWO\r\n"
