"""Tags of notes: count, rename and remove them."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.tools.core.lookup import (
    find_file,
    unread_warnings,
)
from obsidian_agent.tools.core.models import ChangedFile, ChangedFiles, Items, NotesInput, ToolModel
from obsidian_agent.tools.core.query_updates import update_queries
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.vault.index.index import tag_key
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath
from obsidian_agent.vault.refactor.query_renames import (
    TagInQueries,
)
from obsidian_agent.vault.refactor.tags import TagRename, retag, untag
from obsidian_agent.vault.views.changes import ModifyFile


class ListTagsInput(NotesInput):
    pass


class CountedTag(ToolModel):
    tag: str = Field(description="Without #, in the spelling that comes first.")
    count: int = Field(description="The number of notes.")


@tool("vault.listTags", Risk.READ_ONLY)
def list_tags(args: ListTagsInput, ctx: ToolContext) -> Proposal[Items[CountedTag]]:
    """List the tags of the vault, a folder or some notes, with the number of notes of each.

    They are in alphabetical order.
    """
    index = ctx.view.index
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    notes = args.notes(ctx)
    for path in notes:
        for tag in index.facts(path).tags:
            key = tag_key(tag)
            names.setdefault(key, tag)
            counts[key] = counts.get(key, 0) + 1
    items = [CountedTag(tag=names[key], count=counts[key]) for key in sorted(names)]
    return Proposal(Items.of(items), warnings=unread_warnings(index, notes))


class RenameTagInput(NotesInput):
    from_: str = Field(
        alias="from",
        min_length=1,
        description="The tag, with or without #; tags nested below it follow.",
    )
    to: str = Field(min_length=1)


@tool("vault.renameTag", Risk.WRITES)
def rename_tag(args: RenameTagInput, ctx: ToolContext) -> Proposal[ChangedFiles]:
    """Rename a tag everywhere, in properties, text and queries; nested tags follow.

    If only some notes are selected, queries are not changed; those with the old tag are listed.
    """
    rename = TagRename.parse(args.from_, args.to)
    index = ctx.view.index
    notes = args.notes(ctx)
    meant = frozenset(notes)
    files: list[ChangedFile] = []
    changes: list[ModifyFile] = []
    warnings: list[Problem] = []
    for path in (path for path in index.tagged(rename.old, ROOT) if path in meant):
        try:
            paths.parse(path.text, PathUse.UPDATE)
            content, count = retag(ctx.view.read(path), rename, path.text)
        except VaultError as error:
            warnings.append(
                Problem(
                    error.code,
                    f"The tags of {path} are unchanged: {error.message}",
                    path=path.text,
                )
            )
            continue
        if count:
            files.append(ChangedFile(path=path.text, count=count))
            changes.append(ModifyFile(path, content))
            ctx.show(changes)
    is_partial = len(meant) < index.note_count(ROOT) or bool(warnings)
    queries = update_queries(ctx, TagInQueries(rename), changes, is_partial=is_partial)
    files = _with_counts(files, queries.counts)
    warnings += queries.warnings
    if not files and not warnings:
        warnings.append(
            Problem("TEXT_NOT_FOUND", f"No note has the tag #{rename.old}, so nothing is renamed.")
        )
    return Proposal(
        ChangedFiles.of(files),
        queries.changes,
        (*warnings, *unread_warnings(index, notes)),
    )


def _with_counts(files: list[ChangedFile], counts: Mapping[VaultPath, int]) -> list[ChangedFile]:
    totals = {file.path: file.count for file in files}
    for path, count in counts.items():
        totals[path.text] = totals.get(path.text, 0) + count
    return [ChangedFile(path=path, count=count) for path, count in sorted(totals.items())]


class RemoveTagsInput(ToolModel):
    path: PathText = Field(min_length=1)
    tags: list[str] | None = Field(
        default=None, description="With or without #, without nested tags; all tags by default."
    )


class RemoveTagsOutput(ToolModel):
    path: str
    count: int = Field(description="The number of removed tags.")
    changed: bool


@tool("vault.removeTags", Risk.WRITES)
def remove_tags(args: RemoveTagsInput, ctx: ToolContext) -> Proposal[RemoveTagsOutput]:
    """Remove tags from a note, from its properties and its text.

    vault.setFrontmatter only changes tags in properties.
    """
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    before = ctx.view.read(path)
    after, count = untag(before, args.tags, path.text)
    output = RemoveTagsOutput(path=path.text, count=count, changed=after != before)
    return Proposal(output, (ModifyFile(path, after),) if after != before else ())
