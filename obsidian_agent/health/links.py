"""Findings about links: those that lead nowhere, and those that can mean several files."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from typing import Any, Final

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.health.finding import HealthFinding, Repair, RepairChoice, RepairStep
from obsidian_agent.health.name_evidence import LostLink, NameEvidence, attachment_key
from obsidian_agent.health.names import has_placeholder
from obsidian_agent.health.notes import writing
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.index.digest import HAS_LINKS_IN_ROWS
from obsidian_agent.vault.links.graph import links_to, means_note, unresolved_name
from obsidian_agent.vault.links.resolve import file_name, link_key, target_name
from obsidian_agent.vault.links.spelling import folder_fits, spelling_key
from obsidian_agent.vault.markdown.note import links_in
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.text import Edit, apply

_MAX_CHOICES: Final = 5
_PIPED: Final = re.compile(rb"!?\[\[[^\[\]|\\\n]+(\|)[^\[\]|\n]*\]\]")


def unresolved_links(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield the names in links that no file has, once for each note."""
    missing = list(_lost_links(survey))
    evidence = NameEvidence(survey, missing)
    for lost in missing:
        if means_note(lost.link.target):
            yield _unresolved(evidence, lost)
        else:
            yield _missing_attachment(evidence, lost)
    yield from _ended_links(survey)


def _ended_links(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield the notes with links in tables whose `|` ends the cell, once for each note."""
    for note in survey.notes:
        if not survey.facts[note].digest.flags & HAS_LINKS_IN_ROWS:
            continue
        data = survey.index.text(note)
        if isinstance(data, Problem):
            continue
        row = 0 if data.startswith(b"|") else max(data.find(b"\n|"), 0)
        pipes = [
            match for match in _PIPED.finditer(data, row) if _is_below_row(data, match.start())
        ]
        if not pipes:
            continue
        known = {link.start for link in links_in(data)}
        pipes = [match for match in pipes if match.start() not in known]
        links = {link.start for link in links_in(_with_backslashes(data, pipes))}
        # In code, the backslash makes no link either.
        ended = [match for number, match in enumerate(pipes) if match.start() + number in links]
        if ended:
            yield _ended_link(note, data, ended)


def _is_below_row(data: bytes, position: int) -> bool:
    """Return whether a row of a table begins in the same paragraph."""
    paragraph = data[data.rfind(b"\n\n", 0, position) + 1 : position]
    return paragraph.startswith(b"|") or b"\n|" in paragraph


def _with_backslashes(data: bytes, pipes: Sequence[re.Match[bytes]]) -> bytes:
    return apply(data, [Edit(match.start(1), match.start(1), b"\\") for match in pipes])


def _ended_link(note: VaultPath, data: bytes, ended: Sequence[re.Match[bytes]]) -> HealthFinding:
    written = ended[0][0].decode("utf-8", "replace")
    content = _with_backslashes(data, ended).decode("utf-8", "replace")
    choice = writing(note, data, content, "Write \\| in these links")
    are = f"and {len(ended) - 1} more are" if len(ended) > 1 else "is"
    return HealthFinding(
        kind="unresolved-link",
        path=note.text,
        line=data.count(b"\n", 0, ended[0].start()) + 1,
        subject=written,
        text=f"“{written}” {are} cut off: in a table, | ends the cell.",
        evidence="in a table, the | before a link's display text is written \\|",
        repair=Repair((choice,)) if choice is not None else None,
    )


def _lost_links(survey: VaultSurvey) -> Iterator[LostLink]:
    for source in filter(survey.is_linkable, survey.sources):
        if survey.settings.is_excluded(source.text):
            continue
        targets = {
            target
            for target, file in survey.targets[source].items()
            if file is None and not has_placeholder(target)
        }
        if not targets:
            continue
        try:
            data = survey.index.text(source) if source.is_note else survey.view.read(source)
        except VaultError:
            continue
        if isinstance(data, Problem):
            continue
        lost: dict[str, LostLink] = {}
        for link in links_to(source, data, targets):
            name = unresolved_name(link.target)
            lost.setdefault(link_key(name), LostLink(source, name, link))
        yield from lost.values()


def _missing_attachment(names: NameEvidence, lost: LostLink) -> HealthFinding:
    name = lost.link.target.rpartition("/")[2]
    files = names.survey.index.files_named(target_name(name))
    evidence = f"the same file name in {files[0].parent.text or 'the vault'}" if files else ""
    is_certain = len(files) == 1 and folder_fits(lost.link.target, lost.source, files[0])
    if not files and (files := names.attachments.get(attachment_key(name), [])):
        evidence = "the same name except for spelling, a copy number or the file type"
    choices = _retargets(names.survey, lost, files)
    return HealthFinding(
        kind="missing-attachment",
        path=lost.source.text,
        line=lost.link.line or None,
        subject=lost.name,
        text=f"“{lost.name}” is missing.",
        evidence=evidence,
        repair=Repair(tuple(choices), preselected=is_certain) if choices else None,
    )


def _unresolved(evidence: NameEvidence, lost: LostLink) -> HealthFinding:
    matches = evidence.of(lost)
    files = [match.file for match in matches] or evidence.similar(lost)
    reasons = ", ".join(dict.fromkeys(match.reason for match in matches))
    heading = matches[0].heading if matches else ""
    choices = [
        *_retargets(evidence.survey, lost, files, heading),
        *_create(evidence, lost),
        _unlink(lost),
    ]
    return HealthFinding(
        kind="unresolved-link",
        path=lost.source.text,
        line=lost.link.line or None,
        subject=lost.name,
        text=f"“{lost.name}” leads nowhere.",
        evidence=reasons if len(matches) <= 1 else f"{len(matches)} notes: {reasons}",
        repair=Repair(tuple(choices), preselected=len(matches) == 1 and matches[0].is_certain),
    )


def _retargets(
    survey: VaultSurvey, lost: LostLink, files: Sequence[VaultPath], heading: str = ""
) -> list[RepairChoice]:
    """Return the choices to link to one of some files, the titles of which are all different.

    A `heading` is one in the only file.
    """
    names = Counter(file.name for file in files)
    has_paths = survey.settings.link_style.format != "shortest"
    return [
        _retarget(lost, file, heading, by_path=has_paths or names[file.name] > 1)
        for file in files[:_MAX_CHOICES]
    ]


def _retarget(lost: LostLink, file: VaultPath, heading: str, *, by_path: bool) -> RepairChoice:
    """Return the choice to link to a file. What the reader sees stays, but for its spelling."""
    name = f"{file.stem if file.is_note else file.name}{heading and f'#{heading}'}"
    is_respelled = spelling_key(lost.name.rpartition("/")[2]) == spelling_key(name)
    keeps_text = not is_respelled or (by_path and file.is_note)
    args: dict[str, Any] = {"path": lost.source.text, "name": lost.name, "to": file.text}
    if keeps_text:
        args["keepText"] = True
    if heading:
        args["heading"] = heading
    written = f"[[{name}|{lost.name}]]" if keeps_text else f"[[{name}]]"
    title = f"[[{lost.name}]] → {written}"
    if lost.link.is_markdown or by_path:
        title = f"Link “{lost.name}” to {file.text}{heading and f'#{heading}'}"
    return RepairChoice(title, (RepairStep("vault.retargetLinks", args),))


def _create(evidence: NameEvidence, lost: LostLink) -> Iterator[RepairChoice]:
    """Yield the choice to create the missing note, if its name can be one."""
    if note := evidence.new_note(lost.name):
        step = RepairStep("vault.createFile", {"path": note.text, "content": ""})
        yield RepairChoice(f"Create {note.text}", (step,))


def _unlink(lost: LostLink) -> RepairChoice:
    step = RepairStep("vault.removeLinks", {"path": lost.source.text, "name": lost.name})
    return RepairChoice("Turn the link into plain text", (step,))


def ambiguous_links(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield links by a bare name that several notes have, once for each note and name.

    A link to a note of the same folder is clear, and one to a note of the vault's own folder: that
    is what Obsidian itself writes for it.
    """
    named: dict[str, list[VaultPath]] = defaultdict(list)
    for note in survey.notes:
        named[file_name(note)].append(note)
    shared = {name: notes for name, notes in named.items() if len(notes) > 1}
    if not shared:
        return
    unclear = {
        file
        for name in shared
        for file in survey.resolver.candidates(f"{name}.md")
        if not file.parent.is_root
    }
    for source in survey.notes:
        if unclear.isdisjoint(survey.linked_files[source]):
            continue
        chosen = {
            target: file
            for target, file in survey.targets[source].items()
            if file in unclear and "/" not in target and file.parent != source.parent
        }
        if not chosen:
            continue
        spellings = {link_key(target): target for target in sorted(chosen, reverse=True)}
        lines = _first_lines(survey, source, set(spellings.values()))
        for target in spellings.values():
            files = dict.fromkeys((chosen[target], *shared[target_name(target)]))
            yield _ambiguous(survey, source, target, lines.get(target), [*files])


def _ambiguous(
    survey: VaultSurvey,
    source: VaultPath,
    target: str,
    line: int | None,
    files: Sequence[VaultPath],
) -> HealthFinding:
    """Return the finding about a link that can mean several files, the chosen one first."""
    chosen = files[0]
    as_near = [file.text for file in files if len(file.text) == len(chosen.text)]
    opens = f"Obsidian opens {chosen.text}."
    if len(as_near) > 1:
        opens = f"Obsidian opens {' or '.join(as_near[:_MAX_CHOICES])}, which are equally near."
    # Links by a path mean that note, and would follow.
    targets = survey.targets[source]
    has_path = any("/" in other for other, file in targets.items() if file == chosen)
    choices = []
    for file in files[:_MAX_CHOICES]:
        args = {"path": source.text, "from": chosen.text, "to": file.text, "keepText": True}
        title = f"Link to {file.text} instead"
        if file == chosen:
            args["byPath"] = True
            title = f"Link to {file.text} by its path"
        choices.append(RepairChoice(title, (RepairStep("vault.retargetLinks", args),)))
    return HealthFinding(
        kind="ambiguous-link",
        path=source.text,
        line=line,
        subject=target,
        text=f"“{target}” can mean {len(files)} notes. {opens}",
        evidence=", ".join(sorted(file.text for file in files)[:_MAX_CHOICES]),
        repair=None if has_path else Repair(tuple(choices)),
    )


def _first_lines(survey: VaultSurvey, source: VaultPath, targets: Set[str]) -> dict[str, int]:
    """Return the line of the first link to each of the targets in a note."""
    data = survey.index.text(source)
    if not isinstance(data, bytes):
        return {}
    lines: dict[str, int] = {}
    for link in links_to(source, data, targets):
        lines.setdefault(link.target, link.line)
    return lines
