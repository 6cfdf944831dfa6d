"""A preview as the JSON document of the contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from obsidian_agent.errors import Problem
from obsidian_agent.plan.result import Flag, Preview
from obsidian_agent.tools.base import Risk
from obsidian_agent.vault.changes import NetChange
from obsidian_agent.vault.diff import unified_diff
from obsidian_agent.vault.view import VaultView


def diff_of(change: NetChange, base: VaultView) -> str:
    """The unified diff of one net change; "" for folders, pure renames and binary content."""
    if change.folder or (change.content is None and change.kind != "delete"):
        return ""
    before = base.read(change.before) if change.before is not None else None
    new_path = change.new_path or change.path
    return unified_diff(before, change.content, change.path.text, new_path.text)


def change_document(change: NetChange, diff: str) -> dict[str, Any]:
    """`{kind, path, newPath?, diff}`."""
    document: dict[str, Any] = {"kind": change.kind, "path": change.path.text}
    if change.new_path is not None:
        document["newPath"] = change.new_path.text
    return document | {"diff": diff}


def summary_document(preview: Preview) -> dict[str, Any]:
    """Paths by kind of change (renames as {from, to}), commands, and how many instances the plan has."""

    def paths(kind: str) -> list[str]:
        return [change.path.text for change in preview.change_set.changes if change.kind == kind]

    renames = [change for change in preview.change_set.changes if change.kind == "rename"]
    return {
        "filesCreated": paths("create"),
        "filesModified": paths("modify"),
        "filesDeleted": paths("delete"),
        "filesRenamed": [{"from": change.path.text, "to": (change.new_path or change.path).text} for change in renames],
        "foldersCreated": paths("mkdir"),
        "commandsExecuted": [str(item.args.get("id", item.tool)) for item in preview.instances if item.opaque and item.state == "ready"],
        "estimatedSteps": len(preview.instances),
    }


def preview_document(preview: Preview, diff: Callable[[NetChange], str]) -> dict[str, Any]:
    """The whole document of `preview --json`."""
    return {
        "valid": preview.valid,
        "errors": [problem.to_json() for problem in preview.errors],
        "warnings": [problem.to_json() for problem in preview.warnings],
        "flags": [flag_document(flag) for flag in preview.flags],
        "riskLevel": preview.risk.value,
        "summary": summary_document(preview),
        "changes": [change_document(change, diff(change)) for change in preview.change_set.changes],
        "planHash": preview.plan_hash,
    }


def rejected_document(problems: Sequence[Problem], risk: Risk = Risk.READ_ONLY) -> dict[str, Any]:
    """The same document for a plan that cannot even be dry-run."""
    empty: dict[str, Any] = {name: [] for name in ("filesCreated", "filesModified", "filesDeleted", "filesRenamed", "foldersCreated")}
    return {
        "valid": False,
        "errors": [problem.to_json() for problem in problems],
        "warnings": [],
        "flags": [],
        "riskLevel": risk.value,
        "summary": empty | {"commandsExecuted": [], "estimatedSteps": 0},
        "changes": [],
        "planHash": None,
    }


def flag_document(flag: Flag) -> dict[str, Any]:
    """`{kind, path?, detail}`."""
    document: dict[str, Any] = {"kind": flag.kind}
    if flag.path is not None:
        document["path"] = flag.path
    return document | {"detail": flag.detail}
