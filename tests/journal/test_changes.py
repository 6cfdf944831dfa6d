"""The net changes of a run: what a sequence of actions came to."""

from __future__ import annotations

from typing import Any

import pytest

from obsidian_agent.journal.changes import RunChange, effects_of, net_changes
from obsidian_agent.journal.records import Effects
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse
from obsidian_agent.vault.paths.path import trash_path as trash
from obsidian_agent.vault.transaction.actions import (
    Action,
    MoveEntry,
    PutFile,
    PutFolder,
    action_of,
)
from previews import create, make, modify, move
from previews import trash as to_trash


def path(text: str) -> VaultPath:
    return parse(text, PathUse.READ)


def test_an_edited_and_renamed_file_is_one_rename() -> None:
    actions: list[Action] = [
        PutFile(path("A.md"), "1", "2"),
        MoveEntry(path=path("A.md"), new_path=path("B.md"), folder=False, hash="2"),
        PutFile(path("B.md"), "2", "3"),
    ]
    assert net_changes(actions) == [
        RunChange(kind="rename", path="A.md", new_path="B.md", before="1", after="3")
    ]


def test_files_below_a_moved_folder_keep_their_first_paths() -> None:
    actions: list[Action] = [
        PutFolder(path("New"), created=True),
        PutFile(path("Old/A.md"), "1", "2"),
        MoveEntry(path=path("Old"), new_path=path("New/Old"), folder=True, hash=None),
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
    moved = MoveEntry(path=path("A.md"), new_path=trash("A.md"), folder=False, hash="1")
    assert net_changes([moved]) == [RunChange(kind="delete", path="A.md")]


def test_a_file_that_was_moved_into_a_folder_is_deleted_with_it() -> None:
    actions = [action_of(move("a.md", "A/a.md", b"")), action_of(to_trash("A"))]
    assert [(change.kind, change.path) for change in net_changes(actions)] == [
        ("delete", "A"),
        ("delete", "a.md"),
    ]


@pytest.mark.parametrize(
    ("operations", "effects"),
    [
        ([], Effects()),
        (
            [make("A"), create("A/n.md", b"x"), create("b.md", b"x")],
            Effects(created=("A/n.md", "b.md"), folders=("A",)),
        ),
        ([modify("a.md", b"", b"x")], Effects(modified=("a.md",))),
        (
            [move("a.md", "b.md", b""), move("b.md", "c.md", b"")],
            Effects(renamed=(("a.md", "c.md"),)),
        ),
        ([move("a.md", "b.md", b""), move("b.md", "a.md", b"")], Effects()),
        (
            [move("a.md", "b.md", b""), modify("b.md", b"", b"x")],
            Effects(renamed=(("a.md", "b.md"),)),
        ),
        (
            [modify("A/n.md", b"", b"x"), move("A", "B")],
            Effects(renamed=(("A", "B"), ("A/n.md", "B/n.md"))),
        ),
        (
            [move("A", "B"), create("B/n.md", b"x"), move("B", "C")],
            Effects(created=("C/n.md",), renamed=(("A", "C"),)),
        ),
        ([to_trash("a.md", b"")], Effects(deleted=("a.md",))),
        ([move("a.md", "b.md", b""), to_trash("b.md", b"")], Effects(deleted=("a.md",))),
        ([move("a.md", "A/a.md", b""), to_trash("A")], Effects(deleted=("A", "a.md"))),
        ([to_trash("a.md", b""), create("a.md", b"x")], Effects(modified=("a.md",))),
        ([make("A"), make("A/B"), move("A", "C")], Effects(folders=("C", "C/B"))),
        ([create("a.md", b"x"), to_trash("a.md", b"x")], Effects()),
    ],
)
def test_the_net_effect(operations: list[Any], effects: Effects) -> None:
    assert effects_of(map(action_of, operations)) == effects
