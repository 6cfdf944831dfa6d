"""The chat pane: conversation, activity, attached selection, usage and message box."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.terminal_text import counted
from obsidian_agent.tui.bindings import key_label
from obsidian_agent.tui.widgets.prompt import (
    MessageQueue,
    Prompt,
    Suggestions,
    TabHint,
)
from obsidian_agent.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from obsidian_agent.journal.records import HistoryEntry
    from obsidian_agent.services.overview import Overview

ROW_WIDTH = 84
"""Columns of a row of the overview."""
LABEL_WIDTH = 10
NARROWEST = 36
"""Columns that the introduction is laid out for at least."""
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Activity(Static):
    """A line with the current activity and its duration, hidden while idle."""

    DEFAULT_CSS = (
        "Activity { height: 1; padding: 0 2; color: $quiet; background: $surface; display: none; }"
    )

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self._text = ""
        self._characters = 0
        self._tokens = 0
        self._since = 0.0
        self._frame = 0
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        self._timer = self.set_interval(0.1, self._tick, pause=True)

    def start(self, text: str) -> None:
        """Start the activity, or change its text while the time continues."""
        if not self._text:
            self._since = time.monotonic()
            self._characters = self._tokens = 0
        self._text = text
        self.display = True
        self._tick()
        if self._timer is not None:
            self._timer.resume()

    def count(self, characters: int) -> None:
        """Add the characters of a piece of the response."""
        self._characters += characters

    def tokens(self, count: int) -> None:
        """Set the tokens that the turn has used so far, as counted by the service."""
        self._tokens = count

    def stop(self) -> None:
        """Hide the line."""
        self._text = ""
        self.display = False
        if self._timer is not None:
            self._timer.pause()

    def _tick(self) -> None:
        self._frame += 1
        is_animated = self.app.animation_level != "none"
        sign = _FRAMES[self._frame % len(_FRAMES)] if is_animated else "…"
        parts = [f"{time.monotonic() - self._since:.0f} s"]
        if self._tokens:
            parts.append(f"{self._tokens:,} tokens")
        elif self._characters:
            parts.append(f"{self._characters:,} characters")
        parts.append(f"{key_label(self, 'main.cancel')} cancels")
        self.update(
            Content.assemble(
                (f"{sign} ", "$primary"),
                (self._text, "$foreground"),
                (f"  {' · '.join(parts)}", "$quiet"),
            )
        )


class SelectionChip(Static):
    """A line with the note and selection that are sent with the message."""

    DEFAULT_CSS = "SelectionChip { height: 1; padding: 0 2; background: $surface; color: $quiet; }"

    def show(self, path: str | None, lines: int, use: bool, *, where: str = "") -> None:
        """Show the note at `path` with the number of selected `lines`.

        Without `use`, the user has excluded the selection. `where` names another app with the note.
        """
        if path is None:
            self.display = False
            return
        self.display = True
        name = terminal_text.shortened(path, 120) + (f" {where}" if where else "")
        if not lines:
            self.update(Content.assemble(("◇ ", "$primary"), (name, "$quiet")))
            return
        count = f"sel {lines} line{'s' if lines != 1 else ''}"
        key = key_label(self, "main.selection")
        head = (f"◆ {count}", "$primary") if use else (f"◇ {count}, not sent", "$quiet")
        self.update(
            Content.assemble(
                head,
                (f" · {name}", "$quiet"),
                (f"  {key.replace('Ctrl+', '^').lower()} {'off' if use else 'on'}", "$quiet"),
            )
        )


class UsageLine(Static):
    """A line with the usage of the model and of its window, hidden before the first answer."""

    DEFAULT_CSS = (
        "UsageLine { height: 1; padding: 0 2; background: $surface; color: $quiet; display: none; }"
    )

    def show(self, words: str, gauge: str, *, full: bool = False) -> None:
        """Show tokens and cost in `words` and the window in `gauge`; hide the line without both."""
        self.display = bool(words or gauge)
        self.update(
            Content.assemble(
                (f"{gauge}  " if gauge else "", "$warning" if full else "$primary"),
                (words, "$quiet"),
            )
        )


class Welcome(Static):
    """The introduction to a new conversation, with an overview of the vault once it is known."""

    DEFAULT_CSS = "Welcome { height: auto; margin: 0 1 1 1; padding: 0 2; color: $quiet; }"

    def __init__(self, model_notice: str = "", overview: Overview | None = None) -> None:
        super().__init__("", markup=False)
        self.model_notice = model_notice
        self.overview = overview

    def on_mount(self) -> None:
        self.draw()

    def on_resize(self) -> None:
        self.draw()

    @property
    def _width(self) -> int:
        return max(self.content_size.width, NARROWEST)

    def draw(self) -> None:
        """Render the text with the current keys."""
        keys = (
            (key_label(self, "app.help"), "keys"),
            (key_label(self, "main.saved"), "actions"),
            (key_label(self, "main.open"), "open a note"),
            (key_label(self, "main.threads"), "conversations"),
            ("/", "commands"),
            ("@", "send notes along"),
        )
        self.update(
            Content.assemble(
                ("What should change, or what do you want to know?\n", "bold $foreground"),
                ("Nothing is written before you have seen and approved it.\n\n", "$quiet"),
                *self._examples(),
                *(piece for row in self._rows() for piece in row),
                *_key_uses(keys, self._width),
                (f"\n\n{self.model_notice}" if self.model_notice else "", "$quiet"),
            ).rstrip()
        )

    def _examples(self) -> Iterator[tuple[str, str]]:
        examples = self.overview.examples if self.overview is not None else ()
        for number, example in enumerate(examples, 1):
            yield f"{number}  ", "$primary"
            yield terminal_text.line(example.sentence), "$foreground"
            yield f"  {example.remark}".rstrip() + "\n", "$quiet"
        if examples:
            tab = key_label(self, "prompt.complete")
            yield f"   Press a number or {tab} to use a suggestion.\n\n", "$quiet"

    def _rows(self) -> Iterator[tuple[tuple[str, str], ...]]:
        overview = self.overview
        if overview is None:
            return
        width = min(self._width, ROW_WIDTH)
        vault = counted(overview.note_count, "note")
        if overview.health is not None:
            day, findings = overview.health
            vault += f" · {counted(findings, 'finding')} on {day}"
        yield from _row("Vault", vault, "/health", width)
        sources = dict.fromkeys(plan.source or "you" for plan in overview.waiting)
        if overview.waiting:
            waiting = f"{counted(len(overview.waiting), 'plan')} from {', '.join(sources)}"
            yield from _row("Waiting", waiting, "/plans", width)
        names = [path.rpartition("/")[2].removesuffix(".md") for path in overview.recent_notes]
        yield from _row("Recent", " · ".join(names), key_label(self, "main.open"), width)
        yield from _row("Macros", " · ".join(overview.macros), key_label(self, "main.saved"), width)
        if overview.last_run is not None:
            key = key_label(self, "main.history")
            run = _described(overview.last_run, width - LABEL_WIDTH - len(key) - 2)
            yield from _row("Last run", run, key, width)
        yield (("\n", ""),)


def _described(run: HistoryEntry, width: int) -> str:
    """Return the goal of a run, the number of its files and its day."""
    effects = run.effects
    files = {*effects.created, *effects.modified, *effects.deleted}
    files |= {new for _, new in effects.renamed}
    details = f"{counted(len(files), 'file')} · {run.time[:10]}{' · undone' if run.undone else ''}"
    return f"{_clipped(run.goal, max(width - len(details) - 3, 8))} · {details}"


def _clipped(text: str, width: int) -> str:
    line = terminal_text.line(text)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _row(label: str, text: str, key: str, width: int) -> Iterator[tuple[tuple[str, str], ...]]:
    if text:
        yield (
            (f"{label:<{LABEL_WIDTH}}", "$quiet"),
            (_clipped(text, width - LABEL_WIDTH - len(key) - 2), "$foreground"),
            (f"  {key}\n", "$primary"),
        )


def _key_uses(keys: Iterable[tuple[str, str]], width: int) -> Iterator[tuple[str, str]]:
    """Yield keys with what they do, in lines that break only between them."""
    column = 0
    for key, use in keys:
        if column + len(key) + len(use) + 1 > width:
            yield "\n", ""
            column = 0
        yield key, "$primary"
        yield f" {use}   ", "$quiet"
        column += len(key) + len(use) + 4


class ChatPane(Vertical):
    """The pane that holds the conversation and the message box."""

    DEFAULT_CSS = """
    ChatPane { background: $surface; }
    ChatPane #hint {
        height: auto; padding: 0 2; color: $warning; display: none; background: $surface;
    }
    """

    def compose(self) -> ComposeResult:
        yield Transcript(id="transcript")
        yield Activity()
        yield Static("", id="hint", markup=False)
        yield SelectionChip("", id="chip", markup=False)
        yield UsageLine("", id="usage", markup=False)
        yield MessageQueue()
        yield Suggestions()
        yield Prompt(id="prompt")
        yield TabHint()

    _hint_ends_with_work = False
    _overview: Overview | None = None
    is_new = False
    """True before the first message or plan of a conversation."""
    model_notice = ""
    """A notice in the introduction while no model is chosen."""

    class Edited(Message):
        """The text in the message box has changed."""

    def on_mount(self) -> None:
        self.prompt.suggestions = self.query_one(Suggestions)
        self.prompt.queue = self.queue
        self.prompt.tab_hint = self.tab_hint
        self.welcome()

    def welcome(self) -> None:
        """Add the introduction to a new conversation."""
        self.is_new = True
        # Where it does not fit it is read from its beginning. The first entry anchors again.
        self.transcript.anchor(False)
        self.transcript.scroll_home(animate=False)
        self.transcript.mount(Welcome(self.model_notice, self._overview))
        if self._overview is not None:
            self.show_overview(self._overview)

    def end_welcome(self) -> None:
        """Remove the introduction and its examples, if they are still there."""
        if self.is_new:
            self.is_new = False
            self.query(Welcome).remove()
            self.prompt.examples = ()

    def show_overview(self, overview: Overview) -> None:
        """Show an overview of the vault in the introduction."""
        self._overview = overview
        for welcome in self.query(Welcome):
            welcome.overview = overview
            welcome.draw()
        if self.is_new:
            self.prompt.examples = tuple(example.sentence for example in overview.examples)

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
    def queue(self) -> MessageQueue:
        return self.query_one(MessageQueue)

    def take_back(self) -> None:
        """Put the message that is next in the queue into the box, unless that has a text."""
        if self.queue.messages and not self.prompt.text:
            self.prompt.text = self.queue.take_first()
            self.prompt.move_cursor(self.prompt.document.end)

    @property
    def chip(self) -> SelectionChip:
        return self.query_one(SelectionChip)

    def hint(self, text: str, *, while_busy: bool = False) -> None:
        """Show a hint above the message box, with `while_busy` only until the work ends.

        An empty text removes it.
        """
        self._hint_ends_with_work = while_busy
        hint = self.query_one("#hint", Static)
        hint.update(Content(terminal_text.block(text)))
        hint.display = bool(text)

    def work_ended(self) -> None:
        """Remove the activity and any hint about it."""
        self.activity.stop()
        if self._hint_ends_with_work:
            self.hint("")

    @property
    def suggestions(self) -> Suggestions:
        return self.query_one(Suggestions)

    def set_model_notice(self, text: str) -> None:
        """Set the notice in the introduction while no model is chosen."""
        self.model_notice = text
        self.refresh_welcome()

    def refresh_welcome(self) -> None:
        """Update the introduction after a change of keys or model."""
        for welcome in self.query(Welcome):
            welcome.model_notice = self.model_notice
            welcome.draw()

    def show_likely(self, titles: Sequence[str]) -> None:
        """Show the titles of likely actions below the message box."""
        self.tab_hint.show(titles)

    @property
    def tab_hint(self) -> TabHint:
        return self.query_one(TabHint)

    @property
    def usage(self) -> UsageLine:
        return self.query_one(UsageLine)

    def on_text_area_changed(self) -> None:
        if self.prompt.text:  # the box is emptied by sending, which the hint may be about
            self.hint("")
        self.post_message(self.Edited())

    def on_prompt_scroll_requested(self, event: Prompt.ScrollRequested) -> None:
        event.stop()
        transcript = self.transcript
        match event.direction:
            case "page_up":
                transcript.scroll_page_up(animate=False)
            case "page_down":
                transcript.scroll_page_down(animate=False)
            case "home":
                transcript.scroll_home(animate=False)
            case "end":
                transcript.scroll_end(animate=False)

    def on_suggestions_accepted(self, event: Suggestions.Accepted) -> None:
        event.stop()
        self.prompt.complete(event.suggestion)
        if event.send:
            # Called by the prompt: a message bubbles up only from the widget that posts it.
            self.prompt.call_later(self.prompt.action_send)
