"""An error report that a person can show to others: where it happened, not what the notes say."""

from __future__ import annotations

import platform
import re
import sys
import traceback

import obsidian_agent

_PATH = re.compile(r"(?:[A-Za-z]:\\|~?/)[^\s'\"<>|]+")
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|“[^”\n]*”")
_SECRET = re.compile(r"\b(?:sk|pk|ghp|xox[a-z])[-_][\w-]{6,}|\b[\w-]{32,}|(?i:bearer\s+\S+)")
MESSAGE_LIMIT = 300


def redacted(text: str) -> str:
    """The text without paths, quoted texts and everything that looks like a key."""
    for pattern, stand_in in ((_SECRET, "<secret>"), (_QUOTED, "<text>"), (_PATH, "<path>")):
        text = pattern.sub(stand_in, text)
    return text[:MESSAGE_LIMIT]


def report(error: BaseException) -> str:
    """Versions, the chain of errors, and the places in the code; no note text, paths of the computer or keys."""
    lines = [f"obsidian-agent {obsidian_agent.__version__}, Python {platform.python_version()}, {sys.platform}"]
    seen: BaseException | None = error
    while seen is not None:
        lines.append(f"{type(seen).__module__}.{type(seen).__qualname__}: {redacted(str(seen))}")
        for frame in traceback.extract_tb(seen.__traceback__):
            where = frame.filename.replace("\\", "/").rpartition("obsidian_agent/")
            name = f"obsidian_agent/{where[2]}" if where[1] else frame.filename.replace("\\", "/").rpartition("/")[2]
            lines.append(f"  {name}:{frame.lineno} in {frame.name}")
        seen = seen.__cause__ or seen.__context__
    return "\n".join(lines)
