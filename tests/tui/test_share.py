from __future__ import annotations

import asyncio

import pytest

from obsidian_agent.agent.privacy.consent import (
    REFUSED,
    Level,
    RequestKind,
    Scope,
    ShareDecision,
    ShareItem,
    ShareRequest,
)
from obsidian_agent.tui.screens.json_editor import JsonEditor
from obsidian_agent.tui.screens.main import MainScreen
from obsidian_agent.tui.screens.share import AllowTool, Share, readable_size
from obsidian_agent.tui.widgets.prompt import TextEntry
from tui.driving import Driver, driving
from tui.samples import vault_path

BAD = "[/x]\x1b[2J"


def request(*paths: str) -> ShareRequest:
    items = tuple(
        ShareItem(
            path=vault_path(path),
            level=Level.PREVIEW,
            size=1200,
            tokens=300,
            why=BAD,
            previews=(f"line of {path}", BAD),
        )
        for path in paths
    )
    purpose, question = "Search the notes", {"query": "what was asked"}
    return ShareRequest(
        call_id="c1",
        kind="results",
        tool="vault.searchText",
        purpose=purpose,
        args=question,
        items=items,
        provider="openai",
        address="https://api.example",
        number=1,
        total=2,
    )


async def asked(app: Driver, question: ShareRequest) -> asyncio.Task[ShareDecision]:
    """Display the question; its keys wait for a pause."""
    app.now += 1
    task = asyncio.create_task(app.app.approve_share(question))
    await app.until(lambda: isinstance(app.app.screen, Share | AllowTool))
    return task


async def test_what_is_switched_on_is_sent() -> None:
    async with driving(size=(80, 24)) as app:
        for key, scope in (("a", "once"), ("t", "thread"), ("f", "folder")):
            task = await asked(app, request("Diary/A.md", "Diary/B.md"))
            shown = app.screen()
            for words in (
                "openai",
                "https://api.example",
                "what was asked",
                "line of Diary/A.md",
                "1.2 kB",
                "~300 tok",
                "2 of 2 chosen",
            ):
                assert words in shown
            app.now += 1
            await app.pilot.press("space")
            await app.until(lambda: "1 of 2 chosen · 1.2 kB · about 300 tokens" in app.screen())
            await app.pilot.press(key)
            assert await task == ShareDecision(scope, frozenset({"Diary/B.md"}))  # type: ignore[arg-type]
        await app.settle()
        assert isinstance(app.app.screen, MainScreen)


async def test_whatever_is_no_answer_sends_nothing() -> None:
    async with driving(size=(200, 50)) as app:
        task = await asked(app, request(f"{BAD}.md"))
        assert "[/x]␛[2J.md" in app.screen()
        assert "\x1b" not in app.screen()
        await app.pilot.press("a", "t", "f", "e", "enter")
        assert not task.done(), "keys right after the question"
        await app.pilot.press("escape")
        assert await task == REFUSED
        task = await asked(app, request("A.md", "B.md"))
        app.now += 1
        await app.pilot.press("ctrl+d")
        await app.until(lambda: "the model only learns that you shared nothing" in app.screen())
        await app.pilot.press("a")
        assert await task == ShareDecision("once", frozenset()), "choosing none is a valid answer"
        task = await asked(app, request("A.md"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await app.settle()
        assert isinstance(app.app.screen, MainScreen), (
            "the question goes away with the turn that asked"
        )


async def test_arguments_are_edited_and_checked() -> None:
    async with driving() as app:
        task = await asked(app, request("A.md"))
        app.now += 1
        await app.pilot.press("e")
        await app.until(lambda: isinstance(app.app.screen, JsonEditor))
        editor = app.app.screen
        assert isinstance(editor, JsonEditor)
        for text, complaint in (
            ("{", "no valid JSON"),
            ("{}", "'query' is missing."),
            ("[]", "The text must be a JSON object"),
        ):
            editor.query_one(TextEntry).text = text
            await app.pilot.press("ctrl+s")
            await app.until(lambda: complaint.removeprefix("no ") in app.screen())  # noqa: B023
            assert app.app.screen is editor, complaint
        editor.query_one(TextEntry).text = '{"query": "less"}'
        await app.pilot.press("ctrl+s")
        assert await task == ShareDecision("no", args={"query": "less"})
        task = await asked(app, request("A.md"))
        app.now += 1
        await app.pilot.press("e")
        await app.pilot.pause()
        task.cancel()
        await app.settle()
        assert isinstance(app.app.screen, MainScreen), "the editor goes away with the question"


def test_sizes_for_people() -> None:
    assert [readable_size(count) for count in (0, 999, 1200, 3_400_000)] == [
        "0 B",
        "999 B",
        "1.2 kB",
        "3.4 MB",
    ]


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("call", {"a": "once", "t": "thread"}),
        ("tools", {"a": "once"}),
        ("resource", {"a": "once", "t": "thread"}),
    ],
)
async def test_a_tool_of_a_server_is_shown_whole_and_only_a_key_allows_it(
    kind: RequestKind, keys: dict[str, Scope]
) -> None:
    text = "\n".join(["look", f"- was {BAD}", f"+ is {BAD}", *(f"line {n}" for n in range(60))])
    question = ShareRequest(
        call_id="c1",
        kind=kind,
        tool="mcp__desk__look",
        purpose=f"Call {BAD}",
        args={"q": BAD},
        items=(),
        provider="the MCP server desk",
        address="npx desk",
        text=text,
    )
    async with driving(size=(80, 24)) as app:
        for key, scope in keys.items():
            task = await asked(app, question)
            app.now += 1
            shown = app.screen()
            assert all(
                words in shown for words in ("the MCP server desk", "npx desk", "+ is [/x]␛[2J")
            )
            await app.pilot.press("end")
            await app.until(lambda: "line 59" in app.screen())
            await app.pilot.press("f", "e", "space", *([] if "t" in keys else ["t"]))
            assert not task.done()
            await app.pilot.press(key)
            assert await task == ShareDecision(scope)
        task = await asked(app, question)
        app.now += 1
        await app.pilot.press("escape")
        assert await task == REFUSED
