"""One change on the whole screen."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.diff_model import Diff
from obsidian_agent.tui.keys import bindings
from obsidian_agent.tui.widgets.diff_view import DiffView


class DiffScreen(ModalScreen[None]):
    """A diff, or a text that is safe to show."""

    BINDINGS = bindings("diff", without=("diff.next", "diff.previous"))

    def __init__(self, title: str, content: Diff | str) -> None:
        super().__init__()
        self._title = title
        self._content = content

    def compose(self) -> ComposeResult:
        signs = ""
        if isinstance(self._content, Diff):
            signs = f"  +{self._content.added:,} -{self._content.removed:,}"
        yield Static(Content.assemble((terminal_text.line(self._title), "bold"), (signs, "$quiet")), id="head", markup=False)
        if isinstance(self._content, Diff):
            yield DiffView(id="whole-diff")
        else:
            with VerticalScroll():
                yield Static(Content(self._content), markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        if isinstance(self._content, Diff):
            view = self.query_one(DiffView)
            view.show(self._content)
            view.focus()
        else:
            self.query_one(VerticalScroll).focus()

    def action_close(self) -> None:
        self.dismiss(None)
