"""The message box, its completions, and the likely actions for a message.

By default Enter sends, Ctrl+J inserts a new line and Up recalls an earlier message.

Text pasted here and into the fields of forms is made safe: hidden characters become visible codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static, TextArea

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import bindings, format_keys, key_label
from obsidian_agent.tui.widgets.row_list import VirtualList

MAX_SENT_MESSAGES = 200
"""Sent messages that can be recalled."""

MAX_SUGGESTIONS = 8

FIRST_HINT = "Ask a question or describe a change"
ANSWER_HINT = "Ask, describe a change, /insert the answer"
"""The text of the empty box while the conversation has an answer."""


Scroll = Literal["page_up", "page_down", "home", "end"]


class LineEntry(Input):
    """A field for one line of safe text."""

    def validate_value(self, value: str) -> str:
        """Make a text safe, whether typed, pasted or set."""
        return terminal_text.line(value)


class TextEntry(TextArea):
    """A field for several lines of safe text."""

    def on_paste(self, event: events.Paste) -> None:
        """Make pasted text safe before the handler of TextArea inserts it.

        Terminals send a carriage return as the end of a line.
        """
        event.text = terminal_text.block(terminal_text.LINE_END.sub("\n", event.text))


class Prompt(TextEntry):
    """A multi-line input that grows with its text up to a few lines."""

    DEFAULT_CSS = """
    Prompt {
        height: auto; min-height: 3; max-height: 8; padding: 0 1;
        border: round $panel; background: $background;
        scrollbar-size-vertical: 1;
        &:focus { border: round $primary; background: $background; }
        & .text-area--cursor-line { background: transparent; }
        & .text-area--placeholder { color: $quiet; }
    }
    """
    BINDING_GROUP_TITLE = "Message"
    BINDINGS = bindings("prompt")

    class FormRequested(Message):
        """The form of the first likely action is requested."""

    class EditorRequested(Message):
        """The message is to be edited in the user's editor."""

    class ScrollRequested(Message):
        """The conversation above is to be scrolled by a page, or to one of its ends."""

        def __init__(self, direction: Scroll) -> None:
            super().__init__()
            self.direction = direction

    class Sent(Message):
        """A message was sent. The box keeps the text until the screen calls `accept`."""

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
            placeholder=FIRST_HINT,
        )
        self.suggestions: Suggestions | None = None
        """The completions that this box controls."""
        self.examples: tuple[str, ...] = ()
        """Sentences that Tab or a digit puts into the empty box."""
        self.tab_hint: TabHint | None = None
        """The line that describes the effect of Tab."""
        self._completed: tuple[tuple[Suggestion, ...], int, str] | None = None
        """The names that Tab cycles through, the index of the inserted one, and the new text."""
        self.queue: MessageQueue | None = None
        """The messages that wait for the end of the current work."""
        self._sent_messages: list[str] = []
        self._recalled = 0
        """The index of the recalled message; that of the draft follows the last one."""
        self._draft = ""
        """The text that was in the box before a message was recalled."""
        self._sending = ""
        self._entered: str | None = None
        """The text when Enter was pressed, None once it is sent."""

    def on_key(self, event: events.Key) -> None:
        """Pass keys to the suggestions, and keep TextArea from inserting its own newline."""
        if self.suggestions is not None and self.suggestions.press_key(
            event.key, self.before_cursor
        ):
            event.stop()
            event.prevent_default()
        elif self._is_example_key(event):
            event.stop()
            event.prevent_default()
            self.text = self.examples[int(event.key) - 1]
            self.move_cursor(self.document.end)
            # Only once: a message may begin with a digit.
            self.examples = ()
        elif event.key in ("enter", "shift+enter", "ctrl+j"):
            event.prevent_default()
            self._entered = self.text
        elif event.key == "space" and self.is_completed and self.before_cursor.endswith(" "):
            event.prevent_default()  # Tab has put it there already
            self._completed = None

    def _is_example_key(self, event: events.Key) -> bool:
        digits = [str(number) for number in range(1, len(self.examples) + 1)]
        return not self.text and event.key in digits

    def action_send(self) -> None:
        # A key may arrive before the action of the previous one: text typed right after Enter
        # belongs to the next message.
        entered, self._entered = self._entered, None
        self._sending = self.text
        if entered is not None and self.text.startswith(entered):
            self._sending = entered
        self.post_message(self.Sent(self, self._sending.strip()))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Tab to the focus order if there is nothing to complete."""
        if action != "tab":
            return True
        return bool(self._names) or (self.tab_hint is not None and bool(self.tab_hint.titles))

    def action_tab(self) -> None:
        """Complete the first name that starts with the text before the cursor.

        Pressed again, it inserts the next such name. Without names, request the form of the first
        likely action.
        """
        names, number = self._names, 0
        if not names:
            self.post_message(self.FormRequested())
            return
        if self._completed is not None and self.is_completed:
            names, before, _ = self._completed
            number = (before + 1) % len(names)
            self.complete(replace(names[number], length=len(names[before].insert)))
        else:
            self.complete(names[0])
        self._completed = names, number, self.text
        if self.tab_hint is not None:
            self.tab_hint.show_names(names, number)

    @property
    def _names(self) -> tuple[Suggestion, ...]:
        """The names that Tab inserts, or the examples if there is no text."""
        if not self.text and self.examples:
            return tuple(Suggestion(example, 0, label=example) for example in self.examples)
        return () if self.tab_hint is None else self.tab_hint.names

    @property
    def is_completed(self) -> bool:
        """True if the text was not edited since Tab completed it."""
        return self._completed is not None and self._completed[2] == self.text

    def action_delete_to_start_of_line(self) -> None:
        """Delete the line up to the cursor, also where it is wrapped."""
        row, column = self.cursor_location
        self.delete((row, 0), (row, column))

    def action_newline(self) -> None:
        self.insert("\n")

    @property
    def before_cursor(self) -> str:
        """The text from the start of the line to the cursor."""
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    def complete(self, suggestion: Suggestion) -> None:
        """Replace the typed prefix with the whole suggestion."""
        row, column = self.cursor_location
        self.replace(suggestion.insert, (row, max(0, column - suggestion.length)), (row, column))

    @property
    def sent_messages(self) -> Sequence[str]:
        """The sent messages and commands, the latest last."""
        return self._sent_messages

    def accept(self, sent: str | None = None) -> None:
        """Remove a sent text from the box and remember it, keeping what was typed since.

        `sent` defaults to the text that was sent with Enter.
        """
        text = self._sending if sent is None else sent
        if text.strip() and (not self._sent_messages or self._sent_messages[-1] != text):
            self._sent_messages = [*self._sent_messages[-MAX_SENT_MESSAGES:], text]
        self._recalled = len(self._sent_messages)
        rest = self.text if sent is None else self.text.lstrip()
        self.text = rest.removeprefix(text)
        self.move_cursor(self.document.end)

    def add_earlier(self, messages: Sequence[str]) -> None:
        """Add messages of all conversations, the latest last, before those sent since."""
        known = set(self._sent_messages)
        added = [message for message in messages if message not in known]
        self._sent_messages[:0] = added
        self._recalled += len(added)

    def action_older(self) -> None:
        """Move the last queued message into the box, or recall an earlier one."""
        if not self.text and self.queue is not None and self.queue.messages:
            self.text = self.queue.take_last()
            self.move_cursor(self.document.end)
        else:
            self._recall(-1)

    def action_newer(self) -> None:
        self._recall(1)

    def _recall(self, step: int) -> None:
        index, end = self._recalled + step, len(self._sent_messages)
        if not 0 <= index <= end:
            return
        if self._recalled == end:
            self._draft = self.text
        self._recalled = index
        self.text = self._sent_messages[index] if index < end else self._draft
        self.move_cursor(self.document.end)

    def action_editor(self) -> None:
        self.post_message(self.EditorRequested())

    # --- keys that leave the text at its ends -----------------------------------------------------

    def action_cursor_up(self, select: bool = False) -> None:
        """Move up; from the first line, recall an earlier message."""
        if not select and self.navigator.is_first_wrapped_line(self.cursor_location):
            self.action_older()
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """Move down; from the last line, recall a later message."""
        if not select and self.navigator.is_last_wrapped_line(self.cursor_location):
            self.action_newer()
        else:
            super().action_cursor_down(select)

    def action_cursor_page_up(self) -> None:
        self.post_message(self.ScrollRequested("page_up"))

    def action_cursor_page_down(self) -> None:
        self.post_message(self.ScrollRequested("page_down"))

    def action_cursor_line_start(self, select: bool = False) -> None:
        """Move to the start of the line; without a text, scroll to the start."""
        if self.text:
            super().action_cursor_line_start(select)
        else:
            self.post_message(self.ScrollRequested("home"))

    def action_cursor_line_end(self, select: bool = False) -> None:
        """Move to the end of the line; without a text, scroll to the end."""
        if self.text:
            super().action_cursor_line_end(select)
        else:
            self.post_message(self.ScrollRequested("end"))


class MessageQueue(Static):
    """The messages that are sent when the current work ends. Hidden while there are none."""

    DEFAULT_CSS = """
    MessageQueue {
        height: auto; max-height: 3; padding: 0 2; background: $surface; display: none;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.messages: tuple[str, ...] = ()
        self._when = ""

    def add(self, message: str) -> None:
        """Append a message."""
        self._set((*self.messages, message))

    def take_first(self) -> str:
        """Remove the message that is next, and return it."""
        first, *rest = self.messages
        self._set(tuple(rest))
        return first

    def take_last(self) -> str:
        """Remove the message that was added last, and return it."""
        *rest, last = self.messages
        self._set(tuple(rest))
        return last

    def show_when(self, when: str) -> None:
        """Show when the messages are sent, such as "after your decision"."""
        if when != self._when:
            self._when = when
            self._draw()

    def _set(self, messages: tuple[str, ...]) -> None:
        self.messages = messages
        self.display = bool(messages)
        self._draw()

    def _draw(self) -> None:
        key = format_keys("up")
        rows = []
        for number, message in enumerate(self.messages):
            head = f"Next{self._when}: " if number == 0 else "Then: "
            rows.append(
                Content.assemble(
                    ("» ", "$primary"),
                    (head, "$quiet"),
                    (terminal_text.shortened(message, 160), "$foreground"),
                    (f"   {key} takes it back", "$quiet")
                    if number == len(self.messages) - 1
                    else "",
                )
            )
        self.update(Content("\n").join(rows))


class Suggestion(Struct, frozen=True):
    """A replacement for the last `length` characters before the cursor.

    With `send`, accepting it by Enter also sends the message.
    """

    insert: str
    length: int
    note: str = ""
    label: str = ""
    send: bool = False


class Suggestions(VirtualList[Suggestion], can_focus=False):
    """Completions above the message box, which keeps the focus and passes on its keys."""

    DEFAULT_CSS = """
    Suggestions { height: auto; max-height: 8; background: $panel; display: none; padding: 0 2; }
    Suggestions > .virtual-list--cursor {
        background: $block-cursor-background; color: $block-cursor-foreground;
    }
    """

    class Accepted(Message):
        """A suggestion was accepted, with `send` as a complete message."""

        def __init__(self, suggestion: Suggestion, *, send: bool) -> None:
            super().__init__()
            self.suggestion = suggestion
            self.send = send

    def __init__(self) -> None:
        super().__init__()
        self._prefix = ""

    def offer(
        self, suggestions: Sequence[Suggestion], prefix: str = "", *, preselect: bool = True
    ) -> None:
        """Show suggestions for `prefix`, the text before the cursor. Without any, hide the list.

        With `preselect`, Enter accepts the first one at once; otherwise the user must move to one.
        """
        self._prefix = prefix
        self.set_rows(list(suggestions), 0)
        self.display = bool(suggestions)
        if not preselect:
            self.cursor = -1

    def press_key(self, key: str, prefix: str) -> bool:
        """Handle a key of the message box. Return True if it was for this list.

        `prefix` is the current text before the cursor: suggestions for an older text are not
        accepted.
        """
        if not self.display or not self.rows:
            return False
        suggestion = self.current
        match key:
            case "up" | "down":
                current = max(self.cursor, 0 if key == "up" else -1)
                self.cursor = (current + (1 if key == "down" else -1)) % len(self.rows)
            case "tab" | "enter" if prefix == self._prefix and suggestion is not None:
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


class TabHint(Static):
    """A line with the effect of Tab: complete a name, or open the form of a likely action."""

    DEFAULT_CSS = """
    TabHint {
        height: 1; padding: 0 2; color: $quiet; background: $surface; display: none;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.titles: tuple[str, ...] = ()
        """The titles of the likeliest actions."""
        self.names: tuple[Suggestion, ...] = ()
        """The names that start with the text before the cursor."""

    def show(self, titles: Sequence[str]) -> None:
        """Show titles of actions, unless names are displayed."""
        self.titles = tuple(titles)
        self._draw(0)

    def show_names(self, names: Sequence[Suggestion], current: int = 0) -> None:
        """Show names, the `current` one marked. Without names, show the titles again."""
        self.names = tuple(names)
        self._draw(current)

    def _draw(self, current: int) -> None:
        texts = [name.label for name in self.names] or list(self.titles)
        self.display = bool(texts)
        if not texts:
            self.update("")
            return
        parts: list[tuple[str, str]] = [(f"{key_label(self, 'prompt.complete')} ", "$primary")]
        for number, text in enumerate(texts):
            style = "$foreground" if number == current else "$quiet"
            parts += [("  ·  " if number else "", "$quiet"), (_short(text), style)]
        self.update(Content.assemble(*parts))


def _short(text: str) -> str:
    return terminal_text.shortened(text, 60)
