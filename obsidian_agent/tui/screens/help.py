"""All keys on one screen."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from obsidian_agent.tui.keys import KEYS, PLACES, readable
from obsidian_agent.tui.screens.modal import Modal


class Help(Modal[None]):
    """The key table."""

    DEFAULT_CSS = "Help > #box { height: 90%; width: 96; } Help VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }"

    def __init__(self) -> None:
        super().__init__("Keys")

    def body(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(_table(), markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


def _table() -> Content:
    parts: list[tuple[str, str]] = [
        ("Say what should change. You see every file and every line first. Nothing is written before you press ", "$quiet"),
        ("a", "bold $primary"),
        (" in the plan, and ", "$quiet"),
        ("u", "bold $primary"),
        (" takes it back.\n", "$quiet"),
    ]
    for place, title in PLACES.items():
        parts.append((f"\n{title}\n", "bold"))
        parts += [piece for key in KEYS if key.place == place for piece in ((f"  {readable(key.keys):<24}", "$primary"), (f"{key.help}\n", "$foreground"))]
    return Content.assemble(*parts).rstrip()
