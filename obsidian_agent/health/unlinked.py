"""Findings about notes without links, with links proposed from mentions in other notes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from obsidian_agent.errors import Problem
from obsidian_agent.health.digests import Digests
from obsidian_agent.health.finding import HealthFinding, Repair, RepairChoice, RepairStep
from obsidian_agent.health.names import is_date
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.links.mentions import mention_pattern, with_links
from obsidian_agent.vault.paths.path import ROOT, VaultPath

_WORD: Final = re.compile(r"\w+")
_BLANKS: Final = bytes(
    byte if byte >= 128 or chr(byte).isalnum() or byte == ord("_") else ord(" ")
    for byte in range(256)
)
"""Turns ASCII punctuation into blanks."""
_MIN_LETTERS: Final = 4
_MAX_SOURCES: Final = 5
_TOO_COMMON: Final = 20
"""A name that more notes mention is an everyday word."""


class _Name(NamedTuple):
    """A specific name of a note, as it is written, and in lower case."""

    note: VaultPath
    text: str
    lowered: str


def unlinked_notes(survey: VaultSurvey, digests: Digests) -> Iterator[HealthFinding]:
    """Yield the notes without links to or from other notes, empty ones left out."""
    unlinked = [
        note
        for note, digest in digests.of.items()
        if not digest.is_empty
        and not survey.backlinks.get(note)
        and not any(file.is_note and file != note for file in survey.linked_files(note))
        and not any(file.suffix == ".canvas" for file in survey.linked_files(note))
    ]
    mentions = _mentions(survey, unlinked)
    for note in unlinked:
        sources = mentions.get(note, [])
        yield HealthFinding(
            kind="unlinked-note",
            path=note.text,
            subject="",
            text="No note links here, and the note links to no other.",
            evidence=f"mentioned in {', '.join(source.text for source in sources)}"
            if sources
            else "",
            repair=Repair(tuple(_link(note, source) for source in sources)) if sources else None,
        )


def _link(note: VaultPath, source: VaultPath) -> RepairChoice:
    args = {"files": [source.text], "to": note.text, "occurrences": "first"}
    step = RepairStep("vault.linkMentions", args)
    return RepairChoice(f"Link “{note.stem}” in {source.text}", (step,))


def _mentions(survey: VaultSurvey, notes: list[VaultPath]) -> dict[VaultPath, list[VaultPath]]:
    """Return the notes that mention the specific names of other notes.

    A name of several words is found in any case, one of a single word only as it is written.
    """
    owners = Counter(
        name
        for note in survey.notes
        for name in {text.lower() for text in (note.stem, *survey.facts[note].aliases)}
    )
    names: dict[bytes, list[_Name]] = defaultdict(list)
    for note in notes:
        for text in (note.stem, *survey.facts[note].aliases):
            words = _WORD.findall(text.lower())
            # A name of several notes, such as "README", means none of them.
            if owners[text.lower()] == 1 and _is_specific(text, words):
                # The longest word of a name is the rarest; ASCII needs no decoding.
                rarest = max(words, key=lambda word: (word.isascii(), len(word))).encode()
                names[rarest].append(_Name(note, text, text.lower()))
    if not names:
        return {}
    is_ascii = all(word.isascii() for word in names)
    mentions: dict[VaultPath, list[VaultPath]] = defaultdict(list)
    for source, data in survey.index.texts(ROOT):
        if isinstance(data, Problem) or survey.is_template(source):
            continue
        lower = data.lower() if is_ascii else _in_lower_case(data)
        words_of_names = names.keys() & lower.translate(_BLANKS).split()
        if not words_of_names:
            continue
        text = data.decode("utf-8", "replace")
        lowered = text.lower()
        for name in (name for word in words_of_names for name in names[word]):
            if (
                name.lowered in lowered
                and _mentions_name(source, name, text, mentions[name.note])
                and _can_link(survey, name.note, text)
            ):
                mentions[name.note].append(source)
    return {
        note: sources[:_MAX_SOURCES]
        for note, sources in mentions.items()
        if 0 < len(sources) <= _TOO_COMMON
    }


def _in_lower_case(data: bytes) -> bytes:
    if data.isascii():
        return data.lower()
    return data.decode("utf-8", "replace").lower().encode()


def _mentions_name(source: VaultPath, name: _Name, text: str, sources: Sequence[VaultPath]) -> bool:
    """Return whether another note that is not in `sources` yet has a name as whole words."""
    if source == name.note or len(sources) > _TOO_COMMON or source in sources:
        return False
    pattern = r"[ \t]+".join(map(re.escape, name.text.split()))
    flags = re.IGNORECASE if " " in name.text.strip() else 0
    return re.search(rf"(?<![\w/#\[-]){pattern}(?![\w/\]-])", text, flags) is not None


def _can_link(survey: VaultSurvey, note: VaultPath, text: str) -> bool:
    """Return whether `vault.linkMentions` can put a link in the place of a mention."""
    pattern = mention_pattern([note.stem, *survey.facts[note].aliases])
    return with_links(text, pattern, note.stem, first=True)[1] > 0


def _is_specific(name: str, words: list[str]) -> bool:
    letters = sum(char.isalpha() for char in name)
    if not words or is_date(name) or letters < _MIN_LETTERS:
        return False
    if len(words) > 1:
        return True
    # "GraphQL" and "NumPy" are names; "Meeting" may be any word at the start of a sentence.
    return any(char.isupper() or char.isdigit() for char in name[1:])
