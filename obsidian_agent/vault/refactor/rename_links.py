"""Links after a rename: every link means the same file as before, and keeps its form.

A link is rewritten only if its meaning would change: if it leads to a file that moves, if the move
takes or frees the name of another file, or if the note itself moves. New targets are resolved in
the vault as it will be. If old or new text has a character with a meaning in Markdown, YAML or
JSON, the new bytes are scanned again, and each link must be as intended. Nothing else in any file
changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import tee
from operator import attrgetter
from typing import Final, NamedTuple

from msgspec import Struct, field

from obsidian_agent.errors import PathRefused, Problem, ToolError, VaultError
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.links.graph import links_of, links_where
from obsidian_agent.vault.links.link_text import (
    DEFAULT_STYLE,
    LinkStyle,
    Spelling,
    display_edit,
    is_plain,
    relative_path,
    shape_of,
    spellings,
    target_edit,
)
from obsidian_agent.vault.links.references import NO_REFERENCES, References, references_in
from obsidian_agent.vault.links.resolve import (
    LinksByName,
    file_name,
    is_relative,
    link_key,
    target_name,
)
from obsidian_agent.vault.markdown.canvas import CANVAS
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.text import Edit, apply, decode
from obsidian_agent.vault.views.view import VaultEntry, VaultView, find_conflict

_ROOT_NOTE: Final = paths.parse("address of Obsidian", PathUse.READ)
"""A note in the root of the vault, relative to which Obsidian resolves URIs."""

_MAX_LISTED_LINES: Final = 10


class FileMoves(Struct, frozen=True, dict=True):
    """Simultaneous moves, deletions and creations of files.

    `replaced` are files that another one replaces: links to them become links to the new file.
    """

    moved: Mapping[VaultPath, VaultPath] = field(default_factory=dict)
    removed: frozenset[VaultPath] = frozenset()
    added: tuple[VaultPath, ...] = ()
    replaced: Mapping[VaultPath, VaultPath] = field(default_factory=dict)

    def after(self, path: VaultPath) -> VaultPath | None:
        """Return the path of a file after the moves, or None if it is deleted."""
        new = self.moved.get(path) or self.replaced.get(path)
        if new is not None:
            return new
        return None if path in self.removed else path

    @cached_property
    def names(self) -> frozenset[str]:
        """The names (keys of `resolve.file_name`) of the files that appear or disappear.

        A link that ends with another name keeps its meaning, unless it is relative or its file
        moves.
        """
        new = (*self.moved.values(), *self.added)
        return frozenset(map(file_name, (*self.moved, *self.removed, *self.replaced, *new)))

    @cached_property
    def has_new_names(self) -> bool:
        """True if a file gets another name, not only another folder."""
        return any(file_name(old) != file_name(new) for old, new in self.moved.items())

    @cached_property
    def gone(self) -> frozenset[VaultPath]:
        """The paths that have no file after the moves, or another one."""
        return frozenset((*self.moved, *self.removed, *self.replaced))

    @cached_property
    def new_paths(self) -> Mapping[str, tuple[VaultPath, ...]]:
        """The new paths, by name."""
        by_name: dict[str, tuple[VaultPath, ...]] = {}
        for path in (*self.moved.values(), *self.added):
            by_name[file_name(path)] = (*by_name.get(file_name(path), ()), path)
        return by_name


def moves_of_rename(view: VaultView, entry: VaultEntry, target: VaultPath) -> FileMoves:
    """Return the moves of a rename of a file or folder. A file at the target is replaced."""
    moved = {path: path.rebased(entry.path, target) for path in _files(view, entry)}
    twin = None if entry.kind == "folder" else find_conflict(view, target, entry.path)
    return FileMoves(moved) if twin is None else FileMoves(moved, replaced={twin: target})


def moves_of_delete(view: VaultView, entry: VaultEntry) -> FileMoves:
    """Return the moves of the deletion of a file or folder."""
    return FileMoves(removed=frozenset(_files(view, entry)))


def _files(view: VaultView, entry: VaultEntry) -> list[VaultPath]:
    if entry.kind == "file":
        return [entry.path]
    return [below.path for below in view.walk(entry.path) if below.kind == "file"]


class LinksAfter(LinksByName):
    """A resolver of links after some moves. It considers only the files of requested names."""

    def __init__(self, index: VaultIndex, moves: FileMoves) -> None:
        def files_named(name: str) -> Iterator[VaultPath]:
            yield from (path for path in index.files_named(name) if path not in moves.gone)
            yield from moves.new_paths.get(name, ())

        super().__init__(files_named)

    def is_unique(self, target: str) -> bool:
        """Return True if a target that is not relative can mean one file only, in any note."""
        return len(self.among(target_name(target)).candidates(target)) == 1

    def is_tie(self, target: str, source: VaultPath) -> bool:
        """Return True if several files match a target and only the alphabet decides.

        The two best matches have paths of equal length then.
        """
        if not target or is_relative(target):
            return False
        resolver = self.among(target_name(target))
        best = resolver.candidates(target)[:2]
        if len(best) < 2 or len(best[0].text) != len(best[1].text):
            return False
        if best[0].parent == source.parent:
            return False
        return (
            resolver.resolve(target, source) == best[0]
            and resolver.resolve(f"/{target}", source) is None
        )

    def has_twin(self, path: VaultPath) -> bool:
        """Return True if another file's path differs only in case or in its Unicode form."""
        match = self.among(file_name(path)).resolve(f"/{path.text}", path)
        return match is not None and match != path


class Change(NamedTuple):
    """A change to the meaning of a target by some moves."""

    before: VaultPath
    """The file that the target means before the moves."""
    after: VaultPath | None
    """The file that it should mean after them; None if it is deleted."""
    unedited: VaultPath | None
    """The file that it would mean after them without a rewrite."""
    card_only: bool = False
    """True if only file cards of canvases, which need the exact path, must be rewritten."""


class LinkChanges:
    """The changes to the meanings of links by some moves."""

    def __init__(self, index: VaultIndex, moves: FileMoves) -> None:
        """Compare with `index`, which is that of the vault before the moves."""
        self.after = LinksAfter(index, moves)
        self._before = LinksAfter(index, FileMoves())
        self._index = index
        self._moves = moves
        self._affected: dict[str, bool] = {}
        self._changes: dict[tuple[str, str, str, bool], Change | None] = {}

    def sources(self) -> list[VaultPath]:
        """Return the files whose links the moves may affect, sorted.

        Files that are deleted, or whose new extension is of a kind without links, are omitted.
        """
        moves = self._moves
        sources = {
            source.text: source
            for name in (*moves.names, ".", "..")
            for source in self._index.files_linking_name(name)
        }
        for source in self._index.notes_with_references():
            if any(map(self.may_change, self._index.facts(source).references)):
                sources[source.text] = source
        sources.update({path.text: path for path in moves.moved})
        gone = {path.text for path in moves.gone}
        remaining = [
            source for text, source in sources.items() if text not in gone or self._stays(source)
        ]
        return sorted(remaining, key=attrgetter("text"))

    def of_source(self, source: VaultPath) -> dict[str, Change]:
        """Return the changes by target in a file, from the index. References are included."""
        facts = self._index.facts(source)
        changes = self.of_targets(facts.targets, source)
        if not facts.references:
            return changes
        return {**self.of_references(facts.references, source), **changes}

    def of_references(self, targets: Iterable[str], source: VaultPath) -> dict[str, Change]:
        """Return the changes to targets of references in a file.

        A reference that is the relative path of its file changes as well if it will no longer be,
        because that is the path that other programs follow.
        """
        moves = self._moves
        path = moves.moved.get(source, source)
        targets = [
            target
            for target in targets
            if target and (source in moves.moved or self.may_change(target))
        ]
        changes = self.of_targets(targets, source)
        for target in targets:
            before = self._index.resolve(target, source) if target not in changes else None
            after = moves.after(before) if before is not None else None
            if before is None or after is None:
                continue
            was_relative = _is_relative_path(target, source, before)
            if was_relative and not _is_relative_path(target, path, after):
                changes[target] = Change(before, after, after)
        return changes

    def of_targets(self, targets: Iterable[str], source: VaultPath) -> dict[str, Change]:
        """Return the changes to targets of links in a file."""
        path = self._moves.moved.get(source)
        if path is None:
            path, targets = source, filter(self.may_change, targets)
        location = source.parent.text, path.parent.text, source.suffix == CANVAS
        changes: dict[str, Change] = {}
        for target in targets:
            # A target means the same in all notes of a folder, so that links to a hub are resolved
            # only a few times.
            key = (target, *location)
            if key not in self._changes:
                self._changes[key] = self._of_target(target, source, path)
            if change := self._changes[key]:
                changes[target] = change
        return changes

    def may_change(self, target: str) -> bool:
        """Return True if the moves may affect a target in a file that does not move.

        They do if it is relative, or ends with the name of a file that appears or disappears.
        """
        known = self._affected.get(target)
        if known is None:
            known = self._affected[target] = bool(target) and (
                is_relative(target) or target_name(target) in self._moves.names
            )
        return known

    def _stays(self, source: VaultPath) -> bool:
        """Return True if a file that moves has links of the same kind afterwards."""
        path = self._moves.moved.get(source)
        return path is not None and path.suffix == source.suffix

    def _of_target(self, target: str, source: VaultPath, path: VaultPath) -> Change | None:
        before = self._index.resolve(target, source) if target else None
        if before is None:
            return None
        after = self._moves.after(before)
        unedited = self.after.resolve(target, path)
        if after is None or unedited != after:
            return Change(before, after, unedited)
        if self.after.is_tie(target, path) and not self._before.is_tie(target, source):
            # Obsidian's choice between two paths of one length is unknown, so a link must not get
            # into such a tie.
            return Change(before, after, unedited)
        if source.suffix == CANVAS and after != before and target == before.text:
            return Change(before, after, unedited, card_only=True)
        return None


def _is_relative_path(target: str, source: VaultPath, file: VaultPath) -> bool:
    """Return True if a target is the relative path from one file to another."""
    return link_key(target.removeprefix("./")) == link_key(relative_path(file.text, source))


class RelinkedFile(Struct, frozen=True):
    """A file with rewritten links: its path after the moves, and its new bytes."""

    path: VaultPath
    content: bytes
    links: int
    """The number of rewritten links."""


class Relinked(Struct, frozen=True):
    """The link updates of some moves."""

    files: tuple[RelinkedFile, ...] = ()
    """The files to write, sorted by path."""
    problems: tuple[Problem, ...] = ()
    """Links that are not updated, with the codes of path errors, NOT_TEXT, LINK_AMBIGUOUS or
    REFERENCE_NOT_UPDATED."""

    @property
    def links(self) -> int:
        """The number of rewritten links."""
        return sum(file.links for file in self.files)


def relink(
    view: VaultView,
    index: VaultIndex,
    moves: FileMoves,
    style: LinkStyle = DEFAULT_STYLE,
    vault: str = "",
) -> Relinked:
    """Return the link updates of moves that delete no file.

    `view` and `index` are those of the vault before the moves, `vault` is its name. Raises
    ToolError if a link cannot be written so that it keeps its meaning.
    """
    changes = LinkChanges(index, moves)
    texts = _TargetTexts(changes.after, style)
    files: list[RelinkedFile] = []
    problems: list[Problem] = []
    for source in changes.sources():
        # A move to another folder changes few links, and the index knows which. A new name changes
        # most, so those files are read directly.
        if not moves.has_new_names and not changes.of_source(source):
            continue
        path = moves.moved.get(source, source)
        try:
            data = _read_for_update(view, source, path)
        except VaultError as error:
            if changes.of_source(source):
                problems.append(_not_updated(path, error))
            continue
        if source in moves.moved:
            links = links_of(source, data)
        else:
            links = links_where(source, data, changes.may_change)
        references = references_in(data) if source.is_note else NO_REFERENCES
        own = tuple(link for link in references.links if _is_own(link, vault))
        changed = _ChangedTargets.of(changes, source, links, own)
        if (changed.references or changed.uris) and not references.is_certain:
            problems.append(_too_long(path, references, changed))
            own, changed = (), _ChangedTargets(changed.links, {}, {})
        if not any(changed):
            continue
        rewriting = _Rewriting(
            source=source, path=path, data=data, links=links + own, changed=changed, texts=texts
        )
        content = rewriting.run()
        problems += rewriting.problems
        if content != data:
            files.append(RelinkedFile(path, content, len(rewriting.rewritten)))
    return Relinked(tuple(sorted(files, key=lambda file: file.path)), tuple(problems))


class _ChangedTargets(NamedTuple):
    """The changes by target in one file."""

    links: Mapping[str, Change]
    references: Mapping[str, Change]
    """The changes to definitions and HTML attributes."""
    uris: Mapping[str, Change]

    @classmethod
    def of(
        cls,
        changes: LinkChanges,
        source: VaultPath,
        links: Iterable[Link],
        references: Iterable[Link],
    ) -> _ChangedTargets:
        """Return the changes in a file with these links, and references to its own vault."""
        targets = dict.fromkeys(link.target for link in links)
        uris = dict.fromkeys(link.target for link in references if link.kind == "uri")
        others = dict.fromkeys(link.target for link in references if link.kind != "uri")
        return cls(
            links=changes.of_targets(targets, source),
            references=changes.of_references(others, source),
            uris=changes.of_targets(uris, _ROOT_NOTE),
        )

    def change(self, link: Link) -> Change | None:
        """Return the change to the target of a link, if any."""
        if link.kind == "uri":
            return self.uris.get(link.target)
        if link.is_reference:
            return self.references.get(link.target)
        change = self.links.get(link.target)
        if change is not None and change.card_only and link.kind != "canvas":
            return None
        return change


def _is_own(link: Link, vault: str) -> bool:
    """Return False for a URI that names another vault."""
    return link.kind != "uri" or link.display is None or link.display == vault


def _read_for_update(view: VaultView, source: VaultPath, path: VaultPath) -> bytes:
    """Return the bytes of a file that will be rewritten at `path`.

    Raises VaultError if the file is not UTF-8 or may not be written.
    """
    paths.parse(path.text, PathUse.UPDATE)
    data = view.read(source)
    if not data.isascii():
        decode(data, source.text)
    return data


def _not_updated(path: VaultPath, error: VaultError) -> Problem:
    if isinstance(error, PathRefused):
        reason = "it contains instructions for other agents."
    else:
        reason = error.message
    return Problem(error.code, f"The links in {path} are not updated: {reason}", path=path.text)


def _too_long(path: VaultPath, references: References, changed: _ChangedTargets) -> Problem:
    """Return the warning about a note that is too long for its references to be rewritten."""
    targets = {**changed.uris, **changed.references}
    lines = sorted({link.line for link in references.links if link.target in targets})
    numbers = ", ".join(map(str, lines[:_MAX_LISTED_LINES]))
    if len(lines) > _MAX_LISTED_LINES:
        numbers += ", …"
    message = (
        f"{path} is too long to update its references to moved files (definitions, HTML, URIs). "
        f"Check {'line' if len(lines) == 1 else 'lines'} {numbers}."
    )
    return Problem("REFERENCE_NOT_UPDATED", message, path=path.text)


class _TargetTexts:
    """The texts with which a link can mean a file after the moves."""

    def __init__(self, after: LinksAfter, style: LinkStyle) -> None:
        self.after = after
        self._style = style
        self._cache: dict[tuple[str, str, str, str, bool], Iterator[str]] = {}

    def of(self, link: Link, change: Change, source: VaultPath, path: VaultPath) -> Iterable[str]:
        """Return texts for the new target of a link in `source`, which moves to `path`.

        The text that is most similar to the old one is the first.
        """
        file = change.after
        if file is None:
            return ()
        if link.kind == "canvas":
            return (file.text,) if self.after.resolve(file.text, path) == file else ()
        relative = link.is_reference and link.kind != "uri"
        key = link.target, file.text, source.parent.text, path.parent.text, relative
        if key not in self._cache:
            # Other programs follow references too, and know only relative paths.
            style = LinkStyle("relative") if relative else self._style
            shape = shape_of(link.target, change.before, source, style)
            self._cache[key] = (
                spelling.text
                for spelling in spellings(shape, file, path, style)
                if self._means(spelling, file, path)
            )
        # The first text nearly always fits, so the others are resolved only when needed.
        self._cache[key], texts = tee(self._cache[key])
        return texts

    def _means(self, spelling: Spelling, file: VaultPath, path: VaultPath) -> bool:
        return self.after.resolve(spelling.text, path) == file and (
            not spelling.unique or self.after.is_unique(spelling.text)
        )


def _all_links(path: VaultPath, data: bytes) -> tuple[Link, ...]:
    references = references_in(data) if path.is_note else NO_REFERENCES
    return links_of(path, data) + (references.links if references.is_certain else ())


class _Rewriting:
    """The rewriting of the links in one file."""

    def __init__(
        self,
        source: VaultPath,
        path: VaultPath,
        data: bytes,
        links: tuple[Link, ...],
        changed: _ChangedTargets,
        texts: _TargetTexts,
    ) -> None:
        self._source = source
        self._path = path
        self._data = data
        self._links = links
        self._changed = changed
        self._texts = texts
        self._canvas = source.suffix == CANVAS
        self.rewritten: dict[int, str] = {}
        """The new targets, by the start of the old ones."""
        self.problems: list[Problem] = []

    def run(self) -> bytes:
        """Return the new bytes of the file."""
        data = self._data
        edits: list[Edit[bytes]] = []
        for link in self._links:
            change = self._changed.change(link)
            if change is not None and change.after is not None:
                edits += self._edits(link, change, change.after)
        if not edits:
            return data
        content = apply(data, edits)
        if not all(is_plain(data[edit.start : edit.end]) and is_plain(edit.new) for edit in edits):
            self._verify(content)
        return content

    def _edits(self, link: Link, change: Change, file: VaultPath) -> Iterable[Edit[bytes]]:
        source, path = self._source, self._path
        if link.kind == "uri":
            source = path = _ROOT_NOTE
        for target in self._texts.of(link, change, source, path):
            edit = target_edit(self._data, link, target, canvas=self._canvas)
            if edit is None:
                continue
            if edit.new == self._data[edit.start : edit.end]:
                return ()
            self.rewritten[link.target_start] = target
            label = display_edit(self._data, link, change.before, file, canvas=self._canvas)
            return (edit,) if label is None else (edit, label)
        if not self._texts.after.has_twin(file):
            raise self._impossible(link, file)
        self.problems.append(
            Problem(
                "LINK_AMBIGUOUS",
                f"The link {link.target!r} in {self._path} (line {link.line}) is not updated: "
                f"another file has the path of {file}, and differs only in upper and lower case.",
                path=self._path.text,
            )
        )
        return ()

    def _verify(self, content: bytes) -> None:
        """Raise ToolError unless all links are present, with their new or unchanged targets."""
        old, new = _all_links(self._source, self._data), _all_links(self._path, content)
        for number, link in enumerate(old):
            if number >= len(new):
                raise self._impossible(link, None)
            target = self.rewritten.get(link.target_start, link.target)
            expected = link.kind, target, link.subpath, link.form
            actual = new[number]
            if (actual.kind, actual.target, actual.subpath, actual.form) != expected:
                raise self._impossible(link, None)
        if len(new) != len(old):
            raise self._impossible(new[-1], None)

    def _impossible(self, link: Link, file: VaultPath | None) -> ToolError:
        intention = "keep its meaning" if file is None else f"lead to {file}"
        return ToolError(
            f"The link {link.target!r} in {self._source} (line {link.line}) cannot be written so "
            f"that it will {intention}.",
            path=self._source.text,
            hint="Choose another name.",
            advice="Or keep the links unchanged with updateLinks: false.",
        )
