"""Messages of the app about a damaged journal and a moved vault."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from obsidian_agent.bootstrap import Wiring
from obsidian_agent.journal.writer import Journal
from obsidian_agent.vault.filesystem.store import VaultStore
from previews import create, previewed, run
from tui.driving import Driver, driving_real


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Return a vault after two runs, and its state."""
    (tmp_path / "Vault").mkdir()
    with (
        VaultStore.open(tmp_path / "Vault") as store,
        Journal.open(tmp_path / "state", store) as journal,
    ):
        for name in ("one.md", "two.md"):
            assert run(previewed(create(name, b"x"), goal=f"Make {name}"), store, journal).success
    return tmp_path


def lose_the_last_run(base: Path) -> str:
    (file,) = base.glob("state/vaults/*/journal.db")
    with sqlite3.connect(file) as connection:
        ((run_id,),) = connection.execute("SELECT run_id FROM record WHERE seq = 2").fetchall()
        connection.execute("DELETE FROM record WHERE seq = 2")
    return str(run_id)


@asynccontextmanager
async def opened(base: Path, name: str) -> AsyncIterator[Driver]:
    with VaultStore.open(base / name) as store:
        async with driving_real(Wiring(store, base / "state")) as driver:
            yield driver


async def test_a_moved_vault_is_asked_about_and_takes_its_history_along(base: Path) -> None:
    (base / "Vault").rename(base / "Notes")
    async with opened(base, "Notes") as driver:
        assert "This vault was moved" in driver.screen()
        assert str(base / "Vault")[:30] in driver.screen()
        await driver.press("y")
        await driver.settle()
        assert "The history of this vault was moved to its new path." in driver.transcript()
        await driver.press("f3")
        await driver.settle()
        assert "Make two.md" in driver.screen()


async def test_what_is_not_decided_is_asked_again_and_nothing_runs_meanwhile(base: Path) -> None:
    (base / "Vault").rename(base / "Notes")
    async with opened(base, "Notes") as driver:
        await driver.press("enter")
        await driver.settle()
        assert "its history belongs to that path" in driver.transcript()
    async with opened(base, "Notes") as driver:
        assert "This vault was moved" in driver.screen()


async def test_the_history_names_the_run_that_is_missing(base: Path) -> None:
    run_id = lose_the_last_run(base)
    async with opened(base, "Vault") as driver:
        await driver.press("f3")
        await driver.settle()
        assert f"Run {run_id} is missing from the journal" in driver.screen()
        await driver.press("escape", "escape", "u")
        await driver.settle()
    assert (base / "Vault/one.md").exists(), "an older run is not taken for the last one"
