"""The index of a vault: tags, links, aliases and properties for one state of the vault.

Every view has its own (`VaultView.index`). On disk it is the stored index if the program has one
(`stored.py`), else files are scanned when a query needs them. Over an overlay it is the index of
the base with the changed files scanned again. So a later step of a plan sees tags, names and links
as the earlier steps left them, and no answer is older than the view's own listing.

The index holds the `Facts` of each file: the part of a scan that queries over the whole vault need.
Positions, headings and tasks are read again from the few files that a query returns.
"""

from __future__ import annotations

import marshal
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

from msgspec import Struct, field

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.vault.index.name_search import NameFinder, NameSearch
from obsidian_agent.vault.index.text_search import Needle
from obsidian_agent.vault.links.graph import NoteLinks, links_of, unresolved_name
from obsidian_agent.vault.links.references import references_in
from obsidian_agent.vault.links.resolve import LinksByName, file_name, resolved_name, target_name
from obsidian_agent.vault.markdown.canvas import CANVAS, canvas_links
from obsidian_agent.vault.markdown.note import Names, names_in
from obsidian_agent.vault.paths.path import ROOT, VaultPath, from_disk

if TYPE_CHECKING:
    from obsidian_agent.vault.index.word_query import QueryWord
    from obsidian_agent.vault.index.words import WordCount

_NOTE: Final = ".md"


class TextDigest(NamedTuple):
    """The part of a note's text that is compared, made by `digest.py`.

    `body` is a checksum of the text without properties.
    """

    flags: int = 0
    body: int = 0
    pieces: bytes = b""
    """The checksums of some sentences, as bytes of an array."""
    due_tasks: tuple[tuple[int, str, str], ...] = ()
    """The lines, texts and dates of open tasks with a due date."""


class Facts(Struct, frozen=True):
    """The part of a note's or canvas's content that the index stores.

    Links that name no file, only a heading or block of their own note, are not among the targets.
    """

    tags: tuple[str, ...] = ()
    """The distinct tags, without `#`, in the spelling that comes first."""
    aliases: tuple[str, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    """The target of each link as written, in order."""
    lossy: bool = False
    """True if the file is not valid UTF-8. The facts are those of the readable part."""
    references: tuple[str, ...] = ()
    """The distinct targets of references that are not links of the graph (`references.py`)."""
    digest: TextDigest = TextDigest()


NO_FACTS: Final = Facts()
"""The facts of a file that is neither a note nor a canvas, or could not be read."""


def has_facts(path: VaultPath) -> bool:
    """Return whether the content of a file is scanned: that of notes and canvases."""
    return path.is_note or path.suffix == CANVAS


def has_facts_by_name(path: str) -> bool:
    """Return `has_facts` for the text of a path. Fast, for lists of very many."""
    return is_note_path(path) or (path[-7:].lower() == CANVAS and _has_stem(path[:-7]))


def is_note_path(path: str) -> bool:
    """Return whether the text of a path is that of a note."""
    return path[-3:].lower() == _NOTE and _has_stem(path[:-3])


def _has_stem(path: str) -> bool:
    return path.rpartition("/")[2].strip(".") != ""


def scan_facts(path: VaultPath, data: bytes) -> Facts:
    """Return the facts of a file with these bytes."""
    if path.is_note:
        return note_facts(names_in(data), data)
    return canvas_facts(data) if path.suffix == CANVAS else NO_FACTS


def canvas_facts(data: bytes) -> Facts:
    """Return the facts of a canvas."""
    return Facts(targets=tuple(link.target for link in canvas_links(data) if link.target))


def note_facts(names: Names, data: bytes) -> Facts:
    """Return the facts of a note, from its scanned names and its bytes."""
    from obsidian_agent.vault.index.digest import digest

    links = references_in(data).links
    tags = distinct_tags(names.tags) if names.tags else ()
    return Facts(
        tags=tags,
        aliases=names.aliases,
        properties=names.properties,
        targets=names.targets,
        lossy=names.lossy,
        references=tuple(dict.fromkeys([link.target for link in links])) if links else (),
        digest=digest(data, spells_tags=len(tags) < len(set(names.tags))),
    )


def pack_facts(facts: Facts) -> bytes:
    """Serialize facts with `marshal`: they are plain values.

    The file that stores them is verified before it is read (`snapshot_file.py`).
    """
    return marshal.dumps(
        (
            _interned(facts.tags),
            facts.aliases,
            _interned(dict(facts.properties)),
            _interned(facts.targets),
            facts.lossy,
            facts.references,
            (*facts.digest[:-1], tuple(map(tuple, facts.digest.due_tasks))),
        )
    )


def _interned(value: Any) -> Any:
    """Intern the texts of a value, so that equal ones are one object once `marshal` reads them."""
    match value:
        case str():
            return intern(value)
        case list() | tuple():
            return type(value)(map(_interned, value))
        case dict():
            return {intern(name): _interned(own) for name, own in value.items()}
        case _:
            return value


def unpack_facts(data: bytes | memoryview) -> Facts:
    """Return the facts that `pack_facts` serialized; no data means no facts."""
    if not data:
        return Facts()
    *plain, text_digest = marshal.loads(data)
    plain.append(TextDigest(*text_digest))
    return Facts(*plain)


def distinct_tags(names: Iterable[str]) -> tuple[str, ...]:
    """Return each tag once, ignoring case, in the spelling that comes first."""
    by_key: dict[str, str] = {}
    for name in names:
        by_key.setdefault(tag_key(name), name)
    by_key.pop("", None)
    return tuple(by_key.values())


@lru_cache(maxsize=4096)
def tag_key(name: str) -> str:
    """Return the key that all spellings of a tag share: lower case, NFC, no `#`, no final slash."""
    bare = name.strip().lstrip("#").rstrip("/")
    return bare.lower() if bare.isascii() else unicodedata.normalize("NFC", bare).lower()


def tag_within(key: str, parent: str) -> bool:
    """Return whether a tag's key is `parent` or nested below it."""
    return key == parent or key.startswith(parent + "/")


class PathCache:
    """A cache that turns texts of paths into `VaultPath`s, checking each folder once.

    Raise PathRefused for a text that no listing can contain.
    """

    def __init__(self) -> None:
        self._folders: dict[str, VaultPath] = {"": ROOT}

    def __call__(self, text: str) -> VaultPath:
        folder, _, name = text.rpartition("/")
        return from_disk(self._folder(folder), name)

    def _folder(self, text: str) -> VaultPath:
        folder = self._folders.get(text)
        if folder is None:
            parent, _, name = text.rpartition("/")
            folder = self._folders[text] = from_disk(self._folder(parent), name)
        return folder


class Delta:
    """The difference to an index: its stale paths, and the files that replace them."""

    def __init__(self) -> None:
        self.stale: set[str] = set()
        self.files: dict[str, VaultPath] = {}
        self.facts: dict[str, Facts] = {}
        self.problems: dict[str, Problem] = {}
        self._by_linked_name: dict[str, dict[str, VaultPath]] = {}
        self._by_name: dict[str, dict[str, VaultPath]] = {}
        self.changed_names: set[str] = set()
        """Keys of names under which files were created or removed.

        Links that end with such a name may resolve differently than in the index.
        """

    def copy(self) -> Self:
        """Return a copy that can be changed while this one is in use."""
        copy = type(self)()
        copy.stale = set(self.stale)
        copy.files = dict(self.files)
        copy.facts = dict(self.facts)
        copy.problems = dict(self.problems)
        copy._by_linked_name = {name: dict(paths) for name, paths in self._by_linked_name.items()}
        copy._by_name = {name: dict(paths) for name, paths in self._by_name.items()}
        copy.changed_names = set(self.changed_names)
        return copy

    def remove(self, path: VaultPath) -> None:
        """Mark a path as stale in the index, and remove its entry here."""
        text = path.text
        self.stale.add(text)
        self.problems.pop(text, None)
        if self.files.pop(text, None) is not None:
            self._by_name[file_name(path)].pop(text)
        old = self.facts.pop(text, None)
        if old:
            for name in set(map(target_name, old.targets)):
                self._by_linked_name[name].pop(text, None)

    def update(self, path: VaultPath, facts: Facts, problem: Problem | None = None) -> None:
        """Insert or replace the entry of an existing file."""
        self.remove(path)
        self.files[path.text] = path
        self.facts[path.text] = facts
        self._by_name.setdefault(file_name(path), {})[path.text] = path
        for name in set(map(target_name, facts.targets)):
            self._by_linked_name.setdefault(name, {})[path.text] = path
        if problem is not None:
            self.problems[path.text] = problem

    def tagged(self, key: str, folder: VaultPath) -> list[VaultPath]:
        """Return the notes below a folder with a tag or one nested below it."""
        return [
            path
            for path in self.files.values()
            if path.is_note
            and path.within(folder)
            and any(tag_within(tag_key(name), key) for name in self.facts[path.text].tags)
        ]

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        """Yield each alias with its note."""
        return (
            (alias, path) for path in self.files.values() for alias in self.facts[path.text].aliases
        )

    def notes_with_references(self) -> list[VaultPath]:
        """Return the notes with references that are not links of the graph."""
        return [path for path in self.files.values() if self.facts[path.text].references]

    def files_linking_name(self, name: str) -> list[VaultPath]:
        """Return the files with a link whose target ends with a name."""
        return list(self._by_linked_name.get(name, {}).values())

    def files_named(self, name: str) -> list[VaultPath]:
        """Return the files with a name."""
        return list(self._by_name.get(name, {}).values())

    def merge(self, indexed: Iterable[VaultPath], changed: list[VaultPath]) -> list[VaultPath]:
        """Return a result of the index without its stale paths, plus the result from here."""
        if self.stale:
            valid = [path for path in indexed if path.text not in self.stale]
        else:
            valid = list(indexed)
        return sorted([*valid, *changed]) if changed else valid


class NoteContent(NamedTuple):
    """A note and its bytes, or the problem why it cannot be read."""

    path: VaultPath
    data: bytes | Problem


class ContentTest(Struct, frozen=True):
    """A test of the content of notes. Every note that passes holds one of the needles."""

    needles: tuple[Needle | None, ...]
    passes: Callable[[bytes], bool]


class Reader(Protocol):
    """A view or a store."""

    def read(self, path: VaultPath, /) -> bytes: ...


def read_note(reader: Reader, path: VaultPath) -> bytes | Problem:
    """Return the bytes of a note, or the problem why it cannot be read."""
    try:
        return reader.read(path)
    except VaultError as error:
        return error.problem()


class VaultIndex(ABC):
    """Queries over one state of a vault.

    Lists are sorted by path. A file that cannot be read counts as empty and is in `problems`.
    """

    def __init__(self) -> None:
        self._links = LinksByName(self.files_named)

    @property
    @abstractmethod
    def problems(self) -> Mapping[str, Problem]:
        """The notes and canvases that could not be read so far, by path."""

    @abstractmethod
    def files(self) -> Iterator[VaultPath]:
        """Yield every file of the vault."""

    @abstractmethod
    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        """Yield the notes below a folder."""

    def note_count(self, folder: VaultPath) -> int:
        """Return the number of notes below a folder."""
        return sum(1 for _ in self.notes(folder))

    @abstractmethod
    def facts(self, path: VaultPath) -> Facts:
        """Return the facts of an existing file."""

    def modified_ms(self, path: VaultPath) -> float | None:
        """Return when a file was last changed, None if the file itself has to say so."""
        return None

    @abstractmethod
    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        """Return the notes below a folder that have a tag or one nested below it.

        The tag is given with or without `#`, in any case.
        """

    @abstractmethod
    def files_linking_name(self, name: str) -> list[VaultPath]:
        """Return the files with a link whose target ends with a name, wherever it leads.

        The name is a key of `resolve.file_name`.
        """

    @abstractmethod
    def files_named(self, name: str) -> list[VaultPath]:
        """Return the files with a name (a key of `resolve.file_name`).

        A link that ends with this name leads to one of them.
        """

    @abstractmethod
    def bases(self) -> list[VaultPath]:
        """Return the `.base` files."""

    @abstractmethod
    def notes_with_references(self) -> list[VaultPath]:
        """Return the notes with references that are not links of the graph (`references.py`)."""

    @abstractmethod
    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteContent]:
        """Yield the notes below a folder that may hold all needles, with their contents.

        Every note with all needles is included, and some others may be. None excludes no note.
        """

    def notes_with(self, test: ContentTest) -> list[VaultPath]:
        """Return the notes that pass a test of their content, sorted by path."""
        passed: dict[VaultPath, bool] = {}
        for needle in test.needles:
            for path, content in self.texts(ROOT, needle):
                if path not in passed:
                    passed[path] = not isinstance(content, Problem) and test.passes(content)
        return sorted(path for path, is_match in passed.items() if is_match)

    def may_hold(self, folder: VaultPath, needle: Needle) -> set[str]:
        """Return the paths of the notes below a folder that may hold a needle.

        Every note with the needle is included, and some others may be. Nothing is read.
        """
        return {path.text for path in self.notes(folder)}

    def word_counts(self, word: QueryWord) -> Mapping[str, WordCount] | None:
        """Return how often a word is in each unchanged note that has it, by path.

        None if words are not stored; `changed_notes` are not among them. Nothing is read.
        """
        return None

    def changed_notes(self) -> set[str]:
        """Return the paths of the notes that are newer than the stored words."""
        return set()

    @abstractmethod
    def text(self, path: VaultPath) -> bytes | Problem:
        """Return the bytes of a note, or the problem why it cannot be read."""

    @abstractmethod
    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        """Yield each alias with its note, in any order."""

    def names(self) -> NameFinder:
        """Return a search over the names and aliases of all files."""
        return NameSearch(
            (path.text for path in self.files()),
            ((alias, path.text) for alias, path in self.aliases()),
        )

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        """Return the file that a link in `source` leads to, or None."""
        return self._links.resolve(target, source)

    def backlinks(self, path: VaultPath) -> list[VaultPath]:
        """Return the other files with a link that leads to this one."""
        name = file_name(path)
        sources = {
            source for ending in (name, ".", "..") for source in self.files_linking_name(ending)
        }
        return sorted(source for source in sources if self._links_to(source, path))

    def links(self, path: VaultPath) -> NoteLinks:
        """Return the links of one file, as a graph of the whole vault has them."""
        data = self.text(path)
        targets: Iterable[str] = ()
        if isinstance(data, bytes):
            targets = dict.fromkeys(link.target for link in links_of(path, data))
        resolved = {target: self.resolve(target, path) for target in targets}
        unresolved = {unresolved_name(target) for target, file in resolved.items() if file is None}
        backlinks = self.backlinks(path)
        return NoteLinks(
            tuple(sorted({file for file in resolved.values() if file is not None})),
            tuple(sorted(unresolved)),
            tuple(source for source in backlinks if source.is_note),
            tuple(source for source in backlinks if not source.is_note),
        )

    def _links_to(self, source: VaultPath, path: VaultPath) -> bool:
        """Return whether a file has a link that leads to another file."""
        name = file_name(path)
        targets = self.facts(source).targets if source != path else ()
        return any(
            resolved_name(target, source) == name and self.resolve(target, source) == path
            for target in targets
        )
