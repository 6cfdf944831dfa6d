"""A long text cut into parts while it comes: what is finished is drawn once, only the end of it again and again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

PART = 600
"""Characters from which on a part ends with the next paragraph."""

MOST = 3_000
"""Characters after which a part ends wherever a line does, and a line wherever a word does."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class Part:
    """Markdown that can be drawn on its own. `gap`: an empty line follows. `torn`: it ends where no paragraph does."""

    text: str
    gap: bool = True
    torn: bool = False


def mended(parts: Iterable[Part]) -> list[Part]:
    """The same text, what was torn in one part again."""
    whole: list[Part] = []
    for part in parts:
        if whole and whole[-1].torn:
            whole[-1] = Part(whole[-1].text + part.text, part.gap, part.torn)
        else:
            whole.append(part)
    return whole


@dataclass(slots=True)
class Splitter:
    """Takes pieces of a stream. `tail` is the Markdown that may still change."""

    text: str = ""
    _start: int = 0
    _looked: int = 0
    """Up to here, lines were looked at."""
    _blank: bool = False
    _fence: str = ""
    """The line that opened the code block we are in; "" outside of one."""
    _reopened: str = ""

    def take(self, piece: str) -> list[Part]:
        """Add a piece; returns the parts that are finished by it."""
        self.text += piece
        parts: list[Part] = []
        while (end := self.text.find("\n", self._looked)) >= 0:
            self._line(self._looked, end + 1, parts)
            self._looked = end + 1
        if len(self.text) - self._start > MOST:
            self._force(parts)
        return parts

    @property
    def tail(self) -> str:
        """What is not finished."""
        return self._reopened + self.text[self._start :]

    def _line(self, start: int, end: int, parts: list[Part]) -> None:
        line = self.text[start:end]
        if not line.strip():
            self._blank = True
            return
        if self._blank and not self._fence and not line[0].isspace() and start - self._start >= PART:
            self._cut(start, parts, gap=True)
        self._blank = False
        fence = _FENCE.match(line)
        if fence is not None:
            if not self._fence:
                self._fence = line
            elif fence.group(1).startswith(self._mark) and not fence.group(2).strip():
                self._fence = ""
        if end - self._start > MOST:
            self._cut(end, parts, gap=False)

    def _force(self, parts: list[Part]) -> None:
        """The last line is endless: cut it at a word."""
        at = max(self.text.rfind(" ", self._start + MOST // 2), self._looked)
        at = at if at > self._start + MOST // 2 else len(self.text)
        self._looked = max(self._looked, at)
        self._cut(at, parts, gap=False)

    @property
    def _mark(self) -> str:
        found = _FENCE.match(self._fence)
        return found.group(1) if found is not None else ""

    def _cut(self, at: int, parts: list[Part], *, gap: bool) -> None:
        text = self.tail[: len(self._reopened) + at - self._start]
        parts.append(Part(f"{text.rstrip()}\n{self._mark}" if self._fence else text, gap, torn=not gap and not self._fence))
        self._start, self._reopened = at, self._fence
