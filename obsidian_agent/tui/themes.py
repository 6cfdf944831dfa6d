"""The themes of this app: dark, light, high contrast, and that of the terminal's own colors.

The themes of Textual stay available.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rich.color import Color as TerminalColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import Theme

DARK = "obsidian-agent-dark"
LIGHT = "obsidian-agent-light"
HIGH_CONTRAST = "obsidian-agent-high-contrast"
ANSI = "obsidian-agent-ansi"
"""The theme with the colors of the terminal, whatever they are."""
SHORT_NAMES = {"dark": DARK, "light": LIGHT, "high-contrast": HIGH_CONTRAST, "ansi": ANSI}
"""Names for the settings file."""

_SHARED = {"block-cursor-text-style": "none"}

_DEFAULT: Final = TerminalColor.default()
_DIM: Final = Style(dim=True)
_WHITE: Final = 7
"""The background of the line under a cursor in an ANSI theme."""
_GRAY: Final = 8
"""The color of quiet text, and the background of a cursor without the focus."""

THEMES = (
    Theme(
        name=DARK,
        dark=True,
        primary="#a894f0",
        secondary="#7f9fd6",
        accent="#a894f0",
        foreground="#d9d7e0",
        background="#15151a",
        surface="#1b1b21",
        panel="#26262e",
        boost="#ffffff0a",
        success="#84bf8b",
        warning="#dcb06a",
        error="#ec7a80",
        variables={
            **_SHARED,
            "footer-background": "#15151a",
            "footer-item-background": "#15151a",
            "footer-description-background": "#15151a",
            "footer-description-foreground": "#9a98a7",
            "footer-key-background": "#15151a",
            "footer-key-foreground": "#a894f0",
            "block-cursor-background": "#302b45",
            "block-cursor-foreground": "#f2f0fa",
            "block-cursor-blurred-background": "#26262e",
            "block-cursor-blurred-foreground": "#d9d7e0",
            "input-selection-background": "#5b4b9a 70%",
            "input-cursor-background": "#cfc4ff",
            "scrollbar": "#33333d",
            "scrollbar-hover": "#45454f",
            "scrollbar-active": "#a894f0",
            "scrollbar-background": "#1b1b21",
            "scrollbar-background-hover": "#1b1b21",
            "scrollbar-background-active": "#1b1b21",
            "scrollbar-corner-color": "#1b1b21",
            "quiet": "#9a98a7",
        },
    ),
    Theme(
        name=LIGHT,
        dark=False,
        primary="#5f48b8",
        secondary="#35609e",
        accent="#5f48b8",
        foreground="#2a2833",
        background="#f3f2ef",
        surface="#fbfaf8",
        panel="#e6e4df",
        boost="#0000000a",
        success="#2a6e3a",
        warning="#835a00",
        error="#b3262e",
        variables={
            **_SHARED,
            "footer-background": "#f3f2ef",
            "footer-item-background": "#f3f2ef",
            "footer-description-background": "#f3f2ef",
            "footer-description-foreground": "#55515d",
            "footer-key-background": "#f3f2ef",
            "footer-key-foreground": "#5f48b8",
            "block-cursor-background": "#e4def9",
            "block-cursor-foreground": "#221c3d",
            "block-cursor-blurred-background": "#e9e7e2",
            "block-cursor-blurred-foreground": "#2a2833",
            "input-selection-background": "#b9a9f0 70%",
            "input-cursor-background": "#5f48b8",
            "scrollbar": "#cfccc5",
            "scrollbar-hover": "#b8b4ab",
            "scrollbar-active": "#5f48b8",
            "scrollbar-background": "#fbfaf8",
            "scrollbar-background-hover": "#fbfaf8",
            "scrollbar-background-active": "#fbfaf8",
            "scrollbar-corner-color": "#fbfaf8",
            "quiet": "#625e6a",
        },
    ),
    Theme(
        name=HIGH_CONTRAST,
        dark=True,
        primary="#ffd75f",
        secondary="#87d7ff",
        accent="#ffd75f",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#1c1c1c",
        boost="#ffffff14",
        success="#87ff87",
        warning="#ffaf5f",
        error="#ffafaf",
        variables={
            **_SHARED,
            "footer-background": "#000000",
            "footer-item-background": "#000000",
            "footer-description-background": "#000000",
            "footer-description-foreground": "#e4e4e4",
            "footer-key-background": "#000000",
            "footer-key-foreground": "#ffd75f",
            "block-cursor-background": "#1a304a",
            "block-cursor-foreground": "#ffffff",
            "block-cursor-blurred-background": "#262626",
            "block-cursor-blurred-foreground": "#ffffff",
            "input-selection-background": "#005f87",
            "input-cursor-background": "#ffffff",
            "scrollbar": "#8a8a8a",
            "scrollbar-hover": "#bcbcbc",
            "scrollbar-active": "#ffd75f",
            "scrollbar-background": "#000000",
            "scrollbar-background-hover": "#000000",
            "scrollbar-background-active": "#000000",
            "scrollbar-corner-color": "#000000",
            "quiet": "#d0d0d0",
        },
    ),
    Theme(
        name=ANSI,
        ansi=True,
        dark=True,
        primary="ansi_magenta",
        secondary="ansi_bright_blue",
        accent="ansi_magenta",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        success="ansi_green",
        warning="ansi_yellow",
        error="ansi_red",
        variables={
            **_SHARED,
            "ansi-background": "ansi_default",
            "ansi-foreground": "ansi_default",
            "block-cursor-background": "ansi_white",
            "block-cursor-foreground": "ansi_default",
            "block-cursor-blurred-background": "ansi_bright_black",
            "block-cursor-blurred-foreground": "ansi_default",
            "block-hover-background": "ansi_default",
            "input-selection-background": "ansi_white",
            "input-selection-foreground": "ansi_default",
            "screen-selection-background": "ansi_white",
            "screen-selection-foreground": "ansi_default",
            "border-blurred": "ansi_default",
            "scrollbar": "ansi_bright_black",
            "scrollbar-hover": "ansi_bright_black",
            "scrollbar-active": "ansi_magenta",
            "scrollbar-background": "ansi_default",
            "scrollbar-background-hover": "ansi_default",
            "scrollbar-background-active": "ansi_default",
            "quiet": "ansi_bright_black",
        },
    ),
)
"""Every theme defines `quiet`, a color for secondary text with a contrast of at least 4.5."""


class TerminalColors(LineFilter):
    """Write the signs of an ANSI theme as attributes, which every terminal shows readably.

    The palette of a terminal is unknown: its gray may be its background, and its colors may be
    unreadable on each other. So quiet text is dim, the line under a cursor is reversed, and that
    under the cursor of a list without the focus is underlined. Without `color`, attributes are all
    that is written.
    """

    def __init__(self, *, color: bool) -> None:
        super().__init__()
        self._color = color

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, style and terminal_style(style, color=self._color), control)
            for text, style, control in segments
        ]


class Dimmed(LineFilter):
    """Dim what lies below a dialog, in colors that cannot be mixed with a background."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, (style or Style.null()) + _DIM, control)
            for text, style, control in segments
        ]


@lru_cache(4096)
def terminal_style(style: Style, *, color: bool) -> Style:
    """Return a style of an ANSI theme that needs no background but the terminal's own."""
    ink, ground = style.color or _DEFAULT, style.bgcolor or _DEFAULT
    attributes = Style.null()
    if ink.number == _GRAY:
        ink, attributes = _DEFAULT, Style(dim=True)
    if ground.number == _GRAY:
        attributes += Style(underline=True)
    elif not ground.is_default:
        ink = _DEFAULT if ground.number == _WHITE else ground
        attributes = Style(reverse=True, dim=False)
    if not color:
        ink = _DEFAULT
    return style + Style(color=ink, bgcolor=_DEFAULT) + attributes
