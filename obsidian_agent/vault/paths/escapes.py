"""How a path leads out of the vault without any `..`: drives, URL schemes, home folders, variables, percent codes. Text in, text out."""

from __future__ import annotations

import re
from typing import Final

from obsidian_agent.vault.paths.rules import climbs, is_variable, protected, unreadable

_SCHEME_OR_DRIVE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_KNOWN_SCHEME = re.compile(
    r"(?:https?|file|ftps?|sftp|ssh|smb|nfs|webdavs?|data|javascript|vbscript|mailto|obsidian|vscode|app|blob|about):", re.IGNORECASE
)
_DRIVE = re.compile(r"[A-Za-z]:")
_PERCENT = re.compile(r"%(?:u([0-9a-f]{4})|([0-9a-f]{2}))", re.IGNORECASE)
_OVERLONG = re.compile(r"%(?:c[01]%[0-9a-f]{2}|e0%[89]|f0%8)", re.IGNORECASE)
_ROUNDS: Final = 4


def foreign_start(first: str, *, new: bool) -> str | None:
    """What the first component of a path stands for outside of the vault, or None. The answer completes "the path …".

    An existing `~archive` or `Q: why.md` is only a name; nothing `new` gets such a one.
    """
    if _KNOWN_SCHEME.match(first) or _SCHEME_OR_DRIVE.fullmatch(first):
        return "starts with a drive or a URL scheme"
    if first == "~" or (new and first[0] == "~"):
        return "starts with '~', which stands for a home folder"
    if new and _DRIVE.match(first):
        return "starts with a drive"
    return "starts with a variable, which is never filled in" if new and is_variable(first) else None


def foreign_code(path: str, *, new: bool) -> str | None:
    """Percent codes that would make a canonical path climb, hidden or (a `new` one) deeper if something decoded them; we never do.

    The answer completes "the path …".
    """
    if "%" not in path:
        return None
    decoded = path
    for _ in range(_ROUNDS):
        decoded = _decoded(decoded)
    parts = decoded.replace("\\", "/").split("/")
    hides = bool(_OVERLONG.search(path) or unreadable(decoded)) or any(_means_more(part) for part in parts)
    return "has percent codes for separators, dots or control characters" if hides or (new and len(parts) > path.count("/") + 1) else None


def _means_more(part: str) -> bool:
    return part.strip() in ("", ".") or climbs(part) or protected(part)


def _decoded(text: str) -> str:
    decoded, end = bytearray(), 0
    for found in _PERCENT.finditer(text):
        wide, narrow = found.groups()
        decoded += text[end : found.start()].encode()
        decoded += chr(int(wide, 16)).encode(errors="replace") if wide else bytes.fromhex(narrow)
        end = found.end()
    return (decoded + text[end:].encode()).decode(errors="replace")
