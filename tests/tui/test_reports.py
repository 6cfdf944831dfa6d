"""The reports of the shipped app about itself."""

from __future__ import annotations

from tui.driving import driving

REPORTS = {
    "/sent": "Sent data",
    "/stats": "This conversation",
    "/cache clear": "Conversations in memory",
    "/record": "No entries",
    "/log": "No errors",
    "/files": "No note was sent to a model",
}


async def test_every_report_is_shown() -> None:
    async with driving() as driver:
        for command, words in REPORTS.items():
            await driver.send(command)
            assert words in driver.screen()
            await driver.press("escape")
            assert driver.app.screen is driver.main
