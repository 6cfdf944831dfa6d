"""Fields to type in. What is pasted into them is as safe as what is shown, and as visible: a hidden character becomes its code."""

from __future__ import annotations

from textual import events
from textual.widgets import Input, TextArea

from obsidian_agent.tui import sanitize


class LineEntry(Input):
    """One line."""

    def validate_value(self, value: str) -> str:
        """Whatever way a text came in."""
        return sanitize.line(value)


class TextEntry(TextArea):
    """Several lines."""

    def on_paste(self, event: events.Paste) -> None:
        """Called before TextArea's own handler, which inserts the text. Terminals send a carriage return for the end of a line."""
        event.text = sanitize.block(sanitize.LINE_END.sub("\n", event.text))
