"""The message box, and what is offered around it: what the word before the cursor may become, and what the message may mean.

Enter sends, Ctrl+J starts a new line, Alt+Up brings back what was said before (unless the keymap says otherwise).

What is pasted into it and into the fields of forms is as safe as what is shown, and as visible: a hidden character becomes its code.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static, TextArea

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.widgets.row_list import VirtualList


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

    class FormRequested(Message):
        """The form of the first action under the message is wanted."""

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
            placeholder="Ask, or say what should change",
        )
        self.suggestions: Suggestions | None = None
        """The list that this box steers."""
        self.has_likely_action = False
        """Whether there is an action under the message."""
        self._said: list[str] = []
        self._at = 0
        self._sending = ""
        self._entered: str | None = None
        """The text when Enter was pressed, until it is sent."""

    def on_key(self, event: events.Key) -> None:
        """Keys for the suggestions, if there are any; and TextArea must not insert a newline on keys that are bound here."""
        if self.suggestions is not None and self.suggestions.take(event.key, self.before_cursor):
            event.stop()
            event.prevent_default()
        elif event.key in ("enter", "shift+enter", "ctrl+j"):
            event.prevent_default()
            self._entered = self.text

    def action_send(self) -> None:
        # Keys reach this box before the action of the one before them: what was typed right behind Enter is of the next message.
        entered, self._entered = self._entered, None
        self._sending = (
            entered if entered is not None and self.text.startswith(entered) else self.text
        )
        self.post_message(self.Sent(self, self._sending.strip()))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tab goes to the next pane where it opens nothing."""
        return action != "form" or (
            self.has_likely_action
            and not (self.suggestions is not None and self.suggestions.display)
        )

    def action_form(self) -> None:
        self.post_message(self.FormRequested())

    def action_newline(self) -> None:
        self.insert("\n")

    @property
    def before_cursor(self) -> str:
        """The text from the beginning of the line to the cursor."""
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    def complete(self, suggestion: Suggestion) -> None:
        """Put a suggestion in the place of what was typed of it."""
        row, column = self.cursor_location
        self.replace(suggestion.insert, (row, max(0, column - suggestion.length)), (row, column))

    @property
    def sent_messages(self) -> Sequence[str]:
        """What was sent, commands too; the last one last."""
        return self._said

    def accept(self, sent: str | None = None) -> None:
        """Take what was sent (None: with Enter) out of the box and remember it; what was typed since stays."""
        text = self._sending if sent is None else sent
        if text.strip() and (not self._said or self._said[-1] != text):
            self._said = [*self._said[-MAX_REMEMBERED:], text]
        self._at = len(self._said)
        self.text = (
            self.text.lstrip().removeprefix(text)
            if sent is not None
            else self.text.removeprefix(text)
        )
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


MOST = 8


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Text that may take the place of the last `length` characters before the cursor. `send`: with it the message is complete."""

    insert: str
    length: int
    note: str = ""
    label: str = ""
    send: bool = False


class Suggestions(VirtualList[Suggestion], can_focus=False):
    """A few lines above the message box, steered by the box: it keeps the focus."""

    DEFAULT_CSS = """
    Suggestions { height: auto; max-height: 8; background: $panel; display: none; padding: 0 1; }
    Suggestions > .virtual-list--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
    """

    class Accepted(Message):
        """One was taken. `send`: with Enter, as a whole message."""

        def __init__(self, suggestion: Suggestion, *, send: bool) -> None:
            super().__init__()
            self.suggestion = suggestion
            self.send = send

    def __init__(self) -> None:
        super().__init__()
        self._behind = ""

    def offer(
        self, suggestions: Sequence[Suggestion], behind: str = "", *, chosen: bool = True
    ) -> None:
        """Show these; none takes the list away. `behind`: the text before the cursor that they are for; `chosen`: the first one is taken
        unless the person moves, else what was typed holds."""
        self._behind = behind
        self.display = bool(suggestions)
        self.set_rows(list(suggestions), 0)
        if not chosen:
            self.cursor = -1

    def take(self, key: str, before: str) -> bool:
        """A key that was pressed in the message box; True when it was for this list. `before`: the text before the cursor now; whoever
        types faster than suggestions come does not get those for less text."""
        if not self.display or not self.rows:
            return False
        suggestion = self.current
        match key:
            case "up" | "down":
                self.cursor = (
                    max(self.cursor, 0 if key == "up" else -1) + (1 if key == "down" else -1)
                ) % len(self.rows)
            case "tab" | "enter" if before == self._behind and suggestion is not None:
                self.display = False
                self.post_message(
                    self.Accepted(suggestion, send=key == "enter" and suggestion.send)
                )
            case "escape":
                self.display = False
            case _:
                return False
        return True

    def draw_row(self, row: Suggestion, width: int) -> Content:
        return Content.assemble(
            (terminal_text.shortened(row.label or row.insert, 120), "$foreground"),
            (f"  {terminal_text.shortened(row.note, 120)}" if row.note else "", "$quiet"),
        )


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
        self.update(
            Content.assemble(
                (f"{key_label(self, 'prompt.complete')} ", "$primary"),
                (words[0], "$foreground"),
                *parts,
            )
            if words
            else ""
        )
