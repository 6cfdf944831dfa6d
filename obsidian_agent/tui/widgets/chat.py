"""The chat pane: conversation, what is going on, the selection that goes along, and the message box."""

from __future__ import annotations

import time
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import key_label
from obsidian_agent.tui.widgets.prompt import Likely, Prompt, Suggestions
from obsidian_agent.tui.widgets.transcript import Transcript

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Activity(Static):
    """One line that says what is going on and for how long; gone when nothing is."""

    DEFAULT_CSS = (
        "Activity { height: 1; padding: 0 2; color: $quiet; background: $surface; display: none; }"
    )

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self._what = ""
        self._characters = 0
        self._tokens = 0
        self._since = 0.0
        self._frame = 0
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        self._timer = self.set_interval(0.1, self._tick, pause=True)

    def start(self, what: str) -> None:
        """Begin, or say something else while the time goes on."""
        if not self._what:
            self._since = time.monotonic()
            self._characters = self._tokens = 0
        self._what = what
        self.display = True
        self._tick()
        if self._timer is not None:
            self._timer.resume()

    def count(self, characters: int) -> None:
        """Characters that arrived from the model."""
        self._characters += characters

    def tokens(self, count: int) -> None:
        """Tokens that the turn has used so far, as the service counts them."""
        self._tokens = count

    def stop(self) -> None:
        """Nothing is going on."""
        self._what = ""
        self.display = False
        if self._timer is not None:
            self._timer.pause()

    def _tick(self) -> None:
        self._frame += 1
        moving = self.app.animation_level != "none"
        sign = _FRAMES[self._frame % len(_FRAMES)] if moving else "…"
        parts = [f"{time.monotonic() - self._since:.0f} s"]
        if self._tokens:
            parts.append(f"{self._tokens:,} tokens")
        elif self._characters:
            parts.append(f"{self._characters:,} characters")
        parts.append(f"{key_label(self, 'main.cancel')} cancels")
        self.update(
            Content.assemble(
                (f"{sign} ", "$primary"),
                (self._what, "$foreground"),
                (f"  {' · '.join(parts)}", "$quiet"),
            )
        )


class SelectionChip(Static):
    """What of the note goes along with the message."""

    DEFAULT_CSS = "SelectionChip { height: 1; padding: 0 2; background: $surface; color: $quiet; }"

    def show(self, path: str | None, lines: int, use: bool, *, where: str = "") -> None:
        """`lines` selected lines of the note at `path`, open in this app or `where`; `use` is the person's switch."""
        if path is None:
            self.display = False
            return
        self.display = True
        name = terminal_text.shortened(path, 120) + (f" {where}" if where else "")
        if not lines:
            self.update(Content.assemble(("◇ ", "$primary"), (name, "$quiet")))
            return
        count = f"sel {lines} line{'s' if lines != 1 else ''}"
        head = (f"◆ {count}", "$primary") if use else (f"◇ {count}, not sent", "$quiet")
        self.update(
            Content.assemble(
                head,
                (f" · {name}", "$quiet"),
                (
                    f"  {key_label(self, 'main.selection').replace('Ctrl+', '^').lower()} {'off' if use else 'on'}",
                    "$quiet",
                ),
            )
        )


class UsageLine(Static):
    """What the model has used and how full its window is; gone before the first answer of a model."""

    DEFAULT_CSS = (
        "UsageLine { height: 1; padding: 0 2; background: $surface; color: $quiet; display: none; }"
    )

    def show(self, words: str, gauge: str, *, full: bool = False) -> None:
        """`words` on tokens and money, `gauge` on the window; nothing at all takes the line away."""
        self.display = bool(words or gauge)
        self.update(
            Content.assemble(
                (f"{gauge}  " if gauge else "", "$warning" if full else "$primary"),
                (words, "$quiet"),
            )
        )


class Welcome(Static):
    """What a new conversation begins with."""

    DEFAULT_CSS = "Welcome { height: auto; margin: 0 1 1 1; padding: 0 2; color: $quiet; }"

    def __init__(self, without: str = "") -> None:
        super().__init__("", markup=False)
        self.without = without

    def on_mount(self) -> None:
        self.draw()

    def draw(self) -> None:
        """Say it with the keys that are in force."""
        keys = (
            (key_label(self, "main.open"), "open a note, to select in it"),
            (key_label(self, "main.saved"), "all actions, yours among them"),
            (key_label(self, "main.history"), "history and undo"),
            (key_label(self, "main.threads"), "earlier conversations"),
            (key_label(self, "main.pane"), "next pane"),
            ("/", "commands"),
            ("@", "notes to send along"),
            (key_label(self, "app.help"), "all keys"),
        )
        lines = [
            piece
            for key, what in keys
            for piece in ((f"{key:<8}", "$primary"), (f"{what}\n", "$quiet"))
        ]
        self.update(
            Content.assemble(
                ("Say what should change in your notes.\n", "bold $foreground"),
                ("Nothing is written before you have seen and approved it.\n\n", "$quiet"),
                *lines,
                (f"\n{self.without}" if self.without else "", "$quiet"),
            ).rstrip()
        )


class ChatPane(Vertical):
    """Puts the parts together; says things on behalf of others."""

    DEFAULT_CSS = """
    ChatPane { background: $surface; }
    ChatPane #hint { height: auto; padding: 0 2; color: $warning; display: none; background: $surface; }
    """

    def compose(self) -> ComposeResult:
        yield Transcript(id="transcript")
        yield Activity()
        yield Static("", id="hint", markup=False)
        yield SelectionChip("", id="chip", markup=False)
        yield UsageLine("", id="usage", markup=False)
        yield Suggestions()
        yield Prompt(id="prompt")
        yield Likely()

    _hint_ends_with_work = False
    model_notice = ""
    """What a new conversation says on top, while nobody has chosen a model."""

    class Edited(Message):
        """The message that is being written has changed."""

    def on_mount(self) -> None:
        self.prompt.suggestions = self.query_one(Suggestions)
        self.welcome()

    def welcome(self) -> None:
        """The beginning of a new conversation."""
        self.transcript.mount(Welcome(self.model_notice))

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    @property
    def activity(self) -> Activity:
        return self.query_one(Activity)

    @property
    def prompt(self) -> Prompt:
        return self.query_one(Prompt)

    @property
    def chip(self) -> SelectionChip:
        return self.query_one(SelectionChip)

    def hint(self, text: str, *, while_busy: bool = False) -> None:
        """Show a short remark above the message box, with `while_busy` only until the work ends; "" removes it."""
        self._hint_ends_with_work = while_busy
        hint = self.query_one("#hint", Static)
        hint.update(Content(terminal_text.block(text)))
        hint.display = bool(text)

    def work_ended(self) -> None:
        """Remove the activity and the remark about it."""
        self.activity.stop()
        if self._hint_ends_with_work:
            self.hint("")

    @property
    def suggestions(self) -> Suggestions:
        return self.query_one(Suggestions)

    def set_model_notice(self, words: str) -> None:
        """What a new conversation says while nobody has chosen a model."""
        self.model_notice = words
        self.refresh_welcome()

    def refresh_welcome(self) -> None:
        """Say it as it is now: other keys, no model."""
        for welcome in self.query(Welcome):
            welcome.without = self.model_notice
            welcome.draw()

    def show_likely(self, titles: Sequence[str]) -> None:
        """What the message may mean, under it."""
        self.query_one(Likely).show(titles)
        self.prompt.has_likely_action = bool(titles)

    @property
    def usage(self) -> UsageLine:
        return self.query_one(UsageLine)

    def on_text_area_changed(self) -> None:
        if self.prompt.text:  # an empty box is one that was just sent, and the remark is about that
            self.hint("")
        self.post_message(self.Edited())

    def on_suggestions_accepted(self, event: Suggestions.Accepted) -> None:
        event.stop()
        self.prompt.complete(event.suggestion)
        if event.send:
            self.prompt.call_later(
                self.prompt.action_send
            )  # by itself: a message does not rise above the one who posts it
