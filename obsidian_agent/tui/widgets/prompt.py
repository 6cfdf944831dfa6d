"""The message box: Enter sends, Ctrl+J starts a new line, Alt+Up brings back what was said before."""

from __future__ import annotations

from textual import events
from textual.message import Message

from obsidian_agent.tui.keys import bindings
from obsidian_agent.tui.widgets.entry import TextEntry

MAX_REMEMBERED = 200


class Prompt(TextEntry):
    """A multi-line input that grows with its text up to a few lines."""

    DEFAULT_CSS = """
    Prompt {
        height: auto; min-height: 3; max-height: 8; border: round $panel; background: $background; padding: 0 1;
        scrollbar-size-vertical: 1;
        &:focus { border: round $primary; background: $background; }
        & .text-area--cursor-line { background: transparent; }
        & .text-area--placeholder { color: $quiet; }
    }
    """
    BINDING_GROUP_TITLE = "Message"
    BINDINGS = bindings("prompt")

    class Sent(Message):
        """A message was sent; the box still holds it until the screen accepts it."""

        def __init__(self, prompt: Prompt, text: str) -> None:
            super().__init__()
            self.prompt = prompt
            self.text = text

        @property
        def control(self) -> Prompt:
            return self.prompt

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            id=id,
            soft_wrap=True,
            show_line_numbers=False,
            tab_behavior="focus",
            compact=False,
            highlight_cursor_line=False,
            placeholder="What should change?",
        )
        self._said: list[str] = []
        self._at = 0
        self._sending = ""

    def on_key(self, event: events.Key) -> None:
        """Keep TextArea's own handler from inserting a newline on keys that are bound here."""
        if event.key in ("enter", "shift+enter", "ctrl+j"):
            event.prevent_default()

    def action_send(self) -> None:
        self._sending = self.text
        self.post_message(self.Sent(self, self.text.strip()))

    def action_newline(self) -> None:
        self.insert("\n")

    def accept(self) -> None:
        """Take what was sent out of the box and remember it; what was typed since stays."""
        text = self._sending
        if text.strip() and (not self._said or self._said[-1] != text):
            self._said = [*self._said[-MAX_REMEMBERED:], text]
        self._at = len(self._said)
        self.text = self.text.removeprefix(text)
        self.move_cursor(self.document.end)

    def action_older(self) -> None:
        self._recall(-1)

    def action_newer(self) -> None:
        self._recall(1)

    def _recall(self, step: int) -> None:
        at = self._at + step
        if 0 <= at <= len(self._said):
            self._at = at
            self.text = self._said[at] if at < len(self._said) else ""
            self.move_cursor(self.document.end)
