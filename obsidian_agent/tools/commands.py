"""Commands of a running Obsidian.

Their effects cannot be known in advance, so `commands.run` is opaque: never previewed, run by the
executor. `RunContext.commands` asks a running Obsidian; without one a step that runs a command is
an error of the dry run.
"""

from __future__ import annotations

from pydantic import Field

from obsidian_agent.errors import ObsidianError, ToolError
from obsidian_agent.tools.core.models import SparseOutput, ToolModel
from obsidian_agent.tools.core.tool import (
    Proposal,
    Risk,
    ToolContext,
    tool,
)


class ListCommandsInput(ToolModel):
    filter: str | None = Field(
        default=None, description="Only commands whose id or name contains this text."
    )


class CommandItem(ToolModel):
    id: str
    name: str
    source: str


class ListCommandsOutput(ToolModel):
    commands: list[CommandItem]
    count: int


@tool("commands.list", Risk.READ_ONLY)
def list_commands(args: ListCommandsInput, ctx: ToolContext) -> Proposal[ListCommandsOutput]:
    """List the commands of the running Obsidian; none without one."""
    filter_text = (args.filter or "").casefold()
    try:
        known = ctx.run.commands() if ctx.run.runs_commands else ()
    except ObsidianError as error:
        return Proposal(ListCommandsOutput(commands=[], count=0), warnings=(error.problem(),))
    commands = [
        CommandItem(id=command.id, name=command.name, source=command.source)
        for command in known
        if filter_text in f"{command.id}\n{command.name}".casefold()
    ]
    return Proposal(ListCommandsOutput(commands=commands, count=len(commands)))


class RunCommandInput(ToolModel):
    id: str = Field(min_length=1, description="An id from commands.list.")


class RunCommandOutput(SparseOutput):
    id: str
    executed: bool
    error_message: str | None = None


@tool("commands.run", Risk.COMMANDS, opaque=True)
def run_command(args: RunCommandInput, ctx: ToolContext) -> Proposal[RunCommandOutput]:
    """Run a command of Obsidian. Its effects cannot be previewed or undone."""
    if not ctx.run.runs_commands:
        raise ToolError(
            f"The command {args.id} cannot be run: no Obsidian is connected.",
            code="COMMANDS_UNAVAILABLE",
            hint="Start Obsidian, check `obsidian-agent companion status`, or omit the step.",
        )
    try:
        known = {command.id for command in ctx.run.commands()}
    except ObsidianError as error:
        raise ToolError(
            f"The command {args.id} cannot be run: {error.message}",
            code="COMMANDS_UNAVAILABLE",
            hint=error.hint,
        ) from error
    if args.id not in known:
        raise ToolError(
            f"Obsidian currently has no command {args.id}.",
            code="COMMANDS_UNAVAILABLE",
            hint="Use an id from commands.list.",
        )
    return Proposal(RunCommandOutput(id=args.id, executed=False))
