"""Several actions in one sentence: the vault as the first ones would leave it, for reading the next, and one plan with the steps of all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.vault.views.changes import CreateFile, DeleteEntry, FileChange, MakeFolder, ModifyFile, NetChange, RenameEntry
from obsidian_agent.vault.views.overlay import OverlayVault
from obsidian_agent.vault.views.view import VaultView

_RISKS: Final = ("read-only", "writes", "commands")


def after(view: VaultView, done: Sequence[NetChange], now_ms: float) -> VaultView | None:
    """The vault as changes would leave it; None when that cannot be told."""
    overlay = OverlayVault(view, now_ms)
    order = {"mkdir": 0, "rename": 1, "delete": 2, "create": 3, "modify": 4}
    try:
        for change in sorted(done, key=lambda change: order[change.kind]):
            overlay.apply(list(_changes(change)), 0)
    except ObsidianAgentError:
        return None
    return overlay


def _changes(change: NetChange) -> Iterator[FileChange]:
    match change.kind:
        case "mkdir":
            yield MakeFolder(change.path)
        case "create":
            yield CreateFile(change.path, change.content or b"")
        case "modify":
            yield ModifyFile(change.path, change.content or b"")
        case "delete":
            yield DeleteEntry(change.path)
        case "rename":
            assert change.new_path is not None
            yield RenameEntry(change.path, change.new_path)
            if change.content is not None:
                yield ModifyFile(change.new_path, change.content)


def joined(plans: Sequence[ActionPlan]) -> ActionPlan:
    """One plan with the steps of all, in order; ids, captured names and parameters get the number of their part."""
    documents = [_numbered(plan.to_json(), number) for number, plan in enumerate(plans, 1)]
    return ActionPlan.model_validate(
        {
            "version": documents[0]["version"],
            "goal": "; ".join(document["goal"] for document in documents),
            "assumptions": [text for document in documents for text in document.get("assumptions", [])],
            "riskLevel": max((document["riskLevel"] for document in documents), key=_RISKS.index),
            "parameters": {name: declared for document in documents for name, declared in document.get("parameters", {}).items()},
            "steps": [step for document in documents for step in document["steps"]],
        }
    )


def _numbered(document: dict[str, Any], number: int) -> dict[str, Any]:
    ids = {step["id"] for step in document["steps"]}
    captured = {step["captureAs"] for step in document["steps"] if step.get("captureAs")}
    rename = _renaming(ids, captured, set(document.get("parameters", {})), f"_part{number}")
    steps = []
    for step in document["steps"]:
        made = dict(step) | {"id": f"{step['id']}_part{number}"}
        for key in ("args", "when", "foreach"):
            if made.get(key) is not None:
                made[key] = _rewritten(made[key], rename)
        if made.get("captureAs"):
            made["captureAs"] = f"{made['captureAs']}_part{number}"
        if made.get("dependsOn"):
            made["dependsOn"] = [f"{name}_part{number}" for name in made["dependsOn"]]
        steps.append(made)
    parameters = {f"{name}_part{number}": declared for name, declared in document.get("parameters", {}).items()}
    return document | {"steps": steps, "parameters": parameters}


def _renaming(ids: set[str], captured: set[str], parameters: set[str], ending: str) -> Callable[[str], str]:
    """Puts the new names into the references of a text."""
    patterns = []
    for names, heads in ((ids, r"\$?steps\."), (captured, r"\$?vars\.")):
        if names:
            any_of = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
            patterns.append(re.compile(rf"((?<!\$)\$\{{{heads})({any_of})(?![A-Za-z0-9_])"))
            patterns.append(re.compile(rf"(\A{heads.replace('?', '')})({any_of})(?![A-Za-z0-9_])"))
    if parameters:
        any_of = "|".join(map(re.escape, sorted(parameters, key=len, reverse=True)))
        patterns.append(re.compile(rf"((?<!\$)\$\{{)({any_of})(?![A-Za-z0-9_])"))

    def rename(text: str) -> str:
        for pattern in patterns:
            text = pattern.sub(lambda found: f"{found[1]}{found[2]}{ending}", text)
        return text

    return rename


def _rewritten(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_rewritten(each, change) for each in value]
    if isinstance(value, Mapping):
        return {key: _rewritten(each, change) for key, each in value.items()}
    return value
