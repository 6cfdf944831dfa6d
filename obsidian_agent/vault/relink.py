"""Links after a rename: every link means what it meant, each written in its own way, and nothing else in any file differs.

Only a link whose meaning would change is rewritten: of a file that moves, of another file whose name is taken or set free by the move, and
in a file that moves. The new bytes are scanned again before they are proposed: each link must be there, and mean what it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from obsidian_agent.errors import PathRefused, Problem, ToolError, VaultError
from obsidian_agent.vault import paths
from obsidian_agent.vault.index import VaultIndex
from obsidian_agent.vault.linkgraph import CANVAS, links_of
from obsidian_agent.vault.linktext import DEFAULT_STYLE, LinkStyle
from obsidian_agent.vault.paths import PathUse, VaultPath
from obsidian_agent.vault.relink_shape import shape_of, spellings
from obsidian_agent.vault.relink_shift import Shift, ShiftedLinks
from obsidian_agent.vault.relink_text import Edit, apply, display_edit, target_edit
from obsidian_agent.vault.scan_model import Link
from obsidian_agent.vault.text import decode
from obsidian_agent.vault.view import VaultView


@dataclass(frozen=True, slots=True)
class RelinkedFile:
    """A file with rewritten links: where it is after the shift, its new bytes, and how many links were rewritten."""

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


class Change(NamedTuple):
    """What a target means before a shift and should mean after it (None: its file is gone); `now` is what it would mean as it stands.

    With `card_only` it would do as a link and not as a file card of a canvas, which has the exact path.
    """

    before: VaultPath
    wanted: VaultPath | None
    now: VaultPath | None
    card_only: bool = False


class LinkChanges:
    """What a shift does to links that lead somewhere."""

    def __init__(self, index: VaultIndex, shift: Shift) -> None:
        self.after = ShiftedLinks(index, shift)
        self._before = ShiftedLinks(index, Shift())
        self._index = index
        self._shift = shift

    def sources(self) -> list[VaultPath]:
        """The files with links that may be concerned, sorted; not those that go, or are no longer of a kind that has links."""
        shift = self._shift
        found = {source.text: source for name in (*shift.names, ".", "..") for source in self._index.naming(name)}
        found.update({path.text: path for path in shift.moved})
        return sorted(source for source in found.values() if source not in shift.heirs and self._stays(source))

    def _stays(self, source: VaultPath) -> bool:
        path = self._shift.after(source)
        return path is not None and (path == source or path.suffix == source.suffix)

    def of_target(self, target: str, source: VaultPath) -> Change | None:
        """What changes for a link of a file; None when it means the same afterwards, or meant nothing."""
        shift = self._shift
        if not target or not shift.may_change(target, source):
            return None
        before = self._index.resolve(target, source)
        if before is None:
            return None
        wanted = shift.after(before)
        now = self.after.resolve(target, shift.moved.get(source, source))
        if wanted is None or now != wanted or self._becomes_tie(target, source):
            return Change(before, wanted, now)
        if source.suffix == CANVAS and wanted != before and target == before.text:
            return Change(before, wanted, now, card_only=True)
        return None

    def _becomes_tie(self, target: str, source: VaultPath) -> bool:
        """Whether Obsidian's choice is known now and will not be: nobody knows which of two paths of one length it takes."""
        return self.after.is_tie(target, self._shift.moved.get(source, source)) and not self._before.is_tie(target, source)

    def of_source(self, source: VaultPath) -> dict[str, Change]:
        """The targets of a file that mean something else afterwards."""
        changes = ((target, self.of_target(target, source)) for target in self._index.facts(source).targets)
        return {target: change for target, change in changes if change is not None}


def relink(view: VaultView, index: VaultIndex, shift: Shift, style: LinkStyle = DEFAULT_STYLE) -> Relinked:
    """The link updates of a shift that removes nothing. `view` and `index` are those of the vault before it.

    Raises ToolError when a link cannot be written so that it keeps its meaning.
    """
    changes = LinkChanges(index, shift)
    files: list[RelinkedFile] = []
    problems: list[Problem] = []
    for source in changes.sources():
        if not changes.of_source(source):
            continue
        path = shift.moved.get(source, source)
        try:
            paths.parse(path.text, PathUse.UPDATE)
            data = view.read(source)
            decode(data, source.text)
        except VaultError as error:
            problems.append(_left_alone(path, error))
            continue
        rewriting = _Rewriting(source, path, data, changes, style)
        content = rewriting.run()
        problems += rewriting.problems
        if content != data:
            files.append(RelinkedFile(path, content, len(rewriting.rewritten)))
    return Relinked(tuple(sorted(files, key=lambda file: file.path)), tuple(problems))


def _left_alone(path: VaultPath, error: VaultError) -> Problem:
    why = "holds instructions for other agents" if isinstance(error, PathRefused) else error.message
    return Problem(error.code, f"The links in {path} are not updated: {why}", path=path.text)


class _Rewriting:
    """The new links of one file."""

    def __init__(self, source: VaultPath, path: VaultPath, data: bytes, changes: LinkChanges, style: LinkStyle) -> None:
        self._source = source
        self._path = path
        self._data = data
        self._changes = changes
        self._style = style
        self._canvas = source.suffix == CANVAS
        self._known: dict[str, Change | None] = {}
        self.rewritten: dict[int, str] = {}
        """The new targets, by the place of the link among the links of the file."""
        self.problems: list[Problem] = []

    def run(self) -> bytes:
        """The new bytes of the file."""
        links = links_of(self._source, self._data)
        edits: list[Edit] = []
        for number, link in enumerate(links):
            change = self._change(link)
            if change is not None and change.wanted is not None:
                edits += self._edits(number, link, change.before, change.wanted)
        if not edits:
            return self._data
        content = apply(self._data, edits)
        self._prove(links, content)
        return content

    def _change(self, link: Link) -> Change | None:
        if link.target not in self._known:
            self._known[link.target] = self._changes.of_target(link.target, self._source)
        change = self._known[link.target]
        return None if change is not None and change.card_only and link.kind != "canvas" else change

    def _edits(self, number: int, link: Link, before: VaultPath, wanted: VaultPath) -> Iterable[Edit]:
        for target in self._spellings(link, before, wanted):
            edit = target_edit(self._data, link, target, canvas=self._canvas)
            if edit is not None and edit.new == self._data[edit.start : edit.end]:
                return ()
            if edit is not None:
                self.rewritten[number] = target
                label = display_edit(self._data, link, before, wanted, canvas=self._canvas)
                return (edit,) if label is None else (edit, label)
        if not self._changes.after.twins(wanted):
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

    def _spellings(self, link: Link, before: VaultPath, wanted: VaultPath) -> Iterator[str]:
        """The texts that mean the file in the new vault, the one that is most like the old first."""
        after = self._changes.after
        if link.kind == "canvas":
            if after.resolve(wanted.text, self._path) == wanted:
                yield wanted.text
            return
        shape = shape_of(link.target, before, self._source, self._style)
        for spelling in spellings(shape, wanted, self._path, self._style):
            if spelling.unique and not after.is_unique(spelling.text):
                continue
            if after.resolve(spelling.text, self._path) == wanted:
                yield spelling.text

    def _prove(self, old: tuple[Link, ...], content: bytes) -> None:
        """Every link is still there, those that were rewritten with their new targets and the others with their old ones."""
        new = links_of(self._path, content)
        for number, link in enumerate(old):
            target = self.rewritten.get(number, link.target)
            found = new[number] if number < len(new) else None
            if found is None or (found.kind, found.target, found.subpath, found.form) != (link.kind, target, link.subpath, link.form):
                raise self._impossible(link, None)
        if len(new) != len(old):
            raise self._impossible(new[-1], None)

    def _impossible(self, link: Link, wanted: VaultPath | None) -> ToolError:
        meaning = "keep its meaning" if wanted is None else f"mean {wanted}"
        return ToolError(
            f"The link {link.target!r} in {self._source} (line {link.line}) cannot be written so that it will {meaning}.",
            path=self._source.text,
            hint="Choose another name, or leave links as they are with updateLinks: false.",
        )
