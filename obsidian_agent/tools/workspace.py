"""What is open, and the commands of Obsidian.

What a command does cannot be known in advance, so `commands.run` is opaque: never previewed, run by the executor. Where a program is
connected to a live Obsidian, `RunContext.commands` asks it; without one a step that runs a command is an error of the dry run."""

from __future__ import annotations

from pydantic import Field

from obsidian_agent.errors import ObsidianError, ToolError
from obsidian_agent.tools.core.lookup import find_file
from obsidian_agent.tools.core.models import SparseOutput, ToolModel, Whole
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool


class OpenFileInput(ToolModel):
    path: PathText = Field(min_length=1)
    line: Whole | None = Field(default=None, ge=1, description="From 1.")
    new_pane: bool = Field(default=False, description="Only where an Obsidian is connected; refused without one.")


class OpenFileOutput(ToolModel):
    path: str
    opened: bool
    via: str


@tool("workspace.openFile", Risk.READ_ONLY)
def open_file(args: OpenFileInput, ctx: ToolContext) -> Proposal[OpenFileOutput]:
    """Show a file to the person."""
    if args.new_pane and not ctx.run.runs_commands:
        raise ToolError("newPane asks for a pane of Obsidian, and no Obsidian is connected.", hint="Leave newPane out.", path=args.path)
    outside = ctx.run.runs_commands and (args.new_pane or not ctx.run.has_screen)
    via = "obsidian" if outside else "app" if ctx.run.has_screen else "none"
    return Proposal(OpenFileOutput(path=find_file(ctx.view, args.path).text, opened=via != "none", via=via))


class GetContextInput(ToolModel):
    pass


class GetContextOutput(SparseOutput):
    vault_name: str
    active_file_path: str | None
    selection: str | None = None
    open_files: list[str]
    recent_files: list[str]


@tool("workspace.getContext", Risk.READ_ONLY)
def get_context(args: GetContextInput, ctx: ToolContext) -> Proposal[GetContextOutput]:
    """Tell the vault's name, the active file, the selection, and which files are open or were open."""
    run = ctx.run
    output = GetContextOutput(
        vault_name=run.vault_name,
        active_file_path=run.active_file.text if run.active_file else None,
        selection=run.selection.text if run.selection else None,
        open_files=[path.text for path in run.open_files],
        recent_files=[path.text for path in run.recent_files],
    )
    return Proposal(output)


class ListCommandsInput(ToolModel):
    filter: str | None = Field(default=None, description="Only commands whose id or name holds this text.")


class Command(ToolModel):
    id: str
    name: str
    source: str


class ListCommandsOutput(ToolModel):
    commands: list[Command]
    count: int


@tool("commands.list", Risk.READ_ONLY)
def list_commands(args: ListCommandsInput, ctx: ToolContext) -> Proposal[ListCommandsOutput]:
    """List the commands of the Obsidian that is running; none without one."""
    wanted = (args.filter or "").casefold()
    try:
        known = ctx.run.commands() if ctx.run.runs_commands else ()
    except ObsidianError as error:
        return Proposal(ListCommandsOutput(commands=[], count=0), warnings=(error.problem(),))
    found = [Command(id=each.id, name=each.name, source=each.source) for each in known if wanted in f"{each.id}\n{each.name}".casefold()]
    return Proposal(ListCommandsOutput(commands=found, count=len(found)))


class RunCommandInput(ToolModel):
    id: str = Field(min_length=1, description="As commands.list gives it.")


class RunCommandOutput(SparseOutput):
    id: str
    executed: bool
    error_message: str | None = None


@tool("commands.run", Risk.COMMANDS, opaque=True)
def run_command(args: RunCommandInput, ctx: ToolContext) -> Proposal[RunCommandOutput]:
    """Run a command of Obsidian. What it does cannot be previewed or undone."""
    if not ctx.run.runs_commands:
        raise ToolError(
            f"The command {args.id} cannot be run: no Obsidian is connected.",
            code="COMMANDS_UNAVAILABLE",
            hint="Start Obsidian, see `obsidian-agent companion status`, or leave the step out.",
        )
    try:
        known = {command.id for command in ctx.run.commands()}
    except ObsidianError as error:
        raise ToolError(f"The command {args.id} cannot be run: {error.message}", code="COMMANDS_UNAVAILABLE", hint=error.hint) from error
    if args.id not in known:
        raise ToolError(f"Obsidian has no command {args.id} now.", code="COMMANDS_UNAVAILABLE", hint="Take an id that commands.list gives.")
    return Proposal(RunCommandOutput(id=args.id, executed=False))
