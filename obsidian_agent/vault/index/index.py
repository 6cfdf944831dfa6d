"""The index of a vault: who is tagged how, who links to whom, which properties a note has, for one state of the vault.

Every view gives its own (`VaultView.index`). On a disk it is the shared one where the program keeps one (`stored.py`), else files are scanned
when a question needs them; over an overlay it is the index of what is below it with the changed files scanned anew. So a later step of a plan
sees tags, names and links as the earlier steps left them, and no answer is older than the view's own listing.

Of each file it knows its `Facts`: the part of a scan that questions about the whole vault need. Places, headings and tasks are read again
from the few files that an answer names.
"""

from __future__ import annotations

import marshal
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol, Self

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.vault.index.name_search import NameFinder, NameSearch
from obsidian_agent.vault.index.text_search import Needle
from obsidian_agent.vault.links.graph import NoteLinks, links_of, unresolved_name
from obsidian_agent.vault.links.references import references_in
from obsidian_agent.vault.links.resolve import LinksByName, file_name, resolved_name, target_name
from obsidian_agent.vault.markdown.canvas import CANVAS, canvas_links
from obsidian_agent.vault.markdown.note import Names, names_in
from obsidian_agent.vault.paths.path import ROOT, VaultPath, from_disk

_NOTE: Final = ".md"


@dataclass(frozen=True, slots=True)
class Facts:
    """Tags (without `#`, each once, as first written), aliases, properties, and the target of each link, in order, as written.

    Links that name no file, only a place in their own, are left out.
    `lossy`: the file is not UTF-8; what could be read of it counts. `references` are the targets of what is no link of the graph
    (`references.py`), each once.
    """

    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    lossy: bool = False
    references: tuple[str, ...] = ()


NO_FACTS: Final = Facts()
"""The facts of a file that is neither a note nor a canvas, or could not be read."""


def has_facts(path: VaultPath) -> bool:
    """Whether anything is to be known of a file's content: notes and canvases."""
    return path.is_note or path.suffix == CANVAS


def has_facts_by_name(text: str) -> bool:
    """`holds_facts` of a path that is mere text; cheap, for lists of very many."""
    return is_note_path(text) or (text[-7:].lower() == CANVAS and _has_stem(text[:-7]))


def is_note_path(text: str) -> bool:
    """Whether a path that is mere text is that of a note."""
    return text[-3:].lower() == _NOTE and _has_stem(text[:-3])


def _has_stem(text: str) -> bool:
    return text.rpartition("/")[2].strip(".") != ""


def scan_facts(path: VaultPath, data: bytes) -> Facts:
    """The facts in a file's bytes."""
    if path.is_note:
        return note_facts(names_in(data), data)
    return canvas_facts(data) if path.suffix == CANVAS else NO_FACTS


def canvas_facts(data: bytes) -> Facts:
    """The facts in a canvas."""
    return Facts(targets=tuple(link.target for link in canvas_links(data) if link.target))


def note_facts(names: Names, data: bytes) -> Facts:
    """The facts in what a note names, and in its bytes."""
    links = references_in(data).links
    references = tuple(dict.fromkeys([link.target for link in links])) if links else ()
    tags = distinct_tags(names.tags) if names.tags else ()
    return Facts(tags, names.aliases, names.properties, names.targets, names.lossy, references)


def pack_facts(facts: Facts) -> bytes:
    """Facts as they are kept. They are plain values, and the file that keeps them is checked before it is read (`snapshot_file.py`)."""
    return marshal.dumps(
        (
            facts.tags,
            facts.aliases,
            dict(facts.properties),
            facts.targets,
            facts.lossy,
            facts.references,
        )
    )


def unpack_facts(data: bytes | memoryview) -> Facts:
    """The facts that `pack_facts` kept; none for nothing."""
    return Facts(*marshal.loads(data)) if data else Facts()


def distinct_tags(names: Iterable[str]) -> tuple[str, ...]:
    """Tags each once, compared without case, in the spelling that came first."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(tag_key(name), name)
    if "" in found:
        del found[""]
    return tuple(found.values())


@lru_cache(maxsize=4096)
def tag_key(name: str) -> str:
    """What two spellings of a tag have in common: no `#`, no slash at the end, NFC, no case."""
    bare = name.strip().lstrip("#").rstrip("/")
    return bare.lower() if bare.isascii() else unicodedata.normalize("NFC", bare).lower()


def tag_within(key: str, wanted: str) -> bool:
    """Whether a tag's key is the wanted one or nested below it."""
    return key == wanted or key.startswith(wanted + "/")


class PathCache:
    """Judges texts again, each folder once. PathRefused for a text that no listing can have shown."""

    def __init__(self) -> None:
        self._folders: dict[str, VaultPath] = {"": ROOT}

    def __call__(self, text: str) -> VaultPath:
        folder, _, name = text.rpartition("/")
        return from_disk(self._folder(folder), name)

    def _folder(self, text: str) -> VaultPath:
        known = self._folders.get(text)
        if known is None:
            above, _, name = text.rpartition("/")
            known = self._folders[text] = from_disk(self._folder(above), name)
        return known


class Delta:
    """What is `stale` in the index, and what is to be said of those files that are there."""

    def __init__(self) -> None:
        self.stale: set[str] = set()
        self.files: dict[str, VaultPath] = {}
        self.facts: dict[str, Facts] = {}
        self.problems: dict[str, Problem] = {}
        self._naming: dict[str, dict[str, VaultPath]] = {}
        self._named: dict[str, dict[str, VaultPath]] = {}
        self.names_changed: set[str] = set()
        """Keys of the names under which files came or went: links that end with them may lead elsewhere than the index says."""

    def copy(self) -> Self:
        """Another one that can be changed while this one is in use."""
        made = type(self)()
        made.stale = set(self.stale)
        made.files, made.facts, made.problems = (
            dict(self.files),
            dict(self.facts),
            dict(self.problems),
        )
        made._naming = {name: dict(paths) for name, paths in self._naming.items()}
        made._named = {name: dict(paths) for name, paths in self._named.items()}
        made.names_changed = set(self.names_changed)
        return made

    def forget(self, path: VaultPath) -> None:
        """What the index says of this path counts no longer, and neither does what was said here."""
        text = path.text
        self.stale.add(text)
        self.problems.pop(text, None)
        if self.files.pop(text, None) is not None:
            self._named[file_name(path)].pop(text)
        old = self.facts.pop(text, None)
        for name in set(map(target_name, old.targets)) if old else ():
            self._naming[name].pop(text, None)

    def update(self, path: VaultPath, facts: Facts, problem: Problem | None = None) -> None:
        """This is now what is to be said of a file that is there."""
        self.forget(path)
        self.files[path.text] = path
        self.facts[path.text] = facts
        self._named.setdefault(file_name(path), {})[path.text] = path
        for name in set(map(target_name, facts.targets)):
            self._naming.setdefault(name, {})[path.text] = path
        if problem is not None:
            self.problems[path.text] = problem

    def tagged(self, key: str, folder: VaultPath) -> list[VaultPath]:
        """The notes here below a folder with a tag or one nested below it."""
        return [
            path
            for path in self.files.values()
            if path.is_note
            and path.within(folder)
            and any(tag_within(tag_key(name), key) for name in self.facts[path.text].tags)
        ]

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        """The other names of the notes here."""
        return (
            (alias, path) for path in self.files.values() for alias in self.facts[path.text].aliases
        )

    def notes_with_references(self) -> list[VaultPath]:
        """The notes here with references that are no links of the graph."""
        return [path for path in self.files.values() if self.facts[path.text].references]

    def files_linking_name(self, name: str) -> list[VaultPath]:
        """The files here with a link whose target ends with a name."""
        return list(self._naming.get(name, {}).values())

    def files_named(self, name: str) -> list[VaultPath]:
        """The files here that have a name."""
        return list(self._named.get(name, {}).values())

    def over(self, below: Iterable[VaultPath], here: list[VaultPath]) -> list[VaultPath]:
        """An answer of the index with the stale part taken out and the part from here put in."""
        kept = (
            [path for path in below if path.text not in self.stale] if self.stale else list(below)
        )
        return sorted([*kept, *here]) if here else kept


class NoteContent(NamedTuple):
    """A note and its bytes, or why it cannot be read."""

    path: VaultPath
    data: bytes | Problem


class Reader(Protocol):
    """A view or a store."""

    def read(self, path: VaultPath, /) -> bytes: ...


def read_note(reader: Reader, path: VaultPath) -> bytes | Problem:
    """The bytes of a note, or why it cannot be read."""
    try:
        return reader.read(path)
    except VaultError as error:
        return error.problem()


class VaultIndex(ABC):
    """Questions about one state of a vault. Lists are sorted by path. What cannot be read counts as empty and is in `problems`."""

    def __init__(self) -> None:
        self._links = LinksByName(self.files_named)

    @property
    @abstractmethod
    def problems(self) -> Mapping[str, Problem]:
        """Notes and canvases that could not be read so far, by path."""

    @abstractmethod
    def files(self) -> Iterator[VaultPath]:
        """Every file of the vault."""

    @abstractmethod
    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        """The notes below a folder."""

    def note_count(self, folder: VaultPath) -> int:
        """How many notes there are below a folder."""
        return sum(1 for _ in self.notes(folder))

    @abstractmethod
    def facts(self, path: VaultPath) -> Facts:
        """What is known of a file that exists."""

    @abstractmethod
    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        """The notes below a folder that have a tag (with or without `#`, in any case) or one nested below it."""

    @abstractmethod
    def files_linking_name(self, name: str) -> list[VaultPath]:
        """The files with a link whose target ends with a name (a key of `resolve.file_name`), wherever that leads."""

    @abstractmethod
    def files_named(self, name: str) -> list[VaultPath]:
        """The files of a name (a key of `resolve.file_name`): all that a link which ends with it can mean."""

    @abstractmethod
    def bases(self) -> list[VaultPath]:
        """The files that are bases."""

    @abstractmethod
    def notes_with_references(self) -> list[VaultPath]:
        """The notes with references to files that are no links of the graph (`references.py`)."""

    @abstractmethod
    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteContent]:
        """The notes below a folder that may hold all needles (None counts for none), with their texts; also some that do not."""

    @abstractmethod
    def text(self, path: VaultPath) -> bytes | Problem:
        """The bytes of a note, or why it cannot be read."""

    @abstractmethod
    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        """The other names of notes, in no order."""

    def names(self) -> NameFinder:
        """The names and aliases of all files, ready to be searched."""
        return NameSearch(
            (path.text for path in self.files()),
            ((alias, path.text) for alias, path in self.aliases()),
        )

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        """The file that a link's target means in a file, or None."""
        return self._links.resolve(target, source)

    def backlinks(self, path: VaultPath) -> list[VaultPath]:
        """The other files with a link that leads to this one: of those that name it, the ones that mean it."""
        name = file_name(path)
        sources = {
            source for ending in (name, ".", "..") for source in self.files_linking_name(ending)
        }
        return sorted(source for source in sources if self._means(source, path))

    def links(self, path: VaultPath) -> NoteLinks:
        """The links of one file, as a graph of the whole vault has them."""
        data = self.text(path)
        targets = (
            dict.fromkeys(link.target for link in links_of(path, data))
            if isinstance(data, bytes)
            else ()
        )
        found = {target: self.resolve(target, path) for target in targets}
        lost = {unresolved_name(target) for target, file in found.items() if file is None}
        backlinks = self.backlinks(path)
        return NoteLinks(
            tuple(sorted({file for file in found.values() if file is not None})),
            tuple(sorted(lost)),
            tuple(source for source in backlinks if source.is_note),
            tuple(source for source in backlinks if not source.is_note),
        )

    def _means(self, source: VaultPath, path: VaultPath) -> bool:
        """Whether a file has a link that leads to another one."""
        name = file_name(path)
        targets = self.facts(source).targets if source != path else ()
        return any(
            resolved_name(target, source) == name and self.resolve(target, source) == path
            for target in targets
        )
