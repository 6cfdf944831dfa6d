"""The transcript of a conversation, live or stored, with one plain widget per entry.

Streamed text is rendered about ten times per second, finished entries only once. Below an answer
are the notes it is based on, which can be opened in the note pane or in Obsidian.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct
from textual import events
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.tui import markdown_text
from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.markdown_lines import LinkSpan, shift_links
from obsidian_agent.tui.markdown_text import LINK, MarkdownPart, RenderedAnswer, Splitter, rejoin
from obsidian_agent.tui.widgets.note import LinkRequested, NoteRequested, OutsideRequested

if TYPE_CHECKING:
    from obsidian_agent.threads.state import ThreadEntry
    from obsidian_agent.tui.report_lines import Speaker

MAX_ENTRIES = 80
"""Entries on the screen; older ones are removed and can be brought back."""

PAGE = 40
"""Older entries that are brought back at once."""

MAX_SOURCES = 12
"""Listed notes of each kind; the others are counted, and /files lists all."""

_NAMES: dict[Speaker, str] = {"you": "You", "agent": "Agent", "note": "", "good": "", "bad": ""}
_NOTE_STYLES: dict[Speaker, str] = {"note": "$quiet", "good": "$success", "bad": "$error"}
_NOTE_SIGNS: dict[Speaker, str] = {"note": "·", "good": "✓", "bad": "✗"}


class Citations(Struct, frozen=True):
    """The vault paths of the sources of an answer, and of other notes sent to the model."""

    sources: tuple[str, ...]
    also_sent: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.sources or self.also_sent)


class TranscriptEntry(Struct, frozen=True):
    """An entry of the transcript: a text, or the list of citations below an answer.

    `mark` is a remark below an incomplete answer.
    """

    speaker: Speaker
    text: str
    at: datetime | None = None
    mark: str = ""
    citations: Citations | None = None


def transcript_entries(entries: Sequence[ThreadEntry]) -> list[TranscriptEntry]:
    """Return the transcript of a stored conversation."""
    return [line for entry in entries for line in _transcript_of(entry)]


def _transcript_of(entry: ThreadEntry) -> list[TranscriptEntry]:
    at = _time(entry.time)
    match entry.role:
        case "person":
            lines = [TranscriptEntry("you", entry.text, at)]
            if entry.state == "unsent":
                lines.append(TranscriptEntry("note", "This was not sent.", at))
            return lines
        case "model":
            lines = [TranscriptEntry("agent", entry.text, at)]
            # Lazy: the first frame has no answer.
            from obsidian_agent.agent.events import unlisted

            sources = unlisted(entry.text, _paths(entry.data.get("sources")))
            citations = Citations(sources, _paths(entry.data.get("besides")))
            if citations:
                lines.append(TranscriptEntry("note", "", at, citations=citations))
            return lines
        case "look":
            reason = str(entry.data.get("why") or "")
            text = describe_lookup(entry.text, entry.data.get("args"), reason)
            return [TranscriptEntry("note", text, at)]
        case "plan":
            return [TranscriptEntry("note", f"Plan: {entry.text}", at)]
        case "notice":
            return [TranscriptEntry("note", entry.text, at)]
        case "run":
            if entry.data.get("success"):
                return [TranscriptEntry("good", f"Applied: {entry.text}", at)]
            return [TranscriptEntry("bad", f"Run: {entry.text}", at)]
        case "failed":
            return [TranscriptEntry("bad", entry.text, at)]
        case _:
            assert_never(entry.role)


def _paths(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        return ()
    return tuple(path for path in value if isinstance(path, str))


def describe_lookup(purpose: str, args: object, reason: str) -> str:
    """Describe a tool call: `Search the text of notes: “Japan” – to find what you wrote`."""
    values: list[object] = []
    if isinstance(args, dict):
        values = [value for name, value in args.items() if name not in ("limit", "offset")]
    match values[0] if values else "":
        case str(text) if text:
            subject = f": “{terminal_text.shortened(text, 120)}”"
        case list(paths):
            names = [
                terminal_text.shortened(str(path).rpartition("/")[2], 60) for path in paths[:3]
            ]
            subject = f": {', '.join(names)}"
            if len(paths) > 3:
                subject += f" and {len(paths) - 3} more"
        case _:
            subject = ""
    text = f"{purpose}{subject}"
    return f"{text} – {terminal_text.shortened(reason, 240)}" if reason else text


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


class AnswerText(Static, can_focus=True):
    """Markdown of an answer with its links, which open with Enter or a click."""

    DEFAULT_CSS = "AnswerText:focus { border-left: outer $primary; padding: 0 1; }"
    BINDINGS = bindings("answer")
    BINDING_GROUP_TITLE = "Answer"

    class CopyRequested(Message):
        """The answer is to be copied, or its last block of code."""

        def __init__(self, text: str, *, only_code: bool) -> None:
            super().__init__()
            self.text = text
            self.only_code = only_code

    class InsertRequested(Message):
        """The answer is to be inserted into the open note."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, *, classes: str = "") -> None:
        super().__init__("", markup=False, classes=classes)
        self.source = ""
        """The Markdown of the answer."""
        self._content = Content("")
        self._links: list[LinkSpan] = []
        self._link = 0

    def show_answer(self, head: Content | None, answer: RenderedAnswer, mark: str = "") -> None:
        """Show an answer below the name of its speaker, with a remark below it."""
        before = 0 if head is None else len(head) + 1
        self._links = list(shift_links(answer.links, 0, sys.maxsize, before))
        parts = [] if head is None else [head, Content("\n")]
        self._content = Content.assemble(*parts, answer.content)
        if mark:
            self._content = Content.assemble(self._content, (f"\n╌ {mark}", "$warning"))
        self._draw()

    def _draw(self) -> None:
        content = self._content
        if self.has_focus and self._links:
            link = self._links[min(self._link, len(self._links) - 1)]
            content = content.stylize("reverse", link.start, link.end)
        self.update(content)

    def on_focus(self) -> None:
        self._draw()

    def on_blur(self) -> None:
        self._draw()

    def on_click(self, event: events.Click) -> None:
        number = event.style.meta.get(LINK)
        if isinstance(number, int) and 0 <= number < len(self._links):
            event.stop()
            self._open(self._links[number])

    def _open(self, link: LinkSpan) -> None:
        self.post_message(LinkRequested(link.target, is_tag=link.is_tag))

    def action_open_link(self) -> None:
        if self._links:
            self._open(self._links[min(self._link, len(self._links) - 1)])

    def action_link(self, direction: int) -> None:
        """Highlight the next or previous link, or leave the answer behind the last one."""
        if 0 <= self._link + direction < len(self._links):
            self._link += direction
            self._draw()
        elif direction > 0:
            self.screen.focus_next()
        else:
            self.screen.focus_previous()

    def action_copy(self, only_code: bool) -> None:
        self.post_message(self.CopyRequested(self._whole, only_code=only_code))

    def action_insert(self) -> None:
        self.post_message(self.InsertRequested(self._whole))

    @property
    def _whole(self) -> str:
        """The whole answer, of which this may be a piece that is still streamed."""
        parent = self.parent
        return parent.text if isinstance(parent, Streaming) else self.source


class EntryWidget(Static):
    """The widget of an entry, whose content never changes."""

    DEFAULT_CSS = """
    EntryWidget { height: auto; margin: 0 1 1 1; padding: 0 1 0 2; }
    EntryWidget.-you { background: $panel; border-left: outer $primary; padding: 0 1; }
    """

    def __init__(self, speaker: Speaker, body: Content, *, at: datetime | None = None) -> None:
        super().__init__(
            _with_head(speaker, body, at or datetime.now()), markup=False, classes=f"-{speaker}"
        )


class AnswerEntry(AnswerText):
    """The widget of a finished answer."""

    DEFAULT_CSS = "AnswerEntry { height: auto; margin: 0 1 1 1; padding: 0 1 0 2; }"

    def __init__(self, entry: TranscriptEntry) -> None:
        super().__init__(classes="-agent")
        self.source = entry.text
        answer = markdown_text.render_with_links(entry.text)
        self.show_answer(_head("agent", entry.at or datetime.now()), answer, entry.mark)


class Earlier(Static, can_focus=True):
    """A placeholder for earlier entries; Enter or a click brings some of them back."""

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


class Piece(AnswerText):
    """A part of a streamed answer."""

    DEFAULT_CSS = "Piece { height: auto; } Piece.-gap { margin-bottom: 1; }"

    def __init__(self, *, gap: bool = False) -> None:
        super().__init__(classes="-gap" if gap else "")


class Streaming(Vertical):
    """An answer while it is streamed. Only its unfinished end is rendered repeatedly."""

    DEFAULT_CSS = "Streaming { height: auto; margin: 0 1 1 1; padding: 0 1 0 2; }"

    def __init__(self) -> None:
        self._end = Piece()
        super().__init__(self._end)
        self._splitter = Splitter()
        self._speaker = _head("agent", datetime.now())
        self._head: Content | None = self._speaker
        self._finished: list[MarkdownPart] = []
        """Finished parts that are not rendered yet."""
        self._parts: list[MarkdownPart] = []
        """All finished parts."""
        self._mark = ""

    def on_mount(self) -> None:
        self.draw()

    @property
    def text(self) -> str:
        """The text received so far."""
        return self._splitter.text

    def append(self, text: str) -> None:
        """Add text, which comes in batches (`event_stream`), and render it."""
        parts = self._splitter.feed(text)
        self._finished += parts
        self._parts += parts
        self.draw()

    def draw(self) -> None:
        """Render the newly finished parts and the current end."""
        if self._end.parent is None:
            return  # not mounted yet
        finished, self._finished = self._finished, []
        if finished:
            self.mount(
                *(self._piece(part) for part in finished),
                before=self._end,
            )
        end = markdown_text.render_with_links(self._splitter.tail)
        self._end.show_answer(self._head, end, self._mark)

    def finish(self, mark: str) -> None:
        """Finish the answer, with a `mark` below it if it is incomplete."""
        self._mark = mark
        if any(part.is_torn for part in self._parts):
            self._rejoin()
        self.draw()

    def _rejoin(self) -> None:
        """Render paragraphs again that were split while they were streamed."""
        *whole, last = rejoin([*self._parts, MarkdownPart(self._splitter.tail)])
        self.remove_children([child for child in self.children if child is not self._end])
        self._parts = []
        self._finished, self._head = whole, self._speaker
        self._splitter = Splitter(last.text)

    def _piece(self, part: MarkdownPart) -> Piece:
        """Return the widget of a finished part, the first one with the speaker above it."""
        piece = Piece(gap=part.has_gap)
        piece.show_answer(self._head, markdown_text.render_with_links(part.text))
        self._head = None
        return piece


class Thinking(Static, can_focus=True):
    """The thinking of a model: three lines while streamed, then one line that can be expanded."""

    DEFAULT_CSS = """
    Thinking { height: auto; margin: 0 1 1 1; padding: 0 1 0 2; color: $quiet; }
    Thinking:focus { border-left: outer $primary; padding: 0 1; }
    """
    BINDINGS = bindings("conversation", without=("conversation.outside",))

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.text = ""
        self.is_open = False
        self._started = time.monotonic()
        self._seconds: float | None = None

    def append(self, text: str) -> None:
        """Add a piece of thinking."""
        self.text += text
        self._draw()

    def finish(self) -> None:
        """Collapse the thinking to one line."""
        if self._seconds is None:
            self._seconds = time.monotonic() - self._started
            self._draw()

    def action_open(self) -> None:
        self.is_open = not self.is_open
        self._draw()

    def on_click(self) -> None:
        self.action_open()

    def _draw(self) -> None:
        text = terminal_text.block(self.text).strip()
        if self._seconds is None:
            head, body = "Thinking…", "\n".join(text.split("\n")[-3:])[-400:]
        else:
            head = f"{'▾' if self.is_open else '▸'} Thought for {self._seconds:.0f} s"
            body = text if self.is_open else ""
        self.update(Content.styled(f"{head}\n{body}" if body else head, "italic"))


class Transcript(VerticalScroll):
    """The scrolling list of entries, kept at its end unless the user scrolls up."""

    DEFAULT_CSS = """
    Transcript {
        height: 1fr; padding: 1 0 0 0; scrollbar-size-vertical: 1; background: $surface;
        align-vertical: bottom;
    }
    """
    BINDING_GROUP_TITLE = "Conversation"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._streaming: Streaming | None = None
        self._thinking: Thinking | None = None
        self._entries: list[TranscriptEntry] = []
        """The finished entries, including those that are not on the screen."""
        self._first = 0
        """The index of the first entry on the screen."""

    def on_mount(self) -> None:
        self.anchor()

    def add_entry(self, speaker: Speaker, text: str, *, mark: str = "") -> None:
        """Add an entry of plain text, or of Markdown for an agent.

        `mark` is a remark below an incomplete answer.
        """
        if not self.is_anchored:
            self.anchor()
        entry = TranscriptEntry(speaker, text, datetime.now(), mark)
        self._entries.append(entry)
        self.mount(_widget_of(entry))
        self._prune()

    def cite(self, citations: Citations) -> None:
        """List the citations of an answer below it, if there are any."""
        if citations:
            entry = TranscriptEntry("note", "", datetime.now(), citations=citations)
            self._entries.append(entry)
            self.mount(_widget_of(entry))
            self._prune()

    @property
    def last_answer(self) -> str:
        """The latest answer of the agent as Markdown, or an empty string."""
        answers = (entry.text for entry in reversed(self._entries) if entry.speaker == "agent")
        return next(answers, "")

    @property
    def answer_in_view(self) -> AnswerText | None:
        """The text of the latest answer, which the keys of an answer work on."""
        texts = [text for text in self.query(AnswerText) if text.size.height]
        return texts[-1] if texts else None

    def load_entries(self, entries: Sequence[TranscriptEntry]) -> None:
        """Show another conversation, initially only its latest entries."""
        self.clear()
        self._entries = list(entries)
        self._first = max(0, len(self._entries) - PAGE)
        widgets = [_widget_of(entry) for entry in self._entries[self._first :]]
        self.mount(*([Earlier(self._first)] if self._first else []), *widgets)
        self.anchor()

    def show_earlier(self) -> None:
        """Bring back some of the entries before those on the screen."""
        if not self._first:
            return
        start = max(0, self._first - PAGE)
        widgets = [_widget_of(entry) for entry in self._entries[start : self._first]]
        self._first = start
        placeholder = self.query(Earlier).first()
        self.mount(*([Earlier(start)] if start else []), *widgets, before=0)
        placeholder.remove()

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
        """Collapse the current thinking, if there is any."""
        if self._thinking is not None:
            self._thinking.finish()
            self._thinking = None

    def end_stream(self, final: str | None = None, *, keep: bool = True, mark: str = "") -> None:
        """Turn the streamed answer into an entry, or remove it unless `keep`.

        Its text is `final`, by default the streamed text, with the `mark` below it.
        """
        self.end_thinking()
        streaming, self._streaming = self._streaming, None
        streamed = streaming.text if streaming is not None else ""
        text = streamed if final is None else final
        keep = keep and bool(text.strip())
        if streaming is not None and keep and text.strip() == streamed.strip():
            streaming.finish(mark)
            self._entries.append(TranscriptEntry("agent", text, datetime.now(), mark))
            self._prune()
            return
        if streaming is not None:
            streaming.remove()
        if keep:
            self.add_entry("agent", text, mark=mark)

    def clear(self) -> None:
        """Remove all entries."""
        self._streaming = self._thinking = None
        self._entries, self._first = [], 0
        self.remove_children()

    def _prune(self) -> None:
        """Remove the oldest entries if there are too many and the latest ones are in view."""
        surplus = len(self.children) - MAX_ENTRIES
        if surplus < PAGE // 2 or self.max_scroll_y - self.scroll_y > self.size.height:
            return
        removed = [child for child in self.children[:surplus] if child is not self._streaming]
        self._first += sum(
            isinstance(child, EntryWidget | AnswerEntry | Streaming | SourceList)
            for child in removed
        )
        self.remove_children(removed)
        self.mount(Earlier(self._first), before=0)


def _widget_of(entry: TranscriptEntry) -> EntryWidget | AnswerEntry | SourceList:
    if entry.citations is not None:
        return SourceList(entry.citations)
    if entry.speaker == "agent":
        return AnswerEntry(entry)
    body = Content(terminal_text.block(entry.text).strip())
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


class Source(Static, can_focus=True):
    """A note; Enter or a click shows it, `o` opens it in Obsidian."""

    DEFAULT_CSS = """
    Source { height: 1; width: auto; max-width: 100%; padding: 0 1 0 3; color: $quiet; }
    Source.-cited { color: $primary; }
    Source:focus { background: $boost; text-style: underline; }
    """
    BINDINGS = bindings("conversation")

    def __init__(self, path: str, *, is_cited: bool) -> None:
        super().__init__(
            Content(terminal_text.shortened(path, 200)),
            markup=False,
            classes="-cited" if is_cited else "",
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
    """The sources of an answer, then the other notes that were sent to the model."""

    DEFAULT_CSS = """
    SourceList { height: auto; margin: 0 1 1 1; }
    SourceList > .-head { height: 1; padding: 0 2; color: $quiet; }
    """

    def __init__(self, citations: Citations) -> None:
        super().__init__(*_source_widgets(citations))


def _source_widgets(citations: Citations) -> Iterator[Widget]:
    for title, paths, is_cited in (
        ("Sources", citations.sources, True),
        ("Also sent, but not cited", citations.also_sent, False),
    ):
        if paths:
            yield Static(title, markup=False, classes="-head")
            yield from (Source(path, is_cited=is_cited) for path in paths[:MAX_SOURCES])
        if len(paths) > MAX_SOURCES:
            yield Static(
                f"and {len(paths) - MAX_SOURCES} more: /files", markup=False, classes="-head"
            )
