"""Fields to type in. What is pasted into them is as safe as what is shown, and as visible: a hidden character becomes its code."""

from __future__ import annotations

from textual import events
from textual.widgets import Input, TextArea

from obsidian_agent import terminal_text


class LineEntry(Input):
    """One line."""

    def validate_value(self, value: str) -> str:
        """Whatever way a text came in."""
        return terminal_text.line(value)


class TextEntry(TextArea):
    """Several lines."""

    def on_paste(self, event: events.Paste) -> None:
        """Called before TextArea's own handler, which inserts the text. Terminals send a carriage return for the end of a line."""
        event.text = terminal_text.block(terminal_text.LINE_END.sub("\n", event.text))
