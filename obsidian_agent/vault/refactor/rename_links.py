"""Links after a rename: every link means what it meant, each written in its own way, and nothing else in any file differs.

Only a link whose meaning would change is rewritten: of a file that moves, of another file whose name is taken or set free by the move, and
in a file that moves. Each new target is looked up in the vault as it will be. Where old or new text has a character that Markdown, YAML or
JSON give a meaning, the new bytes are scanned again before they are proposed: each link must be there as it was meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import tee
from operator import attrgetter
from typing import Final, NamedTuple

from obsidian_agent.dataclass import dataclass, field
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
"""A place in the root of the vault."""


@dataclass(frozen=True)
class FileMoves:
    """What happens to the files of a vault at once: old paths to new ones, files that go, files that come.

    `replaced` are files that go because another one takes their place: links to them are links to the new file then.
    """

    moved: Mapping[VaultPath, VaultPath] = field(default_factory=dict)
    removed: frozenset[VaultPath] = frozenset()
    added: tuple[VaultPath, ...] = ()
    replaced: Mapping[VaultPath, VaultPath] = field(default_factory=dict)

    def after(self, path: VaultPath) -> VaultPath | None:
        """Where a file is then; None when it is gone."""
        new = self.moved.get(path) or self.replaced.get(path)
        if new is not None:
            return new
        return None if path in self.removed else path

    @cached_property
    def names(self) -> frozenset[str]:
        """The names (keys of `resolve.file_name`) that come or go: a link that ends with none of them means what it did, unless it
        climbs or is in a file that moves."""
        return frozenset(
            map(
                file_name,
                (*self.moved, *self.moved.values(), *self.removed, *self.replaced, *self.added),
            )
        )

    @cached_property
    def renames(self) -> bool:
        """Whether a file gets another name, not only another folder."""
        return any(file_name(old) != file_name(new) for old, new in self.moved.items())

    @cached_property
    def gone(self) -> frozenset[VaultPath]:
        """The paths under which a file is no longer found."""
        return frozenset((*self.moved, *self.removed, *self.replaced))

    @cached_property
    def coming(self) -> Mapping[str, tuple[VaultPath, ...]]:
        """The paths that are new, by name."""
        found: dict[str, tuple[VaultPath, ...]] = {}
        for path in (*self.moved.values(), *self.added):
            found[file_name(path)] = (*found.get(file_name(path), ()), path)
        return found


def moves_of_rename(view: VaultView, entry: VaultEntry, target: VaultPath) -> FileMoves:
    """The moves that a rename of a file or folder is; a file in the way of a file is replaced by it."""
    moved = {path: path.rebased(entry.path, target) for path in _files(view, entry)}
    twin = None if entry.kind == "folder" else find_conflict(view, target, entry.path)
    return FileMoves(moved) if twin is None else FileMoves(moved, replaced={twin: target})


def moves_of_delete(view: VaultView, entry: VaultEntry) -> FileMoves:
    """The moves that a deletion is."""
    return FileMoves(removed=frozenset(_files(view, entry)))


def _files(view: VaultView, entry: VaultEntry) -> list[VaultPath]:
    if entry.kind == "file":
        return [entry.path]
    return [below.path for below in view.walk(entry.path) if below.kind == "file"]


class LinksAfter(LinksByName):
    """What links mean after some moves. Only files of the names that are asked for are looked at."""

    def __init__(self, index: VaultIndex, moves: FileMoves) -> None:
        def named(name: str) -> Iterator[VaultPath]:
            yield from (path for path in index.files_named(name) if path not in moves.gone)
            yield from moves.coming.get(name, ())

        super().__init__(named)

    def is_unique(self, target: str) -> bool:
        """Whether a target that is not relative can mean one file only, from wherever."""
        return len(self.among(target_name(target)).candidates(target)) == 1

    def is_tie(self, target: str, source: VaultPath) -> bool:
        """Whether only the alphabet decides what a target means in a file: several files fit, and the best two are equally good."""
        if not target or is_relative(target):
            return False
        resolver = self.among(target_name(target))
        best = resolver.candidates(target)[:2]
        if (
            len(best) < 2
            or len(best[0].text) != len(best[1].text)
            or best[0].parent == source.parent
        ):
            return False
        return (
            resolver.resolve(target, source) == best[0]
            and resolver.resolve(f"/{target}", source) is None
        )

    def twins(self, path: VaultPath) -> bool:
        """Whether another file has the same path for links: it differs in case or in its Unicode form alone."""
        found = self.among(file_name(path)).resolve(f"/{path.text}", path)
        return found is not None and found != path


class Change(NamedTuple):
    """What a target means before some moves and should mean after them (None: its file is gone); `now` is what it would mean as it stands.

    With `card_only` it would do as a link and not as a file card of a canvas, which has the exact path.
    """

    before: VaultPath
    after: VaultPath | None
    unedited: VaultPath | None
    card_only: bool = False


class LinkChanges:
    """What moves do to links that lead somewhere. The index is that of the vault before them."""

    def __init__(self, index: VaultIndex, moves: FileMoves) -> None:
        self.after = LinksAfter(index, moves)
        self._before = LinksAfter(index, FileMoves())
        self._index = index
        self._moves = moves
        self._concerned: dict[str, bool] = {}
        self._known: dict[tuple[str, str, str, bool], Change | None] = {}

    def sources(self) -> list[VaultPath]:
        """The files with links that may be concerned, sorted; not those that go, or are no longer of a kind that has links."""
        moves = self._moves
        found = {
            source.text: source
            for name in (*moves.names, ".", "..")
            for source in self._index.files_linking_name(name)
        }
        found.update(
            {
                source.text: source
                for source in self._index.notes_with_references()
                if self._refers(source)
            }
        )
        found.update({path.text: path for path in moves.moved})
        gone = {path.text for path in moves.gone}
        return sorted(
            [source for text, source in found.items() if text not in gone or self._stays(source)],
            key=attrgetter("text"),
        )

    def of_source(self, source: VaultPath) -> dict[str, Change]:
        """The targets of a file, as the index knows them, that mean something else afterwards; those of references too."""
        facts = self._index.facts(source)
        found = self.of_targets(facts.targets, source)
        return (
            {**self.of_references(facts.references, source), **found} if facts.references else found
        )

    def of_references(self, targets: Iterable[str], source: VaultPath) -> dict[str, Change]:
        """Those of the targets of references that mean something else afterwards, or that led to their file as the relative path which
        other programs follow and no longer will."""
        path = self._moves.moved.get(source, source)
        targets = [
            target
            for target in targets
            if target and (source in self._moves.moved or self.may_change(target))
        ]
        changes = self.of_targets(targets, source)
        for target in targets:
            before = self._index.resolve(target, source) if target not in changes else None
            wanted = self._moves.after(before) if before is not None else None
            if (
                before is not None
                and wanted is not None
                and _leads(target, source, before)
                and not _leads(target, path, wanted)
            ):
                changes[target] = Change(before, wanted, wanted)
        return changes

    def _refers(self, source: VaultPath) -> bool:
        return any(map(self.may_change, self._index.facts(source).references))

    def of_targets(self, targets: Iterable[str], source: VaultPath) -> dict[str, Change]:
        """Those of some targets that mean something else in a file afterwards."""
        path = self._moves.moved.get(source)
        if path is None:
            path, targets = source, filter(self.may_change, targets)
        where = source.parent.text, path.parent.text, source.suffix == CANVAS
        changes: dict[str, Change] = {}
        for target in targets:
            # Files of one folder mean the same by a text, so that a hub's many links are looked up a few times.
            key = (target, *where)
            if key not in self._known:
                self._known[key] = self._of_target(target, source, path)
            if change := self._known[key]:
                changes[target] = change
        return changes

    def _stays(self, source: VaultPath) -> bool:
        path = self._moves.moved.get(source)
        return path is not None and path.suffix == source.suffix

    def may_change(self, target: str) -> bool:
        """Whether a target in a file that stays could mean something else: it ends with a name that comes or goes."""
        known = self._concerned.get(target)
        if known is None:
            known = self._concerned[target] = bool(target) and (
                is_relative(target) or target_name(target) in self._moves.names
            )
        return known

    def _of_target(self, target: str, source: VaultPath, path: VaultPath) -> Change | None:
        before = self._index.resolve(target, source) if target else None
        if before is None:
            return None
        wanted = self._moves.after(before)
        now = self.after.resolve(target, path)
        if (
            wanted is None
            or now != wanted
            or (self.after.is_tie(target, path) and not self._before.is_tie(target, source))
        ):
            # Nobody knows which of two paths of one length Obsidian takes, so a link that had no such choice must not get it.
            return Change(before, wanted, now)
        if source.suffix == CANVAS and wanted != before and target == before.text:
            return Change(before, wanted, now, card_only=True)
        return None


def _leads(target: str, source: VaultPath, file: VaultPath) -> bool:
    """Whether a target is the relative path from one file to another."""
    return link_key(target.removeprefix("./")) == link_key(relative_path(file.text, source))


@dataclass(frozen=True, slots=True)
class RelinkedFile:
    """A file with rewritten links: where it is after the moves, its new bytes, and how many links were rewritten."""

    path: VaultPath
    content: bytes
    links: int


@dataclass(frozen=True, slots=True)
class Relinked:
    """The files to write, sorted by path, and what could not be rewritten: `NOT_TEXT`, a refused path, `LINK_AMBIGUOUS`."""

    files: tuple[RelinkedFile, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def links(self) -> int:
        """The number of links that were rewritten."""
        return sum(file.links for file in self.files)


def relink(
    view: VaultView,
    index: VaultIndex,
    moves: FileMoves,
    style: LinkStyle = DEFAULT_STYLE,
    vault: str = "",
) -> Relinked:
    """The link updates of moves that remove nothing. `view` and `index` are those of the vault before them, `vault` is its name.

    Raises ToolError when a link cannot be written so that it keeps its meaning.
    """
    changes = LinkChanges(index, moves)
    wording = _Wording(changes.after, style)
    files: list[RelinkedFile] = []
    problems: list[Problem] = []
    for source in changes.sources():
        # A move leaves most links as they are, and the index knows which. After another name most are concerned: so they are read at once.
        if not moves.renames and not changes.of_source(source):
            continue
        path = moves.moved.get(source, source)
        try:
            data = _written_over(view, source, path)
        except VaultError as error:
            if changes.of_source(source):
                problems.append(_left_alone(path, error))
            continue
        links = (
            links_of(source, data)
            if source in moves.moved
            else links_where(source, data, changes.may_change)
        )
        references = references_in(data) if source.is_note else NO_REFERENCES
        addresses = [
            link for link in references.links if link.kind == "uri" and _is_in(link, vault)
        ]
        addressed = changes.of_targets(dict.fromkeys(link.target for link in addresses), _ROOT_NOTE)
        concerned = changes.of_targets(dict.fromkeys(link.target for link in links), source)
        referred = (
            changes.of_references(
                dict.fromkeys(link.target for link in references.links if link.kind != "uri"),
                source,
            )
            if references.links
            else {}
        )
        if (referred or addressed) and not references.is_certain:
            problems.append(_only_seen(path, references, {**addressed, **referred}))
            references, referred, addressed = NO_REFERENCES, {}, {}
        if not concerned and not referred and not addressed:
            continue
        named = tuple(
            link for link in references.links if link.kind != "uri" or _is_in(link, vault)
        )
        rewriting = _Rewriting(
            source, path, data, links + named, concerned, referred, addressed, wording
        )
        content = rewriting.run()
        problems += rewriting.problems
        if content != data:
            files.append(RelinkedFile(path, content, len(rewriting.rewritten)))
    return Relinked(tuple(sorted(files, key=lambda file: file.path)), tuple(problems))


def _is_in(link: Link, vault: str) -> bool:
    """Return whether an address of Obsidian is one of the vault with this name."""
    return link.display is None or link.display == vault


def _written_over(view: VaultView, source: VaultPath, path: VaultPath) -> bytes:
    """The bytes of a file that is about to be rewritten at `path`. VaultError when it is no UTF-8, or must not be written."""
    paths.parse(path.text, PathUse.UPDATE)
    data = view.read(source)
    if not data.isascii():
        decode(data, source.text)
    return data


def _left_alone(path: VaultPath, error: VaultError) -> Problem:
    why = "holds instructions for other agents" if isinstance(error, PathRefused) else error.message
    return Problem(error.code, f"The links in {path} are not updated: {why}", path=path.text)


def _only_seen(path: VaultPath, references: References, concerned: Mapping[str, Change]) -> Problem:
    """What is told of a note that is too long for its references to be rewritten."""
    lines = sorted({link.line for link in references.links if link.target in concerned})
    where = (
        f"line {lines[0]}"
        if len(lines) == 1
        else f"lines {', '.join(map(str, lines[:10]))}{', …' if len(lines) > 10 else ''}"
    )
    message = f"{path} is too long for its definitions and HTML to be rewritten: {where} may lead elsewhere or nowhere."
    return Problem("REFERENCE_NOT_UPDATED", message, path=path.text)


class _Wording:
    """The texts that a link can have to mean a file after the moves."""

    def __init__(self, after: LinksAfter, style: LinkStyle) -> None:
        self.after = after
        self._style = style
        self._known: dict[tuple[str, str, str, str, bool], Iterator[str]] = {}

    def of(
        self, link: Link, before: VaultPath, wanted: VaultPath, source: VaultPath, path: VaultPath
    ) -> Iterable[str]:
        """The texts that mean `wanted` in the file at `path`, the one that is most like the old text, in `source`, first."""
        if link.kind == "canvas":
            return (wanted.text,) if self.after.resolve(wanted.text, path) == wanted else ()
        relative = link.is_reference and link.kind != "uri"
        key = link.target, wanted.text, source.parent.text, path.parent.text, relative
        if key not in self._known:
            # Other programs follow a reference too, and know no other way than the relative path.
            style = LinkStyle("relative") if relative else self._style
            shape = shape_of(link.target, before, source, style)
            found = spellings(shape, wanted, path, style)
            self._known[key] = (
                spelling.text for spelling in found if self._means(spelling, wanted, path)
            )
        # The first nearly always does, so the others are looked up when they are asked for.
        self._known[key], texts = tee(self._known[key])
        return texts

    def _means(self, spelling: Spelling, wanted: VaultPath, path: VaultPath) -> bool:
        return self.after.resolve(spelling.text, path) == wanted and (
            not spelling.unique or self.after.is_unique(spelling.text)
        )


def _all_links(path: VaultPath, data: bytes) -> tuple[Link, ...]:
    references = references_in(data) if path.is_note else NO_REFERENCES
    return links_of(path, data) + (references.links if references.is_certain else ())


class _Rewriting:
    """The new links of one file."""

    def __init__(
        self,
        source: VaultPath,
        path: VaultPath,
        data: bytes,
        links: tuple[Link, ...],
        concerned: Mapping[str, Change],
        referred: Mapping[str, Change],
        addressed: Mapping[str, Change],
        wording: _Wording,
    ) -> None:
        self._source = source
        self._path = path
        self._data = data
        self._links = links
        self._wording = wording
        self._canvas = source.suffix == CANVAS
        self._concerned = concerned
        self._referred = referred
        self._addressed = addressed
        self.rewritten: dict[int, str] = {}
        """The new targets, by the place where the old one begins."""
        self.problems: list[Problem] = []

    def run(self) -> bytes:
        """The new bytes of the file."""
        edits: list[Edit[bytes]] = []
        for link in self._links:
            change = self._changes(link).get(link.target)
            if (
                change is not None
                and change.after is not None
                and (link.kind == "canvas" or not change.card_only)
            ):
                edits += self._edits(link, change.before, change.after)
        if not edits:
            return self._data
        content = apply(self._data, edits)
        if not all(
            is_plain(self._data[edit.start : edit.end]) and is_plain(edit.new) for edit in edits
        ):
            self._prove(content)
        return content

    def _changes(self, link: Link) -> Mapping[str, Change]:
        if link.kind == "uri":
            return self._addressed
        return self._referred if link.is_reference else self._concerned

    def _edits(self, link: Link, before: VaultPath, wanted: VaultPath) -> Iterable[Edit[bytes]]:
        # Obsidian looks an address up as a link of a note in the root.
        places = (self._source, self._path) if link.kind != "uri" else (_ROOT_NOTE, _ROOT_NOTE)
        for target in self._wording.of(link, before, wanted, *places):
            edit = target_edit(self._data, link, target, canvas=self._canvas)
            if edit is not None and edit.new == self._data[edit.start : edit.end]:
                return ()
            if edit is not None:
                self.rewritten[link.target_start] = target
                label = display_edit(self._data, link, before, wanted, canvas=self._canvas)
                return (edit,) if label is None else (edit, label)
        if not self._wording.after.twins(wanted):
            raise self._impossible(link, wanted)
        self.problems.append(
            Problem(
                "LINK_AMBIGUOUS",
                f"The link {link.target!r} in {self._path} (line {link.line}) cannot tell {wanted} from a file of the same name in other "
                "case, and is left as it is.",
                path=self._path.text,
            )
        )
        return ()

    def _prove(self, content: bytes) -> None:
        """Every link is still there, those that were rewritten with their new targets and the others with their old ones."""
        old, new = _all_links(self._source, self._data), _all_links(self._path, content)
        for number, link in enumerate(old):
            target = self.rewritten.get(link.target_start, link.target)
            found = new[number] if number < len(new) else None
            if found is None or (found.kind, found.target, found.subpath, found.form) != (
                link.kind,
                target,
                link.subpath,
                link.form,
            ):
                raise self._impossible(link, None)
        if len(new) != len(old):
            raise self._impossible(new[-1], None)

    def _impossible(self, link: Link, wanted: VaultPath | None) -> ToolError:
        meaning = "keep its meaning" if wanted is None else f"mean {wanted}"
        return ToolError(
            f"The link {link.target!r} in {self._source} (line {link.line}) cannot be written so that it will {meaning}.",
            path=self._source.text,
            hint="Choose another name.",
            advice="Or leave links as they are with updateLinks: false.",
        )
