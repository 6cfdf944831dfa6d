"""The workspace: open a file, and the active, open and recent files."""

from __future__ import annotations

from pydantic import Field

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.lookup import find_file
from obsidian_agent.tools.core.models import SparseOutput, ToolModel, Whole
from obsidian_agent.tools.core.tool import (
    PathText,
    Proposal,
    Risk,
    RunContext,
    ToolContext,
    tool,
)


class OpenFileInput(ToolModel):
    path: PathText = Field(min_length=1)
    line: Whole | None = Field(default=None, ge=1, description="From 1.")
    new_pane: bool = Field(
        default=False, description="Open a new pane; only with a connected Obsidian."
    )


class OpenFileOutput(ToolModel):
    path: str
    opened: bool
    via: str


@tool("workspace.openFile", Risk.READ_ONLY)
def open_file(args: OpenFileInput, ctx: ToolContext) -> Proposal[OpenFileOutput]:
    """Open a file on screen."""
    if args.new_pane and not ctx.run.runs_commands:
        raise ToolError(
            "A new pane needs Obsidian, and no Obsidian is connected.",
            advice="Omit newPane.",
            path=args.path,
        )
    via = _opening_method(args, ctx.run)
    return Proposal(
        OpenFileOutput(path=find_file(ctx.view, args.path).text, opened=via != "none", via=via)
    )


def _opening_method(args: OpenFileInput, run: RunContext) -> str:
    if run.runs_commands and (args.new_pane or not run.has_screen):
        return "obsidian"
    if run.has_screen:
        return "app"
    return "desktop" if run.has_desktop() else "none"


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
    """Return the state of the workspace: the active file, the selection, open and recent files.

    It includes the vault's name.
    """
    run = ctx.run
    output = GetContextOutput(
        vault_name=run.vault_name,
        active_file_path=run.active_file.text if run.active_file else None,
        selection=run.selection.text if run.selection else None,
        open_files=[path.text for path in run.open_files],
        recent_files=[path.text for path in run.recent_files],
    )
    return Proposal(output)
