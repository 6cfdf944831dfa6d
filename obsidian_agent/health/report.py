"""The report about a vault: all checks, run once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from obsidian_agent.health.attachments import unused_attachments
from obsidian_agent.health.conflicts import conflict_copies
from obsidian_agent.health.digests import Digests
from obsidian_agent.health.duplicates import duplicate_notes, similar_notes
from obsidian_agent.health.finding import (
    KINDS,
    FindingKind,
    HealthFinding,
    HealthReport,
    in_order,
)
from obsidian_agent.health.invalid_properties import invalid_properties
from obsidian_agent.health.links import ambiguous_links, unresolved_links
from obsidian_agent.health.notes import empty_notes, overdue_tasks, stale_notes
from obsidian_agent.health.properties import property_types, property_values
from obsidian_agent.health.survey import HealthSettings, VaultSurvey
from obsidian_agent.health.tags import tag_spellings
from obsidian_agent.health.unlinked import unlinked_notes
from obsidian_agent.vault.index.gc_pause import gc_paused
from obsidian_agent.vault.views.view import VaultView

Check = Callable[[VaultSurvey], Iterator[HealthFinding]]
TextCheck = Callable[[VaultSurvey, Digests], Iterator[HealthFinding]]

_INDEX_CHECKS: Final[tuple[tuple[frozenset[FindingKind], Check], ...]] = (
    (frozenset(("unresolved-link", "missing-attachment")), unresolved_links),
    (frozenset(("ambiguous-link",)), ambiguous_links),
    (frozenset(("tag-spelling",)), tag_spellings),
    (frozenset(("property-type",)), property_types),
    (frozenset(("property-value",)), property_values),
    (frozenset(("unused-attachment",)), unused_attachments),
    (frozenset(("stale-note",)), stale_notes),
    (frozenset(("unlinked-note",)), unlinked_notes),
)
_TEXT_CHECKS: Final[tuple[tuple[frozenset[FindingKind], TextCheck], ...]] = (
    (frozenset(("empty-note",)), empty_notes),
    (frozenset(("duplicate-note",)), duplicate_notes),
    (frozenset(("similar-note",)), similar_notes),
    (frozenset(("invalid-properties",)), invalid_properties),
    (frozenset(("conflict-copy",)), conflict_copies),
    (frozenset(("overdue-task",)), overdue_tasks),
)


def examine(
    view: VaultView,
    settings: HealthSettings,
    *,
    only: Collection[FindingKind] = KINDS,
    ignored: Collection[str] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> HealthReport:
    """Examine a vault. Nothing is changed.

    `ignored` are ids of findings that the report lists apart. `progress` is called with the
    number of finished checks and their total.
    """
    with gc_paused():
        findings = _findings(VaultSurvey(view, settings), frozenset(only), progress)
    if not ignored:
        return HealthReport(findings)
    ids = [finding.id for finding in findings]
    return HealthReport(
        tuple(finding for finding, id in zip(findings, ids, strict=True) if id not in ignored),
        tuple(finding for finding, id in zip(findings, ids, strict=True) if id in ignored),
    )


def _findings(
    survey: VaultSurvey, requested: frozenset[FindingKind], progress: Callable[[int, int], None]
) -> tuple[HealthFinding, ...]:
    findings: list[HealthFinding] = []
    index_checks = [check for kinds, check in _INDEX_CHECKS if kinds & requested]
    text_checks = [check for kinds, check in _TEXT_CHECKS if kinds & requested]
    total = len(index_checks) + len(text_checks) + bool(text_checks)
    for done, check in enumerate(index_checks):
        progress(done, total)
        findings += check(survey)
    if text_checks:
        progress(len(index_checks), total)
        digests = Digests(survey)
        for done, text_check in enumerate(text_checks, len(index_checks) + 1):
            progress(done, total)
            findings += text_check(survey, digests)
    progress(total, total)
    return in_order([finding for finding in findings if finding.kind in requested])
