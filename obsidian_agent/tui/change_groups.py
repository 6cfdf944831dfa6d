"""The changes of a preview in groups that a user can judge at once.

A group holds changes of one kind with the same effect: the same edit of the text, the same move
between folders, links that follow renamed files. Groups of few changes are listed file by file.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from obsidian_agent import terminal_text

if TYPE_CHECKING:
    from obsidian_agent.tui.diff_lines import Diff
    from obsidian_agent.vault.views.changes import ChangeSet, NetChange

Kind = Literal["delete", "create", "mkdir", "modify", "rename", "links"]
"""The kind of a change on the screen. `links` edits only links, to files that are renamed."""

KINDS: tuple[Kind, ...] = ("delete", "create", "mkdir", "modify", "rename", "links")
KIND_WORDS: Mapping[Kind, str] = {
    "delete": "deleted",
    "create": "new",
    "mkdir": "new folder",
    "modify": "edited",
    "rename": "renamed",
    "links": "with changed links",
}

FOLD_AT = 4
"""Changes from which a group is folded into one row."""
MAX_GROUPS = 8
"""Rows of a kind after which the smaller groups are combined."""

Parts = tuple[tuple[str, str], ...]
"""Texts with their styles."""


class LineEdit(Struct, frozen=True):
    """The effect of a change on the lines of a file: their numbers, and the edit as texts.

    `lines` are the changed lines with their signs, `substitutions` what is replaced by what.
    """

    added: int
    removed: int
    lines: tuple[tuple[str, str], ...] = ()
    substitutions: tuple[tuple[str, str], ...] = ()


class Group(Struct, frozen=True):
    """Changes of one kind. `key` identifies the group among those of all kinds."""

    kind: Kind
    key: str
    label: Parts
    changes: tuple[NetChange, ...]

    @property
    def is_folded(self) -> bool:
        """True if the group has one row for all its changes, unless it is opened."""
        return len(self.changes) >= FOLD_AT


def edit_of(diff: Diff) -> LineEdit:
    """Return the effect of a diff."""
    signs = {"add": "+", "del": "−"}
    lines = tuple(
        (signs[line.kind], line.text) for line in diff.lines if line.kind in ("add", "del")
    )
    return LineEdit(diff.added, diff.removed, lines, diff.substitutions())


def kinds_of(change_set: ChangeSet) -> Callable[[NetChange], Kind]:
    """Return a function from a change of the set to its kind."""
    from obsidian_agent.vault.views.changes import link_updates

    is_link_update = link_updates(change_set)

    def kind(change: NetChange) -> Kind:
        return "links" if is_link_update(change) else change.kind

    return kind


def grouped(
    changes: Iterable[NetChange],
    kind_of: Callable[[NetChange], Kind],
    edits: Mapping[str, LineEdit] | None,
) -> list[Group]:
    """Group changes, the most dangerous kind first.

    `edits` has the edits of files by their paths before the plan; with None they are not known yet.
    """
    by_kind: defaultdict[Kind, list[NetChange]] = defaultdict(list)
    for change in changes:
        by_kind[kind_of(change)].append(change)
    groups: list[Group] = []
    for kind in KINDS:
        if by_kind[kind]:
            groups += _groups_of(kind, by_kind[kind], edits)
    return groups


def _groups_of(
    kind: Kind, changes: Sequence[NetChange], edits: Mapping[str, LineEdit] | None
) -> list[Group]:
    match kind:
        case "links":
            return [Group(kind, "links", _links_label(changes, edits), tuple(changes))]
        case "modify" if edits is None:
            label = (("comparing the changes…", "$quiet"),)
            return [Group(kind, "all", label, tuple(changes))]
        case "modify":
            return _combined(kind, _by_edit(changes, edits or {}))
        case "rename":
            return _combined(kind, _by_folders(changes))
        case "delete" | "create" | "mkdir":
            return _combined(kind, _by_folder(kind, changes))


def _combined(kind: Kind, groups: Sequence[Group]) -> list[Group]:
    """Combine the smallest groups if there are too many rows of a kind."""
    rows = sum(1 if group.is_folded else len(group.changes) for group in groups)
    ordered = sorted(groups, key=lambda group: -len(group.changes))
    if rows <= MAX_GROUPS:
        return ordered
    large = [group for group in ordered if group.is_folded][: MAX_GROUPS - 1]
    rest = [change for group in ordered if group not in large for change in group.changes]
    if not rest:
        return large
    folders = len({change.path.parent.text for change in rest})
    label = ((f"in {terminal_text.counted(folders, 'folder')}", "$quiet"),)
    rest.sort(key=lambda change: change.path.text)
    return [*large, Group(kind, "other", label, tuple(rest))]


def _by_edit(changes: Sequence[NetChange], edits: Mapping[str, LineEdit]) -> list[Group]:
    """Group edited files by what is replaced by what; the others by their folder."""
    by_edit: defaultdict[tuple[tuple[str, str], ...], list[NetChange]] = defaultdict(list)
    for change in changes:
        edit = edits.get(change.path.text)
        by_edit[edit.substitutions if edit is not None else ()].append(change)
    groups: list[Group] = []
    others = by_edit.pop((), [])
    for substitutions, members in by_edit.items():
        if len(members) < FOLD_AT:
            others += members
            continue
        lines = {edits[change.path.text].lines for change in members}
        label = (
            _lines_label(next(iter(lines)))
            if len(lines) == 1
            else _substitutions_label(substitutions)
        )
        groups.append(Group("modify", f"{substitutions}", label, tuple(members)))
    others.sort(key=lambda change: change.path.text)
    return [*groups, *_by_folder("modify", others)]


def _lines_label(lines: Iterable[tuple[str, str]]) -> Parts:
    styles = {"+": "$success", "−": "$error"}
    return tuple(
        (f"{sign} {text.strip() or '(empty line)'}  ", styles[sign]) for sign, text in lines
    )


def _substitutions_label(substitutions: Iterable[tuple[str, str]]) -> Parts:
    parts: list[tuple[str, str]] = []
    for old, new in substitutions:
        if not old:
            parts.append((f"+ {new.strip()}  ", "$success"))
        elif not new:
            parts.append((f"− {old.strip()}  ", "$error"))
        else:
            parts += [(old.strip(), "$error"), (" → ", "$quiet"), (f"{new.strip()}  ", "$success")]
    return tuple(parts)


def _by_folder(kind: Kind, changes: Iterable[NetChange]) -> list[Group]:
    by_folder: defaultdict[str, list[NetChange]] = defaultdict(list)
    for change in changes:
        by_folder[change.path.parent.text].append(change)
    return [
        Group(
            kind,
            f"in {folder}",
            ((f"in {folder_name(folder)}", "$foreground"),),
            tuple(members),
        )
        for folder, members in by_folder.items()
    ]


def _by_folders(changes: Sequence[NetChange]) -> list[Group]:
    """Group renamed files by their old and new folders."""
    by_folders: defaultdict[tuple[str, str], list[NetChange]] = defaultdict(list)
    for change in changes:
        new = change.new_path or change.path
        by_folders[change.path.parent.text, new.parent.text].append(change)
    groups: list[Group] = []
    for (source, target), members in by_folders.items():
        label: Parts = ((f"in {folder_name(source)}", "$foreground"),)
        if source != target:
            start, end = shortened_pair(folder_name(source), folder_name(target), 60)
            label = ((start, "$foreground"), (" → ", "$quiet"), (end, "$foreground"))
        groups.append(Group("rename", f"{source}\n{target}", label, tuple(members)))
    return groups


def _links_label(changes: Sequence[NetChange], edits: Mapping[str, LineEdit] | None) -> Parts:
    if edits is None:
        return (("links to renamed files", "$foreground"),)
    lines = sum(edits[change.path.text].added for change in changes if change.path.text in edits)
    verb = "points" if lines == 1 else "point"
    return ((f"{terminal_text.counted(lines, 'line')} {verb} to the new names", "$foreground"),)


def folder_name(folder: str) -> str:
    """Return a folder as text for the screen; the root of the vault has a name of its own."""
    return terminal_text.line(f"{folder}/") if folder else "the vault's root folder"


def counted_files(changes: Sequence[NetChange]) -> str:
    """Return the number of changed notes, files or folders."""
    if all(change.folder for change in changes):
        return terminal_text.counted(len(changes), "folder")
    if all(change.path.text.casefold().endswith(".md") for change in changes):
        return terminal_text.counted(len(changes), "note")
    return terminal_text.counted(len(changes), "file")


def shortened_pair(old: str, new: str, room: int) -> tuple[str, str]:
    """Shorten two paths to `room` characters together, only where they are equal.

    An ellipsis replaces the folders that both have before the difference, except the last one, and
    then those after it. The result is longer if the paths differ in more than that.
    """
    if len(old) + len(new) <= room:
        return old, new
    mine, theirs = old.split("/"), new.split("/")
    start = len(posixpath.commonprefix([mine, theirs]))
    end = len(posixpath.commonprefix([mine[start:][::-1], theirs[start:][::-1]]))
    if start > 1:
        mine, theirs = ["…", *mine[start - 1 :]], ["…", *theirs[start - 1 :]]
    if end > 1 and len("/".join([*mine, *theirs])) > room:
        mine, theirs = [*mine[:-end], "…"], [*theirs[:-end], "…"]
    return "/".join(mine), "/".join(theirs)


def shortened_path(path: str, room: int) -> tuple[str, str]:
    """Shorten a path to `room` characters; return its folder with a slash, and its name.

    The middle of the folder is left out first, then the middle of the name.
    """
    folder, _, name = path.rpartition("/")
    folder = f"{folder}/" if folder else ""
    if len(folder) + len(name) <= room:
        return folder, name
    space = max(room - len(name), 0)
    if folder:
        parts = folder.split("/")[:-1]
        last = f"…/{parts[-1]}/"
        first = f"{parts[0]}/{last}"
        folder = next(
            (text for text in (first, last) if len(text) <= space and len(text) < len(folder)), "…/"
        )
    space = max(room - len(folder), 12)
    if len(name) > space:
        half = (space - 1) // 2
        name = f"{name[: space - 1 - half]}…{name[-half:]}"
    return folder, name


def path_parts(
    old: str, new: str | None, room: int, *, in_folder: bool = False
) -> list[tuple[str, str]]:
    """Return a path, or both of what moved, shortened where they are equal, with styles.

    A file that keeps its name has it once, then both folders, or the new one where that is all
    that fits; `in_folder`: below those already.
    """
    if new is None:
        return _path(old, room)
    (source, _, name), (target, _, new_name) = old.rpartition("/"), new.rpartition("/")
    if name != new_name:
        short = shortened_pair(old, new, room - 3)
        return [*_path(short[0], room), (" → ", "$quiet"), *_path(short[1], room)]
    parts = _path(name, room)
    if in_folder:
        return parts
    space = room - len(name) - 2
    before, after = shortened_pair(folder_name(source), folder_name(target), space - 3)
    text = f"{before} → {after}"
    if len(text) > space:
        text = f"→ {''.join(shortened_path(after.rstrip('/'), space - 2))}"
    return [*parts, (f"  {text}", "$quiet")]


def _path(path: str, room: int) -> list[tuple[str, str]]:
    """Return a path with a dim folder, shortened in its middle."""
    folder, name = shortened_path(path, room)
    name = terminal_text.line(name)
    if name != name.strip() or "  " in name:
        name = f"“{name}”"
    return [(terminal_text.line(folder), "$quiet"), (name, "$foreground")]
