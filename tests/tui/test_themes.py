from __future__ import annotations

import pytest
from textual.color import Color
from textual.theme import Theme

from obsidian_agent.tui.themes import THEMES


def contrast(first: str, second: str) -> float:
    """WCAG 2 contrast of two colours."""

    def luminance(text: str) -> float:
        parts = [part / 255 for part in Color.parse(text).rgb]
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
@pytest.mark.parametrize("ground", ["background", "surface"])
@pytest.mark.parametrize("text", ["foreground", "primary", "secondary", "success", "warning", "error", "quiet"])
def test_every_text_can_be_read_on_every_ground(theme: Theme, ground: str, text: str) -> None:
    colour = theme.variables["quiet"] if text == "quiet" else getattr(theme, text)
    assert contrast(colour, getattr(theme, ground)) >= 4.5


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_the_cursor_line_can_be_read(theme: Theme) -> None:
    assert contrast(theme.variables["block-cursor-foreground"], theme.variables["block-cursor-background"]) >= 7
    for text in (theme.foreground, theme.success, theme.warning, theme.error, theme.variables["quiet"]):
        assert text is not None
        assert contrast(text, theme.variables["block-cursor-background"]) >= 3
