"""Findings about notes with the same or nearly the same text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from obsidian_agent.health.conflicts import CopyMerges
from obsidian_agent.health.digests import Digests
from obsidian_agent.health.finding import HealthFinding, Repair, RepairChoice, RepairStep
from obsidian_agent.health.names import is_date, names_also
from obsidian_agent.health.notes import moved_links
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.links.spelling import spelling_key
from obsidian_agent.vault.paths.path import VaultPath

_MAX_CHOICES: Final = 5
_MERITS: Final = (
    "has more links to it",
    "lies beside more notes with its tags",
    "has the plain name",
    "has more properties",
    "lies beside more notes",
    "has the shorter path",
)


def duplicate_notes(survey: VaultSurvey, digests: Digests) -> Iterator[HealthFinding]:
    """Yield groups of notes with the same text, once for each group.

    Notes of other names whose properties contradict each other are about different things.
    """
    groups = (group for notes in digests.identical for group in _consistent(survey, notes))
    for group in groups:
        ranked, reason = _ranked(survey, group)
        survivor, *others = ranked
        choices = [
            _merged(survey, survivor, [note for note in ranked if note != survivor])
            for survivor in ranked[:_MAX_CHOICES]
        ]
        names = ", ".join(note.text for note in others)
        yield HealthFinding(
            kind="duplicate-note",
            path=survivor.text,
            subject=names,
            text=f"The same text is in {names}.",
            evidence=f"{len(ranked)} notes with the same text{reason}",
            repair=Repair(tuple(choices)),
        )


def _consistent(survey: VaultSurvey, notes: Iterable[VaultPath]) -> Iterator[Sequence[VaultPath]]:
    """Yield the groups of notes without contradicting properties, or with names of copies."""
    groups: list[list[VaultPath]] = []
    for note in sorted(notes, key=lambda note: (len(note.text), note.text)):
        group = next((one for one in groups if _fits(survey, note, one)), None)
        if group is None:
            groups.append([note])
        else:
            group.append(note)
    return (group for group in groups if len(group) > 1)


def _fits(survey: VaultSurvey, note: VaultPath, group: Iterable[VaultPath]) -> bool:
    return all(
        names_also(note.stem, other.stem)
        or names_also(other.stem, note.stem)
        or not _contradictions(survey, note, other)
        for other in group
    )


def _contradictions(survey: VaultSurvey, note: VaultPath, other: VaultPath) -> list[str]:
    """Return the properties that have another value in the other note."""
    own, others = survey.facts[note].properties, survey.facts[other].properties
    return [key for key in own if key in others and own[key] != others[key] and not _is_list(key)]


def _is_list(key: str) -> bool:
    """Return whether a property is one of the lists that Obsidian has on its own."""
    return key.lower() in ("alias", "aliases", "tag", "tags")


def _ranked(survey: VaultSurvey, notes: Iterable[VaultPath]) -> tuple[list[VaultPath], str]:
    """Return notes with the same text, the one to keep first, and what speaks for that one."""
    group = [*notes]
    merits = {note: _merits(survey, note, group) for note in group}
    group.sort(key=lambda note: (merits[note], note.text))
    pairs = zip(merits[group[0]], merits[group[1]], _MERITS, strict=True)
    reason = next((reason for own, other, reason in pairs if own != other), "")
    return group, f"; {group[0].text} {reason}" if reason else ""


def _merits(survey: VaultSurvey, note: VaultPath, group: Iterable[VaultPath]) -> tuple[int, ...]:
    """Return what speaks for keeping a note, as `_MERITS` names it; the smallest is the best."""
    facts = survey.facts[note]
    links = survey.backlinks[note]
    if (namesakes := survey.links_to_namesakes.get(note)) is not None:
        # By a bare name, Obsidian opens the note with the shortest path.
        links = sum("/" in target or file.parent == note.parent for file, target in namesakes)
    siblings = max((survey.tags_by_folder[note.parent, tag] for tag in facts.tags), default=0)
    is_copy = any(other != note and names_also(note.stem, other.stem) for other in group)
    known = len(facts.properties) + len(facts.aliases) + len(facts.tags)
    beside = 0 if note.parent.is_root else survey.tags_by_folder[note.parent, ""]
    return (-links, -siblings, is_copy, -known, -beside, len(note.text))


def _merged(survey: VaultSurvey, survivor: VaultPath, others: Sequence[VaultPath]) -> RepairChoice:
    """Return the choice to keep one note, with the properties, names and links of the others."""
    facts = survey.facts[survivor]
    missing: dict[str, Any] = {}
    names: list[str] = []
    tags: list[str] = []
    for other in others:
        lost = survey.facts[other]
        properties = {
            key: value
            for key, value in lost.properties.items()
            if key not in facts.properties and not _is_list(key)
        }
        missing = properties | missing
        tags += [tag for tag in lost.tags if tag not in facts.tags]
        is_new = spelling_key(other.stem) != spelling_key(survivor.stem) and not is_date(other.stem)
        if is_new and not any(names_also(other.stem, note.stem) for note in (survivor, *others)):
            names.append(other.stem)
        names += [alias for alias in lost.aliases if alias not in facts.aliases]
    steps: list[RepairStep] = []
    if missing:
        steps.append(RepairStep("vault.setFrontmatter", {"path": survivor.text, "set": missing}))
    if tags:
        args = {"path": survivor.text, "addTags": list(dict.fromkeys(tags))}
        steps.append(RepairStep("vault.setFrontmatter", args))
    if names:
        values = {"property": "aliases", "values": list(dict.fromkeys(names))}
        steps.append(RepairStep("vault.addValues", {"path": survivor.text, **values}))
    for other in others:
        steps += moved_links(survey, other, survivor, {*others})
    steps += [RepairStep("vault.delete", {"path": other.text}) for other in others]
    deleted = others[0].text if len(others) == 1 else "the others"
    changed = {key for other in others for key in _contradictions(survey, other, survivor)}
    ending = f", with the other values of {', '.join(sorted(changed))}" if changed else ""
    return RepairChoice(f"Keep {survivor.text} and delete {deleted}{ending}", tuple(steps))


def similar_notes(survey: VaultSurvey, digests: Digests) -> Iterator[HealthFinding]:
    """Yield pairs of notes with nearly the same text."""
    merges = CopyMerges(survey)
    for first, second, share in digests.similar:
        pair, reason = _ranked(survey, (first, second))
        yield HealthFinding(
            kind="similar-note",
            path=pair[0].text,
            subject=pair[1].text,
            text=f"Nearly the same text is in {pair[1].text}.",
            evidence=f"{share:.0%} of their words are the same{reason}",
            repair=merges.of(pair[1], pair[0], keep_name=True),
        )
