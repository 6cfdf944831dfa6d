"""Conflict copies that synchronisation services and git leave beside a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from obsidian_agent.errors import VaultError
from obsidian_agent.health.digests import Digests
from obsidian_agent.health.finding import HealthFinding, Repair, RepairChoice, RepairStep
from obsidian_agent.health.merge import Merged, common_base, merge_texts
from obsidian_agent.health.names import has_placeholder
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.text import decode
from obsidian_agent.vault.views.changes import content_hash

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
_TELLTALE: Final = re.compile(
    r"(?i:conflict|konflikt)|BACKUP|BASE|LOCAL|REMOTE|DESKTOP|LAPTOP|PC| [2-9]$|\([1-9]\)$"
)
"""A part of every name that one of the patterns above matches. Few other names have one."""

_MAX_MERGED: Final = 256 << 10
"""The size in bytes up to which notes are merged; larger ones would take long."""


def original_name(file: VaultPath) -> tuple[str, str] | None:
    """Return the service and the path of the original of a conflict copy, by its name alone."""
    return _match(file, _PATTERNS)


def _match(
    file: VaultPath, patterns: tuple[tuple[str, re.Pattern[str]], ...]
) -> tuple[str, str] | None:
    stem = file.stem
    if _TELLTALE.search(stem) is None:
        return None
    folder = f"{file.parent.text}/" if file.parent.text else ""
    for service, pattern in patterns:
        if match := pattern.fullmatch(stem):
            return service, f"{folder}{match['stem']}{file.suffix}"
    return None


def conflict_copies(survey: VaultSurvey, digests: Digests) -> Iterator[HealthFinding]:
    """Yield conflict copies of files, and notes with git's conflict marks."""
    known = {file.text: file for file in survey.files}
    repairs = _Repairs(survey)
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
            yield _copy(file, service, known.get(original), repairs)
        elif match := _match(file, _COPIES):
            service, original = match
            if pairs.get(frozenset((file.text, original)), 0.0):
                yield _copy(file, service, known[original], repairs)
    for note, digest in digests.of.items():
        if digest.has_conflict_marks:
            yield HealthFinding(
                kind="conflict-copy",
                path=note.text,
                subject="marks",
                text="The note has git's conflict marks.",
                evidence="lines that begin with <<<<<<<, ======= and >>>>>>>",
            )


def _copy(
    file: VaultPath, service: str, original: VaultPath | None, repairs: _Repairs
) -> HealthFinding:
    return HealthFinding(
        kind="conflict-copy",
        path=file.text,
        subject="" if original is None else original.text,
        text=f"A conflict copy of {original}." if original else "A conflict copy; no original.",
        evidence=f"named as {service} names conflicts",
        repair=None if original is None else repairs.of(file, original),
    )


class _Repairs:
    """The merges of conflict copies. Of several copies of a file, one is merged at a time."""

    def __init__(self, survey: VaultSurvey) -> None:
        self._survey = survey
        self._merged: set[VaultPath] = set()

    def of(self, copy: VaultPath, original: VaultPath) -> Repair | None:
        """Return the merge of a copy, or None if there is no safe one."""
        survey = self._survey
        if original in self._merged or not original.is_note or not copy.is_note:
            return None
        if copy in survey.linked_files(original):
            return None  # its links would change, and with them the text to merge
        try:
            own, other = survey.view.read(original), survey.view.read(copy)
            if max(len(own), len(other)) > _MAX_MERGED:
                return None
            merged = self._merge(original, copy, own, other)
        except VaultError:
            return None
        # In a plan, a placeholder in the text would be taken for a reference.
        if any(map(has_placeholder, (original.text, copy.text, merged.text))):
            return None
        self._merged.add(original)
        steps = []
        if survey.backlinks.get(copy):
            args = {"from": copy.text, "to": original.text}
            steps.append(RepairStep("vault.retargetLinks", args))
        if merged.text.encode() != own:
            values = {"content": merged.text, "ifMatch": content_hash(own)}
            steps.append(RepairStep("vault.writeFile", {"path": original.text, **values}))
        steps.append(RepairStep("vault.delete", {"path": copy.text}))
        if merged.is_clean:
            title = f"Merge it into {original} and delete it"
        else:
            title = f"Keep both texts in {original}, marked where they differ, and delete it"
        return Repair((RepairChoice(title, tuple(steps)),), preselected=merged.is_clean)

    def _merge(self, original: VaultPath, copy: VaultPath, own: bytes, other: bytes) -> Merged:
        texts = decode(own, original.text), decode(other, copy.text)
        versions = []
        for data in self._survey.settings.old_versions(original.text):
            if len(data) <= _MAX_MERGED:
                versions.append(data.decode(errors="replace"))
        base = common_base(versions, texts[1])
        merged = merge_texts(*texts, base, (original.name, copy.name))
        # If nothing changed here since the base, the copy may well be the older one.
        return Merged(merged.text, merged.is_clean and (base != texts[0] or own == other))
