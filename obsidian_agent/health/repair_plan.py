"""The repairs of findings as one plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from obsidian_agent.health.finding import HealthFinding, RepairChoice, RepairStep
from obsidian_agent.health.names import has_placeholder
from obsidian_agent.vault.links.resolve import link_key

_ORDER: Final = (
    "vault.writeFile",
    "vault.createFile",
    "vault.setFrontmatter",
    "vault.addValues",
    "vault.retargetLinks",
    "vault.removeLinks",
    "vault.linkMentions",
    "vault.renameTag",
    "vault.renameValue",
    "vault.setTaskDue",
    "vault.markTasks",
    "vault.delete",
)
"""Tools in the order of a plan.

Whole texts are written first, while the notes are as they were examined, and links are moved before
their notes are deleted.
"""

_PREVIEWS: Final = {
    "vault.createFile": "Create missing notes",
    "vault.setFrontmatter": "Set properties",
    "vault.addValues": "Keep other names as aliases",
    "vault.retargetLinks": "Point links to the right notes",
    "vault.removeLinks": "Turn links that lead nowhere into text",
    "vault.linkMentions": "Link mentions of notes without links",
    "vault.renameTag": "Write tags in one way",
    "vault.renameValue": "Write values of properties in one way",
    "vault.setTaskDue": "Set due dates",
    "vault.markTasks": "Mark tasks as done",
    "vault.writeFile": "Write merged texts",
    "vault.delete": "Delete notes and files",
}


def preselected(findings: Iterable[HealthFinding]) -> list[RepairChoice]:
    """Return the repairs that the evidence names without doubt."""
    return [
        finding.repair.choices[0]
        for finding in findings
        if finding.repair is not None and finding.repair.preselected
    ]


def repair_plan(choices: Iterable[RepairChoice]) -> dict[str, Any] | None:
    """Return chosen repairs as an ActionPlan document; None if there is nothing to do.

    Equal calls are made once, as are those for notes whose names differ in case only. Calls of one
    tool with the same arguments become one step.
    """
    created: set[str] = set()
    groups: dict[tuple[str, tuple[str, ...]], list[dict[str, Any]]] = {}
    for choice in choices:
        for step in choice.steps:
            args = dict(step.args)
            if step.tool == "vault.createFile":
                if link_key(args["path"]) in created:
                    continue
                created.add(link_key(args["path"]))
            group = groups.setdefault((step.tool, tuple(args)), [])
            if args not in group and not _holds_reference(step):
                group.append(args)
    ordered = sorted(
        ((tool, names, calls) for (tool, names), calls in groups.items() if calls),
        key=lambda group: _ORDER.index(group[0]),
    )
    if not ordered:
        return None
    steps = [
        {
            "id": f"repair{number}",
            "tool": tool,
            "args": {name: f"${{repair.{name}}}" for name in names},
            "preview": _PREVIEWS[tool],
            "foreach": {"from": calls, "itemName": "repair"},
        }
        for number, (tool, names, calls) in enumerate(ordered, 1)
    ]
    return {"version": "1.0", "goal": "Repair the vault", "riskLevel": "writes", "steps": steps}


def _holds_reference(step: RepairStep) -> bool:
    """Return whether an argument would be read as a reference of the plan language."""
    return any(isinstance(value, str) and has_placeholder(value) for value in step.args.values())
