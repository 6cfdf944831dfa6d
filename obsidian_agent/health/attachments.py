"""Findings about attachments that no file uses."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final
from urllib.parse import unquote_to_bytes

from obsidian_agent.errors import VaultError
from obsidian_agent.health.finding import HealthFinding, Repair
from obsidian_agent.health.name_evidence import attachment_key, attachment_keys
from obsidian_agent.health.notes import delete
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.links.graph import ATTACHMENTS, means_note
from obsidian_agent.vault.links.resolve import link_key
from obsidian_agent.vault.paths.path import VaultPath

_MAX_TEXT_FILE: Final = 1 << 20
_MAX_WRITTEN: Final = 600
"""Bytes that the name of a file takes in a text, with escapes."""
_ENCODED: Final = re.compile(rb"%(?:2[eE]|[3-7])")
"""The beginning of a dot, a digit or a letter of an extension in percent-encoding."""
_JSON_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_DRAWING: Final = ".excalidraw"


def unused_attachments(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield the attachments that no note, canvas or base links to, embeds or mentions."""
    candidates = [
        file
        for file in survey.files
        if file.suffix.lower() in ATTACHMENTS and not survey.settings.is_excluded(file.text)
    ]
    if not candidates:
        return
    used = set().union(*survey.linked_files.values())
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
    in_use = _mentioned(survey, unused) | _exported(survey, unused)
    for file in unused:
        if file not in in_use:
            yield HealthFinding(
                kind="unused-attachment",
                path=file.text,
                subject="",
                text="No note uses this file.",
                evidence="no link, embed or mention of its name",
                repair=Repair((delete(file),)),
            )


def _exported(survey: VaultSurvey, files: Sequence[VaultPath]) -> set[VaultPath]:
    """Return the files that are named as a note beside them: what a drawing is exported to."""
    if not files:
        return set()
    beside = {(note.parent, note.stem.removesuffix(_DRAWING)) for note in survey.sources}
    drawings = {note.stem for note in survey.sources if note.stem.endswith(_DRAWING)}
    return {file for file in files if file.stem in drawings or (file.parent, file.stem) in beside}


def _mentioned(survey: VaultSurvey, files: Sequence[VaultPath]) -> set[VaultPath]:
    """Return the files whose names are written in any text of the vault, or their folders in code.

    Plugins refer to files in ways that are not links. A gallery shows all pictures of a folder.
    """
    if not files:
        return set()
    by_name: dict[str, list[VaultPath]] = defaultdict(list)
    by_folder: dict[str, list[VaultPath]] = defaultdict(list)
    for file in files:
        by_name[link_key(file.name)].append(file)
        by_folder[file.parent.text].append(file)
    lengths = sorted(set(map(len, by_name)))
    endings = "|".join(re.escape(ending) for ending in {file.suffix[1:] for file in files})
    extension = re.compile(rf"\.(?:{endings})".encode(), re.IGNORECASE)
    folders = [folder.encode("utf-8", "replace") for folder in by_folder if folder]
    folder_in_code = _folder_in_code(folders)
    mentioned: set[VaultPath] = set()
    suffixes = ATTACHMENTS - {".svg"}
    texts = (file for file in survey.files if file.suffix.lower() not in suffixes)
    for data in chain(survey.settings.config_texts(), (_data(survey, file) for file in texts)):
        plain = data
        if b"%" in data and (extension.search(data) or _ENCODED.search(data)):
            plain = unquote_to_bytes(data)
        for match in extension.finditer(plain):
            written = _unescaped(plain[max(0, match.end() - _MAX_WRITTEN) : match.end()])
            for ending in {written[-length:] for length in lengths} & by_name.keys():
                mentioned.update(by_name[ending])
        if not any(folder in data for folder in folders):
            continue
        if b"```" in data or b"~~~" in data or b"filters:" in data:
            for match in folder_in_code.finditer(data):
                mentioned.update(by_folder[(match[1] or match[2]).decode()])
    return mentioned


def _folder_in_code(folders: Iterable[bytes]) -> re.Pattern[bytes]:
    """Return the expression of `inFolder("F")`, `path: F` and the like, with one of the folders."""
    names = b"|".join(map(re.escape, folders)) or b"(?!)"
    return re.compile(
        rb"""\(["']/?(%b)/?["']|[:=][ \t]*["']?/?(%b)/?["']?[ \t]*\r?$""" % (names, names),
        re.MULTILINE,
    )


def _unescaped(written: bytes) -> str:
    """Return the end of a text without the escapes of HTML, JSON and Markdown, as a `link_key`."""
    text = written.decode("utf-8", "replace")
    if "\\" in text:
        text = _JSON_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text).replace("\\", "")
    return link_key(html.unescape(text) if "&" in text else text)


def _data(survey: VaultSurvey, file: VaultPath) -> bytes:
    try:
        if not file.is_note and survey.view.stat(file).size > _MAX_TEXT_FILE:
            return b""
        data = survey.index.text(file) if file.is_note else survey.view.read(file)
    except VaultError:
        return b""
    return data if isinstance(data, bytes) else b""
