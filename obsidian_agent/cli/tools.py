"""`tools`: the tools that plans can use, and the recipes."""

from __future__ import annotations

import argparse

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    commands.add("tools", tools_command, examples=["tools", "tools --json"])


def tools_command(options: argparse.Namespace, out: Output) -> Exit:
    """Print the registry of tools, and the recipes that need no model."""
    from obsidian_agent.offline.recipe import packaged
    from obsidian_agent.tools.registry import TOOLS

    recipes = packaged()
    if out.as_json:
        tool_documents = [
            {
                "name": tool.name,
                "summary": tool.summary,
                "riskLevel": tool.risk.value,
                "aliases": list(tool.aliases),
                "input": tool.input.model_json_schema(by_alias=True),
                "output": tool.output.model_json_schema(by_alias=True),
            }
            for tool in TOOLS.values()
        ]
        recipe_documents = [
            {
                "name": recipe.name,
                "title": recipe.title,
                "description": recipe.description,
                "examples": list(recipe.examples),
            }
            for recipe in recipes
        ]
        out.document({"tools": tool_documents, "recipes": recipe_documents})
    for tool in TOOLS.values():
        fields = ", ".join(
            f"{info.alias}{'' if info.is_required() else '?'}"
            for info in tool.input.model_fields.values()
        )
        out.line(f"{tool.name:28} {tool.risk.value:10} {tool.summary}  ({fields})")
    out.line()
    out.line("Without a model:")
    for recipe in recipes:
        out.line(f"{recipe.name:28} {recipe.description} For example: {recipe.examples[0]}")
    return Exit.DONE
