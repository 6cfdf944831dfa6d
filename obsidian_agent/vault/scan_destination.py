"""The destination of a Markdown link: where it ends, whether it leads out of the vault, and which file it names."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from obsidian_agent.vault.scan_model import Link

_PUNCTUATION: Final = rb"[!-/:-@\[-`{-~]"
_NESTING: Final = 8


def _balanced(levels: int) -> bytes:
    unit = rb"[^\s()\\]++|\\" + _PUNCTUATION + rb"?+"
    pattern = rb"(?:" + unit + rb")*+"
    for _ in range(levels):
        pattern = rb"(?:" + unit + rb"|\(" + pattern + rb"\))*+"
    return pattern


DESTINATION: Final = re.compile(
    rb"[ \t\r\n]*+(?:<((?:[^<>\n\\]|\\[\s\S])*+)>|(?!<)(" + _balanced(_NESTING) + rb"))"
    rb"""(?:[ \t\r\n]++(?:"(?:[^"\\]|\\[\s\S])*+"|'(?:[^'\\]|\\[\s\S])*+'|\((?:[^)\\]|\\[\s\S])*+\)))?[ \t\r\n]*+\)"""
)
"""From behind the opening parenthesis to behind the closing one: group 1 in angle brackets, group 2 without; a title may follow."""

_EXTERNAL: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*:|//")
_ESCAPE: Final = re.compile(rb"\\(" + _PUNCTUATION + rb")")
_SUBPATH: Final = re.compile(rb"#|%23|\\#")


def is_external(destination: bytes) -> bool:
    """Whether a destination has a URL's scheme or host."""
    return _EXTERNAL.match(destination) is not None


def decoded(destination: bytes) -> str:
    """What a destination says: backslash escapes and percent-encoding undone; encoding that is no UTF-8 stays as it is."""
    plain = _ESCAPE.sub(rb"\1", destination) if b"\\" in destination else destination
    if b"%" in plain:
        try:
            return unquote_to_bytes(plain).decode()
        except UnicodeDecodeError:
            pass
    return plain.decode()


def markdown_link(display: bytes, raw: bytes, start: int, end: int, raw_start: int, line: int, *, embed: bool, angle: bool) -> Link:
    """A Markdown link to a file; `raw` is its destination as written, from `raw_start`."""
    path, mark, subpath = decoded(raw).partition("#")
    stop = found.start() if mark and (found := _SUBPATH.search(raw)) else len(raw)
    piece = raw[:stop]
    first = raw_start + len(piece) - len(piece.lstrip())
    return Link(
        "markdown-embed" if embed else "markdown",
        path.strip(),
        mark + subpath,
        display.decode(),
        start,
        end,
        first,
        max(first, raw_start + len(piece.rstrip())),
        line,
        "angle" if angle else "plain",
    )
