"""The conversation: one plain widget per entry, streamed text redrawn about ten times a second, finished entries left alone."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Literal

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from obsidian_agent.tui import markdown_text, sanitize

Speaker = Literal["you", "agent", "note", "good", "bad"]

KEPT = 200
"""Entries on the screen; older ones are taken away."""

REDRAW_SECONDS = 0.1
MAX_SHARE = 0.2
"""At most this share of the time goes into redrawing streamed text: long texts are redrawn less often."""

_NAMES: dict[Speaker, str] = {"you": "You", "agent": "Agent", "note": "", "good": "", "bad": ""}
_NOTE_STYLES: dict[Speaker, str] = {"note": "$quiet", "good": "$success", "bad": "$error"}
_NOTE_SIGNS: dict[Speaker, str] = {"note": "·", "good": "✓", "bad": "✗"}


class Entry(Static):
    """One thing said. Its content is made once and never changes."""

    DEFAULT_CSS = """
    Entry { height: auto; margin: 0 1 1 1; padding: 0 1 0 2; }
    Entry.-you { background: $panel; border-left: outer $primary; padding: 0 1; }
    """

    def __init__(self, speaker: Speaker, body: Content, *, at: datetime | None = None) -> None:
        super().__init__(_with_head(speaker, body, at or datetime.now()), markup=False, classes=f"-{speaker}")


class Streaming(Static):
    """An answer that is still being written."""

    DEFAULT_CSS = "Streaming { height: auto; margin: 0 1 1 1; padding: 0 1 0 2; }"

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.text = ""
        self._started = datetime.now()
        self._drawn_at = 0.0
        self._cost = 0.0

    def append(self, text: str) -> None:
        """Add text; it is drawn when it is time."""
        self.text += text
        wait = max(REDRAW_SECONDS, self._cost / MAX_SHARE)
        if time.monotonic() - self._drawn_at >= wait:
            self.draw()

    def draw(self) -> None:
        """Draw all that has arrived."""
        before = time.perf_counter()
        self.update(_with_head("agent", markdown_text.render(self.text), self._started))
        self._cost = time.perf_counter() - before
        self._drawn_at = time.monotonic()


class Thinking(Static, can_focus=True):
    """What a model thinks: dim, apart, three lines while it comes, one line afterwards; Enter or a click shows all of it."""

    DEFAULT_CSS = """
    Thinking { height: auto; margin: 0 1 1 1; padding: 0 1 0 2; color: $quiet; }
    Thinking:focus { border-left: outer $primary; padding: 0 1; }
    """
    BINDINGS = [("enter", "unfold", "Show thinking")]

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.text = ""
        self.open = False
        self._started = time.monotonic()
        self._seconds: float | None = None
        self._drawn_at = 0.0

    def append(self, text: str) -> None:
        """Add a piece of thinking."""
        self.text += text
        if time.monotonic() - self._drawn_at >= REDRAW_SECONDS:
            self._draw()

    def finish(self) -> None:
        """Fold it to one line."""
        if self._seconds is None:
            self._seconds = time.monotonic() - self._started
            self._draw()

    def action_unfold(self) -> None:
        self.open = not self.open
        self._draw()

    def on_click(self) -> None:
        self.action_unfold()

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        text = sanitize.block(self.text).strip()
        if self._seconds is None:
            head, body = "Thinking…", "\n".join(text.split("\n")[-3:])[-400:]
        else:
            head, body = f"{'▾' if self.open else '▸'} Thought for {self._seconds:.0f} s", text if self.open else ""
        self.update(Content.styled(f"{head}\n{body}" if body else head, "italic"))


class Transcript(VerticalScroll):
    """All entries, newest at the bottom and in view unless the person scrolled up."""

    DEFAULT_CSS = "Transcript { height: 1fr; padding: 1 0 0 0; scrollbar-size-vertical: 1; background: $surface; }"
    BINDING_GROUP_TITLE = "Conversation"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._streaming: Streaming | None = None
        self._thinking: Thinking | None = None

    def on_mount(self) -> None:
        self.anchor()

    def say(self, speaker: Speaker, text: str) -> None:
        """Add an entry of plain text; an agent's text is Markdown."""
        self._add(Entry(speaker, markdown_text.render(text) if speaker == "agent" else Content(sanitize.block(text).strip())))

    def stream(self, text: str) -> None:
        """Add streamed text of an answer."""
        self.end_thinking()
        if self._streaming is None:
            self._streaming = Streaming()
            self._add(self._streaming)
        self._streaming.append(text)

    def think(self, text: str) -> None:
        """Add streamed thinking."""
        if self._thinking is None:
            self._thinking = Thinking()
            self._add(self._thinking)
        self._thinking.append(text)

    def end_thinking(self) -> None:
        """Fold the thinking, if there is any."""
        if self._thinking is not None:
            self._thinking.finish()
            self._thinking = None

    def end_stream(self, final: str | None = None, *, keep: bool = True, mark: str = "") -> None:
        """The answer is complete: it becomes a frozen entry with `final` (or what came, and the `mark` after it), or goes away."""
        self.end_thinking()
        streaming, self._streaming = self._streaming, None
        text = final if final is not None else (streaming.text if streaming else "")
        if streaming is not None:
            streaming.remove()
        if keep and text.strip():
            body = markdown_text.render(text)
            self._add(Entry("agent", Content.assemble(body, (f"\n╌ {mark}", "$warning")) if mark else body))

    def clear(self) -> None:
        """Take everything away."""
        self._streaming = self._thinking = None
        self.remove_children()

    def _add(self, widget: Static) -> None:
        self.mount(widget)
        surplus = len(self.children) - KEPT
        if surplus > 0:
            self.remove_children(list(self.children)[:surplus])


def _with_head(speaker: Speaker, body: Content, at: datetime) -> Content:
    if speaker in _NOTE_SIGNS:
        return Content.assemble((f"{_NOTE_SIGNS[speaker]} ", _NOTE_STYLES[speaker]), body.stylize_before(_NOTE_STYLES[speaker]))
    style = "$primary bold" if speaker == "agent" else "bold"
    return Content.assemble((_NAMES[speaker], style), (f"  {at:%H:%M}", "$quiet"), "\n", body)
