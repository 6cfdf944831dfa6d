"""Conflict copies, by the names that synchronisation services and git give to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from obsidian_agent.health.texts import are_versions
from obsidian_agent.vault.paths.path import VaultPath

_DATE: Final = r"\d{4}-\d{2}-\d{2}"
_CONFLICT: Final = r"(?:conflict|konflikt|conflit|конфликт|競合|冲突|衝突|충돌)"
_COPY: Final = r"(?:copy|kopie|copie|copia|cópia|kopia|копия|コピー|副本|사본)"
_PATTERNS: Final = (
    # Syncthing: https://docs.syncthing.net/users/syncing.html
    ("Syncthing", re.compile(r"(?P<stem>.+)\.sync-conflict-\d{8}-\d{6}(?:-[A-Z0-9]{7})?")),
    # Obsidian Sync, "Create conflict file"
    ("Obsidian Sync", re.compile(r"(?P<stem>.+) \(Conflicted copy .+ \d{12}\)", re.IGNORECASE)),
    # Nextcloud and ownCloud, with the name of the user or without
    ("Nextcloud", re.compile(rf"(?P<stem>.+) \(conflicted copy (?:.+ )?{_DATE} \d{{6}}\)")),
    ("ownCloud", re.compile(r"(?P<stem>.+)_conflict-(?:.+-)?\d{8}-\d{6}")),
    ("Seafile", re.compile(r"(?P<stem>.+) \(SFConflict .+\)")),
    # Dropbox writes "(WHO's conflicted copy DATE)" in the language of the system.
    ("Dropbox", re.compile(
        rf"(?P<stem>.+) \((?=[^()]*{_COPY})[^()]*{_CONFLICT}[^()]* {_DATE}(?: ?\(?\d+\)?)?\)",
        re.IGNORECASE)),
    ("Dropbox", re.compile(
        r"(?P<stem>.+) \((?:[^()]+['’]s? )?(?:conflict(?:ed|ing) copy|case conflict|"
        r"selective sync conflict|white ?space conflict|unicode encoding conflict)(?: \d+)?\)",
        re.IGNORECASE)),
    ("pCloud", re.compile(r"(?P<stem>.+) \[conflicted\]")),
    ("Resilio Sync", re.compile(r"(?P<stem>.+)\.Conflict(?:\.\d+)?")),
    ("Synology Drive", re.compile(
        r"(?P<stem>.+)_[^_]+_[A-Z][a-z]{2}-\d{2}-\d{6}-\d{4}_(?:Case)?Conflict")),
)  # fmt: skip
_VAGUE: Final = (
    ("git", re.compile(r"(?P<stem>.+)[._](?:BACKUP|BASE|LOCAL|REMOTE)[._]\d+")),
    ("git", re.compile(r"(?P<stem>.+)~[^~]+")),
    ("iCloud", re.compile(r"(?P<stem>.+\S) [2-9]")),
    ("Google Drive", re.compile(r"(?P<stem>.+\S) ?\([1-9]\)")),
)  # fmt: skip
_DEVICE: Final = re.compile(
    r"(?:.*\b(?:desktop|laptop|pc|macbook|imac|mac mini|iphone|ipad|surface)\b.*"
    r"|(?-i:(?=.*[\d-])(?=.*[A-Z]{3})[A-Z0-9]+(?:-[A-Z0-9]+)*))(?:-\d+)?",
    re.IGNORECASE,
)
_NUMBERED: Final = re.compile(r" [2-9]$|\([1-9]\)$")
_TELLTALE: Final = re.compile(rf"(?i:{_CONFLICT})|BACKUP|BASE|LOCAL|REMOTE|[-~]| [2-9]$|\([1-9]\)$")
"""A part of every name that one of the patterns matches."""


class ConflictCopy(Struct, frozen=True):
    """A conflict copy of another file. `is_certain`: its name alone says so."""

    service: str
    original: VaultPath | None
    is_certain: bool


def copies_among(
    files: Sequence[VaultPath], body: Callable[[VaultPath], bytes]
) -> dict[VaultPath, ConflictCopy]:
    """Return the conflict copies among files, by their names.

    A name that can mean something else is one only for notes with nearly the same `body`.
    """
    known = {file.text: file for file in files}
    copies: dict[VaultPath, ConflictCopy] = {}
    for file in files:
        if _TELLTALE.search(file.stem) is None:
            continue
        if name := _certain_name(file):
            copies[file] = ConflictCopy(name.service, known.get(name.original), True)
            continue
        for name in _possible_names(file):
            original = known.get(name.original)
            if original is None:
                continue
            texts = body(file), body(original)
            is_other = texts[0] != texts[1] and _is_one_of_several(file, original, known)
            if are_versions(*texts) and not is_other:
                copies[file] = ConflictCopy(name.service, original, False)
                break
    return copies


class _CopyName(NamedTuple):
    """A name as a service gives it to the conflict copy of `original`, the path of a file."""

    service: str
    original: str


def _certain_name(file: VaultPath) -> _CopyName | None:
    """Return what the name of a conflict copy says, if no other file would be named so."""
    stem = file.stem
    for service, pattern in _PATTERNS:
        if match := pattern.fullmatch(stem):
            return _CopyName(service, _sibling(file, match["stem"]))
    return None


def _possible_names(file: VaultPath) -> Iterator[_CopyName]:
    """Yield readings of a name that is one of a conflict copy only if its text says so too.

    git appends the side of a merge, iCloud and Google Drive a number, OneDrive the computer.
    """
    for service, pattern in _VAGUE:
        if match := pattern.fullmatch(file.stem):
            yield _CopyName(service, _sibling(file, match["stem"]))
    stem, hyphen, device = file.stem.rpartition("-")
    while hyphen:
        if _DEVICE.fullmatch(device):
            yield _CopyName("OneDrive", _sibling(file, stem))
        stem, hyphen, last = stem.rpartition("-")
        device = f"{last}-{device}"


def _is_one_of_several(
    file: VaultPath, original: VaultPath, known: Mapping[str, VaultPath]
) -> bool:
    """Return whether a file is one of a series: "Session", "Session 2" and "Session 3"."""
    forms = (f"{original.stem} {number}" for number in range(1, 10))
    names = (name for form in forms for name in (form, f"{form[:-1]}({form[-1]})"))
    others = (known.get(_sibling(file, name)) for name in names)
    return _NUMBERED.search(file.stem) is not None and any(
        other not in (None, file) for other in others
    )


def _sibling(file: VaultPath, stem: str) -> str:
    folder = f"{file.parent.text}/" if file.parent.text else ""
    return f"{folder}{stem}{file.suffix}"
