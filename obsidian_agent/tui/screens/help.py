"""All keys and commands on one screen."""

from __future__ import annotations

import textwrap

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from obsidian_agent.tui import bindings, commands
from obsidian_agent.tui.bindings import CONTEXTS, KEYS, current_keys, format_keys
from obsidian_agent.tui.screens.dialogs import Modal

KEYS_WIDTH = 24
"""Columns of the keys and commands, left of their descriptions."""


class Help(Modal[None]):
    """The tables of all keys and all commands."""

    def __init__(self) -> None:
        super().__init__("Keys and commands")

    def body(self) -> ComposeResult:
        with VerticalScroll():
            yield Static("", id="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        self.query_one("#keys", Static).update(
            self._table(self.query_one(VerticalScroll).scrollable_content_region.width)
        )

    def _table(self, width: int) -> Content:
        intro = (
            "You see every changed file and line first. "
            "Nothing is written until you approve it, and every run can be undone."
        )
        parts: list[tuple[str, str]] = [(f"{intro}\n", "$quiet")]
        room = max(width - KEYS_WIDTH - 1, 16)
        for context, title in CONTEXTS.items():
            parts.append((f"\n{title}\n", "bold"))
            for key in KEYS:
                if key.context == context:
                    parts += _row(format_keys(current_keys(self, key.id)), key.help, room)
        parts.append(("\nCommands, written as a message\n", "bold"))
        for command in _commands():
            usage = f"/{command.name} {command.hint}" if command.hint else f"/{command.name}"
            parts += _row(usage, f"{command.title}: {command.help}", room)
        return Content.assemble(*parts).rstrip()


def _row(left: str, right: str, room: int) -> list[tuple[str, str]]:
    """Return a row of a table: keys or a command on the left, its wrapped description beside it."""
    first, *rest = textwrap.wrap(right, room)
    gap = " " if len(left) >= KEYS_WIDTH else ""
    return [
        (f"{left:<{KEYS_WIDTH}}{gap}", "$primary"),
        (f"{first}\n", "$foreground"),
        *((f"{'':<{KEYS_WIDTH}}{line}\n", "$foreground") for line in rest),
    ]


def _commands() -> list[commands.Command]:
    from obsidian_agent.tui.screens.main import MainScreen

    return MainScreen.commands()


def keys_page() -> str:
    """Return the text of docs/keys.md: all keys and commands."""
    return bindings.markdown() + commands.markdown(_commands())
