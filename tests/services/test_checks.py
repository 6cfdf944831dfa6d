"""Folders and unreadably large files move only while they hold what the preview recorded."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.agent.events import ExecutionResult
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.result import Preview
from obsidian_agent.services.session import Session
from obsidian_agent.vault.filesystem import inventory
from previews import picture
from support import MakeVault

MOVE = {"id": "s", "tool": "vault.rename", "args": {"from": "F", "to": "Done/F"}}
TRASH = {"id": "s", "tool": "vault.delete", "args": {"path": "F", "recursive": True}}
INSIDE = {"F/a.md": "one\n", "F/deep/b.md": "two\n", "other.md": "[[a]]\n"}
LARGE = "F/video.mp4"

Change = Callable[[Path], object]


class House:
    """A vault, and a session over it."""

    def __init__(self, root: Path, session: Session) -> None:
        self.root = root
        self.session = session

    def preview(self, *steps: dict[str, Any]) -> Preview:
        return self.session.plans.dry_run(
            {"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": list(steps)}
        )

    def run(self, preview: Preview) -> ExecutionResult:
        return self.session.plans.apply(preview, lambda _: None, threading.Event())


@pytest.fixture
def house(make_vault: MakeVault, tmp_path: Path) -> House:
    store = make_vault(INSIDE)
    session = build_session(
        Wiring(
            store,
            tmp_path / "state",
            Policy(allow_deletes=True),
            now=datetime(2026, 3, 14, tzinfo=UTC),
        )
    )
    return House(tmp_path / "vault", session)


@pytest.fixture(params=["small", "big"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the size of a folder, which is identified by hashes or, if big, by times."""
    if request.param == "big":
        monkeypatch.setattr(inventory, "HASHED_BYTES", 2)
    return str(request.param)


def rewritten(path: Path, text: str) -> None:
    """Other content of the same size, with the old times."""
    info = path.stat()
    path.write_text(text)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def replaced(path: Path, text: str) -> None:
    """As editors save: a new file takes the place."""
    path.with_suffix(".tmp").write_text(text)
    path.with_suffix(".tmp").rename(path)


@pytest.mark.parametrize("step", [MOVE, TRASH], ids=["move", "trash"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda root: (root / "F/a.md").write_text("mine\n"), "F/a.md has changed"),
        (lambda root: rewritten(root / "F/a.md", "ONE\n"), "F/a.md has changed"),
        (lambda root: replaced(root / "F/deep/b.md", "TWO\n"), "F/deep/b.md has changed"),
        (lambda root: (root / "F/deep/new.md").write_text("new\n"), "F/deep/new.md is new"),
        (lambda root: (root / "F/New folder").mkdir(), "F/New folder is new"),
        (lambda root: (root / "F/deep/b.md").unlink(), "F/deep/b.md is gone"),
        (lambda root: (root / "F/link").symlink_to("../.."), "F/link is new"),
        (lambda root: (root / os.fsdecode(b"F/\xff.md")).write_text(""), "is new"),
    ],
)
def test_what_changes_in_a_folder_after_the_preview_is_a_conflict_before_anything_happens(
    house: House, size: str, step: dict[str, Any], change: Change, told: str
) -> None:
    first = {"id": "w", "tool": "vault.createFile", "args": {"path": "first.md", "content": "x"}}
    ready = house.preview(first, step)
    change(house.root)
    before = picture(house.root)
    result = house.run(ready)
    assert (result.status, [problem.code for problem in result.errors]) == (
        "conflict",
        ["CONFLICT"],
    )
    assert told in result.errors[0].message
    assert picture(house.root) == before
    assert house.preview(first, step).plan_hash != ready.plan_hash
    assert house.run(house.preview(first, step)).status == "done"


def test_a_folder_in_which_nothing_changed_is_moved(house: House, size: str) -> None:
    ready = house.preview(MOVE)
    (house.root / "F/.DS_Store").write_bytes(b"not in the inventory")
    assert house.preview(MOVE).plan_hash == ready.plan_hash
    assert house.run(ready).status == "done"
    assert (house.root / "Done/F/deep/b.md").read_text() == "two\n"
    assert (house.root / "Done/F/.DS_Store").exists()


def test_new_times_alone_are_no_change_where_contents_are_known(house: House) -> None:
    ready = house.preview(MOVE)
    os.utime(house.root / "F/a.md")
    assert house.preview(MOVE).plan_hash == ready.plan_hash
    assert house.run(ready).status == "done"


def test_a_folder_of_a_folder_that_is_moved_and_then_trashed_is_looked_into_too(
    house: House,
) -> None:
    steps = [
        {"id": "m", "tool": "vault.rename", "args": {"from": "F/deep", "to": "E/deep"}},
        {"id": "n", "tool": "vault.rename", "args": {"from": "E", "to": "G"}, "dependsOn": ["m"]},
        {
            "id": "t",
            "tool": "vault.delete",
            "args": {"path": "G", "recursive": True},
            "dependsOn": ["n"],
        },
    ]
    ready = house.preview(*steps)
    (house.root / "F/deep/new.md").write_text("mine\n")
    before = picture(house.root)
    assert house.run(ready).status == "conflict"
    assert picture(house.root) == before


@pytest.mark.parametrize(
    "step",
    [MOVE, TRASH, {**TRASH, "args": {"path": LARGE}}],
    ids=["move", "trash", "the file alone"],
)
def test_a_file_too_large_to_be_read_is_bound_by_its_times(
    house: House, monkeypatch: pytest.MonkeyPatch, step: dict[str, Any]
) -> None:
    large = house.root / LARGE
    large.write_bytes(b"")
    os.truncate(large, inventory.HASHED_FILE + 1)
    ready = house.preview(step)
    with large.open("r+b") as file:
        file.write(b"mine")
    result = house.run(ready)
    assert (result.status, result.errors[0].path) == ("conflict", LARGE)
    assert house.run(house.preview(step)).status == "done"


def test_edits_in_a_moved_folder_travel_back_with_it(house: House) -> None:
    before = picture(house.root)
    assert house.run(house.preview(MOVE)).success
    (house.root / "Done/F/a.md").write_text("mine\n")
    (house.root / "Done/F/new.md").write_text("new\n")
    assert not house.session.runs.undo(None).conflicts
    assert (house.root / "F/a.md").read_text() == "mine\n"
    assert (house.root / "F/new.md").read_text() == "new\n"
    assert set(picture(house.root)) == {*before, "F/new.md"}
    assert not house.session.runs.redo().conflicts
    assert (house.root / "Done/F/a.md").read_text() == "mine\n"


def test_a_link_to_a_folder_is_not_moved(house: House) -> None:
    (house.root / "L").symlink_to("F")
    ready = house.preview({"id": "s", "tool": "vault.rename", "args": {"from": "L", "to": "M"}})
    assert [problem.code for problem in ready.errors] == ["PATH_NOT_ALLOWED"]
