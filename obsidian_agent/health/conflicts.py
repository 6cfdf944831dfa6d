"""Conflict copies that synchronisation services and git leave beside a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from obsidian_agent.errors import ObsidianAgentError, VaultError
from obsidian_agent.health.conflict_marks import Side, resolved
from obsidian_agent.health.digests import Digests
from obsidian_agent.health.finding import HealthFinding, Repair, RepairChoice, RepairStep
from obsidian_agent.health.merge import Merged, common_base, is_same_text, merge_texts
from obsidian_agent.health.names import has_placeholder, names_also
from obsidian_agent.health.notes import moved_links, writing
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.frontmatter.properties import edit_properties, read_properties
from obsidian_agent.vault.links.spelling import spelling_key
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.text import decode
from obsidian_agent.vault.views.changes import content_hash

_SIDES: Final[dict[Side, str]] = {
    "both": "Keep the lines of both sides, without the marks",
    "upper": "Keep the upper side of each conflict",
    "lower": "Keep the lower side of each conflict",
}
_Names = tuple[str, str]
"""The names of a file and its copy in sentences: their paths if they have one name."""
_MAX_MERGED: Final = 256 << 10
"""The size in bytes up to which notes are merged; larger ones would take long."""


def conflict_copies(survey: VaultSurvey, digests: Digests) -> Iterator[HealthFinding]:
    """Yield conflict copies of files, and notes with git's conflict marks."""
    merges = CopyMerges(survey)
    for file, copy in survey.copies.items():
        if survey.settings.is_excluded(file.text):
            continue
        original = copy.original
        repair, reason = None, f"named as {copy.service} names conflicts"
        if original is not None:
            if merges.has_merged(original):
                reason += "; another copy is merged first"
            repair = merges.of(file, original, is_certain=copy.is_certain)
        yield HealthFinding(
            kind="conflict-copy",
            path=file.text,
            subject="" if original is None else original.text,
            text=f"A conflict copy of {original}." if original else "A conflict copy; no original.",
            evidence=reason,
            repair=repair,
        )
    for note, digest in digests.of.items():
        if digest.has_conflict_marks:
            yield HealthFinding(
                kind="conflict-copy",
                path=note.text,
                subject="marks",
                text="The note has git's conflict marks.",
                evidence="lines that begin with <<<<<<<, ======= and >>>>>>>",
                repair=_without_marks(survey, note),
            )


def _without_marks(survey: VaultSurvey, note: VaultPath) -> Repair | None:
    """Return the choices of a side, or of the lines of both, for all conflicts in a note."""
    try:
        data = survey.view.read(note)
        text = decode(data, note.text)
    except VaultError:
        return None
    choices = [
        choice
        for side, title in _SIDES.items()
        if (choice := writing(note, data, resolved(text, side), title)) is not None
    ]
    return Repair(tuple(choices)) if choices else None


class CopyMerges:
    """The merges of notes with copies of them. Of several copies, one is merged at a time."""

    def __init__(self, survey: VaultSurvey) -> None:
        self._survey = survey
        self._merged: set[VaultPath] = set()

    def has_merged(self, original: VaultPath) -> bool:
        """Return whether a copy of a note is merged already."""
        return original in self._merged

    def of(
        self,
        copy: VaultPath,
        original: VaultPath,
        *,
        is_certain: bool = False,
        keep_name: bool = False,
    ) -> Repair | None:
        """Return the ways to settle a copy, the merge first; None if there is no safe one.

        A merge without a question is preselected if `is_certain`, which is for copies by their
        names. With `keep_name` the name of the copy becomes an alias, if it says anything more.
        """
        survey = self._survey
        if original in self._merged or not original.is_note or not copy.is_note:
            return None
        if copy in survey.linked_files[original]:
            return None  # its links would change, and with them the text to merge
        says_more = spelling_key(copy.stem) != spelling_key(original.stem)
        says_more = says_more and not names_also(copy.stem, original.stem)
        alias = copy.stem if keep_name and says_more else ""
        has_own_name = copy.name != original.name
        names = (original.name, copy.name) if has_own_name else (original.text, copy.text)
        try:
            own, other = survey.view.read(original), survey.view.read(copy)
            if max(len(own), len(other)) > _MAX_MERGED:
                return None
            texts = decode(own, original.text), decode(other, copy.text)
            merged = self._merge(original, names, *texts)
            titles = {merged.text: _merge_title(merged, names)}
            if not merged.is_clean:
                titles[texts[0]] = f"Keep {names[0]} and delete {names[1]}"
                titles[texts[1]] = f"Replace {names[0]} with {names[1]}"
            if is_same_text(*texts):
                titles = {texts[0]: f"Delete {names[1]}, the text is the same"}
            contents = [_with_alias(text, alias) if alias else text for text in titles]
        except ObsidianAgentError:
            return None
        # In a plan, a placeholder in the text would be taken for a reference.
        if any(map(has_placeholder, (original.text, copy.text, *contents))):
            return None
        self._merged.add(original)
        choices = []
        for title, content in zip(titles.values(), contents, strict=True):
            steps = [*moved_links(survey, copy, original, {copy})]
            if content.encode() != own:
                values = {"content": content, "ifMatch": content_hash(own)}
                steps.append(RepairStep("vault.writeFile", {"path": original.text, **values}))
            steps.append(RepairStep("vault.delete", {"path": copy.text}))
            choices.append(RepairChoice(title, tuple(steps)))
        return Repair(tuple(choices), preselected=is_certain and len(choices) == 1)

    def _merge(self, original: VaultPath, names: _Names, own: str, other: str) -> Merged:
        versions = []
        for data in self._survey.settings.old_versions(original.text):
            if len(data) <= _MAX_MERGED:
                versions.append(data.decode(errors="replace"))
        base = common_base(versions, own, other)
        return merge_texts(own, other, base, names)


def _merge_title(merged: Merged, names: _Names) -> str:
    original, copy = names
    if merged.is_clean:
        return f"Merge {copy} into {original} and delete it"
    properties = ", with its own properties" if merged.has_other_properties else ""
    marks = ", marked where they differ" if merged.has_marks else ""
    return f"Keep both texts in {original}{properties}{marks}, and delete {copy}"


def _with_alias(text: str, name: str) -> str:
    aliases = read_properties(text).get("aliases") or []
    listed = aliases if isinstance(aliases, list) else [aliases]
    return edit_properties(text, set={"aliases": [*listed, name]})
