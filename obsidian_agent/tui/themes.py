"""The dark and the light theme of this app; those of Textual stay available."""

from __future__ import annotations

from textual.theme import Theme

DARK = "obsidian-agent-dark"
LIGHT = "obsidian-agent-light"
SHORT_NAMES = {"dark": DARK, "light": LIGHT}
"""Names for the settings file."""

_SHARED = {"block-cursor-text-style": "none"}

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
            "footer-description-foreground": "#625e6a",
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
)
"""Every theme defines `quiet`, a color for secondary text with a contrast of at least 4.5."""
