"""What moving, deleting and making files means for links: the rewriting of a rename, and warnings about links that will change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from obsidian_agent.errors import Problem
from obsidian_agent.tools.base import ToolContext
from obsidian_agent.tools.base_warnings import bases_that_break
from obsidian_agent.vault.changes import FileChange, ModifyFile
from obsidian_agent.vault.index import VaultIndex, index_of
from obsidian_agent.vault.index_facts import file_name
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.relink import relink
from obsidian_agent.vault.relink_changes import LinkChanges
from obsidian_agent.vault.relink_shift import Shift, shift_of_delete, shift_of_rename
from obsidian_agent.vault.view import Entry

NAMED_IN_A_WARNING = 10
"""Files that a warning names; of the others it says how many there are."""


@dataclass(frozen=True, slots=True)
class LinkUpdates:
    """What a rename means for links: the changes to fold after it, the number of links they rewrite, and what to warn of."""

    changes: tuple[FileChange, ...] = ()
    count: int = 0
    warnings: tuple[Problem, ...] = ()


def update_links(ctx: ToolContext, entry: Entry, target: VaultPath) -> LinkUpdates:
    """The updates that keep the meaning of every link when `entry` becomes `target`. ToolError when a link cannot keep it."""
    index = index_of(ctx.view)
    shift = shift_of_rename(ctx.view, entry, target)
    done = relink(ctx.view, index, shift, ctx.run.link_style)
    changes = tuple(ModifyFile(file.path, file.content) for file in done.files)
    return LinkUpdates(changes, done.links, (*done.problems, *_bases(ctx, shift, entry), *_unread(index)))


def links_left(ctx: ToolContext, entry: Entry, target: VaultPath) -> tuple[Problem, ...]:
    """Warnings for a rename that updates no links."""
    shift = shift_of_rename(ctx.view, entry, target)
    return (*_warnings(ctx, shift, entry.path), *_bases(ctx, shift, entry))


def links_lost(ctx: ToolContext, entry: Entry) -> tuple[Problem, ...]:
    """Warnings for a deletion."""
    shift = shift_of_delete(ctx.view, entry)
    return (*_warnings(ctx, shift, entry.path), *_bases(ctx, shift, entry))


def links_caught(ctx: ToolContext, path: VaultPath) -> tuple[Problem, ...]:
    """Warnings for a new file whose name draws links to it that lead to another file now, as Obsidian lets it."""
    if not index_of(ctx.base).named(file_name(path)):
        return ()
    return _warnings(ctx, Shift(added=(path,)), path)


def _warnings(ctx: ToolContext, shift: Shift, path: VaultPath) -> tuple[Problem, ...]:
    index = index_of(ctx.view)
    changes = LinkChanges(index, shift)
    lost: list[str] = []
    redirected: list[str] = []
    for source in changes.sources():
        found = changes.of_source(source).values()
        where = (shift.moved.get(source) or source).text
        if any(change.now is None for change in found):
            lost.append(where)
        if any(change.now is not None and change.now != change.wanted for change in found):
            redirected.append(where)
    problems = []
    if lost:
        problems.append(Problem("LINKS_UNRESOLVED", f"Links in {_listed(lost)} will lead nowhere.", path=path.text))
    if redirected:
        problems.append(Problem("LINKS_REDIRECTED", f"Links in {_listed(redirected)} will lead to another file.", path=path.text))
    return (*problems, *_unread(index))


def _bases(ctx: ToolContext, shift: Shift, entry: Entry) -> Iterable[Problem]:
    names = [path.text for path in bases_that_break(ctx.view, index_of(ctx.view), shift, entry)]
    if names:
        message = f"Links in {_listed(names)} will lead elsewhere or nowhere: bases are not changed."
        yield Problem("BASE_NOT_UPDATED", message, path=names[0])


def _unread(index: VaultIndex) -> Iterable[Problem]:
    names = sorted(index.problems)
    if names:
        yield Problem(index.problems[names[0]].code, f"Links in {_listed(names)} are not known, as that cannot be read.", path=names[0])


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    shown = ", ".join(names[:NAMED_IN_A_WARNING])
    more = len(names) - NAMED_IN_A_WARNING
    return f"{len(names)} files ({shown}{f' and {more} more' if more > 0 else ''})"
