"""The colors of a block of code. The module is imported when the first block is drawn."""

from __future__ import annotations

from typing import Final

from textual.content import Content
from textual.highlight import HighlightTheme, highlight

LANGUAGES: Final = frozenset(
    {
        "bash",
        "c",
        "cpp",
        "css",
        "diff",
        "go",
        "html",
        "ini",
        "java",
        "javascript",
        "js",
        "json",
        "kotlin",
        "lua",
        "py",
        "python",
        "ruby",
        "rust",
        "sh",
        "shell",
        "sql",
        "swift",
        "toml",
        "ts",
        "typescript",
        "xml",
        "yaml",
        "yml",
    }
)
"""The languages with colors. The text of a note chooses no others: a lexer can be slow."""

MAX_CHARACTERS: Final = 4_000
"""Characters of a block beyond which it has one color."""

_STYLES: Final = {
    "Token.Comment": "$quiet italic",
    "Token.Keyword": "$primary",
    "Token.Literal.String": "$success",
    "Token.Literal.Number": "$warning",
    "Token.Name.Tag": "$primary",
    "Token.Name.Attribute": "$warning",
}


class _Colors(HighlightTheme):
    STYLES = {key: _STYLES[str(key)] for key in HighlightTheme.STYLES if str(key) in _STYLES}


def colored_lines(code: str, language: str) -> list[Content] | None:
    """Return the lines of a block of code in colors, None if it has no known language."""
    rows = code.split("\n")
    if (
        language.casefold() not in LANGUAGES
        or len(code) > MAX_CHARACTERS
        or code.splitlines() != rows
    ):
        return None
    return highlight(code, language=language, theme=_Colors).split("\n", allow_blank=True)
