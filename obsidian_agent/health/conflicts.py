"""Conflict copies that synchronisation services and git leave beside a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from obsidian_agent.health.digests import Digests
from obsidian_agent.health.finding import HealthFinding
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.paths.path import VaultPath

_PATTERNS: Final = (
    # Syncthing: https://docs.syncthing.net/users/syncing.html
    ("Syncthing", re.compile(r"(?P<stem>.+)\.sync-conflict-\d{8}-\d{6}(?:-[A-Z0-9]{7})?")),
    # Obsidian Sync, "Create conflict file"
    ("Obsidian Sync", re.compile(r"(?P<stem>.+) \(Conflicted copy .+ \d{12}\)", re.IGNORECASE)),
    # Nextcloud and ownCloud
    ("Nextcloud", re.compile(r"(?P<stem>.+) \(conflicted copy \d{4}-\d{2}-\d{2} \d{6}\)")),
    # Dropbox, in its languages that keep the form "NAME (WHO's conflicted copy DATE)"
    ("Dropbox", re.compile(
        r"(?P<stem>.+) \((?:.+['’]s? )?(?:conflicted copy|case conflict|selective sync conflict)"
        r"(?: \d{4}-\d{2}-\d{2})?(?: \(\d+\))?\)", re.IGNORECASE)),
    ("Dropbox", re.compile(r"(?P<stem>.+) \((?:.+ )?in Konflikt stehende Kopie.*\)")),
    ("git", re.compile(r"(?P<stem>.+)[._](?:BACKUP|BASE|LOCAL|REMOTE)[._]\d+")),
    ("Resilio Sync", re.compile(r"(?P<stem>.+)\.Conflict(?:\.\d+)?")),
)  # fmt: skip
_COPIES: Final = (
    # OneDrive appends the name of the computer, iCloud and Google Drive a number.
    ("OneDrive", re.compile(
        r"(?P<stem>.+)-(?:[A-Z0-9]+-)?(?:DESKTOP|LAPTOP|PC)(?:-[A-Z0-9]+)?(?:-\d+)?")),
    ("iCloud", re.compile(r"(?P<stem>.+\S) [2-9]")),
    ("Google Drive", re.compile(r"(?P<stem>.+\S) ?\([1-9]\)")),
)  # fmt: skip
"""Names that are conflict copies only if the original exists and has nearly the same text."""


def original_name(file: VaultPath) -> tuple[str, str] | None:
    """Return the service and the path of the original of a conflict copy, by its name alone."""
    return _match(file, _PATTERNS)


def _match(
    file: VaultPath, patterns: tuple[tuple[str, re.Pattern[str]], ...]
) -> tuple[str, str] | None:
    folder = f"{file.parent.text}/" if file.parent.text else ""
    for service, pattern in patterns:
        if match := pattern.fullmatch(file.stem):
            return service, f"{folder}{match['stem']}{file.suffix}"
    return None


def conflict_copies(survey: VaultSurvey, digests: Digests) -> Iterator[HealthFinding]:
    """Yield conflict copies of files, and notes with git's conflict marks."""
    known = {file.text for file in survey.files}
    pairs = {
        frozenset((first.text, second.text)): share for first, second, share in digests.similar
    }
    for group in digests.identical:
        for note in group:
            for other in group:
                pairs[frozenset((note.text, other.text))] = 1.0
    for file in survey.files:
        if match := original_name(file):
            service, original = match
            yield _copy(file, service, original if original in known else "")
        elif match := _match(file, _COPIES):
            service, original = match
            if pairs.get(frozenset((file.text, original)), 0.0):
                yield _copy(file, service, original)
    for note, digest in digests.of.items():
        if digest.has_conflict_marks:
            yield HealthFinding(
                kind="conflict-copy",
                path=note.text,
                subject="marks",
                text="The note has git's conflict marks.",
                evidence="lines that begin with <<<<<<<, ======= and >>>>>>>",
            )


def _copy(file: VaultPath, service: str, original: str) -> HealthFinding:
    return HealthFinding(
        kind="conflict-copy",
        path=file.text,
        subject=original,
        text=f"A conflict copy of {original}." if original else "A conflict copy; no original.",
        evidence=f"named as {service} names conflicts",
    )
