"""`vault.renameTag`: one tag under another name, in the whole vault or a folder."""

from __future__ import annotations

from pydantic import Field

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.finding import unread
from obsidian_agent.tools.notes import find_folder
from obsidian_agent.vault import paths
from obsidian_agent.vault.changes import ModifyFile
from obsidian_agent.vault.index import index_of
from obsidian_agent.vault.paths import PathUse
from obsidian_agent.vault.retag import TagRename, retag


class RenameTagInput(ToolModel):
    from_: str = Field(alias="from", min_length=1, description="The tag, with or without #; tags nested below it follow.")
    to: str = Field(min_length=1)
    folder: PathText | None = None


class RetaggedFile(ToolModel):
    path: str
    count: int


class RenameTagOutput(ToolModel):
    files: list[RetaggedFile]
    total: int


def _rename_tag(args: RenameTagInput, ctx: ToolContext) -> Proposal:
    rename = TagRename.checked(args.from_, args.to)
    index = index_of(ctx.view)
    files: list[RetaggedFile] = []
    changes: list[ModifyFile] = []
    warnings: list[Problem] = []
    for path in index.tagged(rename.old, find_folder(ctx.view, args.folder)):
        try:
            paths.parse(path.text, PathUse.UPDATE)
            content, count = retag(ctx.view.read(path), rename, path.text)
        except VaultError as error:
            warnings.append(Problem(error.code, f"The tags of {path} are left alone: {error.message}", path=path.text))
            continue
        if count:
            files.append(RetaggedFile(path=path.text, count=count))
            changes.append(ModifyFile(path, content))
    if not files and not warnings:
        warnings.append(Problem("TEXT_NOT_FOUND", f"No note has the tag #{rename.old}, so nothing is renamed."))
    output = RenameTagOutput(files=files, total=sum(file.count for file in files))
    return Proposal(output, tuple(changes), (*warnings, *unread(index)))


RENAME_TAG = Tool(
    name="vault.renameTag",
    summary="Rename a tag everywhere, in properties and text; nested tags follow.",
    risk=Risk.WRITES,
    input=RenameTagInput,
    output=RenameTagOutput,
    propose=_rename_tag,
)
