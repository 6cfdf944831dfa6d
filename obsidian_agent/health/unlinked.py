"""Findings about notes without links, with links proposed from mentions in other notes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from obsidian_agent.errors import Problem
from obsidian_agent.health.digests import Digests
from obsidian_agent.health.finding import Finding, Repair, RepairChoice, RepairStep
from obsidian_agent.health.names import is_date
from obsidian_agent.health.survey import Survey
from obsidian_agent.vault.paths.path import ROOT, VaultPath

_WORD: Final = re.compile(r"\w+")
_MIN_LETTERS: Final = 4
_MAX_SOURCES: Final = 5
_TOO_COMMON: Final = 20
"""A name that more notes mention is an everyday word."""


def unlinked_notes(survey: Survey, digests: Digests) -> Iterator[Finding]:
    """Yield the notes without links to or from other notes, empty ones left out."""
    unlinked = [
        note
        for note, digest in digests.of.items()
        if not digest.is_empty
        and not survey.backlinks.get(note)
        and not any(file.is_note and file != note for file in survey.resolved[note])
        and not any(file.suffix == ".canvas" for file in survey.resolved[note])
    ]
    mentions = _mentions(survey, unlinked)
    for note in unlinked:
        sources = mentions.get(note, [])
        yield Finding(
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


def _mentions(survey: Survey, notes: list[VaultPath]) -> dict[VaultPath, list[VaultPath]]:
    """Return the notes that mention the specific names of other notes.

    A name of several words is found in any case, one of a single word only as it is written.
    """
    phrases: dict[str, list[tuple[str, VaultPath]]] = defaultdict(list)
    for note in notes:
        for name in (note.stem, *survey.facts[note].aliases):
            words = _WORD.findall(name.lower())
            if _is_specific(name, words):
                phrases[words[0]].append((name, note))
    if not phrases:
        return {}
    mentions: dict[VaultPath, list[VaultPath]] = defaultdict(list)
    for source, data in survey.index.texts(ROOT):
        if isinstance(data, Problem) or survey.is_template(source):
            continue
        text = data.decode("utf-8", "replace")
        lower = text.lower()
        for word in phrases.keys() & set(_WORD.findall(lower)):
            for name, note in phrases[word]:
                if note != source and source not in mentions[note] and _occurs(name, text, lower):
                    mentions[note].append(source)
    return {
        note: sources[:_MAX_SOURCES]
        for note, sources in mentions.items()
        if 0 < len(sources) <= _TOO_COMMON
    }


def _is_specific(name: str, words: list[str]) -> bool:
    letters = sum(char.isalpha() for char in name)
    if not words or is_date(name) or letters < _MIN_LETTERS:
        return False
    if len(words) > 1:
        return True
    # "GraphQL" and "NumPy" are names; "Meeting" may be any word at the start of a sentence.
    return any(char.isupper() or char.isdigit() for char in name[1:])


def _occurs(name: str, text: str, lower: str) -> bool:
    several = " " in name.strip()
    if (name.lower() not in lower) if several else (name not in text):
        return False
    pattern = r"[ \t]+".join(map(re.escape, name.split()))
    flags = re.IGNORECASE if several else 0
    return re.search(rf"(?<![\w/#\[-]){pattern}(?![\w/\]-])", text, flags) is not None
