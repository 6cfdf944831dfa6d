"""The reports of the shipped app about itself."""

from __future__ import annotations

import pytest

from tui.driving import driving


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/sent", "Sent data"),
        ("/stats", "This conversation"),
        ("/cache clear", "Conversations in memory"),
        ("/record", "No entries"),
        ("/log", "No errors"),
        ("/files", "No note was sent to a model"),
    ],
)
async def test_a_report_is_shown(command: str, words: str) -> None:
    async with driving() as driver:
        await driver.pilot.pause()
        driver.prompt.text = command
        await driver.pilot.press("enter")
        await driver.until(lambda: words in driver.screen())
