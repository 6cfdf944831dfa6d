"""The health of a vault: findings, their repairs as one plan, and what is ignored."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from obsidian_agent.bootstrap import Wiring
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.health import report
from obsidian_agent.services.health import HealthRecord
from obsidian_agent.tui.screens.dialogs import ChoiceScreen
from obsidian_agent.tui.screens.health import Health
from obsidian_agent.tui.screens.main import MainScreen
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.vault.filesystem.store import VaultStore
from tui.driving import Driver, driving_real
from tui.snapshots import SIZES, looks

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
PROSE = "One sentence that is long enough to mean something.\n"
FILES = {
    "Ada Lovelace.md": "---\naliases: [Ada L]\n---\n[[Ideas]]\n",
    "Daily/3.md": "x\nMet [[Ada L]] today.\n",
    "Ideas.md": "[[Ada Lovelace]] and [[Garden]]\n",
    "Projects/A.md": "See [[kick off notes]].\n",
    "Projects/Kick-off notes.md": "[[Ideas]]\n",
    "Empty 1.md": "",
    "Empty 2.md": "",
    "Alone.md": PROSE,
}


@asynccontextmanager
async def messy(
    tmp_path: Path, size: tuple[int, int] = (120, 40), settings: LiveSettings | None = None
) -> AsyncIterator[Driver]:
    vault = tmp_path / "Notes"
    for name, text in FILES.items():
        file = vault / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        os.utime(file, (NOW.timestamp(), NOW.timestamp()))
    with VaultStore.open(vault) as store:
        wiring = Wiring(
            store,
            tmp_path / "state",
            policy=None,
            now=NOW,
            settings=settings or LiveSettings(),
        )
        async with driving_real(wiring, size) as driver:
            yield driver


async def opened(driver: Driver, message: str = "/health") -> None:
    await driver.send(message)
    await driver.on_top(Health)


def text_of(tmp_path: Path, name: str) -> str:
    return (tmp_path / "Notes" / name).read_text(encoding="utf-8")


async def test_repairs_with_evidence_are_ticked_and_become_one_plan(tmp_path: Path) -> None:
    async with messy(tmp_path) as driver:
        await opened(driver)
        assert "3 with a repair" in driver.screen()
        await driver.press("p")
        assert driver.stage == "plan", driver.transcript()
        assert "2 edited" in driver.plan_head()
        driver.wait_out_grace()
        await driver.press("a")
        assert text_of(tmp_path, "Projects/A.md") == "See [[Kick-off notes]].\n"
        assert text_of(tmp_path, "Daily/3.md") == "x\nMet [[Ada Lovelace|Ada L]] today.\n"
        await driver.send("/health")
        await driver.on_top(Health)
        assert "4 fewer than on 2026-11-23" in driver.screen()


async def test_a_finding_with_several_repairs_asks_which(tmp_path: Path) -> None:
    other = tmp_path / "Notes" / "Projects" / "B.md"
    other.parent.mkdir(parents=True)
    other.write_text("[[Garden]] again\n", encoding="utf-8")
    async with messy(tmp_path) as driver:
        await opened(driver)
        await driver.press("enter", "down", "down", "down")
        assert "☐ 2 places ▸" in driver.screen()
        assert "1 ☐ Create Garden.md" in driver.screen()
        await driver.press("space")
        await driver.on_top(ChoiceScreen)
        await driver.press("2")
        await driver.on_top(Health)
        assert "☑ 2 places ▸" in driver.screen()
        assert "“Garden” leads nowhere.  Turn the link" in driver.screen()
        await driver.press("1", "up", "enter", "down")
        assert "☑ 2 places ▾" in driver.screen()
        assert "☑ Ideas.md:1" in driver.screen()
        await driver.press("space")
        assert "“Garden” leads nowhere.  1 ticked" in driver.screen()
        await driver.press("enter")
        await driver.on_top(ChoiceScreen)
        await driver.press("3")
        await driver.settle()
        assert driver.panes.note.path == "Ideas.md"


async def test_space_on_a_kind_ticks_the_likely_repair_of_each_finding(tmp_path: Path) -> None:
    for number in range(8):
        file = tmp_path / "Notes" / f"Visit {number}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"Met Ada Lovelace and Ada L again, visit {number}.\n", encoding="utf-8")
    async with messy(tmp_path) as driver:
        await opened(driver)
        await driver.press("down", "space")
        assert "10 ticked" in driver.screen()
        await driver.press("p")
        assert driver.stage == "plan", driver.transcript()
        driver.wait_out_grace()
        await driver.press("a")
        assert "[[Ada Lovelace]]" in text_of(tmp_path, "Visit 7.md")


async def test_a_repair_that_deletes_is_refused_before_the_plan(tmp_path: Path) -> None:
    async with messy(tmp_path) as driver:
        await opened(driver, "/health empty notes")
        await driver.press("space")
        assert "2 repairs not ticked" in driver.screen()
        assert "Allow deletes" in driver.screen()
        await driver.press("p")
        assert "No repair is ticked" in driver.screen()


async def test_a_repair_that_deletes_can_be_ticked_if_the_settings_allow_it(tmp_path: Path) -> None:
    settings = LiveSettings()
    settings.set("allow_deletes", "true")
    async with messy(tmp_path, settings=settings) as driver:
        await opened(driver, "/health empty notes")
        await driver.press("space", "p")
        assert driver.stage == "plan", driver.transcript()
        assert "2 deleted" in driver.plan_head()


async def test_an_ignored_finding_is_gone_and_its_reason_stored(tmp_path: Path) -> None:
    async with messy(tmp_path) as driver:
        await opened(driver, "/health unlinked-note")
        await driver.press("down", "i")
        await driver.on_top(ValuesForm)
        await driver.press(*"mine", "ctrl+s")
        await driver.on_top(Health)
        assert "2 findings" in driver.screen()
        assert "1 ignored" in driver.screen()
        store = driver.main.session.vault.store
        assert list(HealthRecord(tmp_path / "state", store).ignored().values()) == ["mine"]


async def test_an_ignored_finding_is_listed_apart_and_can_be_reported_again(tmp_path: Path) -> None:
    async with messy(tmp_path) as driver:
        await opened(driver, "/health unlinked-note")
        await driver.press("down", "i")
        await driver.on_top(ValuesForm)
        await driver.press(*"mine", "ctrl+s")
        await driver.on_top(Health)
        await driver.press("end", "enter", "down")
        assert "mine" in driver.screen()
        await driver.press("space")
        assert "not repaired" in driver.screen()
        await driver.press("i")
        assert "3 findings" in driver.screen()
        assert "ignored" not in driver.screen()
        store = driver.main.session.vault.store
        assert HealthRecord(tmp_path / "state", store).ignored() == {}


async def test_a_sentence_shows_the_findings_it_names(tmp_path: Path) -> None:
    async with messy(tmp_path) as driver:
        await opened(driver, "Which notes have no links?")
        assert "Health of Notes: notes without links" in driver.screen()
        assert "Alone.md" in driver.screen()


async def test_the_menu_of_actions_has_the_health_of_the_vault(tmp_path: Path) -> None:
    async with messy(tmp_path) as driver:
        await driver.press("f2", *"sync conf", "enter")
        await driver.on_top(ValuesForm)
        await driver.press("ctrl+s")
        await driver.on_top(Health)
        assert "8 findings" in driver.screen()


async def test_escape_ends_an_examination(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, proceed, ended = threading.Event(), threading.Event(), threading.Event()
    examine = report.examine

    def slow(*args: object, progress: Callable[[int, int], None], **options: object) -> object:
        def held(done: int, total: int) -> None:
            started.set()
            proceed.wait(30)
            progress(done, total)

        try:
            return examine(*args, progress=held, **options)  # type: ignore[arg-type]
        finally:
            ended.set()

    monkeypatch.setattr(report, "examine", slow)
    async with messy(tmp_path) as driver:
        driver.prompt.text = "/health"
        await driver.pilot.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, Health) and started.is_set())
        await driver.pilot.press("escape")
        await driver.until(lambda: isinstance(driver.app.screen, MainScreen))
        proceed.set()
        await driver.until(ended.is_set)
        store = driver.main.session.vault.store
        assert HealthRecord(tmp_path / "state", store).trend() == []


async def test_an_unknown_kind_names_the_kinds(tmp_path: Path) -> None:
    async with messy(tmp_path) as driver:
        await driver.send("/health nonsense")
        assert "unresolved-link" in driver.hint()


async def test_what_it_looks_like(tmp_path: Path) -> None:
    async with messy(tmp_path, SIZES[0]) as driver:
        await opened(driver)
        await driver.press("enter", "down")
        await looks(driver, "health")
