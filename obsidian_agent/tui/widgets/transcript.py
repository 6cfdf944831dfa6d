"""The conversation: one plain widget per entry, streamed text redrawn about ten times a second, finished entries left alone.

Below an answer stand the notes that it rests on; each can be opened, in the note pane or in Obsidian. A kept conversation is shown the same way.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, assert_never

from textual import events
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass
from obsidian_agent.tui import markdown_text
from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.markdown_text import MarkdownPart, Splitter, rejoin
from obsidian_agent.tui.widgets.note import NoteRequested, OutsideRequested

if TYPE_CHECKING:
    from obsidian_agent.threads.state import ThreadEntry
    from obsidian_agent.tui.report_lines import Speaker


@dataclass(frozen=True, slots=True)
class Citations:
    """Vault paths of what an answer rests on, and of what else the model was shown."""

    sources: tuple[str, ...]
    besides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """An entry of the transcript. `mark` stands below an answer that is not whole; with `cited` it is the list below an answer."""

    speaker: Speaker
    text: str
    at: datetime | None = None
    mark: str = ""
    cited: Citations | None = None


def transcript_entries(said: Sequence[ThreadEntry]) -> list[TranscriptEntry]:
    """Everything that was said, in order."""
    return [entry for each in said for entry in _entries(each)]


def _entries(said: ThreadEntry) -> list[TranscriptEntry]:
    at = _time(said.time)
    match said.role:
        case "person":
            return [TranscriptEntry("you", said.text, at)] + (
                [TranscriptEntry("note", "This was not sent.", at)]
                if said.state == "unsent"
                else []
            )
        case "model":
            answer = [
                TranscriptEntry("agent", said.text, at)
            ]  # one that was cut off says so itself
            cited = Citations(_paths(said.data.get("sources")), _paths(said.data.get("besides")))
            return answer + (
                [TranscriptEntry("note", "", at, cited=cited)]
                if cited.sources or cited.besides
                else []
            )
        case "look":
            return [
                TranscriptEntry(
                    "note",
                    describe_lookup(
                        said.text, said.data.get("args"), str(said.data.get("why") or "")
                    ),
                    at,
                )
            ]
        case "plan":
            return [TranscriptEntry("note", f"Plan: {said.text}", at)]
        case "notice":
            return [TranscriptEntry("note", said.text, at)]
        case "run":
            return [
                TranscriptEntry(
                    "good" if said.data.get("success") else "bad",
                    f"{'Applied' if said.data.get('success') else 'Run'}: {said.text}",
                    at,
                )
            ]
        case "failed":
            return [TranscriptEntry("bad", said.text, at)]
        case _:
            assert_never(said.role)


def _paths(value: object) -> tuple[str, ...]:
    return (
        tuple(each for each in value if isinstance(each, str))
        if isinstance(value, list | tuple)
        else ()
    )


def describe_lookup(purpose: str, args: object, why: str) -> str:
    """What a model looks at: `Search the text of notes: “Japan” – to find what you wrote`."""
    given = (
        [value for name, value in args.items() if name not in ("limit", "offset")]
        if isinstance(args, dict)
        else []
    )
    match given[0] if given else "":
        case str(text) if text:
            what = f": “{terminal_text.shortened(text, 120)}”"
        case list(names):
            shown = ", ".join(
                terminal_text.shortened(str(each).rpartition("/")[2], 60) for each in names[:3]
            )
            what = f": {shown}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        case _:
            what = ""
    return f"{purpose}{what}" + (f" – {terminal_text.shortened(why, 240)}" if why else "")


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


KEPT = 80
"""Entries on the screen; older ones are taken away, and come back when the person asks for them."""

AT_ONCE = 40
"""So many older entries come back at once."""

REDRAW_SECONDS = 0.1

_NAMES: dict[Speaker, str] = {"you": "You", "agent": "Agent", "note": "", "good": "", "bad": ""}
_NOTE_STYLES: dict[Speaker, str] = {"note": "$quiet", "good": "$success", "bad": "$error"}
_NOTE_SIGNS: dict[Speaker, str] = {"note": "·", "good": "✓", "bad": "✗"}


class EntryWidget(Static):
    """One thing said. Its content is made once and never changes."""

    DEFAULT_CSS = """
    EntryWidget { height: auto; margin: 0 1 1 1; padding: 0 1 0 2; }
    EntryWidget.-you { background: $panel; border-left: outer $primary; padding: 0 1; }
    """

    def __init__(self, speaker: Speaker, body: Content, *, at: datetime | None = None) -> None:
        super().__init__(
            _with_head(speaker, body, at or datetime.now()), markup=False, classes=f"-{speaker}"
        )


class Earlier(Static, can_focus=True):
    """Stands for the entries that are not on the screen; Enter, a click, or scrolling up to it brings some back."""

    DEFAULT_CSS = """
    Earlier { height: 1; margin: 0 1 1 1; padding: 0 2; color: $primary; }
    Earlier:focus { background: $boost; }
    """
    BINDINGS = bindings("conversation", without=("conversation.outside",))

    def __init__(self, count: int) -> None:
        super().__init__(f"▴ {count:,} earlier", markup=False)

    def action_open(self) -> None:
        parent = self.parent
        if isinstance(parent, Transcript):
            parent.show_earlier()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.action_open()


class Piece(Static):
    """A part of an answer."""

    DEFAULT_CSS = "Piece { height: auto; } Piece.-gap { margin-bottom: 1; }"

    def __init__(self, content: Content | None = None, *, gap: bool = False) -> None:
        super().__init__(content or "", markup=False, classes="-gap" if gap else "")


class Streaming(Vertical):
    """An answer that comes in pieces. What is finished of it is drawn once; its end about ten times a second."""

    DEFAULT_CSS = "Streaming { height: auto; margin: 0 1 1 1; padding: 0 1 0 2; }"

    def __init__(self) -> None:
        self._end = Piece()
        super().__init__(self._end)
        self._splitter = Splitter()
        self._speaker = _head("agent", datetime.now())
        self._head: Content | None = self._speaker
        self._finished: list[MarkdownPart] = []
        self._parts: list[MarkdownPart] = []
        self._drawn_at = 0.0
        self._timer: Timer | None = None
        self._mark = ""

    def on_mount(self) -> None:
        self.draw()

    @property
    def text(self) -> str:
        """Everything that came."""
        return self._splitter.text

    def append(self, text: str) -> None:
        """Add text; it is drawn when it is time."""
        parts = self._splitter.feed(text)
        self._finished += parts
        self._parts += parts
        wait = REDRAW_SECONDS - (time.monotonic() - self._drawn_at)
        if wait <= 0:
            self.draw()
        elif self._timer is None:
            self._timer = self.set_timer(wait, self.draw)

    def draw(self) -> None:
        """Draw what is finished by now, and the end of what has arrived."""
        if self._end.parent is None:
            return  # not on the screen yet
        self._timer = None
        self._drawn_at = time.monotonic()
        finished, self._finished = self._finished, []
        if finished:
            self.mount(
                *(Piece(self._with_head(part.text), gap=part.has_gap) for part in finished),
                before=self._end,
            )
        end = self._with_head(self._splitter.tail, keep=True)
        self._end.update(
            Content.assemble(end, (f"\n╌ {self._mark}", "$warning")) if self._mark else end
        )

    def finish(self, mark: str) -> None:
        """The answer is complete, or breaks off here: then a mark says so."""
        self._mark = mark
        if any(part.is_torn for part in self._parts):
            self._mend()
        self.draw()

    def _mend(self) -> None:
        """Draw in one piece what was torn while it came."""
        if self._timer is not None:
            self._timer.stop()
        *whole, last = rejoin([*self._parts, MarkdownPart(self._splitter.tail)])
        self.remove_children([child for child in self.children if child is not self._end])
        self._parts = []
        self._finished, self._head = whole, self._speaker
        self._splitter = Splitter(last.text)

    def _with_head(self, text: str, *, keep: bool = False) -> Content:
        """The part as it is drawn; the first one has the speaker above it."""
        body = (
            Content.assemble(self._head, "\n", markdown_text.render(text))
            if self._head is not None
            else markdown_text.render(text)
        )
        if not keep:
            self._head = None
        return body


class Thinking(Static, can_focus=True):
    """What a model thinks: dim, apart, three lines while it comes, one line afterwards; Enter or a click shows all of it."""

    DEFAULT_CSS = """
    Thinking { height: auto; margin: 0 1 1 1; padding: 0 1 0 2; color: $quiet; }
    Thinking:focus { border-left: outer $primary; padding: 0 1; }
    """
    BINDINGS = bindings("conversation", without=("conversation.outside",))

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

    def action_open(self) -> None:
        self.open = not self.open
        self._draw()

    def on_click(self) -> None:
        self.action_open()

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        text = terminal_text.block(self.text).strip()
        if self._seconds is None:
            head, body = "Thinking…", "\n".join(text.split("\n")[-3:])[-400:]
        else:
            head, body = (
                f"{'▾' if self.open else '▸'} Thought for {self._seconds:.0f} s",
                text if self.open else "",
            )
        self.update(Content.styled(f"{head}\n{body}" if body else head, "italic"))


class Transcript(VerticalScroll):
    """All entries, newest at the bottom and in view unless the person scrolled up."""

    DEFAULT_CSS = "Transcript { height: 1fr; padding: 1 0 0 0; scrollbar-size-vertical: 1; background: $surface; }"
    BINDING_GROUP_TITLE = "Conversation"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._streaming: Streaming | None = None
        self._thinking: Thinking | None = None
        self._entries: list[TranscriptEntry] = []
        """What was said, as far as it is finished and can be shown again."""
        self._first = 0
        """Where in it the entries on the screen begin."""

    def on_mount(self) -> None:
        self.anchor()

    def add_entry(self, speaker: Speaker, text: str, *, mark: str = "") -> None:
        """Add an entry of plain text; an agent's text is Markdown. A `mark` below says that it is not whole."""
        entry = TranscriptEntry(speaker, text, datetime.now(), mark)
        self._entries.append(entry)
        self.mount(_widget_of(entry))
        self._prune()

    def cite(self, cited: Citations) -> None:
        """List below an answer what it rests on, if it rests on anything."""
        if cited.sources or cited.besides:
            entry = TranscriptEntry("note", "", datetime.now(), cited=cited)
            self._entries.append(entry)
            self.mount(_widget_of(entry))
            self._prune()

    @property
    def last_answer(self) -> str:
        """What the agent said last, as Markdown; "" when it said nothing."""
        return next((told.text for told in reversed(self._entries) if told.speaker == "agent"), "")

    def load_entries(self, told: Sequence[TranscriptEntry]) -> None:
        """Show a kept conversation instead of this one; only its end is drawn."""
        self.clear()
        self._entries = list(told)
        self._first = max(0, len(self._entries) - AT_ONCE)
        shown = [_widget_of(entry) for entry in self._entries[self._first :]]
        self.mount(*([Earlier(self._first)] if self._first else []), *shown)
        self.anchor()

    def show_earlier(self) -> None:
        """Bring back some of the entries before those on the screen."""
        if not self._first:
            return
        start = max(0, self._first - AT_ONCE)
        shown = [_widget_of(entry) for entry in self._entries[start : self._first]]
        self._first = start
        old = self.query(Earlier).first()
        self.mount(*([Earlier(start)] if start else []), *shown, before=0)
        old.remove()

    def stream(self, text: str) -> None:
        """Add streamed text of an answer."""
        self.end_thinking()
        if self._streaming is None:
            self._streaming = Streaming()
            self.mount(self._streaming)
        self._streaming.append(text)

    def think(self, text: str) -> None:
        """Add streamed thinking."""
        if self._thinking is None:
            self._thinking = Thinking()
            self.mount(self._thinking)
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
        if (
            streaming is not None
            and keep
            and text.strip() == streaming.text.strip()
            and text.strip()
        ):
            streaming.finish(mark)
            self._entries.append(TranscriptEntry("agent", text, datetime.now(), mark))
            self._prune()
            return
        if streaming is not None:
            streaming.remove()
        if keep and text.strip():
            self.add_entry("agent", text, mark=mark)

    def clear(self) -> None:
        """Take everything away."""
        self._streaming = self._thinking = None
        self._entries, self._first = [], 0
        self.remove_children()

    def _prune(self) -> None:
        """Take the oldest entries away while the person looks at the newest ones."""
        surplus = len(self.children) - KEPT
        if surplus < AT_ONCE // 2 or self.max_scroll_y - self.scroll_y > self.size.height:
            return
        gone = [child for child in self.children[:surplus] if child is not self._streaming]
        self._first += sum(
            isinstance(child, EntryWidget | Streaming | SourceList) for child in gone
        )
        self.remove_children(gone)
        self.mount(Earlier(self._first), before=0)


def _widget_of(entry: TranscriptEntry) -> EntryWidget | SourceList:
    if entry.cited is not None:
        return SourceList(entry.cited)
    body = (
        markdown_text.render(entry.text)
        if entry.speaker == "agent"
        else Content(terminal_text.block(entry.text).strip())
    )
    if entry.mark:
        body = Content.assemble(body, (f"\n╌ {entry.mark}", "$warning"))
    return EntryWidget(entry.speaker, body, at=entry.at)


def _with_head(speaker: Speaker, body: Content, at: datetime) -> Content:
    if speaker in _NOTE_SIGNS:
        return Content.assemble(
            (f"{_NOTE_SIGNS[speaker]} ", _NOTE_STYLES[speaker]),
            body.stylize_before(_NOTE_STYLES[speaker]),
        )
    return Content.assemble(_head(speaker, at), "\n", body)


def _head(speaker: Speaker, at: datetime) -> Content:
    return Content.assemble(
        (_NAMES[speaker], "$primary bold" if speaker == "agent" else "bold"),
        (f"  {at:%H:%M}", "$quiet"),
    )


MOST = 12
"""Notes of each kind that are listed; the others are counted, and /files lists all."""


class Source(Static, can_focus=True):
    """One note. Enter or a click shows it, `o` opens it in Obsidian."""

    DEFAULT_CSS = """
    Source { height: 1; width: auto; max-width: 100%; padding: 0 1 0 3; color: $quiet; }
    Source.-rests { color: $primary; }
    Source:focus { background: $boost; text-style: underline; }
    """
    BINDINGS = bindings("conversation")

    def __init__(self, path: str, *, rests: bool) -> None:
        super().__init__(
            Content(terminal_text.shortened(path, 200)),
            markup=False,
            classes="-rests" if rests else "",
        )
        self.path = path

    def action_open(self) -> None:
        self.post_message(NoteRequested(self.path))

    def action_outside(self) -> None:
        self.post_message(OutsideRequested(self.path))

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.action_open()


class SourceList(Vertical):
    """The notes that an answer rests on, and apart from them what else the model was shown."""

    DEFAULT_CSS = """
    SourceList { height: auto; margin: 0 1 1 1; }
    SourceList > .-head { height: 1; padding: 0 2; color: $quiet; }
    """

    def __init__(self, cited: Citations) -> None:
        super().__init__(*_lines(cited))


def _lines(cited: Citations) -> Iterator[Widget]:
    for title, paths, rests in (
        ("Sources", cited.sources, True),
        ("Also sent, and not named in the answer", cited.besides, False),
    ):
        if paths:
            yield Static(title, markup=False, classes="-head")
            yield from (Source(path, rests=rests) for path in paths[:MOST])
        if len(paths) > MOST:
            yield Static(f"and {len(paths) - MOST} more: /files", markup=False, classes="-head")
