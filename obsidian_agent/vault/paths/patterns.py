"""Patterns for files and folders of a vault, as people write them in settings.

Such as `Projects`, `Journal/2025/**`, `*.key`: `*` and `?` stop at `/`, `**` does not, `[…]` is a set of characters. One that names a folder covers
everything below it; a slash at its end changes nothing. Names are compared as file systems that ignore case do (NFC and full case folding),
so a rule cannot be got round by another spelling.
"""

from __future__ import annotations

import re
from functools import lru_cache

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ConfigError
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.paths.rules import collision_key


@dataclass(frozen=True, slots=True)
class PathRules:
    """A set of patterns. `anywhere`: one without a slash inside matches a name at any depth, else only in the root (as `/name` does)."""

    patterns: tuple[str, ...] = ()
    anywhere: bool = False

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            _compiled(pattern, self.anywhere)

    def cover(self, path: VaultPath) -> bool:
        """Whether a file or folder is named by a pattern, or lies below a folder that is."""
        return self.covering(path) is not None

    def covering(self, path: VaultPath) -> str | None:
        """The first pattern that covers a file or folder."""
        return next(
            (
                pattern
                for pattern in self.patterns
                if _compiled(pattern, self.anywhere).match(path.key) is not None
            ),
            None,
        )

    def __bool__(self) -> bool:
        return bool(self.patterns)


@lru_cache(maxsize=512)
def _compiled(pattern: str, anywhere: bool) -> re.Pattern[str]:
    text = collision_key(pattern.strip().replace("\\", "/"))
    rooted = text.startswith("/")
    text = text.strip("/")
    if not text or text == ".":
        raise ConfigError(
            f"{pattern!r} names no note or folder.",
            hint="Write a path or pattern such as Private/** or *.key.",
        )
    if ".." in text.split("/"):
        raise ConfigError(
            f"The pattern {pattern!r} leads out of the vault.",
            hint="Write it from the vault's root.",
        )
    floating = anywhere and not rooted and "/" not in text
    try:
        return re.compile(
            f"{'(?:.*/)?' if floating else ''}{_translated(text)}(?:/.*)?\\Z", re.DOTALL
        )
    except re.error as error:
        raise ConfigError(
            f"The pattern {pattern!r} cannot be read: {error.msg}.",
            hint="Check what stands in [ ].",
        ) from error


_PIECE = re.compile(r"\*\*/|/\*\*\Z|\*\*|\*|\?|\[[!^]?[^/][^\]/]*\]|.", re.DOTALL)


def _translated(text: str) -> str:
    return "".join(_piece(match.group()) for match in _PIECE.finditer(text))


def _piece(piece: str) -> str:
    match piece:
        case "**/":
            return "(?:.*/)?"
        case "/**":
            return "(?:/.*)?"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
        case _ if len(piece) > 1:
            inner = piece[1:-1]
            negated = len(inner) > 1 and inner[0] in "!^"
            escaped = re.sub(r"([\\\[\]&~|^])", r"\\\1", inner[1:] if negated else inner)
            return f"(?!/)[{'^' if negated else ''}{escaped}]"
        case _:
            return re.escape(piece)
