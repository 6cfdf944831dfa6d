from __future__ import annotations

import pytest
from textual.theme import Theme

from obsidian_agent.tui.themes import THEMES
from tui.snapshots import READABLE, contrast


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
@pytest.mark.parametrize("ground", ["background", "surface"])
@pytest.mark.parametrize(
    "text", ["foreground", "primary", "secondary", "success", "warning", "error", "quiet"]
)
def test_every_text_can_be_read_on_every_ground(theme: Theme, ground: str, text: str) -> None:
    colour = theme.variables["quiet"] if text == "quiet" else getattr(theme, text)
    assert contrast(colour, getattr(theme, ground)) >= READABLE


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_the_cursor_line_can_be_read(theme: Theme) -> None:
    assert (
        contrast(
            theme.variables["block-cursor-foreground"], theme.variables["block-cursor-background"]
        )
        >= 7
    )
    for text in (
        theme.foreground,
        theme.success,
        theme.warning,
        theme.error,
        theme.variables["quiet"],
    ):
        assert text is not None
        assert contrast(text, theme.variables["block-cursor-background"]) >= READABLE
