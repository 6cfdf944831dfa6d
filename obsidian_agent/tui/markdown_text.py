"""Markdown of an answer as styled text, without images or HTML.

One text in one widget keeps a long conversation fast: Textual's Markdown mounts a widget for every
paragraph. `Splitter` divides a streamed answer into parts, so that only its end is drawn again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct
from textual.content import Content
from textual.style import Style

from obsidian_agent import terminal_text
from obsidian_agent.tui.markdown_lines import LinkSpan, markdown_lines, shift_links

LINK = "link"
"""The key of a link's number in the style of its text."""

MIN_PART = 600
"""Characters after which a part ends at the next paragraph."""

MAX_PART = 3_000
"""Characters after which a part ends at the next line or, in an endless line, at a word."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class RenderedAnswer(NamedTuple):
    """A styled text and its links, to which the numbers in its styles refer."""

    content: Content
    links: list[LinkSpan]


def render(text: str) -> Content:
    """Return styled text for a Markdown answer, with unsafe characters replaced."""
    return render_with_links(text).content


def render_with_links(text: str) -> RenderedAnswer:
    """Return the styled text of an answer. A link in it has its number as `LINK` of its style."""
    try:
        lines = markdown_lines(text)
    except RecursionError:
        return RenderedAnswer(Content(terminal_text.block(text)), [])
    pieces: list[Content | str] = []
    links: list[LinkSpan] = []
    at = 0
    for line in lines:
        body = line.body
        at += len(line.first)
        for link in line.links:
            style = Style.from_meta({LINK: len(links)})
            body = body.stylize(style, link.start, link.end)
            links += shift_links([link], 0, len(body), at)
        pieces += [line.first, body, "\n"]
        at += len(body) + 1
    return RenderedAnswer(Content.assemble(*pieces).rstrip(), links)


class MarkdownPart(Struct, frozen=True):
    """Markdown that can be drawn on its own."""

    text: str
    has_gap: bool = True
    """True if an empty line follows."""
    is_torn: bool = False
    """True if the next part continues the same paragraph."""


def rejoin(parts: Iterable[MarkdownPart]) -> list[MarkdownPart]:
    """Return the parts with torn ones joined again."""
    whole: list[MarkdownPart] = []
    for part in parts:
        if whole and whole[-1].is_torn:
            whole[-1] = MarkdownPart(whole[-1].text + part.text, part.has_gap, part.is_torn)
        else:
            whole.append(part)
    return whole


class Splitter(Struct):
    """Divides a stream of Markdown into parts that do not change any more."""

    text: str = ""
    _start: int = 0
    _scanned: int = 0
    """Offset up to which lines were scanned."""
    _blank: bool = False
    _fence: str = ""
    """The line that opened the current code block, or an empty string."""
    _reopened: str = ""
    """The fence that the current part must repeat because it starts inside a code block."""

    def feed(self, piece: str) -> list[MarkdownPart]:
        """Add a piece of the stream. Return the parts that it completes."""
        self.text += piece
        parts: list[MarkdownPart] = []
        while (end := self.text.find("\n", self._scanned)) >= 0:
            self._line(self._scanned, end + 1, parts)
            self._scanned = end + 1
        if len(self.text) - self._start > MAX_PART:
            self._split_line(parts)
        return parts

    @property
    def tail(self) -> str:
        """The Markdown behind the completed parts, which may still change."""
        return self._reopened + self.text[self._start :]

    def _line(self, start: int, end: int, parts: list[MarkdownPart]) -> None:
        line = self.text[start:end]
        if not line.strip():
            self._blank = True
            return
        if (
            self._blank
            and not self._fence
            and not line[0].isspace()
            and start - self._start >= MIN_PART
        ):
            self._end_part(start, parts, has_gap=True)
        self._blank = False
        fence = _FENCE.match(line)
        if fence is not None:
            if not self._fence:
                self._fence = line
            elif fence.group(1).startswith(self._fence_mark) and not fence.group(2).strip():
                self._fence = ""
        if end - self._start > MAX_PART:
            self._end_part(end, parts, has_gap=False)

    def _split_line(self, parts: list[MarkdownPart]) -> None:
        """Split an endless last line at a word."""
        middle = self._start + MAX_PART // 2
        at = max(self.text.rfind(" ", middle), self._scanned)
        if at <= middle:
            at = len(self.text)
        self._scanned = max(self._scanned, at)
        self._end_part(at, parts, has_gap=False)

    @property
    def _fence_mark(self) -> str:
        match = _FENCE.match(self._fence)
        return match.group(1) if match is not None else ""

    def _end_part(self, at: int, parts: list[MarkdownPart], *, has_gap: bool) -> None:
        text = self.tail[: len(self._reopened) + at - self._start]
        if self._fence:
            text = f"{text.rstrip()}\n{self._fence_mark}"
        is_torn = not has_gap and not self._fence
        parts.append(MarkdownPart(text, has_gap, is_torn))
        self._start, self._reopened = at, self._fence
