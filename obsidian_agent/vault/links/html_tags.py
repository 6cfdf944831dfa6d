"""The opening tags in a piece of HTML, with their positions."""

from __future__ import annotations

from html.parser import HTMLParser


def opening_tags(text: str) -> list[tuple[int, str]]:
    """Return each opening tag with its offset. Comments, scripts and styles contain none."""
    return _Tags(text).tags


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.tags: list[tuple[int, str]] = []
        self._lines = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        line, column = self.getpos()
        self.tags.append((self._lines[line - 1] + column, self.get_starttag_text() or ""))
