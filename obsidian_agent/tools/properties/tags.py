"""`vault.renameTag`: one tag under another name, in the whole vault or a folder.

`vault.listTags`: the tags of the vault or of some notes, with the number of notes that have them.

`vault.removeTags`: tags out of a note, wherever it has them.
"""

from __future__ import annotations

from pydantic import Field

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.tools.core.lookup import NotesInput, find_file, find_folder, unread
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, ToolModel, tool
from obsidian_agent.vault.index.facts import tag_key
from obsidian_agent.vault.index.index import index_of
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse
from obsidian_agent.vault.refactor.tags import TagRename, retag, untag
from obsidian_agent.vault.views.changes import ModifyFile


class ListTagsInput(NotesInput):
    pass


class CountedTag(ToolModel):
    tag: str = Field(description="Without #, in the spelling that comes first.")
    count: int = Field(description="The number of notes.")


class ListTagsOutput(ToolModel):
    items: list[CountedTag]
    count: int


@tool("vault.listTags", Risk.READ_ONLY)
def list_tags(args: ListTagsInput, ctx: ToolContext) -> Proposal[ListTagsOutput]:
    """The tags of the vault, a folder or some notes, in alphabetical order, with the number of notes that have each."""
    index = index_of(ctx.view)
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for path in args.notes(ctx):
        for tag in index.facts(path).tags:
            key = tag_key(tag)
            names.setdefault(key, tag)
            counts[key] = counts.get(key, 0) + 1
    items = [CountedTag(tag=names[key], count=counts[key]) for key in sorted(names)]
    return Proposal(ListTagsOutput(items=items, count=len(items)), warnings=unread(index))


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


@tool("vault.renameTag", Risk.WRITES)
def rename_tag(args: RenameTagInput, ctx: ToolContext) -> Proposal[RenameTagOutput]:
    """Rename a tag everywhere, in properties and text; nested tags follow."""
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


class RemoveTagsInput(ToolModel):
    path: PathText = Field(min_length=1)
    tags: list[str] | None = Field(default=None, description="With or without #; nested tags are others. Without it: all tags.")


class RemoveTagsOutput(ToolModel):
    path: str
    count: int = Field(description="How many were taken out.")
    changed: bool


@tool("vault.removeTags", Risk.WRITES)
def remove_tags(args: RemoveTagsInput, ctx: ToolContext) -> Proposal[RemoveTagsOutput]:
    """Take tags out of a note, from its properties and its text; vault.setFrontmatter only knows those in properties."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    before = ctx.view.read(path)
    after, count = untag(before, args.tags, path.text)
    output = RemoveTagsOutput(path=path.text, count=count, changed=after != before)
    return Proposal(output, (ModifyFile(path, after),) if after != before else ())
