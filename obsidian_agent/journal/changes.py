"""The net effect of a run's actions: as lists of paths, and as changes with diffs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, assert_never

from msgspec import Struct

from obsidian_agent.journal.blobs import ImageSource
from obsidian_agent.journal.records import Effects
from obsidian_agent.vault.paths.path import is_trash
from obsidian_agent.vault.transaction.actions import Action, MoveEntry, PutFile, PutFolder
from obsidian_agent.vault.views.diff import unified_diff

RunChangeKind = Literal["create", "modify", "delete", "rename", "mkdir"]


class RunChange(Struct, frozen=True, kw_only=True):
    """The net effect of a run on one path.

    `new_path` is set for renames. `before` and `after` are the hashes of the contents; both are
    None if the content did not change.
    """

    kind: RunChangeKind
    path: str
    new_path: str | None = None
    before: str | None = None
    after: str | None = None


class _Entry(Struct):
    """A file or folder that some action touched; `origin` is its first path, None if it is new."""

    origin: str | None
    is_folder: bool = False
    before: str | None = None
    after: str | None = None
    is_changed: bool = False


class _Outcome(NamedTuple):
    """The touched entries that exist by path, and those that do not exist any more.

    `deleted` were deleted or moved to the trash. `removed` are folders removed where they stood.
    """

    entries: dict[str, _Entry]
    deleted: list[_Entry]
    removed: list[_Entry]


def _follow(actions: Iterable[Action]) -> _Outcome:
    """Follow each entry through actions in the order in which they were applied."""
    outcome = _Outcome({}, [], [])
    entries, deleted, removed = outcome
    for action in actions:
        match action:
            case PutFile(path, before, after):
                origin = None if before is None else path.text
                entry = entries.setdefault(path.text, _Entry(origin, before=before))
                entry.after, entry.is_changed = after, True
                if after is None:
                    deleted.append(entries.pop(path.text))
            case PutFolder(path, created):
                if created and not is_trash(path):
                    entries[path.text] = _Entry(None, is_folder=True)
                elif not created:
                    removed.append(entries.pop(path.text, _Entry(path.text, is_folder=True)))
            case MoveEntry():
                _move(entries, deleted, action)
            case _:
                assert_never(action)
    return outcome


def _move(entries: dict[str, _Entry], deleted: list[_Entry], move: MoveEntry) -> None:
    old, new = move.path.text, move.new_path.text
    entry = entries.pop(old, None) or _Entry(old, is_folder=move.folder)
    below = [path for path in entries if path.startswith(f"{old}/")] if move.folder else []
    if is_trash(move.new_path):
        deleted.append(entry)
        # Entries that were in the folder from the start are deleted with it.
        inner = [(path, entries.pop(path)) for path in below]
        deleted += (entry for path, entry in inner if entry.origin != path)
        return
    entries[new] = entry
    for path in below:
        entries[new + path[len(old) :]] = entries.pop(path)


def effects_of(actions: Iterable[Action], commands: tuple[str, ...] = ()) -> Effects:
    """Return the net effect of actions in the order in which they were applied.

    A file that was renamed and edited is a rename.
    """
    outcome = _follow(actions)
    created, modified, renamed, folders = set[str](), set[str](), set[tuple[str, str]](), set[str]()
    for path, entry in outcome.entries.items():
        if entry.origin is None:
            (folders if entry.is_folder else created).add(path)
        elif entry.origin != path:
            renamed.add((entry.origin, path))
        elif entry.is_changed:
            modified.add(path)
    deleted = {entry.origin for entry in outcome.deleted if entry.origin is not None}
    replaced = created & deleted
    return Effects(
        created=tuple(sorted(created - replaced)),
        modified=tuple(sorted(modified | replaced)),
        deleted=tuple(sorted(deleted - replaced)),
        renamed=tuple(sorted(renamed)),
        folders=tuple(sorted(folders)),
        commands=commands,
    )


def net_changes(actions: Iterable[Action]) -> list[RunChange]:
    """Return the net effect of actions in the order in which they were applied, by path."""
    entries, deleted, removed = _follow(actions)
    changes = [_deletion(entry) for entry in (*deleted, *removed) if entry.origin is not None]
    changes += filter(None, (_change(path, entry) for path, entry in entries.items()))
    return sorted(changes, key=lambda change: change.path)


def _deletion(entry: _Entry) -> RunChange:
    return RunChange(kind="delete", path=entry.origin or "", before=entry.before)


def _change(path: str, entry: _Entry) -> RunChange | None:
    if entry.origin is None:
        kind: RunChangeKind = "mkdir" if entry.is_folder else "create"
        return RunChange(kind=kind, path=path, after=entry.after)
    if entry.origin != path:
        return RunChange(
            kind="rename",
            path=entry.origin,
            new_path=path,
            before=entry.before,
            after=entry.after,
        )
    if not entry.is_changed:
        return None
    return RunChange(kind="modify", path=path, before=entry.before, after=entry.after)


def touched_paths(actions: Iterable[Action]) -> set[str]:
    """Return the paths that the actions name, of moves both."""
    paths: set[str] = set()
    for action in actions:
        paths.add(action.path.text)
        if isinstance(action, MoveEntry):
            paths.add(action.new_path.text)
    return paths


def paths_outside(actions: Sequence[Action], chosen: Collection[str]) -> set[str]:
    """Return the paths that the chosen changes do not need, in actions of a run.

    Moves tie the two paths of an entry together. The folders that a run made or removed above a
    chosen path are needed; undo keeps those that hold other files.
    """
    needed = set(chosen)
    moves = [action for action in actions if isinstance(action, MoveEntry)]
    grows = True
    while grows:
        tied = [
            path
            for move in moves
            if move.path.text in needed or move.new_path.text in needed
            for path in (move.path.text, move.new_path.text)
        ]
        grows = not needed.issuperset(tied)
        needed.update(tied)
    above = {
        text[:end] for text in needed for end, character in enumerate(text) if character == "/"
    }
    outside: set[str] = set()
    for action in actions:
        if isinstance(action, MoveEntry):
            outside.update({action.path.text, action.new_path.text} - needed)
        elif action.path.text not in needed and not (
            isinstance(action, PutFolder) and action.path.text in above
        ):
            outside.add(action.path.text)
    return outside


def diffs(changes: Iterable[RunChange], images: ImageSource) -> Iterator[tuple[RunChange, str]]:
    """Yield each change with its unified diff.

    The diff is "" where no content changed, for binary content, and where the journal no longer has
    the contents.
    """
    for change in changes:
        before = images.find(change.before) if change.before is not None else None
        after = images.find(change.after) if change.after is not None else None
        is_known = (change.before is None or before is not None) and (
            change.after is None or after is not None
        )
        if not is_known or (before is None and after is None):
            yield change, ""
        else:
            new_path = change.new_path or change.path
            yield change, unified_diff(before, after, change.path, new_path)
