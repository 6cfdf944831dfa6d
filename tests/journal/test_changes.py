"""The net changes of a run: what a sequence of actions came to."""

from __future__ import annotations

from obsidian_agent.journal.changes import RunChange, net_changes
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse
from obsidian_agent.vault.paths.path import trash_path as trash
from obsidian_agent.vault.transaction.actions import Action, MoveEntry, PutFile, PutFolder


def path(text: str) -> VaultPath:
    return parse(text, PathUse.READ)


def test_an_edited_and_renamed_file_is_one_rename() -> None:
    actions: list[Action] = [
        PutFile(path("A.md"), "1", "2"),
        MoveEntry(path("A.md"), path("B.md"), folder=False, hash="2"),
        PutFile(path("B.md"), "2", "3"),
    ]
    assert net_changes(actions) == [
        RunChange(kind="rename", path="A.md", new_path="B.md", before="1", after="3")
    ]


def test_files_below_a_moved_folder_keep_their_first_paths() -> None:
    actions: list[Action] = [
        PutFolder(path("New"), created=True),
        PutFile(path("Old/A.md"), "1", "2"),
        MoveEntry(path("Old"), path("New/Old"), folder=True, hash=None),
    ]
    assert net_changes(actions) == [
        RunChange(kind="mkdir", path="New"),
        RunChange(kind="rename", path="Old", new_path="New/Old"),
        RunChange(kind="rename", path="Old/A.md", new_path="New/Old/A.md", before="1", after="2"),
    ]


def test_a_file_that_was_made_and_removed_is_no_change() -> None:
    actions: list[Action] = [PutFile(path("A.md"), None, "1"), PutFile(path("A.md"), "1", None)]
    assert net_changes(actions) == []


def test_what_went_to_the_trash_is_deleted() -> None:
    moved = MoveEntry(path("A.md"), trash("A.md"), folder=False, hash="1")
    assert net_changes([moved]) == [RunChange(kind="delete", path="A.md")]
