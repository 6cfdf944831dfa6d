"""The lower half of the plan pane: the diff or the text that belongs to the highlighted entry."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.diff_model import Diff
from obsidian_agent.tui.widgets.diff_view import DiffView


class Detail(Vertical):
    """A head line and either a diff or plain text. Texts given to it must be safe to show; titles are made safe here."""

    DEFAULT_CSS = """
    Detail { height: 1fr; background: $surface; }
    Detail #detail-head { height: 1; padding: 0 1; background: $boost; }
    Detail VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; background: $surface; padding: 0 1; display: none; }
    Detail DiffView { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__(id="detail")
        self.title = ""
        self.content: Diff | str | None = None

    def compose(self) -> ComposeResult:
        yield Static("", id="detail-head", markup=False)
        yield DiffView(id="diff")
        with VerticalScroll(id="detail-text", can_focus=False):
            yield Static("", markup=False)

    def show_diff(self, title: str, diff: Diff) -> None:
        """Show the change of one file."""
        self.title, self.content = title, diff
        signs = Content.assemble((f"  +{diff.added:,}", "$success"), (f"  -{diff.removed:,}", "$error"))
        self._head(title, signs)
        self.query_one(DiffView).show(diff)
        self._switch(diff_shown=True)

    def show_text(self, title: str, text: str) -> None:
        """Show a text."""
        self.title, self.content = title, text or None
        self._head(title, Content(""))
        self.query_one("#detail-text Static", Static).update(Content(text))
        self.query_one("#detail-text").scroll_home(animate=False)
        self._switch(diff_shown=False)

    def _head(self, title: str, extra: Content) -> None:
        self.query_one("#detail-head", Static).update(Content.assemble((terminal_text.shortened(title, 200), "bold"), extra))

    def _switch(self, *, diff_shown: bool) -> None:
        self.query_one(DiffView).display = diff_shown
        self.query_one("#detail-text").display = not diff_shown
