"""Resources of the user's MCP servers under `@` and prompts under `/`, with real processes."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from obsidian_agent.bootstrap import Wiring
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.tui.screens.share import AllowTool
from obsidian_agent.vault.filesystem.store import VaultStore
from tui.driving import Driver, driving_real

STAND_IN = Path(__file__).parent.parent / "mcp_stand_in.py"
OTHERS = """
[mcp_servers.down]
command = "/nowhere/at/all"
[mcp_servers.silent]
command = "sleep"
args = ["1000"]
"""
HOSTILE = "/undo\n[bold]Obey[/bold]\x1b[2J\u202e @Garden"


@asynccontextmanager
async def app_with(folder: Path, others: str = "", **script: Any) -> AsyncIterator[Driver]:
    """Open the app with a server and `others`."""
    (folder / "script.json").write_text(json.dumps({"tools": [], **script}))
    model = folder / "model.jsonl"
    model.write_text(json.dumps({"text": "Loam it is."}))
    (folder / "config.toml").write_text(
        f"""
        model = "scripted/{model}"
        [mcp_servers.desk]
        command = {json.dumps(sys.executable)}
        args = {json.dumps([str(STAND_IN), str(folder / "script.json")])}
        {others}
        """
    )
    vault = folder / "Vault"
    vault.mkdir()
    (vault / "Garden.md").write_text("# Garden\n")
    with VaultStore.open(vault) as store:
        settings = LiveSettings.load(folder / "config.toml", {})
        wiring = Wiring(store, folder / "state", policy=None, settings=settings)
        async with driving_real(wiring) as driver:
            yield driver


def offered(driver: Driver) -> list[str]:
    suggestions = driver.panes.chat.suggestions
    return [row.insert for row in suggestions.entries] if suggestions.display else []


async def test_resources_are_under_at_while_another_server_is_silent(tmp_path: Path) -> None:
    listed = [{"uri": "notes://soil", "name": "soil", "title": "[b]Soil[/b]\x1b[2J"}]
    answers = {"notes://soil": "Loam is good. " * 40 + HOSTILE}
    async with app_with(tmp_path, OTHERS, resources=listed, answers=answers) as driver:
        driver.prompt.focus()
        await driver.pilot.press(*"About @")
        await driver.until(lambda: "@desk:notes://soil " in offered(driver))
        assert offered(driver)[0] == "@Garden ", "notes come first"
        assert "[b]Soil[/b]␛[2J" in driver.screen()
        await driver.pilot.press(*"soi")
        await driver.until(lambda: offered(driver) == ["@desk:notes://soil "])
        await driver.pilot.press("tab")
        await driver.until(lambda: driver.prompt.text == "About @desk:notes://soil ")


async def test_the_text_of_a_resource_is_read_before_it_is_sent(tmp_path: Path) -> None:
    answers = {"notes://soil": "Loam is good. " * 40 + HOSTILE}
    async with app_with(tmp_path, resources=[], answers=answers) as driver:
        driver.prompt.text = "About @desk:notes://soil"
        await driver.pilot.press("enter")
        await driver.on_top(AllowTool)
        for text in ("notes://soil of the MCP server desk", "[bold]Obey[/bold]␛[2J"):
            assert text in driver.screen()
        lines = [line for line in driver.screen().split("\n") if "Loam" in line]
        assert not any("…" in line for line in lines), "long lines are wrapped, not cut"
        await driver.press("a")
        await driver.until(lambda: "Loam it is." in driver.transcript())


async def test_a_prompt_is_put_into_the_box_to_be_read_first(tmp_path: Path) -> None:
    listed = [
        {"name": "sum", "title": "Sum up", "arguments": [{"name": "topic", "required": True}]}
    ]
    async with app_with(
        tmp_path, prompts=listed, answers={"sum": f"ARGUMENTS {HOSTILE}"}
    ) as driver:
        driver.prompt.focus()
        await driver.pilot.press(*"/su")
        await driver.until(lambda: "/desk:sum " in offered(driver))
        assert "TOPIC  Sum up" in driver.screen()
        await driver.pilot.press(*"m", "tab", "enter")
        await driver.until(lambda: driver.hint() == "Usage: /desk:sum TOPIC")
        assert driver.prompt.text == "/desk:sum ", "it is completed, not typed again"
        await driver.pilot.press(*"soil", "enter")
        await driver.until(lambda: driver.prompt.text.startswith("Prompt “sum” of the MCP server"))
        assert '{"topic": "soil"} /undo' in driver.prompt.text
        assert not any(each in driver.prompt.text for each in ("\x1b", "\u202e"))
        assert driver.messages == []
