"""The opening tags in a piece of HTML, each with its place."""

from __future__ import annotations

from html.parser import HTMLParser


def opening_tags(text: str) -> list[tuple[int, str]]:
    """Each with the character at which it begins; those in comments, scripts and styles are none."""
    return _Tags(text).found


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[tuple[int, str]] = []
        self._lines = [0, *(at + 1 for at, sign in enumerate(text) if sign == "\n")]
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        line, column = self.getpos()
        self.found.append((self._lines[line - 1] + column, self.get_starttag_text() or ""))
