"""The app with a model over real HTTP: consent, an answer with its sources, then a plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm_server import KEY, Call, LlmServer, Reply
from obsidian_agent.bootstrap import Wiring
from obsidian_agent.tui.screens.share import Share
from obsidian_agent.tui.widgets.transcript import Source
from obsidian_agent.vault.filesystem.store import VaultStore
from support import settings_with
from tui.driving import Driver, driving_real

NOTES = {
    "Garden.md": "# Garden\n\nWater the beans.\n",
    "Diary.md": "# Diary\n\nA secret about the garden.\n",
    "Log.md": "# Log\n\nGarden done.\n",
}
PLAN = {
    "version": "1.0",
    "goal": "Note the beans",
    "riskLevel": "writes",
    "steps": [
        {
            "id": "new",
            "tool": "vault.createFile",
            "args": {"path": "Beans.md", "content": "# Beans\n\nSee [[Garden]].\n"},
        },
        {"id": "show", "tool": "workspace.openFile", "args": {"path": "Beans.md", "line": 3}},
    ],
}


def call(name: str, identity: str, **arguments: object) -> Call:
    return Call(name, json.dumps(arguments), identity)


SCRIPT = [
    Reply(
        "Let me look.",
        thinking="Which notes?",
        calls=(call("vault__readFiles", "r1", filePaths=list(NOTES), why="they may say it"),),
    ),
    Reply("Water the **beans**, says [[Garden]].", usage=(900, 30)),
    Reply("", calls=(call("vault__searchText", "s1", query="beans", why="to find them"),)),
    Reply("Here is a plan.", calls=(call("propose_plan", "p1", plan=PLAN),)),
    Reply("word " * 400, delay=0.01),
    Reply("Half an answer", ending="clean-cut", cut_after=1),
]


async def question(app: Driver) -> Share:
    await app.on_top(Share)
    screen = app.app.screen
    assert isinstance(screen, Share)
    return screen


async def open_source(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open a source in the note pane, and then in Obsidian, for which there is no desktop."""
    assert "Sources\nGarden.md\nAlso sent, but not cited\nLog.md" in driver.transcript()
    source = driver.app.screen.query(Source).first()
    source.focus()
    await driver.pilot.press("enter")
    await driver.until(
        lambda: driver.panes.note.path == "Garden.md" and driver.panes.front == "note"
    )
    source.focus()
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    await driver.pilot.press("o")
    await driver.until(lambda: "There is no desktop" in driver.screen())
    driver.prompt.focus()


async def test_a_question_with_two_of_three_files_then_a_plan_that_looked_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OBSIDIAN_AGENT_API_KEY", KEY)
    vault = tmp_path / "Vault"
    vault.mkdir()
    for name, text in NOTES.items():
        (vault / name).write_text(text)
    with LlmServer(SCRIPT) as server, VaultStore.open(vault) as store:
        # What is tested is the agent, not the menu before it.
        settings = settings_with(planning="plan", model="custom/test", base_url=server.openai_url)
        wiring = Wiring(store, tmp_path / "state", settings=settings)
        async with driving_real(wiring) as driver:
            pilot = driver.pilot
            driver.prompt.text = "What about the garden?"
            await pilot.press("enter")
            await question(driver)
            assert "they may say it" in driver.screen()
            await pilot.press("down", "space", "a")
            await driver.until(lambda: "Also sent" in driver.transcript())
            await open_source(driver, monkeypatch)
            assert "Thought for" in driver.transcript()
            assert "Water the beans, says Garden." in driver.transcript()
            assert "secret" not in json.dumps(server.requests[1].body)
            assert "NOT_SHARED" in json.dumps(server.requests[1].body)

            driver.prompt.text = "Make a note about the beans"
            await pilot.press("enter")
            await question(driver)
            assert "Water the beans." in driver.screen(), "the lines that would be sent"
            await pilot.press("a")
            await driver.until(lambda: driver.stage == "plan" and driver.plan.complete)
            await driver.settle()
            assert "Here is a plan." in driver.transcript()
            assert not (vault / "Beans.md").exists()
            driver.wait_out_grace()
            await driver.press("a")
            assert (vault / "Beans.md").read_text() == "# Beans\n\nSee [[Garden]].\n"
            await driver.until(lambda: driver.panes.note.path == "Beans.md")
            assert driver.panes.front == "note"
            assert driver.panes.note.area.cursor_location[0] == 2

            driver.prompt.focus()
            driver.prompt.text = "Go on"
            await pilot.press("enter")
            await driver.until(lambda: "word word" in driver.transcript())
            await pilot.press("escape")
            await driver.until(lambda: "Cancelled" in driver.transcript())
            await driver.settle()
            said = driver.transcript()
            assert said.index("word word") < said.index("stopped here") < said.index("Cancelled")
            assert driver.panes.chat.transcript._streaming is None
            await driver.send("And now?")
            await driver.until(lambda: "interrupted" in driver.transcript())
            assert "The user stopped the answer here" in json.dumps(server.requests[-1].body)
