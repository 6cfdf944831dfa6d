"""Obsidian's own commands. What one does cannot be known in advance, so `commands.run` is opaque: never previewed, run by the executor.

Both tools know nothing of a live Obsidian: the program that has a connection to one answers in their place. Without one a step that runs
a command is an error of the dry run, so that nobody approves what cannot happen.
"""

from __future__ import annotations

from pydantic import Field

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.base import Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.notes import SparseOutput


class ListCommandsInput(ToolModel):
    filter: str | None = Field(default=None, description="Only commands whose id or name holds this text.")


class Command(ToolModel):
    id: str
    name: str
    source: str


class ListCommandsOutput(ToolModel):
    commands: list[Command]
    count: int


def _list_commands(args: ListCommandsInput, ctx: ToolContext) -> Proposal:
    return Proposal(ListCommandsOutput(commands=[], count=0))


LIST_COMMANDS = Tool(
    name="commands.list",
    summary="List the commands of the Obsidian that is running; none without one.",
    risk=Risk.READ_ONLY,
    input=ListCommandsInput,
    output=ListCommandsOutput,
    propose=_list_commands,
)


class RunCommandInput(ToolModel):
    id: str = Field(min_length=1, description="As commands.list gives it.")


class RunCommandOutput(SparseOutput):
    id: str
    executed: bool
    error_message: str | None = None


def _run_command(args: RunCommandInput, ctx: ToolContext) -> Proposal:
    if not ctx.run.runs_commands:
        raise ToolError(
            f"The command {args.id} cannot be run: no Obsidian is connected.",
            code="COMMANDS_UNAVAILABLE",
            hint="This version reaches none; leave the step out.",
        )
    return Proposal(RunCommandOutput(id=args.id, executed=False))


RUN_COMMAND = Tool(
    name="commands.run",
    summary="Run a command of Obsidian. What it does cannot be previewed or undone.",
    risk=Risk.COMMANDS,
    input=RunCommandInput,
    output=RunCommandOutput,
    propose=_run_command,
    opaque=True,
)
