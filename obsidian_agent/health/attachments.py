"""Findings about attachments that no file uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final
from urllib.parse import unquote_to_bytes

from obsidian_agent.errors import VaultError
from obsidian_agent.health.finding import HealthFinding, Repair
from obsidian_agent.health.name_evidence import attachment_key, attachment_keys
from obsidian_agent.health.notes import delete
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.links.graph import ATTACHMENTS, means_note
from obsidian_agent.vault.paths.path import VaultPath

_MAX_TEXT_FILE: Final = 1 << 20
_EXTENSION: Final = re.compile(
    rf"\.(?:{'|'.join(suffix[1:] for suffix in sorted(ATTACHMENTS))})".encode(), re.IGNORECASE
)


def unused_attachments(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield the attachments that no note, canvas or base links to, embeds or mentions."""
    candidates = [
        file
        for file in survey.files
        if file.suffix.lower() in ATTACHMENTS and not survey.settings.is_excluded(file.text)
    ]
    if not candidates:
        return
    used = set().union(*map(survey.linked_files, survey.targets))
    for source, facts in survey.facts.items():
        for target in facts.references:
            file = survey.resolver.resolve(target, source)
            if file is not None:
                used.add(file)
    # A broken embed may mean one of them.
    missing = {
        attachment_key(target.rpartition("/")[2])
        for files in survey.targets.values()
        for target, file in files.items()
        if file is None and not means_note(target)
    }
    unused = [
        file
        for file in candidates
        if file not in used and missing.isdisjoint(attachment_keys(file.name))
    ]
    mentioned = _mentioned(survey, {file.name for file in unused})
    for file in unused:
        if file.name not in mentioned:
            yield HealthFinding(
                kind="unused-attachment",
                path=file.text,
                subject="",
                text="No note uses this file.",
                evidence="no link, embed or mention of its name",
                repair=Repair((delete(file),)),
            )


def _mentioned(survey: VaultSurvey, names: set[str]) -> set[str]:
    """Return the names that are written in any note, canvas, base or other text of the vault.

    Plugins refer to files in ways that are not links.
    """
    if not names:
        return set()
    by_bytes = {name.encode("utf-8", "surrogatepass"): name for name in names}
    lengths = sorted(set(map(len, by_bytes)))
    mentioned: set[str] = set()
    texts = (_data(survey, file) for file in survey.files if file.suffix.lower() not in ATTACHMENTS)
    for data in chain((survey.settings.snippets(),), texts):
        plain = unquote_to_bytes(data) if b"%" in data else data
        for match in _EXTENSION.finditer(plain):
            endings = {plain[match.end() - length : match.end()] for length in lengths}
            mentioned.update(by_bytes[name] for name in by_bytes.keys() & endings)
    return mentioned


def _data(survey: VaultSurvey, file: VaultPath) -> bytes:
    try:
        if not file.is_note and survey.view.stat(file).size > _MAX_TEXT_FILE:
            return b""
        data = survey.index.text(file) if file.is_note else survey.view.read(file)
    except VaultError:
        return b""
    return data if isinstance(data, bytes) else b""
