"""The quiet line under the message: what it may mean, while it is being written."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from obsidian_agent import terminal_text


class Likely(Static):
    """Titles of the likeliest actions; gone when there are none."""

    DEFAULT_CSS = """
    Likely { height: 1; padding: 0 2; color: $quiet; background: $surface; display: none; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.titles: tuple[str, ...] = ()

    def show(self, titles: Sequence[str]) -> None:
        """Show these; none takes the line away."""
        self.titles = tuple(titles)
        self.display = bool(titles)
        words = [terminal_text.shortened(title, 60) for title in titles]
        parts = [(f"  ·  {word}", "$quiet") for word in words[1:]]
        self.update(Content.assemble(("Tab ", "$primary"), (words[0], "$foreground"), *parts) if words else "")
