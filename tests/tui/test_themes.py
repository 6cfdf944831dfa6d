from __future__ import annotations

import pytest
from rich.style import Style
from textual.theme import Theme

from obsidian_agent.tui.themes import ANSI, DARK, THEMES, terminal_style
from tui.driving import driving
from tui.snapshots import READABLE, cells, contrast

COLORED = [theme for theme in THEMES if theme.name != ANSI]


@pytest.mark.parametrize("theme", COLORED, ids=lambda theme: theme.name)
@pytest.mark.parametrize("ground", ["background", "surface"])
@pytest.mark.parametrize(
    "text", ["foreground", "primary", "secondary", "success", "warning", "error", "quiet"]
)
def test_every_text_can_be_read_on_every_ground(theme: Theme, ground: str, text: str) -> None:
    colour = theme.variables["quiet"] if text == "quiet" else getattr(theme, text)
    assert contrast(colour, getattr(theme, ground)) >= READABLE


@pytest.mark.parametrize("theme", COLORED, ids=lambda theme: theme.name)
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


@pytest.mark.parametrize(
    ("style", "colored", "bare"),
    [
        ("red on default", "red on default", "default on default"),
        ("bright_black on default", "default on default dim", "default on default dim"),
        ("red on white", "default on default reverse", "default on default reverse"),
        ("red on bright_black", "red on default underline", "default on default underline"),
        ("white on magenta", "magenta on default reverse", "default on default reverse"),
        ("bold red", "red on default bold", "default on default bold"),
    ],
)
def test_the_colors_of_a_terminal_need_no_background_but_its_own(
    style: str, colored: str, bare: str
) -> None:
    for color, expected in ((True, colored), (False, bare)):
        drawn = terminal_style(Style.parse(style), color=color)
        for flag in ("bold", "dim", "reverse", "underline"):
            assert bool(getattr(drawn, flag)) is (flag in expected), (style, flag)
        ink, _, ground = expected.partition(" on ")
        assert (drawn.color, drawn.bgcolor) == (
            Style.parse(ink).color,
            Style.parse(ground.split()[0]).color,
        )


async def test_no_color_is_obeyed_in_every_theme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with driving(size=(80, 24), theme="light") as app:
        await app.planned()
        app.app.theme = DARK
        await app.settle()
        styles = {style for row in cells(app) for _, style in row}
        colors = [color for style in styles for color in (style.color, style.bgcolor)]
        assert all(color is None or color.is_default for color in colors)
        assert any(style.reverse for style in styles)
        assert any(style.dim for style in styles)
