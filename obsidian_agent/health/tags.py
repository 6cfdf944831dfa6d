"""Findings about tags that differ in spelling only."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Final

from obsidian_agent.health.finding import (
    HealthFinding,
    Repair,
    RepairChoice,
    RepairStep,
    note_count,
)
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.paths.path import VaultPath

_SEPARATOR: Final = re.compile(r"(?<!\d)[-_]+|[-_]+(?!\d)")
_CLEAR_MAJORITY: Final = 3
"""A spelling that is so many times as frequent as another is the one that is meant."""


def tag_spellings(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield tags that differ from a more frequent tag in case, separators or plural only.

    Of nested tags, the parent that differs is reported, once.
    """
    counts: Counter[str] = Counter()
    first: dict[str, VaultPath] = {}
    for note in survey.notes:
        for tag in set(chain.from_iterable(map(_with_parents, survey.facts[note].tags))):
            counts[tag] += 1
            first.setdefault(tag, note)
    groups: dict[str, list[str]] = defaultdict(list)
    for tag in counts:
        groups[_key(tag)].append(tag)
    for spellings in groups.values():
        usual, *others = sorted(spellings, key=lambda tag: (-counts[tag], tag))
        for tag in others:
            if tag.rpartition("/")[0] == usual.rpartition("/")[0]:
                yield _finding(tag, usual, counts, first[tag])


def _with_parents(tag: str) -> Iterator[str]:
    """Yield a nested tag and the tags it lies within."""
    while tag:
        yield tag
        tag = tag.rpartition("/")[0]


def _key(tag: str) -> str:
    """Return a tag without case and separators, each part in the singular.

    Between digits a separator counts: `v1-2` is not `v12`.
    """
    folded = unicodedata.normalize("NFC", tag).casefold()
    parts = _SEPARATOR.sub("", folded).replace("_", "-").split("/")
    return "/".join(map(_singular, parts))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _finding(tag: str, usual: str, counts: Counter[str], note: VaultPath) -> HealthFinding:
    same_word = tag.casefold() == usual.casefold()
    clear = counts[usual] >= _CLEAR_MAJORITY * counts[tag]
    step = RepairStep("vault.renameTag", {"from": tag, "to": usual})
    difference = "case" if same_word else "separators or plural"
    return HealthFinding(
        kind="tag-spelling",
        path=note.text,
        subject=f"{tag} {usual}",
        text=f"#{tag} ({note_count(counts[tag])}) and #{usual} ({note_count(counts[usual])})",
        evidence=f"they differ in {difference} only",
        repair=Repair(
            (
                RepairChoice(f"#{tag} → #{usual}", (step,)),
                RepairChoice(
                    f"#{usual} → #{tag}",
                    (RepairStep("vault.renameTag", {"from": usual, "to": tag}),),
                ),
            ),
            preselected=same_word and clear,
        ),
    )
