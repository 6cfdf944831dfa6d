"""Patterns for files and folders of a vault, as users write them in settings.

Examples are `Projects`, `Journal/2025/**` and `*.key`. `*` and `?` stop at `/`, `**` does not, and
`[…]` is a set of characters. A pattern that names a folder covers everything below it, with or
without a slash at its end. A leading `/` or `./`, or the path of the vault itself, stands for the
vault's root. A pattern also covers the exact name: `A[b]` covers a folder of that name. Names are
compared as on a case-insensitive file system (NFC and full case folding), so another spelling does
not avoid a rule.

A rule must not fail open, so a pattern without a meaning here is refused: `!x`, `{a,b}`, `[[a]]`,
`"a"`, `tag:#a`, an invisible character, an unclosed `[`, or a path outside the vault.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

from obsidian_agent.errors import ConfigError
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.paths.rules import collision_key

_WILDCARD: Final = re.compile(r"[*?\[]")
_CHOICE: Final = re.compile(r"(?<!\[)\{[^{}/]*,[^{}/]*\}")
_DRIVE: Final = re.compile(r"[a-z]:/", re.IGNORECASE)
_NOT_IN_NAMES: Final = re.compile(
    r'["<>:\x00-\x1f\x7f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]'
)
"""Characters that Obsidian refuses in names, and invisible ones, as a pasted text has them."""
_LINK: Final = re.compile(r"\[\[[^\]]")
_PIECE = re.compile(r"\*\*/|/\*\*\Z|\*\*|\*|\?|\[[!^]?[^/][^\]/]*\]|.", re.DOTALL)


class PathRules(Struct, frozen=True):
    """A set of patterns."""

    patterns: tuple[str, ...] = ()
    anywhere: bool = False
    """True for rules that restrict access.

    A pattern without a slash then covers a name at any depth, otherwise only in the root, and a
    pattern without wildcards also covers the note of that name.
    """
    root: str = ""
    """The real path of the vault, "" if no vault is open."""

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            _compiled(pattern, self.anywhere, self.root)

    def cover(self, path: VaultPath) -> bool:
        """Return True if a pattern covers a file or folder."""
        return self.covering(path) is not None

    def covering(self, *paths: VaultPath) -> str | None:
        """Return the first pattern that covers one of these files or folders, or None."""
        return next(
            (
                pattern
                for pattern in self.patterns
                for path in paths
                if _compiled(pattern, self.anywhere, self.root).match(path.key) is not None
            ),
            None,
        )

    def __bool__(self) -> bool:
        return bool(self.patterns)


@lru_cache(maxsize=512)
def _compiled(pattern: str, anywhere: bool, root: str) -> re.Pattern[str]:
    text, rooted = _from_root(pattern, root)
    text = collision_key(text)
    _refuse_meaningless(pattern, text)
    parents = "(?:.*/)?" if anywhere and not rooted and "/" not in text else ""
    note = r"(?:\.md)?" if anywhere and not _WILDCARD.search(text) else ""
    try:
        return re.compile(f"{parents}{_translated(text)}{note}(?:/.*)?\\Z", re.DOTALL)
    except re.error as error:
        raise ConfigError(
            f"The pattern {pattern!r} is not valid: {error.msg}.",
            hint="Check the characters in [ ].",
        ) from error


def _from_root(pattern: str, root: str) -> tuple[str, bool]:
    """Return a pattern relative to the vault's root, and whether it starts there.

    Raises `ConfigError` for a pattern with a path outside the vault.
    """
    text = pattern.strip().replace("\\", "/")
    elsewhere = text == "~" or text.startswith("~/") or _DRIVE.match(text) is not None
    if root and (elsewhere or text.startswith("/")):
        inside = _below(os.path.expanduser(text) if text[0] == "~" else text, root)
        if inside is not None:
            return inside, True
        if elsewhere:
            raise ConfigError(
                f"The pattern {pattern!r} names a path outside the vault.",
                hint="Write it from the vault's root, such as Private/**.",
            )
    names = [name for name in text.split("/") if name not in ("", ".")]
    return "/".join(names), text.startswith(("/", "./"))


def _below(path: str, root: str) -> str | None:
    """Return the part of an absolute pattern below the vault, or None if it leads elsewhere.

    The pattern may reach the vault through a link.
    """
    wildcard = _WILDCARD.search(path)
    head = path if wildcard is None else path[: wildcard.start()].rpartition("/")[0]
    real = os.path.realpath(head).replace("\\", "/") + path[len(head) :]
    folders = _names(root.replace("\\", "/"))
    for spelling in (path, real):
        names = _names(spelling)
        if [*map(collision_key, names[: len(folders)])] == [*map(collision_key, folders)]:
            return "/".join(names[len(folders) :])
    return None


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _refuse_meaningless(pattern: str, text: str) -> None:
    """Raise `ConfigError` for a pattern that looks like a rule but would cover nothing."""
    if not text:
        raise ConfigError(
            f"{pattern!r} names no note or folder.",
            hint="Write a path or pattern such as Private/** or *.key.",
        )
    if ".." in text.split("/"):
        raise ConfigError(
            f"The pattern {pattern!r} leads out of the vault.",
            hint="Write it from the vault's root.",
        )
    stripped = pattern.strip()
    if stripped.startswith("!"):
        raise ConfigError(
            f"The pattern {pattern!r} is not allowed: rules cannot have exceptions.",
            hint=f"Write /{stripped} for a name that begins with !, or **/{stripped} at any depth.",
        )
    if (odd := _NOT_IN_NAMES.search(stripped)) is not None:
        raise ConfigError(
            f"The pattern {pattern!r} has the character {odd[0]!r}, which names do not have.",
            hint="Write ? in its place.",
        )
    if _LINK.search(text):
        raise ConfigError(
            f"The pattern {pattern!r} looks like a link.",
            hint="Write the path without brackets, and [[] for the character [ itself.",
        )
    if "[" in _PIECE.findall(text):
        raise ConfigError(
            f"The pattern {pattern!r} has a [ without a ].",
            hint="Write [[] for the character [ itself.",
        )
    if _CHOICE.search(text):
        raise ConfigError(
            f"The pattern {pattern!r} has a choice in braces, which rules do not support.",
            hint="Write a pattern for each choice, and [{] for the character { itself.",
        )


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
            one_of = f"(?!/)[{'^' if negated else ''}{escaped}]"
            return f"(?:{one_of}|{re.escape(piece)})"
        case _:
            return re.escape(piece)
