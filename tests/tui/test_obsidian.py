"""The app with a running Obsidian: its selection is sent, open notes change in its editor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from obsidian_agent.agent.privacy.consent import Level, ShareItem, ShareRequest
from obsidian_agent.bootstrap import Wiring
from obsidian_agent.journal.undo import UndoConflict
from obsidian_agent.plan.policy import Policy
from obsidian_agent.tui.screens.conflicts import Conflicts, UndoPreview
from obsidian_agent.tui.screens.share import Share
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_stand_in import StandIn, stand_in
from support import settings_with
from tui.driving import Driver, driving_real

DAY = "# Day\n\n- Garden 👍\n- Kitchen\n- Roof\n\nThe end.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    vault = tmp_path / "Vault"
    vault.mkdir()
    (vault / "Day.md").write_text(DAY)
    return vault.resolve()


@pytest.fixture
def running(home: Path, folder: Path) -> Iterator[StandIn]:
    with stand_in(folder, home) as started:
        started.open_note("Day.md").text = DAY + "unsaved words\n"
        yield started


@asynccontextmanager
async def app(folder: Path, tmp_path: Path) -> AsyncIterator[Driver]:
    with VaultStore.open(folder) as store:
        async with driving_real(Wiring(store, tmp_path / "state"), (140, 40)) as driver:
            yield driver


def chip(driver: Driver) -> str:
    return str(driver.panes.chat.chip.render()) if driver.panes.chat.chip.display else ""


def select_bullets(running: StandIn) -> None:
    running.select("Day.md", (2, 0), (4, 6), "- Garden 👍\n- Kitchen\n- Roof")


async def test_the_main_job_over_a_live_selection_and_back(
    running: StandIn, folder: Path, tmp_path: Path
) -> None:
    note = running.notes["Day.md"]
    async with app(folder, tmp_path) as driver:
        await driver.until(lambda: "Day.md in Obsidian" in chip(driver))
        await driver.until(lambda: "◈ Obsidian" in driver.screen())
        select_bullets(running)
        await driver.until(lambda: "sel 3 lines · Day.md in Obsidian" in chip(driver))
        await driver.planned("Create a note for each bullet in 'Projects'")
        assert driver.stage == "plan", driver.transcript()
        assert "3 new" in driver.plan_head()
        await driver.press("a")
        assert driver.stage == "result"
        assert sorted(path.name for path in (folder / "Projects").iterdir()) == [
            "Garden 👍.md",
            "Kitchen.md",
            "Roof.md",
        ]
        assert "[[" in note.text
        assert note.text.endswith("unsaved words\n")
        assert note.text == (folder / "Day.md").read_text()
        assert running.asked.count("edit") == 1
        await driver.press("u")
        await driver.on_top(UndoPreview)
        await driver.press("y")
        await driver.settle()
        assert note.text == (folder / "Day.md").read_text() == DAY + "unsaved words\n"
        assert running.asked.count("edit") == 2


async def test_the_selection_can_be_left_out_and_follows_the_person(
    running: StandIn, folder: Path, tmp_path: Path
) -> None:
    select_bullets(running)
    async with app(folder, tmp_path) as driver:
        await driver.until(lambda: "sel 3 lines" in chip(driver))
        await driver.press("ctrl+t")
        assert "not sent" in chip(driver)
        assert driver.panes.editor_focus()[1] is None
        await driver.press("ctrl+t")
        await driver.press("ctrl+o", *"day", "enter", "x")
        assert "Obsidian" not in chip(driver)
        running.select("Day.md", (0, 0), (0, 5), "# Day")
        await driver.until(lambda: "sel 1 line · Day.md in Obsidian" in chip(driver))
        running.place.unlink()
        running.bump()
        await driver.until(lambda: "Obsidian" not in chip(driver))


async def test_nobody_is_asked_while_the_person_looks_elsewhere(
    running: StandIn, folder: Path, tmp_path: Path
) -> None:
    async with app(folder, tmp_path) as driver:
        await driver.until(lambda: running.asked.count("watch") >= 2)
        driver.app.on_app_blur()
        running.bump()
        await driver.until(lambda: True)
        asked = len(running.asked)
        for _ in range(3):
            running.bump()
            await driver.pilot.pause(0.1)
        assert len(running.asked) <= asked + 1
        driver.app.on_app_focus()
        await driver.until(lambda: len(running.asked) > asked + 1)


async def test_a_note_opens_in_obsidian_at_the_line(
    running: StandIn, folder: Path, tmp_path: Path
) -> None:
    async with app(folder, tmp_path) as driver:
        await driver.press("ctrl+o", *"day", "enter", "down", "down", "o")
        assert running.opened == [("Day.md", 3, False)]


async def test_without_an_obsidian_nothing_is_shown_of_one(
    home: Path, folder: Path, tmp_path: Path
) -> None:
    async with app(folder, tmp_path) as driver:
        await driver.press("ctrl+o", *"day", "enter", "x")
        assert "Obsidian" not in driver.screen()
        assert driver.panes.editor_focus()[0] == "Day.md"


async def test_a_plan_with_a_command_in_it_is_asked_about_twice(
    running: StandIn, folder: Path, tmp_path: Path
) -> None:
    steps = [
        {"id": "make", "tool": "vault.createFile", "args": {"path": "Log.md", "content": "made\n"}},
        {"id": "bold", "tool": "commands.run", "args": {"id": "editor:toggle-bold"}},
        {
            "id": "add",
            "tool": "vault.updateFile",
            "args": {"path": "${$steps.make.path}", "mode": "append", "content": "after\n"},
        },
    ]
    document = {"version": "1.0", "goal": "Log", "riskLevel": "commands", "steps": steps}
    with VaultStore.open(folder) as store:
        wiring = Wiring(store, tmp_path / "state", Policy(allow_commands=True))
        async with driving_real(wiring, (140, 40)) as driver:
            driver.main.turn.preview(document, frozenset(), {})
            await driver.settle()
            assert "Toggle bold" in driver.screen()
            await driver.press("a")
            await driver.settle()
            assert (running.ran, (folder / "Log.md").read_text()) == (
                ["editor:toggle-bold"],
                "made\n",
            )
            assert driver.stage == "plan", driver.transcript()
            driver.wait_out_grace()
            await driver.press("a")
            await driver.settle()
            assert driver.stage == "result"
            assert (running.ran, (folder / "Log.md").read_text()) == (
                ["editor:toggle-bold"],
                "made\nafter\n",
            )


@pytest.mark.parametrize(("allowed", "ran"), [((), []), (("editor:*",), ["editor:toggle-bold"])])
async def test_a_command_that_a_rule_names_runs_without_a_question(
    running: StandIn, folder: Path, tmp_path: Path, allowed: tuple[str, ...], ran: list[str]
) -> None:
    step = {"id": "bold", "tool": "commands.run", "args": {"id": "editor:toggle-bold"}}
    settings = settings_with(allow_commands=True, commands_allow=allowed)
    with VaultStore.open(folder) as store:
        async with driving_real(
            Wiring(store, tmp_path / "state", None, settings=settings), (140, 40)
        ) as driver:
            driver.main.turn.preview(
                {"version": "1.0", "goal": "g", "riskLevel": "commands", "steps": [step]},
                frozenset(),
                {},
            )
            await driver.settle()
            assert running.ran == ran
            assert driver.stage == ("result" if ran else "plan")


async def test_every_list_of_files_opens_them_in_obsidian(
    running: StandIn, folder: Path, tmp_path: Path
) -> None:
    item = ShareItem(path=parse("Day.md", PathUse.READ), level=Level.TEXT, size=3, tokens=1)
    request = ShareRequest(
        call_id="1",
        kind="files",
        tool="vault.readFile",
        purpose="Read",
        args={},
        items=(item,),
        provider="test/model",
        address="here",
    )
    async with app(folder, tmp_path) as driver:
        for screen in (
            Conflicts([UndoConflict("Day.md", "changed since")], lambda path: ""),
            Share(request),
        ):
            driver.app.push_screen(screen)  # type: ignore[arg-type]
            await driver.settle()
            driver.wait_out_grace()
            await driver.press("o")
            await driver.until(lambda: running.opened != [])
            assert running.opened.pop() == ("Day.md", None, False)
            await driver.press("escape")
        running.place.unlink()
        driver.app.push_screen(Share(request))
        await driver.settle()
        driver.wait_out_grace()
        await driver.press("o")
        await driver.until(
            lambda: any("There is no desktop" in told.message for told in driver.app._notifications)
        )
