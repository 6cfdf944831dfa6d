"""The history on a real vault: looking at runs, and undo of chosen files with conflicts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path

import pytest
from msgspec.structs import replace

from obsidian_agent.bootstrap import Wiring
from obsidian_agent.journal.records import StepOutcome, UndoPoint
from obsidian_agent.journal.undo import UndoConflict
from obsidian_agent.journal.writer import Journal
from obsidian_agent.plan.result import Instance
from obsidian_agent.services.runs import Runs
from obsidian_agent.tui.screens.conflicts import ConflictList, UndoPreview
from obsidian_agent.tui.screens.dialogs import DiffScreen
from obsidian_agent.tui.screens.history import History, HistoryList, name_day
from obsidian_agent.tui.screens.undo import possible_points
from obsidian_agent.tui.widgets.diff import Detail
from obsidian_agent.tui.widgets.run_files import RunFile, RunFiles, RunGroup, grouped_files
from obsidian_agent.vault.filesystem.store import VaultStore
from previews import create, make, modify, move, previewed, run, step
from tui.driving import Driver, driving_real


@asynccontextmanager
async def kitchen(base: Path, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Driver]:
    """Open the app over a vault with three runs, and one that changed nothing."""
    vault, state = base / "Vault", base / "state"
    vault.mkdir()
    for name in ("Apple", "Pear", "Plum"):
        (vault / f"{name}.md").write_text(f"{name}\n")
    with VaultStore.open(vault) as store:
        with Journal.open(state, store) as journal:
            for goal, operations in (
                (
                    "Sign the fruit",
                    [
                        modify(f"{name}.md", f"{name}\n".encode(), f"{name}!\n".encode())
                        for name in ("Apple", "Pear", "Plum")
                    ],
                ),
                ("Look around", []),
                ("Store the plum", [make("Shelf"), move("Plum.md", "Shelf/Plum.md", b"Plum!\n")]),
                ("Write a list", [create("List.md", b"- Apple\n")]),
            ):
                run(previewed(*operations, goal=goal), store, journal)
        async with driving_real(Wiring(store, state), size=size) as driver:
            yield driver


def text(base: Path, name: str) -> str:
    return (base / "Vault" / name).read_text()


def states(driver: Driver) -> dict[str, str]:
    rows = driver.app.screen.query_one(RunFiles).entries
    return {row.text: row.state for row in rows if isinstance(row, RunFile) and row.paths}


async def test_runs_are_looked_at_without_a_change(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as driver:
        await driver.press("f3")
        await driver.settle()
        rows = driver.app.screen.query_one(HistoryList).rows
        goals = [row.goal for row in rows if not isinstance(row, str)]
        assert goals == ["Write a list", "Store the plum", "Sign the fruit"]
        assert rows[0] in ("Today", "Yesterday")
        assert "1 + - Apple" in driver.screen()
        await driver.press("down")
        await driver.settle()
        assert "Plum.md → Shelf/Plum.md" in driver.screen()
        await driver.press("down", "enter")
        await driver.settle()
        assert list(states(driver)) == ["Apple.md", "Pear.md", "Plum.md"]
        await driver.press("enter")
        await driver.on_top(DiffScreen)
        assert "Apple!" in driver.screen()
        await driver.press("escape")
        assert isinstance(driver.app.screen, History)
        await driver.press("escape", "escape")
        assert driver.app.screen is driver.main
        assert text(tmp_path, "Apple.md") == "Apple!\n"


async def test_chosen_files_of_an_older_run_are_undone_and_then_the_rest(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as driver:
        (tmp_path / "Vault" / "Apple.md").write_text("mine\n")
        await driver.press("f3", "down", "down")
        await driver.settle()
        assert states(driver)["Apple.md"].startswith("conflict")
        await driver.press("enter", "space", "space", "u")
        await driver.on_top(UndoPreview)
        assert "Undo the marked files?" in driver.screen()
        assert text(tmp_path, "Pear.md") == "Pear!\n"
        await driver.press("y")
        await driver.settle()
        assert (text(tmp_path, "Apple.md"), text(tmp_path, "Pear.md")) == ("mine\n", "Pear\n")
        assert text(tmp_path, "Shelf/Plum.md") == "Plum!\n"
        assert isinstance(driver.app.screen, History)
        assert states(driver)["Pear.md"] == "undone"
        assert "partly undone" in driver.screen()
        await driver.press("u")
        await driver.on_top(UndoPreview)
        await driver.press("F", "y")
        await driver.settle()
        assert text(tmp_path, "Apple.md") == "Apple\n"


async def test_one_marked_file_is_undone_after_a_preview_that_names_what_stays(
    tmp_path: Path,
) -> None:
    async with kitchen(tmp_path) as driver:
        await driver.press("f3", "down", "down")
        await driver.settle()
        await driver.press("enter", "down", "space", "u")
        await driver.on_top(UndoPreview)
        assert "Only the marked files change." in driver.screen()
        assert "partly undone" not in driver.screen()
        await driver.press("y")
        await driver.until(lambda: "partly undone" in driver.screen())


async def test_undo_and_redo_stay_in_the_history(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as driver:
        await driver.press("f3")
        await driver.settle()
        await driver.press("u")
        await driver.on_top(UndoPreview)
        assert text(tmp_path, "List.md") == "- Apple\n", "asked first, also for one file"
        await driver.press("y")
        await driver.settle()
        assert not (tmp_path / "Vault" / "List.md").exists()
        assert "Undone: 1 file." in driver.screen()
        await driver.press("y")
        await driver.on_top(UndoPreview)
        await driver.press("y")
        await driver.settle()
        assert text(tmp_path, "List.md") == "- Apple\n"
        assert "Redone: 1 file." in driver.screen()


async def test_a_result_is_not_redone_in_place_of_another_run(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as driver:
        await driver.planned("Rename List to 'Shopping'")
        await driver.press("a")
        await driver.settle()
        driver.wait_out_grace()
        await driver.press("u")
        await driver.on_top(UndoPreview)
        await driver.press("y")
        await driver.settle()
        await driver.press("f3", "down")
        await driver.settle()
        await driver.press("u")
        await driver.on_top(UndoPreview)
        await driver.press("y")
        await driver.settle()
        assert not (tmp_path / "Vault" / "List.md").exists()
        await driver.press("escape")
        driver.wait_out_grace()
        driver.panes.go("work")
        await driver.press("y")
        assert "Another run was undone after this one" in driver.transcript()
        assert not (tmp_path / "Vault" / "List.md").exists()


async def test_only_the_run_that_stays_highlighted_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []
    show = Runs.show
    monkeypatch.setattr(Runs, "show", lambda *given: (loaded.append(given[1]), show(*given))[1])
    seconds = "obsidian_agent.tui.screens.history.HIGHLIGHT_SECONDS"
    monkeypatch.setattr(seconds, 3600.0)
    async with kitchen(tmp_path) as driver:
        await driver.pilot.press("f3")
        await driver.until(lambda: isinstance(driver.app.screen, History))
        await driver.until(lambda: driver.app.screen.query_one(HistoryList).rows)
        await driver.pilot.press("down")
        monkeypatch.setattr(seconds, 0.0)
        await driver.pilot.press("down")
        await driver.settle()
        assert len(loaded) == 1
        assert list(states(driver)) == ["Apple.md", "Pear.md", "Plum.md"]


async def test_in_a_narrow_terminal_enter_opens_the_diff(tmp_path: Path) -> None:
    async with kitchen(tmp_path, (80, 24)) as driver:
        await driver.press("f3")
        await driver.settle()
        assert not driver.app.screen.query_one(Detail).display
        assert "List.md" in driver.screen()
        await driver.press("enter", "enter")
        await driver.on_top(DiffScreen)
        assert "- Apple" in driver.screen()


async def test_the_history_is_filtered_and_omits_runs_without_changes(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as driver:
        await driver.press("f3")
        assert "Look around" not in driver.screen()
        await driver.press("slash", *"FRUIT")
        assert "Sign the fruit" in driver.screen()
        assert "Write a list" not in driver.screen()
        await driver.press(*"x")
        assert "No run matches" in driver.screen()
        await driver.press("escape")
        assert "Write a list" in driver.screen()
        await driver.press("end", "enter")
        await driver.press("slash", *"pear", "enter", "space")
        assert list(states(driver)) == ["Pear.md"]
        assert "Write a list" in driver.screen()
        assert "1 file marked" in driver.screen()
        await driver.press("escape")
        assert list(states(driver)) == ["Apple.md", "Pear.md", "Plum.md"]
        await driver.press("escape", "escape")
        assert driver.app.screen is driver.main


def test_equal_changes_of_a_run_are_one_row_until_it_is_opened() -> None:
    edits = [
        RunFile(word="edit", text=f"{n}.md", paths=(f"{n}.md",), edit=("-x", "+y")) for n in "abcd"
    ]
    moves = [RunFile(word="rename", text="x", paths=(f"Old/{n}.md", f"New/{n}.md")) for n in "abcd"]
    others = [RunFile(word="step", text=f"{n}") for n in "abcde"]
    skipped = [RunFile(word="left out", text=f"{n}.md") for n in "fghi"]
    equal, moved, *rest, left = grouped_files([*edits, *moves, *others, *skipped], ())
    assert isinstance(left, RunGroup)
    assert list(left.files) == skipped
    assert isinstance(equal, RunGroup)
    assert isinstance(moved, RunGroup)
    assert (equal.text, moved.text) == ("- x  + y", "Old/ → New/")
    assert (list(equal.files), list(moved.files), rest) == (edits, moves, others)
    opened = list(grouped_files(edits, {equal.key}))
    assert [row.text for row in opened] == ["- x  + y", "a.md", "b.md", "c.md", "d.md"]


def test_the_preview_of_an_undo_folds_the_files_below_its_conflicts() -> None:
    files = [RunFile(word="restore", text=f"In/{n}.md", paths=(f"In/{n}.md",)) for n in "abcd"]
    listing = ConflictList([UndoConflict("In/e.md", "gone")], files)
    assert [(row.word, row.text) for row in listing.entries] == [
        ("keep mine", "In/e.md"),
        ("restore", "in In/"),
    ]


async def test_a_run_that_is_undone_is_not_undone_again(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as driver:
        await driver.press("f3", "u")
        await driver.on_top(UndoPreview)
        await driver.press("y")
        assert "Undone: 1 file." in driver.screen()
        await driver.press("u")
        assert "This run is already undone" in driver.screen()
        assert text(tmp_path, "Apple.md") == "Apple!\n"


async def test_a_run_of_one_step_has_none_to_go_back_to(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as driver:
        await driver.press("f3", "b")
        assert "no step to go back to" in driver.screen()


async def test_a_command_cannot_be_undone_and_the_history_says_so(tmp_path: Path) -> None:
    command = Instance(
        name="c",
        step_id="c",
        index=None,
        tool="commands.run",
        args={"id": "x:y"},
        state="ready",
        opaque=True,
    )
    alone = previewed([], steps=[step("c")], goal="Reload")
    both = previewed([], create("A.md", b"a\n"), steps=[step("c"), step("a")], goal="Both")
    with VaultStore.open(tmp_path) as store:
        with Journal.open(tmp_path / ".state", store) as journal:
            for preview in (alone, both):
                preview = replace(preview, instances=(command, *preview.instances[1:]))
                run(preview, store, journal, run_command=lambda id: {"id": id, "executed": True})
        async with driving_real(Wiring(store, tmp_path / ".state")) as driver:
            await driver.press("f3")
            await driver.settle()
            assert re.search(r"command +x:y +cannot be undone", driver.screen())
            await driver.press("u")
            await driver.on_top(UndoPreview)
            assert "1 command of Obsidian, which cannot be undone" in driver.screen()
            await driver.press("escape", "down", "u")
            assert "Commands cannot be undone." in driver.screen()
            assert (tmp_path / "A.md").exists()


def test_days_have_names() -> None:
    today = date(2026, 3, 1)
    assert name_day(today, today) == "Today"
    assert name_day(date(2026, 2, 28), today) == "Yesterday"
    assert name_day(date(2026, 2, 27), today) == "Friday 27 February"
    assert name_day(date(2025, 12, 16), today) == "Tuesday 16 December 2025"


def test_undo_goes_back_only_to_points_between_changes() -> None:
    points = [
        UndoPoint(step=step, actions=0, clean=step != "later")
        for step in ("find", "move", "later", "tag", "end")
    ]
    outcomes = [
        StepOutcome(step=step, state="applied", in_effect=int(step not in ("find", "end")))
        for step in ("find", "move", "later", "tag", "end")
    ]
    assert [point.step for point in possible_points(points, outcomes)] == ["move"]
    assert possible_points(points[:2], outcomes[:2]) == []
