from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from faults import disk_failing_at, power_cut, power_cut_before_the_end, refused
from obsidian_agent.errors import JournalError, VaultError
from obsidian_agent.journal.recovery import interrupted, recover
from obsidian_agent.journal.undo import undo, undo_preview
from obsidian_agent.vault.transaction.apply import INCOMPLETE_MODE, Applier
from obsidian_agent.vault.views.changes import Operation
from previews import create, make, modify, move, trash

if TYPE_CHECKING:
    from pathlib import Path

    from tests.journal.conftest import Home

STORY: list[Operation] = [
    make("New"),
    create("New/note.md", b"new\n" * 1000),
    modify("one.md", b"one\n", b"ONE\n" * 1000),
    move("two.md", "zwei.md", b"two\r\n"),
    trash("Folder"),
]


EDITS: list[Operation] = [
    modify("one.md", b"one\n", b"ONE\n"),
    create("new.md", b"new\n"),
    modify("two.md", b"two\r\n", b"TWO\r\n"),
]


def interrupt(home: Home, after: int) -> None:
    with power_cut(after):
        home.run(*STORY)


def states(home: Home) -> dict[str, str]:
    (found,) = interrupted(home.journal, home.store)
    return {path.path: path.state for path in found.paths}


def test_nothing_is_interrupted_after_a_run(home: Home) -> None:
    assert interrupted(home.journal, home.store) == []
    home.run(*STORY)
    assert interrupted(home.journal, home.store) == []
    assert recover(home.journal, home.store, finish=True) == []


def test_it_is_told_how_far_a_run_came(home: Home) -> None:
    interrupt(home, 3)
    before = home.seen()
    assert states(home) == {
        "New": "after",
        "New/note.md": "after",
        "one.md": "after",
        "two.md": "before",
        ".trash": "before",
        "Folder": "before",
    }
    (found,) = interrupted(home.journal, home.store)
    assert (found.kind, found.goal, found.leftovers) == ("run", "Test", 0)
    assert home.seen() == before


@pytest.mark.parametrize("after", range(6))
def test_finishing_and_rolling_back(home: Home, after: int) -> None:
    before = home.seen()
    interrupt(home, after)
    (done,) = recover(home.journal, home.store, finish=False)
    assert home.seen() == before
    assert (done.finished, done.problems, done.undo_available) == (False, (), False)
    interrupt(home, after)
    (done,) = recover(home.journal, home.store, finish=True)
    assert done.undo_available
    assert done.effects.created == ("New/note.md",)
    assert done.effects.modified == ("one.md",)
    assert done.effects.renamed == (("two.md", "zwei.md"),)
    assert done.effects.deleted == ("Folder",)
    assert done.effects.folders == ("New",)
    assert home.journal.history()[0].status == "recovered"
    undo(home.journal, home.store)
    assert home.seen() == before


def test_a_new_run_waits_for_the_decision(home: Home) -> None:
    interrupt(home, 3)
    before = home.seen()
    result = home.run(create("other.md", b"x"))
    assert (result.status, result.run_id, result.errors[0].code) == (
        "failed",
        None,
        "RECOVERY_NEEDED",
    )
    with pytest.raises(JournalError, match="only a part of it was applied"):
        undo(home.journal, home.store)
    with refused("RECOVERY_NEEDED", "interrupted"):
        undo_preview(home.journal, home.store)
    with home.journal.lock(), refused("VAULT_BUSY"):
        undo_preview(home.journal, home.store)
    assert home.seen() == before


@pytest.mark.parametrize("after", [0, 6])
def test_a_run_that_needs_no_decision_is_in_nobodys_way(home: Home, after: int) -> None:
    if after:
        with power_cut_before_the_end():
            home.run(*STORY)
    else:
        interrupt(home, 0)
    assert len(interrupted(home.journal, home.store)) == 1
    assert home.run(create("other.md", b"x")).success
    assert interrupted(home.journal, home.store) == []
    undo(home.journal, home.store)
    if after:
        assert undo(home.journal, home.store).restored
    assert sorted(name for name in os.listdir(home.root) if name != ".obsidian-agent") == [
        "Folder",
        "one.md",
        "two.md",
    ]


@pytest.mark.parametrize("finish", [True, False])
class TestForeign:
    def test_an_edited_file_is_left_alone_and_told(self, home: Home, finish: bool) -> None:
        interrupt(home, 4)
        (home.root / "one.md").write_bytes(b"edited after the crash\n")
        (done,) = recover(home.journal, home.store, finish=finish)
        assert [problem.path for problem in done.problems] == ["one.md"]
        assert (home.root / "one.md").read_bytes() == b"edited after the crash\n"
        assert (home.root / "zwei.md").exists() == finish
        assert interrupted(home.journal, home.store) == []

    def test_a_file_in_the_way_of_what_was_not_done(self, home: Home, finish: bool) -> None:
        interrupt(home, 1)
        (home.root / "New/note.md").write_bytes(b"mine\n")
        (done,) = recover(home.journal, home.store, finish=finish)
        assert "New/note.md" in [problem.path for problem in done.problems]
        assert (home.root / "New/note.md").read_bytes() == b"mine\n"


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize(
    "damage",
    [b"", b"new\n" * 10, b"\0" * 4000, b"new\n" * 256 + b"\0" * 2976],
    ids=["empty", "cut", "zeros", "half zeros"],
)
def test_files_whose_bytes_never_reached_the_disk_are_ours(
    home: Home, damage: bytes, finish: bool
) -> None:
    before = home.seen()
    with power_cut_before_the_end():
        home.run(*STORY)
    after = home.seen()
    (home.root / "New/note.md").write_bytes(damage)
    (home.root / "one.md").write_bytes(b"ONE\n" * (len(damage) // 8))
    home.machine_went_down(home.root / "New/note.md", home.root / "one.md")
    assert states(home)["New/note.md"] == "torn"
    (done,) = recover(home.journal, home.store, finish=finish)
    assert done.problems == ()
    assert home.seen() == (after if finish else before)


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize(
    "down", [True, False], ids=["the machine went down", "only the process ended"]
)
def test_a_note_that_somebody_shortened_is_not_torn(home: Home, finish: bool, down: bool) -> None:
    """Even after a power cut: another program wrote what was written since then."""
    with power_cut_before_the_end():
        home.run(*STORY)
    (home.root / "New/note.md").write_bytes(b"new\n" * 10)
    (home.root / "one.md").write_bytes(b"")
    if down:
        home.machine_went_down()
    assert states(home)["New/note.md"] == "foreign"
    (done,) = recover(home.journal, home.store, finish=finish)
    assert {"New/note.md", "one.md"} <= {problem.path for problem in done.problems}
    assert (home.root / "New/note.md").read_bytes() == b"new\n" * 10
    assert (home.root / "one.md").read_bytes() == b""


class TestLeftovers:
    def token(self, home: Home) -> str:
        (record,) = home.journal.unfinished()
        return record.token

    @pytest.mark.parametrize("finish", [True, False])
    @pytest.mark.parametrize(
        "content",
        [b"", b"ONE\n" * 3, b"ONE\n" * 1000, b"one\n"],
        ids=["empty", "begun", "new", "displaced"],
    )
    @pytest.mark.parametrize("why", ["in writing", "the machine went down"])
    def test_our_own_are_thrown_away(
        self, home: Home, finish: bool, content: bytes, why: str
    ) -> None:
        before = home.seen()
        with power_cut_before_the_end():
            home.run(*STORY)
        after = home.seen()
        left = home.root / f".{self.token(home)}.2.ab"
        left.write_bytes(content)
        if why == "in writing":
            left.chmod(INCOMPLETE_MODE)
        else:
            home.machine_went_down(left)
        assert interrupted(home.journal, home.store)[0].leftovers == 1
        assert recover(home.journal, home.store, finish=finish)[0].problems == ()
        assert home.seen() == (after if finish else before)

    @pytest.mark.parametrize("content", [b"", b"ONE\n" * 3], ids=["empty", "begun"])
    def test_what_a_killed_process_had_begun_is_thrown_away_where_modes_are_not_kept(
        self, home: Home, content: bytes
    ) -> None:
        before = home.seen()
        interrupt(home, 2)
        (home.root / f".{self.token(home)}.2.ab").write_bytes(content)
        assert recover(home.journal, home.store, finish=False)[0].problems == ()
        assert home.seen() == before

    @pytest.mark.parametrize("content", [b"", b"on"], ids=["emptied", "shortened"])
    @pytest.mark.parametrize("finish", [True, False])
    def test_a_shortened_note_that_was_displaced_gets_its_place_back(
        self, home: Home, finish: bool, content: bytes
    ) -> None:
        """Shorten the file just before the exchange, and kill the process right after it."""
        interrupt(home, 3)
        (home.root / f".{self.token(home)}.2.ab").write_bytes(content)
        (done,) = recover(home.journal, home.store, finish=finish)
        assert (home.root / "one.md").read_bytes() == content
        assert [problem.path for problem in done.problems] == ["one.md"]

    def test_somebodys_content_under_a_temporary_name_gets_its_place_back(self, home: Home) -> None:
        interrupt(home, 3)
        (home.root / f".{self.token(home)}.2.ab").write_bytes(b"displaced at the last moment\n")
        (done,) = recover(home.journal, home.store, finish=True)
        assert (home.root / "one.md").read_bytes() == b"displaced at the last moment\n"
        assert [problem.path for problem in done.problems] == ["one.md"]
        assert not [name for name in home.seen() if name.startswith(".oa")]

    def test_with_its_place_taken_it_gets_a_name_that_people_see(self, home: Home) -> None:
        interrupt(home, 3)
        (home.root / f".{self.token(home)}.2.ab").write_bytes(b"displaced\n")
        (home.root / "one.md").write_bytes(b"edited\n")
        (home.root / "one (recovered).md").write_bytes(b"from another time\n")
        recover(home.journal, home.store, finish=True)
        assert (home.root / "one.md").read_bytes() == b"edited\n"
        assert (home.root / "one (recovered 2).md").read_bytes() == b"displaced\n"

    def test_an_entry_on_its_way_to_another_spelling_goes_back(self, home: Home) -> None:
        before = home.seen()
        interrupt(home, 3)
        (home.root / "two.md").rename(home.root / f".{self.token(home)}.3.ab")
        recover(home.journal, home.store, finish=False)
        assert home.seen() == before

    def test_they_are_found_where_their_folder_is_by_now(self, home: Home) -> None:
        with power_cut_before_the_end():
            home.run(
                [
                    modify("Folder/inner.md", b"inner\n" * 100, b"changed"),
                    move("Folder", "Elsewhere"),
                ]
            )
        (home.root / f"Elsewhere/.{self.token(home)}.0.1").write_bytes(b"inner\n" * 100)
        recover(home.journal, home.store, finish=True)
        assert sorted(os.listdir(home.root / "Elsewhere")) == ["inner.md"]

    def test_hidden_files_of_others_are_not_touched(self, home: Home) -> None:
        interrupt(home, 3)
        names = [".oa-abc", ".hidden.md", ".oa00000000.1.1"]
        for name in names:
            (home.root / name).write_bytes(b"")
        recover(home.journal, home.store, finish=False)
        assert set(names) <= set(os.listdir(home.root))


def test_names_that_were_used_twice(home: Home) -> None:
    """The path alone proves nothing here: its content is the same before and after."""
    swap: list[Operation] = [
        move("one.md", "t.md", b"one\n"),
        move("two.md", "one.md", b"two\r\n"),
        move("t.md", "two.md", b"one\n"),
        move("Folder", "Moved"),
        make("Folder"),
        create("Folder/inner.md", b"inner\n" * 100),
    ]
    before = home.seen()
    for after in range(len(swap) + 1):
        for finish in (False, True):
            with power_cut(after):
                home.run(*swap)
            for done in recover(home.journal, home.store, finish=finish):
                assert done.problems == ()
            if finish or after == len(swap):
                assert (home.root / "one.md").read_bytes() == b"two\r\n"
                assert sorted(
                    name for name in os.listdir(home.root) if name != ".obsidian-agent"
                ) == [
                    "Folder",
                    "Moved",
                    "one.md",
                    "two.md",
                ]
                undo(home.journal, home.store)
            assert home.seen() == before


def test_nobody_is_told_of_a_run_that_is_at_work(home: Home) -> None:
    seen: list[object] = []

    def look() -> None:
        with home.reopened().journal as other:
            seen.append(interrupted(other, home.store))

    real = Applier.complete

    def complete(self: Applier) -> None:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        real(self)

    with patch.object(Applier, "complete", complete):
        assert home.run(*STORY).success
    assert seen == [[]]


def test_an_unknown_run(home: Home) -> None:
    with pytest.raises(JournalError, match="no run"):
        recover(home.journal, home.store, finish=True, run_id="x")


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("undoing", [True, False])
def test_what_recovery_could_not_do_is_done_when_it_is_asked_again(
    home: Home, finish: bool, undoing: bool
) -> None:
    """Of an interrupted run, or of an interrupted undo of it."""
    before = home.seen()
    if undoing:
        home.run(*EDITS)
    after = home.seen()
    with power_cut(2):
        if undoing:
            undo(home.journal, home.store)
        else:
            home.run(*EDITS)
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


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("cut", [1, 2])
def test_a_folder_that_was_linked_away_is_skipped_and_the_rest_is_ended(
    home: Home, tmp_path: Path, folder_story: list[Operation], cut: int, finish: bool
) -> None:
    with power_cut(cut):
        home.run(*folder_story, create("third.md", b"third\n"))
    home.link_folder_away(tmp_path)
    (found,) = interrupted(home.journal, home.store)
    assert "foreign" in {path.state for path in found.paths}
    (done,) = recover(home.journal, home.store, finish=finish)
    assert done.problems
    assert all(problem.code == "CONFLICT" for problem in done.problems)
    assert ((home.root / "one.md").read_bytes() == b"ONE\n") == finish
    assert interrupted(home.journal, home.store) == []
    assert home.run(create("later.md", b"x")).success
