"""Plans of one step, for the tools of the MCP server that propose a single change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from obsidian_agent.integrations.mcp_arguments import (
    AppendInput,
    CreateInput,
    MoveInput,
    PropertiesInput,
)
from obsidian_agent.integrations.mcp_reading import named_file
from obsidian_agent.integrations.shared_view import SharedView
from obsidian_agent.offline.recipe_plan import escape, map_texts

Plan = dict[str, Any]


def create(view: SharedView, args: CreateInput) -> Plan:
    """Return a plan that creates a note."""
    path = _with_suffix(args.path)
    step: Plan = {"path": path, "content": args.content, "ifNotExists": False}
    if args.properties:
        step["frontmatter"] = args.properties
    return _plan(f"Create {path}", "vault.createFile", step)


def append(view: SharedView, args: AppendInput) -> Plan:
    """Return a plan that adds text to a note."""
    path = named_file(view, args.path)
    step: Plan = {"path": path, "mode": "append", "content": args.content}
    if args.heading is not None:
        step["heading"] = args.heading
    return _plan(f"Add text to {path}", "vault.updateFile", step)


def set_properties(view: SharedView, args: PropertiesInput) -> Plan:
    """Return a plan that changes the properties and tags of a note."""
    path = named_file(view, args.path)
    step: Plan = {"path": path}
    changes: Mapping[str, Any] = {
        "set": args.set,
        "remove": args.remove,
        "addTags": args.add_tags,
        "removeTags": args.remove_tags,
    }
    step |= {name: value for name, value in changes.items() if value}
    return _plan(f"Change the properties of {path}", "vault.setFrontmatter", step)


def move(view: SharedView, args: MoveInput) -> Plan:
    """Return a plan that moves or renames a note. Links to it follow."""
    path = named_file(view, args.path)
    name = path.rpartition("/")[2]
    suffix = f".{name.rpartition('.')[2]}" if "." in name else ""
    to = args.to
    if to.endswith("/"):
        to += name
    elif not to.casefold().endswith(suffix.casefold()):
        to += suffix
    return _plan(f"Move {path} to {to}", "vault.rename", {"from": path, "to": to})


def _plan(goal: str, tool: str, args: Plan) -> Plan:
    """Return a plan of one step. Its texts are literal: they hold no references."""
    literal = map_texts(args, escape)
    step = {"id": "change", "tool": tool, "args": literal, "preview": goal[:200]}
    return {"version": "1.0", "goal": goal[:200], "riskLevel": "writes", "steps": [step]}


def _with_suffix(path: str) -> str:
    return path if path.casefold().endswith(".md") else f"{path}.md"
