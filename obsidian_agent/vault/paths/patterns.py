"""Patterns for files and folders of a vault, as users write them in settings.

Such as `Projects`, `Journal/2025/**`, `*.key`: `*` and `?` stop at `/`, `**` does not, `[…]` is a set of characters. A pattern that names a
folder covers everything below it; a slash at its end changes nothing. A leading `/` or `./`, or the folder of the vault itself, stands for
the vault's root. The exact name counts as well: `A[b]` covers a folder of that name. Names are compared as file systems that ignore case
do (NFC and full case folding), so another spelling does not avoid a rule.

A rule must not fail open: what has no meaning here (`!x`, `{a,b}`, an unclosed `[`, a place outside the vault) is refused.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Final

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ConfigError
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.paths.rules import collision_key


@dataclass(frozen=True, slots=True)
class PathRules:
    """A set of patterns. `root` is the real path of the vault, "" where no vault is open.

    `anywhere`: the rules take something away. A pattern without a slash inside matches a name at any depth (else only in the root), and one
    without wildcards also the note of that name.
    """

    patterns: tuple[str, ...] = ()
    anywhere: bool = False
    root: str = ""

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            _compiled(pattern, self.anywhere, self.root)

    def cover(self, path: VaultPath) -> bool:
        """Return whether a pattern names a file or folder, or a folder that it lies in."""
        return self.covering(path) is not None

    def covering(self, path: VaultPath) -> str | None:
        """Return the first pattern that covers a file or folder."""
        return next(
            (
                pattern
                for pattern in self.patterns
                if _compiled(pattern, self.anywhere, self.root).match(path.key) is not None
            ),
            None,
        )

    def __bool__(self) -> bool:
        return bool(self.patterns)


_WILDCARD: Final = re.compile(r"[*?\[]")
_CHOICE: Final = re.compile(r"(?<!\[)\{[^{}/]*,[^{}/]*\}")
_DRIVE: Final = re.compile(r"[a-z]:/", re.IGNORECASE)


@lru_cache(maxsize=512)
def _compiled(pattern: str, anywhere: bool, root: str) -> re.Pattern[str]:
    text, rooted = _from_root(pattern, root)
    text = collision_key(text)
    _refuse_meaningless(pattern, text)
    floating = anywhere and not rooted and "/" not in text
    note = r"(?:\.md)?" if anywhere and not _WILDCARD.search(text) else ""
    try:
        return re.compile(
            f"{'(?:.*/)?' if floating else ''}{_translated(text)}{note}(?:/.*)?\\Z", re.DOTALL
        )
    except re.error as error:
        raise ConfigError(
            f"The pattern {pattern!r} cannot be read: {error.msg}.",
            hint="Check what stands in [ ].",
        ) from error


def _from_root(pattern: str, root: str) -> tuple[str, bool]:
    """Return a pattern relative to the vault's root, and whether it starts there.

    Raises `ConfigError` for one that names another place on this machine.
    """
    text = pattern.strip().replace("\\", "/")
    elsewhere = text == "~" or text.startswith("~/") or _DRIVE.match(text) is not None
    if root and (elsewhere or text.startswith("/")):
        inside = _below(os.path.expanduser(text) if text[0] == "~" else text, root)
        if inside is not None:
            return inside, True
        if elsewhere:
            raise ConfigError(
                f"The pattern {pattern!r} names a place outside the vault.",
                hint="Write it from the vault's root, such as Private/**.",
            )
    names = [name for name in text.split("/") if name not in ("", ".")]
    return "/".join(names), text.startswith(("/", "./"))


def _below(place: str, root: str) -> str | None:
    """Return what follows the vault's folder in an absolute pattern, also one through a link; `None` if the pattern leads elsewhere."""
    wildcard = _WILDCARD.search(place)
    head = place if wildcard is None else place[: wildcard.start()].rpartition("/")[0]
    real = os.path.realpath(head).replace("\\", "/") + place[len(head) :]
    folders = _names(root.replace("\\", "/"))
    for spelling in (place, real):
        names = _names(spelling)
        if [*map(collision_key, names[: len(folders)])] == [*map(collision_key, folders)]:
            return "/".join(names[len(folders) :])
    return None


def _names(place: str) -> list[str]:
    return [name for name in place.split("/") if name not in ("", ".")]


def _refuse_meaningless(pattern: str, text: str) -> None:
    """Raise `ConfigError` for a pattern that looks like a rule and would cover nothing."""
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
    written = pattern.strip()
    if written.startswith("!"):
        raise ConfigError(
            f"The pattern {pattern!r} makes no exception: rules have none.",
            hint=f"A name that begins with ! is written /{written}, or **/{written} at any depth.",
        )
    if "[" in _PIECE.findall(text):
        raise ConfigError(
            f"The pattern {pattern!r} has a [ without a ].",
            hint="Write [[] for the character [ itself.",
        )
    if _CHOICE.search(text):
        raise ConfigError(
            f"The pattern {pattern!r} has a choice in braces, which rules don't know.",
            hint="Write a pattern for each, and [{] for the character { itself.",
        )


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
            one_of = f"(?!/)[{'^' if negated else ''}{escaped}]"
            return f"(?:{one_of}|{re.escape(piece)})"
        case _:
            return re.escape(piece)
