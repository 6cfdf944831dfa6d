"""Plans for the app under test, and values that no vault on disk comes to at will."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from obsidian_agent.journal.recovery import InterruptedPath, InterruptedRun
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Instance, Preview
from obsidian_agent.tools.core.tool import Risk, RunContext
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.changes import ChangeSet, NetChange

NOW = datetime(2025, 12, 16, 9, 30)

NAMES = (
    "Garden",
    "Kitchen",
    "Roof",
    "Taxes 2025",
    "Holiday in Norway",
    "Bike repair",
    "Reading list",
    "Choir",
    "Sourdough",
    "Attic",
)


def plan_document(steps: Iterable[Mapping[str, Any]], **fields: Any) -> dict[str, Any]:
    """Return the document of a plan."""
    return {"version": "1.0", "goal": "Test", "riskLevel": "writes", "steps": list(steps)} | fields


def create(id: str, path: str, content: str = "x\n", **fields: Any) -> dict[str, Any]:
    """Return a step that creates a note."""
    args = {"path": path, "content": content}
    return {"id": id, "tool": "vault.createFile", "args": args} | fields


def append(id: str, path: str, content: str, **fields: Any) -> dict[str, Any]:
    """Return a step that appends to a note."""
    args = {"path": path, "mode": "append", "content": content}
    return {"id": id, "tool": "vault.updateFile", "args": args} | fields


PROJECTS = plan_document(
    [
        {
            "id": "bullets",
            "tool": "util.parseMarkdownBullets",
            "args": {"text": "".join(f"- {name}\n" for name in NAMES)},
            "preview": "Read the bullets",
        },
        {
            "id": "notes",
            "tool": "vault.createFile",
            "args": {
                "path": "Projects/${item.text}.md",
                "content": "# ${item.text}\n\nStatus: open\nCreated: 2025-12-16\n",
            },
            "preview": "Create a note for each bullet",
            "foreach": {"from": "$steps.bullets.items", "itemName": "item"},
        },
        {
            "id": "links",
            "tool": "vault.updateFile",
            "args": {
                "path": "Daily/2025-12-16.md",
                "mode": "append",
                "content": "".join(f"- [[{name}]]\n" for name in NAMES),
            },
            "preview": "Link the notes",
        },
    ],
    goal="Make a project note for each bullet",
    assumptions=["Projects live in Projects/", "The bullets are top-level items"],
)
"""Ten new notes, and one that links them."""


def vault_path(text: str) -> VaultPath:
    """Return a path without the gate, so that hostile names reach the widgets."""
    path = object.__new__(VaultPath)
    for name, value in (("text", text), ("_nfc", None), ("_key", None), ("_parent", None)):
        object.__setattr__(path, name, value)
    return path


def plan_of(steps: Sequence[Mapping[str, Any]] | None = None, **fields: Any) -> ActionPlan:
    """Return a plan; `PROJECTS` without steps of its own."""
    document = PROJECTS if steps is None else plan_document(steps)
    return ActionPlan.model_validate(document | fields)


def change(
    kind: str,
    path: str,
    new_path: str | None = None,
    content: bytes | None = None,
    folder: bool = False,
) -> NetChange:
    """Return a net change of any path."""
    before = None if kind in ("create", "mkdir") else vault_path(path)
    renamed = vault_path(new_path) if new_path else None
    return NetChange(
        kind=kind,  # type: ignore[arg-type]
        path=vault_path(path),
        new_path=renamed,
        before=before,
        content=content,
        folder=folder,
    )


def preview_of(plan: ActionPlan, changes: Sequence[NetChange], **fields: Any) -> Preview:
    """Return a preview with one instance for each step."""
    instances = tuple(
        Instance(
            name=step.id, step_id=step.id, index=None, tool=step.tool, args=step.args, state="ready"
        )
        for step in plan.steps
    )
    defaults: dict[str, Any] = {
        "instances": instances,
        "risk": Risk.WRITES,
        "plan_hash": "0" * 64,
    }
    return Preview(
        plan=plan,
        context=RunContext("Vault", NOW),
        change_set=ChangeSet((), tuple(changes)),
        **(defaults | fields),
    )


def interrupted(
    run_id: str, time: str, goal: str, *paths: str, kind: Any = "run"
) -> InterruptedRun:
    """Return a run that a crash interrupted."""
    return InterruptedRun(
        run_id=run_id,
        kind=kind,
        time=time,
        goal=goal,
        paths=tuple(InterruptedPath(path, "before") for path in paths),
        leftovers=0,
    )
