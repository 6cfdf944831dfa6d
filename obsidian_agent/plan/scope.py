"""What references can reach: outputs of steps, captured values, loop names, parameters and the run's own context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from obsidian_agent.plan.grammar import Reference
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.tools.core.filters import MISSING, NO_SELECTION, FilterContext
from obsidian_agent.tools.core.tool import RunContext

CONTEXT_NAMES: Final = frozenset({"selection", "activeFile", "activeFolder", "vaultName", "date", "time", "now"})
"""The names of the run's own context; no step, loop or captured value may take them."""

RESERVED_NAMES: Final = CONTEXT_NAMES | {"steps", "vars"}

BUILTIN_VARS: Final[Mapping[str, Any]] = {"vaultRoot": ""}
"""`$vars` that nobody captured: paths are relative to the vault, so its root is the empty text."""

_PATH_CONTEXT: Final = frozenset({"activeFile", "activeFolder"})
_PATH_FIELDS: Final = frozenset({"path", "folder"})


def context_values(run: RunContext) -> dict[str, Any]:
    """The run's own context by name. Without a selection or an active file the value is a `Missing`."""
    active = run.active_file
    selected = run.selection.text if run.selection is not None else ""
    return {
        "selection": selected or NO_SELECTION,
        "activeFile": active.text if active is not None else MISSING,
        "activeFolder": active.parent.text if active is not None else MISSING,
        "vaultName": run.vault_name,
        "date": run.now.strftime("%Y-%m-%d"),
        "time": run.now.strftime("%H:%M"),
        "now": run.now.isoformat(timespec="seconds"),
    }


def path_parameters(plan: ActionPlan) -> frozenset[str]:
    """The declared parameters whose values may bring a `/` into a path."""
    return frozenset(name for name, declared in plan.parameters.items() if declared.type == "path")


@dataclass(frozen=True, slots=True)
class Scope:
    """Names and their values at one step or instance. `steps` and `vars` may be the growing maps of a dry run."""

    context: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    path_params: frozenset[str] = frozenset()
    steps: Mapping[str, Any] = field(default_factory=dict)
    vars: Mapping[str, Any] = field(default_factory=dict)
    local: Mapping[str, Any] = field(default_factory=dict)
    filters: FilterContext = field(default_factory=FilterContext)

    def child(self, item_name: str, item: Any, index_name: str, index: int) -> Scope:
        """The scope of one foreach instance."""
        local = {item_name: item, index_name: index}
        return Scope(self.context, self.params, self.path_params, self.steps, self.vars, local, self.filters)

    def knows(self, reference: Reference) -> bool:
        """Whether the head means anything here. Steps and captured names always do: a wrong one is an error, not text."""
        name = reference.head
        return reference.kind != "name" or name in self.local or name in self.params or name in self.context

    def value(self, reference: Reference) -> Any:
        """The value of the reference before its filters, or a `Missing`."""
        value = self._start(reference)
        for part in reference.parts:
            value = child_of(value, part)
        return value

    def containers(self, reference: Reference) -> Iterable[Any]:
        """The values on the way to the reference's own, outermost first."""
        value = self._start(reference)
        for part in reference.parts:
            yield value
            value = child_of(value, part)

    def may_hold_slash(self, reference: Reference) -> bool:
        """Whether the value may be several components of a path: paths of the run, path parameters, output fields, formatted dates."""
        if any(call.name == "date" for call in reference.filters):
            return True
        name, parts = reference.head, reference.parts
        if reference.kind == "name" and name not in self.local:
            return not parts and (name in _PATH_CONTEXT or name in self.path_params)
        return bool(parts) and parts[-1] in _PATH_FIELDS and "frontmatter" not in parts

    def _start(self, reference: Reference) -> Any:
        name = reference.head
        match reference.kind:
            case "steps":
                return self.steps.get(name, MISSING)
            case "vars":
                return self.vars.get(name, BUILTIN_VARS.get(name, MISSING))
            case "name":
                for names in (self.local, self.params, self.context):
                    if name in names:
                        return names[name]
                return MISSING


def child_of(value: Any, part: str) -> Any:
    """A field of an object or an item of a list, else `MISSING`. Nothing else has parts."""
    if isinstance(value, dict):
        return value.get(part, MISSING)
    if isinstance(value, list) and part.isascii() and part.isdigit() and len(part) <= 9:
        index = int(part)
        return value[index] if index < len(value) else MISSING
    return MISSING if value is not NO_SELECTION else value
