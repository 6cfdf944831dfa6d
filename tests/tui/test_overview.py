"""The start of a conversation: the overview of the vault and its examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from obsidian_agent.bootstrap import Wiring
from support import MakeVault
from tui.driving import driving_real

NOTES = {"Inbox.md": "#idea\n", "Projects/Garden.md": "#idea\n", "Projects/Roof.md": "x\n"}
EXAMPLE = "Which notes are tagged #idea?"


async def test_an_example_is_taken_into_the_message_and_sent(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with driving_real(Wiring(make_vault(NOTES), tmp_path / "state")) as app:
        await app.until(lambda: EXAMPLE in app.screen())
        await app.until(lambda: "3 notes  /health" in app.screen())
        await app.press("tab", "tab")
        await app.until(lambda: app.prompt.text.startswith("Create an index of Projects"))
        await app.press("ctrl+u", "1")
        await app.until(lambda: app.prompt.text == EXAMPLE)
        await app.press("ctrl+u", "1")
        assert app.prompt.text == "1", "a message may begin with a digit"
        app.prompt.text = EXAMPLE
        await app.press("enter")
        await app.until(lambda: "Garden" in app.transcript())
        assert "What should change" not in app.transcript()
        assert "Find broken links" not in app.screen()


async def test_enter_on_an_empty_message_takes_no_example(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with driving_real(Wiring(make_vault(NOTES), tmp_path / "state")) as app:
        await app.until(lambda: EXAMPLE in app.screen())
        await app.press("enter")
        assert not app.prompt.text
        assert EXAMPLE in app.screen()


async def test_a_pane_is_zoomed_and_the_focused_one_is_marked(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with driving_real(Wiring(make_vault(NOTES), tmp_path / "state")) as app:
        await app.until(lambda: EXAMPLE in app.screen())
        await app.planned("append 'x' to Inbox")
        work, chat = app.panes.work, app.panes.chat
        beside = work.size.width
        left = work.styles.border_left[1]
        await app.press("z")
        await app.until(lambda: not chat.display and work.size.width > beside)
        await app.press("f6")
        await app.until(lambda: chat.display and not work.display)
        await app.press("f6", "z")
        await app.until(lambda: chat.display and work.display)
        app.panes.go("chat")
        await app.settle()
        assert work.styles.border_left[1] != left, "it is no longer marked"
        await app.press("z")
        assert app.prompt.text == "z"


@pytest.mark.parametrize("width", [120, 160])
async def test_a_pane_without_content_gives_its_columns_to_the_conversation(
    make_vault: MakeVault, tmp_path: Path, width: int
) -> None:
    wiring = Wiring(make_vault(NOTES), tmp_path / "state")
    async with driving_real(wiring, size=(width, 40)) as app:
        await app.until(lambda: not app.panes.work.display and not app.panes.note.display)
        assert app.panes.chat.size.width == width
        await app.planned("append 'x' to Inbox")
        assert app.panes.work.display
        assert not app.panes.note.display
        assert "✓ Ready" in app.screen()
        await app.press("ctrl+o", *"roof", "enter")
        await app.until(lambda: app.panes.note.display)
        assert app.panes.work.display == (width == 160)
