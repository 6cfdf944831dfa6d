from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.vault.filesystem.dirhandles import FolderHandles
from obsidian_agent.vault.transaction.actions import Action, MoveEntry, PutFile, action_of, reverse
from obsidian_agent.vault.transaction.precheck import State, Survey, is_torn
from obsidian_agent.vault.views.changes import Operation, content_hash
from previews import create, make, modify, move, trash, vault_path
from support import MakeVault

FILES = {"a.md": b"A", "b.md": b"B", "twin.md": b"A", "Folder/n.md": b"N", "Empty/": b""}


@pytest.fixture
def handles(make_vault: MakeVault) -> Iterator[FolderHandles]:
    with FolderHandles(make_vault(FILES)) as opened:
        yield opened


def states(handles: FolderHandles, *operations: Operation | Action) -> list[State]:
    """Return the states of actions in sequence, where each possible one counts as done."""
    survey, found = Survey(handles), []
    for operation in operations:
        action = operation if isinstance(operation, PutFile | MoveEntry) else action_of(operation)  # type: ignore[arg-type]
        finding = survey.check(action)
        found.append(finding.state)
        if finding.possible:
            survey.assume(action)
    return found


@pytest.mark.parametrize(
    ("operation", "state"),
    [
        (create("new.md", b"x"), State.READY),
        (create("a.md", b"x"), State.FOREIGN),
        (create("a.md", b"A"), State.DONE),
        (create("Folder", b"x"), State.FOREIGN),
        (create("Gone/new.md", b"x"), State.MISSING),
        (modify("a.md", b"A", b"x"), State.READY),
        (modify("a.md", b"B", b"x"), State.FOREIGN),
        (modify("a.md", b"B", b"A"), State.DONE),
        (modify("gone.md", b"A", b"x"), State.MISSING),
        (modify("Folder", b"A", b"x"), State.FOREIGN),
        (make("New"), State.READY),
        (make("Empty"), State.DONE),
        (make("a.md"), State.FOREIGN),
        (make("Gone/New"), State.MISSING),
        (move("a.md", "x.md", b"A"), State.READY),
        (move("a.md", "x.md", b"B"), State.FOREIGN),
        (move("a.md", "b.md", b"A"), State.BLOCKED),
        (move("gone.md", "a.md", b"A"), State.DONE),
        (move("gone.md", "x.md", b"A"), State.MISSING),
        (move("Folder", "Moved"), State.READY),
        (move("Folder", "Empty"), State.BLOCKED),
        (move("Folder", "a.md"), State.BLOCKED),
        (move("a.md", "Moved"), State.FOREIGN),
        (trash("a.md", b"A"), State.READY),
    ],
)
def test_one_action(handles: FolderHandles, operation: Operation, state: State) -> None:
    assert states(handles, operation) == [state]


@pytest.mark.parametrize(
    "operations",
    [
        [make("New"), make("New/Deep"), create("New/Deep/n.md", b"x")],
        [
            move("Folder", "Moved"),
            modify("Moved/n.md", b"N", b"x"),
            move("Moved/n.md", "n.md", b"x"),
        ],
        [
            move("Folder", "Moved"),
            make("Folder"),
            create("Folder/n.md", b"x"),
            move("Moved/n.md", "Folder/m.md", b"N"),
        ],
        [
            move("Folder", "Empty/Folder"),
            move("Empty", "Full"),
            modify("Full/Folder/n.md", b"N", b"x"),
        ],
        [move("a.md", "t.md", b"A"), move("b.md", "a.md", b"B"), move("t.md", "b.md", b"A")],
        [
            trash("a.md", b"A"),
            create("a.md", b"x"),
            modify("a.md", b"x", b"y"),
            move("a.md", "z.md", b"y"),
        ],
        [
            make("New"),
            create("New/n.md", b"x"),
            move("New", "Newer"),
            modify("Newer/n.md", b"x", b"y"),
        ],
    ],
)
def test_each_action_sees_those_before_it(
    handles: FolderHandles, operations: list[Operation]
) -> None:
    assert states(handles, *operations) == [State.READY] * len(operations)


def test_what_moved_away_is_gone_from_its_old_place(handles: FolderHandles) -> None:
    assert states(handles, move("Folder", "Moved"), modify("Folder/n.md", b"N", b"x")) == [
        State.READY,
        State.MISSING,
    ]
    assert states(handles, move("a.md", "x.md", b"A"), move("a.md", "y.md", b"A")) == [
        State.READY,
        State.MISSING,
    ]


def test_a_file_cannot_be_made_where_a_folder_was_just_made(handles: FolderHandles) -> None:
    assert states(handles, make("New"), create("New", b"x")) == [State.READY, State.FOREIGN]


def test_many_questions_about_one_folder(handles: FolderHandles) -> None:
    names = [
        create(f"Folder/{name}.md", b"x")
        for name in [*map(str, range(30)), "n", *map(str, range(30, 40))]
    ]
    assert states(handles, *names) == [State.READY] * 30 + [State.FOREIGN] + [State.READY] * 10


def test_two_files_with_equal_content_are_told_apart(handles: FolderHandles) -> None:
    root = Path(handles.store.real_path)
    status = (root / "twin.md").stat()
    inode = (status.st_dev, status.st_ino)
    moved_already = MoveEntry(
        path=vault_path("a.md"),
        new_path=vault_path("twin.md"),
        folder=False,
        hash=content_hash(b"A"),
        inode=inode,
    )
    assert states(handles, moved_already) == [State.DONE]
    assert states(
        handles,
        MoveEntry(
            path=vault_path("a.md"),
            new_path=vault_path("twin.md"),
            folder=False,
            hash=content_hash(b"A"),
        ),
    ) == [State.BLOCKED]


@pytest.mark.parametrize("name", ["A.md", "other.md"])
def test_another_name_of_the_same_file_is_in_the_way(handles: FolderHandles, name: str) -> None:
    root = Path(handles.store.real_path)
    (root / name).hardlink_to(root / "a.md")
    assert states(handles, move("a.md", name, b"A")) == [State.BLOCKED]


def test_a_link_inside_the_vault_is_followed_for_content(handles: FolderHandles) -> None:
    root = Path(handles.store.real_path)
    (root / "link.md").symlink_to("Folder/n.md")
    finding = Survey(handles).check(action_of(modify("link.md", b"N", b"x")))
    assert (finding.state, finding.real) == (State.READY, vault_path("Folder/n.md"))


def test_a_link_out_of_the_vault_is_foreign(handles: FolderHandles, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_bytes(b"N")
    (Path(handles.store.real_path) / "link.md").symlink_to(tmp_path / "outside.md")
    finding = Survey(handles).check(action_of(modify("link.md", b"N", b"x")))
    assert (finding.state, finding.content) == (State.FOREIGN, None)
    assert finding.reason.startswith("it cannot be reached: link.md is a link")


def test_a_fifo_does_not_hang(handles: FolderHandles) -> None:
    os.mkfifo(Path(handles.store.real_path) / "pipe.md")
    assert states(handles, modify("pipe.md", b"N", b"x"), create("pipe.md", b"x")) == [
        State.FOREIGN,
        State.FOREIGN,
    ]


def test_torn_files_are_known_by_their_images_and_their_time(handles: FolderHandles) -> None:
    root = Path(handles.store.real_path)
    action = reverse(action_of(modify("a.md", b"A", b"new\n" * 500)))
    (root / "a.md").write_bytes(b"new\n" * 20)
    images = {content_hash(b"A"): b"A", content_hash(b"new\n" * 500): b"new\n" * 500}
    assert Survey(handles).check(action).state is State.FOREIGN
    written = (root / "a.md").stat().st_mtime_ns
    assert Survey(handles, images.get).check(action).state is State.FOREIGN
    assert Survey(handles, images.get, torn_before=written).check(action).state is State.FOREIGN
    finding = Survey(handles, images.get, torn_before=written + 1).check(action)
    assert (finding.state, finding.actual) == (State.TORN, content_hash(b"new\n" * 20))


@given(st.binary(max_size=3000), st.integers(0, 3000), st.sets(st.integers(0, 5)))
def test_every_way_of_tearing(image: bytes, length: int, lost: set[int]) -> None:
    torn = bytearray(image[:length])
    for block in lost:
        start = min(block * 512, len(torn))
        torn[start : start + 512] = bytes(len(torn[start : start + 512]))
    assert is_torn(bytes(torn), image)


@given(st.binary(min_size=1, max_size=3000), st.data())
def test_a_changed_byte_is_no_tear(image: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(image) - 1))
    other = data.draw(st.integers(1, 255).filter(lambda value: value != image[at]))
    assert not is_torn(image[:at] + bytes([other]) + image[at + 1 :], image)
    assert not is_torn(image + b"x", image)
