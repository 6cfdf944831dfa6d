"""`schema`: the JSON Schemas of plans and of the arguments of tools."""

from __future__ import annotations

import argparse

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    command = commands.add("schema", schema_command, examples=["schema plan > plan.schema.json"])
    command.add_argument("subject", choices=["plan", "tools"])


def schema_command(options: argparse.Namespace, out: Output) -> Exit:
    """Print the schema of plans, or those of the tools' arguments."""
    from obsidian_agent.plan.model import plan_schema, tools_schema
    from obsidian_agent.tools.registry import TOOLS

    is_plan = options.subject == "plan"
    out.document(plan_schema() if is_plan else tools_schema(TOOLS.values()))
    return Exit.DONE
