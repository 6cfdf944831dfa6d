"""A folder that was moved to another disk and linked back.

Unreachable files are reported and skipped; the rest continues.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from faults import power_cut
from obsidian_agent.journal.recovery import interrupted, recover
from obsidian_agent.journal.undo import redo, undo, undo_preview
from obsidian_agent.vault.views.changes import Operation
from previews import create, make, modify, move, trash

if TYPE_CHECKING:
    from tests.journal.conftest import Home

INNER = b"inner\n" * 100
STORIES: dict[str, list[Operation]] = {
    "edited": [
        modify("Folder/inner.md", INNER, b"changed\n"),
        modify("one.md", b"one\n", b"ONE\n"),
    ],
    "created": [create("Folder/new.md", b"new\n"), modify("one.md", b"one\n", b"ONE\n")],
    "moved out": [move("Folder/inner.md", "inner.md", INNER), modify("one.md", b"one\n", b"ONE\n")],
    "moved in": [move("two.md", "Folder/two.md", b"two\r\n"), modify("one.md", b"one\n", b"ONE\n")],
    "folder in it": [make("Folder/New"), modify("one.md", b"one\n", b"ONE\n")],
    "trashed": [trash("Folder/inner.md", INNER), modify("one.md", b"one\n", b"ONE\n")],
}


def linked_away(home: Home, tmp_path: Path) -> Path:
    """Move the folder out of the vault and leave a link to it."""
    away = tmp_path / "other disk"
    (home.root / "Folder").rename(away)
    (home.root / "Folder").symlink_to(away)
    return away


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize(
    "skip", [[], ["Folder/inner.md"], ["one.md"]], ids=["plain", "skipping it", "skipping another"]
)
def test_undo_takes_back_the_rest(home: Home, tmp_path: Path, story: str, skip: list[str]) -> None:
    before = home.seen()
    run_id = home.run(*STORIES[story]).run_id
    away = linked_away(home, tmp_path)
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


@pytest.mark.parametrize("story", STORIES)
def test_redo_brings_back_the_rest(home: Home, tmp_path: Path, story: str) -> None:
    home.run(*STORIES[story])
    after = home.seen()
    undo(home.journal, home.store)
    away = linked_away(home, tmp_path)
    result = redo(home.journal, home.store)
    assert result.conflicts
    assert result.errors == ()
    assert (home.root / "one.md").read_bytes() == b"ONE\n"
    (home.root / "Folder").unlink()
    away.rename(home.root / "Folder")
    assert redo(home.journal, home.store).conflicts == ()
    assert home.seen() == after


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("cut", [1, 2])
@pytest.mark.parametrize("story", STORIES)
def test_recovery_ends_the_rest(
    home: Home, tmp_path: Path, story: str, cut: int, finish: bool
) -> None:
    with power_cut(cut):
        home.run(*STORIES[story], create("third.md", b"third\n"))
    linked_away(home, tmp_path)
    (found,) = interrupted(home.journal, home.store)
    assert "foreign" in {path.state for path in found.paths}
    (done,) = recover(home.journal, home.store, finish=finish)
    assert done.problems
    assert all(problem.code == "CONFLICT" for problem in done.problems)
    assert ((home.root / "one.md").read_bytes() == b"ONE\n") == finish
    assert interrupted(home.journal, home.store) == []
    assert home.run(create("later.md", b"x")).success


def test_a_note_that_became_a_link_out_of_the_vault(home: Home, tmp_path: Path) -> None:
    home.run(modify("two.md", b"two\r\n", b"TWO\r\n"), modify("one.md", b"one\n", b"ONE\n"))
    (home.root / "two.md").rename(tmp_path / "two.md")
    (home.root / "two.md").symlink_to(tmp_path / "two.md")
    result = undo(home.journal, home.store, skip=["nothing.md"])
    assert ([one.path for one in result.conflicts], result.restored) == (["two.md"], ("one.md",))
    assert (tmp_path / "two.md").read_bytes() == b"TWO\r\n"
