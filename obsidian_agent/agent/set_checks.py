"""A look at the notes that a description means, before a plan is made of it: are there any, and are templates among them?"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.plan.binding import bind
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.preview import preview
from obsidian_agent.plan.result import Preview
from obsidian_agent.plan.validate import validate
from obsidian_agent.providers.offline.recipe import SET_KINDS, Recipe
from obsidian_agent.providers.offline.resolve import Resolved
from obsidian_agent.providers.offline.set_modifiers import both
from obsidian_agent.tools.base import RunContext, Tool, ToolContext
from obsidian_agent.vault.view import VaultView

_TOOL = "vault.find"


def meant(described: Mapping[str, Any], view: VaultView, context: RunContext, tools: Mapping[str, Tool]) -> list[str] | None:
    """The paths of the files that a description means, or None when it cannot be told before the run."""
    tool = tools.get(_TOOL)
    if tool is None or "${" in json.dumps(described):
        return None
    try:
        found = tool.propose(tool.input.model_validate(described), ToolContext(view, view, context))
    except (ObsidianAgentError, ValueError):
        return None
    return [file["path"] for file in found.output.model_dump(mode="json", by_alias=True)["files"]]


def effect_of(plan: ActionPlan, view: VaultView, context: RunContext, tools: Mapping[str, Tool]) -> frozenset[Any] | None:
    """What a plan would change, comparable with what another one would; None when it cannot run."""
    done = tried(plan, view, context, tools)
    if done is None:
        return None
    return frozenset((change.kind, change.path, change.new_path, change.content) for change in done.change_set.changes)


def tried(plan: ActionPlan, view: VaultView, context: RunContext, tools: Mapping[str, Tool]) -> Preview | None:
    """The dry run of a plan whose parameters all have values; None when it cannot run."""
    checked = validate(plan.to_json(), tools, Policy(allow_deletes=True, allow_commands=True))
    if checked.plan is None:
        return None
    values = bind(checked.plan, {}).values
    done = preview(checked, tools, view, replace(context, params={**context.params, **values}))
    return None if done.errors else done


def sets_in(recipe: Recipe, resolved: Resolved) -> dict[str, Mapping[str, Any]]:
    """The descriptions of notes among the values, by parameter."""
    return {
        name: value
        for name, parameter in recipe.parameters.items()
        if parameter.kind in SET_KINDS and isinstance(value := resolved.values.get(name), Mapping)
    }


def without_folder(resolved: Resolved, name: str, folder: str) -> Resolved:
    """The same with the notes of a folder left out of a description."""
    described = resolved.values[name]
    where = both(described["where"], {"not": {"folder": folder}})
    return replace(resolved, values={**resolved.values, name: {**described, "where": where}})


def templates_folder(config: Callable[[Any], object | None]) -> str | None:
    """Where Obsidian's own settings say that templates are; None when they say nothing."""
    document = config("templates")
    folder = document.get("folder") if isinstance(document, dict) else None
    return folder.strip("/") or None if isinstance(folder, str) else None


def names_folder(described: Mapping[str, Any], folder: str) -> bool:
    """Whether a description names a folder, one within it, or single notes: then what is in that folder is meant on purpose."""
    text = json.dumps(described.get("where", {}), ensure_ascii=False)
    return json.dumps(folder)[:-1] in text or '"folder"' in text or '"paths"' in text or '"name"' in text
