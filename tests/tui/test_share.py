from __future__ import annotations

import asyncio

import pytest

from obsidian_agent.agent.sharing import REFUSED, Level, ShareDecision, ShareItem, ShareRequest
from obsidian_agent.tui.screens.main import MainScreen
from obsidian_agent.tui.screens.share import Share
from tui.driving import Driver, driving
from tui.fakes import vault_path

BAD = "[/x]\x1b[2J"


def request(*paths: str) -> ShareRequest:
    items = tuple(ShareItem(vault_path(path), Level.PREVIEW, 100, 25, BAD, (f"line of {path}", BAD)) for path in paths)
    purpose, question = "Search the notes", {"query": "x"}
    return ShareRequest("c1", "results", "vault.searchText", purpose, question, items, "openai", "https://api.example", number=1, total=2)


async def asked(app: Driver, question: ShareRequest) -> asyncio.Task[ShareDecision]:
    """The question on the screen, past its grace period."""
    task = asyncio.create_task(app.app.approve_share(question))
    await app.pilot.pause(0.1)
    screen = app.app.screen
    assert isinstance(screen, Share)
    screen._clock = lambda: app.now
    screen._open_from = app.now + 0.5
    return task


@pytest.mark.parametrize(("key", "scope"), [("a", "once"), ("t", "thread"), ("f", "folder")])
async def test_what_is_switched_on_is_sent(key: str, scope: str) -> None:
    async with driving() as app:
        task = await asked(app, request("Diary/A.md", "Diary/B.md"))
        assert "openai" in app.screen()
        assert "https://api.example" in app.screen()
        assert "line of Diary/A.md" in app.screen()
        app.now += 1
        await app.press("space", key)
        assert await task == ShareDecision(scope, frozenset({"Diary/B.md"}))  # type: ignore[arg-type]
        assert isinstance(app.app.screen, MainScreen)


async def test_closing_sends_nothing() -> None:
    async with driving() as app:
        task = await asked(app, request("A.md"))
        await app.press("escape")
        assert await task == REFUSED


async def test_keys_right_after_the_question_allow_nothing() -> None:
    async with driving() as app:
        task = await asked(app, request("A.md"))
        await app.press("a", "t", "f", "enter")
        assert not task.done()
        await app.press("escape")
        assert await task == REFUSED


async def test_choosing_none_is_a_valid_answer() -> None:
    async with driving() as app:
        task = await asked(app, request("A.md", "B.md"))
        app.now += 1
        await app.press("ctrl+d", "a")
        assert await task == ShareDecision("once", frozenset())


async def test_the_question_goes_away_with_the_turn_that_asked() -> None:
    async with driving() as app:
        task = await asked(app, request("A.md"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await app.settle()
        assert isinstance(app.app.screen, MainScreen)


async def test_names_and_reasons_are_shown_as_they_are() -> None:
    async with driving(size=(200, 50)) as app:
        task = await asked(app, request(f"{BAD}.md"))
        assert "[/x]␛[2J.md" in app.screen()
        assert "\x1b" not in app.screen()
        await app.press("escape")
        await task
