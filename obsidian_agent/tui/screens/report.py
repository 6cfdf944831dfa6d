"""Lines of text to read, on one scrolling screen."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content

from obsidian_agent.tui.screens.modal import Modal
from obsidian_agent.tui.tellings import Line
from obsidian_agent.tui.widgets.virtual_list import VirtualList

WIDTH = 106
"""Columns after which a line goes on in the next one."""


class ReportList(VirtualList[Line]):
    """One line of the report a row: a long one is drawn by the screenful."""

    DEFAULT_CSS = "ReportList { height: auto; max-height: 70vh; }"
    BINDINGS = [Binding("enter", "choose", show=False)]

    def draw_row(self, row: Line, width: int) -> Content:
        return Content.styled(row[0], row[1])


class Report(Modal[None]):
    """The texts must be safe to show."""

    BINDINGS = [Binding("q,enter", "close", show=False)]

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        super().__init__(title)
        self._lines = lines

    def body(self) -> ComposeResult:
        yield ReportList(())

    def on_mount(self) -> None:
        listing = self.query_one(ReportList)
        listing.focus()
        listing.set_rows(wrapped(self._lines, max(30, min(WIDTH, self.app.size.width * 94 // 100 - 10))), 0)


def wrapped(lines: Sequence[Line], width: int) -> list[Line]:
    """The lines, none longer than `width` characters; what goes on is indented like its beginning."""
    found: list[Line] = []
    for text, style in lines:
        indent = text[: len(text) - len(text.lstrip(" "))][: width // 2]
        while len(text) > width:
            at = text.rfind(" ", len(indent) + 1, width)
            at = at if at > width // 2 else width
            found.append((text[:at], style))
            text = indent + text[at:].lstrip(" ")
        found.append((text, style))
    return found
