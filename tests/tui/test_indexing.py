"""The state of the index on the screen."""

from __future__ import annotations

from obsidian_agent.vault.index.keeper import IndexStatus
from tui.driving import driving


async def test_the_first_line_says_how_far_indexing_is() -> None:
    async with driving() as app:
        app.main._post_index_status(
            IndexStatus(ready=False, files=0, seconds=0.0, done=3_200, total=10_000)
        )
        await app.settle()
        assert "indexing  3,200/10,000" in app.screen()
        await app.press("h", "i")
        assert app.prompt.text == "hi", "the app can be used meanwhile"
        app.main._post_index_status(IndexStatus(ready=True, files=10_000, seconds=1.5))
        await app.settle()
        assert "indexing" not in app.screen()
