"""The vault as it is on disk, as a `VaultView`: each folder is listed once. Its index is a kept one, or one that scans files when asked."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from operator import attrgetter
from typing import TypeVar

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import PathRefused, Problem, VaultError
from obsidian_agent.vault.filesystem.inventory import Inventory, differences, inventory_of
from obsidian_agent.vault.filesystem.store import (
    ScanKind,
    VaultStore,
    kind_of,
    missing,
    not_a_file,
    not_a_folder,
)
from obsidian_agent.vault.index.index import (
    NO_FACTS,
    Facts,
    NoteContent,
    VaultIndex,
    has_facts,
    read_note,
    scan_facts,
    tag_key,
    tag_within,
)
from obsidian_agent.vault.index.text_search import Needle
from obsidian_agent.vault.links.resolve import file_name, target_name
from obsidian_agent.vault.markdown.bases import BASE
from obsidian_agent.vault.paths.path import (
    ROOT,
    VaultPath,
    collision_key,
    from_disk,
    protected,
    trash_path,
)
from obsidian_agent.vault.paths.rules import PLAIN
from obsidian_agent.vault.views.view import FileStat, VaultEntry, VaultView, sorted_twins

T = TypeVar("T")


@dataclass(slots=True)
class _Item:
    kind: ScanKind
    link: bool


@dataclass
class _Listing:
    """One folder as it was when it was listed; `items` by the name on disk, without protected names. Nobody can ask for `unreadable` ones."""

    path: VaultPath
    items: dict[str, _Item] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)

    @cached_property
    def by_nfc(self) -> dict[str, str]:
        names = sorted(self.items, reverse=True)
        return {unicodedata.normalize("NFC", name): name for name in names if not name.isascii()}

    @cached_property
    def by_key(self) -> dict[str, list[str]]:
        return _grouped((collision_key(name), name) for name in self.items)

    def name_of(self, name: str) -> str | None:
        """The name on disk that equals `name` in NFC, the very same spelling first."""
        if name in self.items:
            return name
        return None if name.isascii() else self.by_nfc.get(unicodedata.normalize("NFC", name))


class DiskView(VaultView):
    """The disk behind one store. Listings are kept, so a view belongs to one preview or one run.

    `make_index` gives an index as the disk is when it is called (`IndexKeeper.refresh`); without it files are scanned.
    """

    def __init__(
        self, store: VaultStore, make_index: Callable[[], VaultIndex] | None = None
    ) -> None:
        self._store = store
        self._listings: dict[str, _Listing] = {}
        self._closed: set[str] = set()
        self._links: dict[str, bool] = {}
        self._folders: dict[str, VaultPath | None] = {"": ROOT}
        self._twin_folders: dict[str, tuple[VaultPath, ...]] = {"": (ROOT,)}
        self._make_index = make_index
        self._index: VaultIndex | None = None

    @property
    def index(self) -> VaultIndex:
        if self._index is None:
            self._index = ScanIndex(self) if self._make_index is None else self._make_index()
        return self._index

    @property
    def unreadable_names(self) -> int:
        """How much of what was listed so far is left out: entries whose names nobody could ask for, folders that may not be read."""
        return sum(len(listing.unreadable) for listing in self._listings.values()) + len(
            self._closed
        )

    def locate(self, path: VaultPath) -> VaultEntry | None:
        """See `VaultView.locate`. PathRefused for a link that leads out of the vault, to a protected name or nowhere."""
        if path.is_root:
            return VaultEntry(ROOT, "folder")
        found = self._item(path)
        if found is None:
            return None
        real, item = found
        if item.kind == "other":
            if item.link:
                raise self._link_refusal(real)
            return None
        return VaultEntry(real, item.kind)

    def twin(self, path: VaultPath) -> VaultPath | None:
        """See `VaultView.twin`. PathRefused for what would be behind a link that is not followed."""
        found = None if path.is_root else self._item(path)
        return super().twin(path) if found is None else found[0]

    def twins(self, path: VaultPath) -> list[VaultPath]:
        """See `VaultView.twins`. Special files and bad links are among them: they are in the way."""
        if path.is_root:
            return [ROOT]
        key, folders = collision_key(path.name), self._twins_of_folder(path.parent)
        return sorted_twins(
            path,
            (
                from_disk(folder, name)
                for folder in folders
                for name in self._listing(folder).by_key.get(key, ())
            ),
        )

    def read(self, path: VaultPath) -> bytes:
        if not self._store.case_insensitive:
            try:
                return self._store.read(path)
            except VaultError as error:
                if error.code != "FILE_NOT_FOUND" or path.text.isascii():
                    raise
        found = self._item(path)
        if found is None:
            raise missing(path)
        return self._store.read(found[0])

    def stat(self, path: VaultPath) -> FileStat:
        found = self._item(path)
        status = self._store.stat(found[0]) if found else None
        if status is None:
            raise missing(path)
        info, born_ns = status
        if kind_of(info.st_mode) != "file":
            raise not_a_file(path)
        shared = (info.st_dev, info.st_ino) if info.st_nlink > 1 else None
        return FileStat(info.st_size, info.st_mtime_ns / 1e6, born_ns / 1e6, shared)

    def children(self, folder: VaultPath) -> list[VaultEntry]:
        return sorted(
            self._entries(self._listing(self._existing_folder(folder))), key=attrgetter("path.text")
        )

    def walk(self, folder: VaultPath) -> Iterator[VaultEntry]:
        """See `VaultView.walk`. A link to a folder is an entry, what is behind it is not; neither is what this user may not read."""
        listings = self._listings_below(self._existing_folder(folder))
        return iter(
            sorted(
                (entry for listing in listings for entry in self._entries(listing)),
                key=attrgetter("path.text"),
            )
        )

    def inventory(self, path: VaultPath) -> Inventory | None:
        """What goes along when the file or folder at `path` is moved, as this view lists it; None on a platform where nothing can be moved.

        PATH_NOT_ALLOWED for a link to a folder, which is not moved.
        """
        found = self._item(path)
        if found is None:
            raise missing(path)
        real, item = found
        if item.link and item.kind == "folder":
            raise VaultError(
                f"{real} is a link to a folder, so it is left where it is.",
                code="PATH_NOT_ALLOWED",
                path=real.text,
            )
        return (
            inventory_of(self._store, real, self._listed(real, item))
            if self._store.root_fd >= 0
            else None
        )

    def is_link(self, path: VaultPath) -> bool:
        """Whether the entry at `path` is itself a link, to wherever it leads."""
        found = self._item(path)
        return found is not None and found[1].link

    def real(self, path: VaultPath) -> VaultPath:
        """Where what is found at `path` lies, links on the way and the last one followed; `path` itself where there is none."""
        return self._store.resolve(path) if self._linked(path) else path

    def differences(self, before: Inventory) -> Iterator[tuple[str, str]]:
        """How what an inventory lists differs from what this view sees: paths, each with what became of it."""
        found = self._item(before.path)
        return differences(self._store, before, [] if found is None else self._listed(*found))

    def _listed(self, path: VaultPath, item: _Item) -> Iterator[tuple[VaultPath, list[str]]]:
        if item.kind != "folder":
            return iter([(path.parent, [path.name])])
        return (
            (listing.path, [*listing.items, *listing.unreadable])
            for listing in self._listings_below(path)
        )

    def trash_names(self) -> set[str]:
        """The names that are taken in the vault's `.trash/`; empty while there is none."""
        try:
            return {name for name, _, _ in self._store.scan(trash_path())}
        except VaultError as error:
            if error.code == "FILE_NOT_FOUND":
                return set()
            raise

    def origin(self, path: VaultPath) -> VaultPath | None:
        """On disk nothing has moved: the file's own path, or None when it is missing."""
        entry = self.locate(path)
        return entry.path if entry else None

    def current(self, origin: VaultPath) -> VaultPath | None:
        """As `origin`."""
        return self.origin(origin)

    def _item(self, path: VaultPath) -> tuple[VaultPath, _Item] | None:
        folder = self._folder(path.parent)
        if folder is None:
            return None
        listing = self._listing(folder)
        name = listing.name_of(path.name)
        if name is None:
            return None
        # Most paths are asked for as they are listed: then the answer is the question.
        return (
            path
            if name == path.name and folder.text == path.parent.text
            else from_disk(folder, name)
        ), listing.items[name]

    def _linked(self, path: VaultPath) -> bool:
        """Whether an entry that is there is a link, or lies behind one."""
        known = self._links.get(path.text)
        if known is None:
            known = self._links[path.text] = not path.is_root and (
                self.is_link(path) or self._linked(path.parent)
            )
        return known

    def _folder(self, path: VaultPath) -> VaultPath | None:
        """The folder at `path` under its spelling on disk."""
        text = path.text
        if text in self._folders:
            return self._folders[text]
        entry = self.locate(path)
        self._folders[text] = found = entry.path if entry and entry.kind == "folder" else None
        return found

    def _twins_of_folder(self, path: VaultPath) -> tuple[VaultPath, ...]:
        key = path.key
        if key not in self._twin_folders:
            name = collision_key(path.name)
            self._twin_folders[key] = tuple(
                from_disk(folder, twin)
                for folder in self._twins_of_folder(path.parent)
                for twin in self._listing(folder).by_key.get(name, ())
                if self._listing(folder).items[twin].kind == "folder"
            )
        return self._twin_folders[key]

    def _existing_folder(self, path: VaultPath) -> VaultPath:
        entry = self.locate(path)
        if entry is None:
            raise missing(path)
        if entry.kind != "folder":
            raise not_a_folder(path)
        return entry.path

    def _listings_below(self, start: VaultPath) -> Iterator[_Listing]:
        """The listing of a folder and of those below it, none through a link."""
        pending = [start]
        while pending:
            here = pending.pop()
            listing = self._listing(here) if here is start else self._listing_if_allowed(here)
            yield listing
            pending.extend(
                from_disk(here, name)
                for name, item in listing.items.items()
                if item.kind == "folder" and not item.link
            )

    def _entries(self, listing: _Listing) -> Iterator[VaultEntry]:
        for name, item in listing.items.items():
            if item.kind != "other":
                yield VaultEntry(from_disk(listing.path, name), item.kind)

    def _listing_if_allowed(self, folder: VaultPath) -> _Listing:
        """The listing of a folder met on a walk: empty (and counted) where it may not be read, empty when it is gone by now."""
        try:
            return self._listing(folder)
        except VaultError as error:
            if not isinstance(error.__cause__, (PermissionError, FileNotFoundError)):
                raise
            if isinstance(error.__cause__, PermissionError):
                self._closed.add(folder.text)
            return _Listing(folder)

    def _link_refusal(self, path: VaultPath) -> VaultError:
        """Why a link is not followed, in the store's own words."""
        try:
            self._store.resolve(path)
            if self._store.stat(path) is not None:
                return not_a_file(path)
        except VaultError as refusal:
            return refusal
        return PathRefused(
            f"{path.text} is a link to something that does not exist.",
            code="PATH_OUTSIDE_VAULT",
            path=path.text,
        )

    def _listing(self, folder: VaultPath) -> _Listing:
        known = self._listings.get(folder.text)
        if known is None:
            found = self._store.scan(folder)
            known = self._listings[folder.text] = _Listing(folder)
            for name, kind, link in found:
                if not PLAIN.fullmatch(name):
                    if protected(name):
                        continue
                    try:
                        from_disk(folder, name)
                    except PathRefused:
                        known.unreadable.append(name)
                        continue
                known.items[name] = _Item(kind, link)
        return known


class ScanIndex(VaultIndex):
    """An index without memory: each file is read and scanned when the first question needs it, and then kept as long as the view.

    A question for tags below a folder reads that folder, a question for links everything.
    """

    def __init__(self, view: VaultView) -> None:
        super().__init__()
        self._view = view
        self._facts: dict[str, Facts] = {}
        self._problems: dict[str, Problem] = {}

    @property
    def problems(self) -> Mapping[str, Problem]:
        return self._problems

    @cached_property
    def _files(self) -> list[VaultPath]:
        return [entry.path for entry in self._view.walk(ROOT) if entry.kind == "file"]

    def files(self) -> Iterator[VaultPath]:
        return iter(self._files)

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        return (
            entry.path
            for entry in self._view.walk(folder)
            if entry.kind == "file" and entry.path.is_note
        )

    def facts(self, path: VaultPath) -> Facts:
        known = self._facts.get(path.text)
        if known is None:
            known = self._facts[path.text] = self._scanned(path)
        return known

    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        wanted = tag_key(tag)
        return [
            path
            for path in self.notes(folder)
            if any(tag_within(tag_key(name), wanted) for name in self.facts(path).tags)
        ]

    @cached_property
    def _naming(self) -> dict[str, list[VaultPath]]:
        return _grouped(
            (key, path)
            for path in filter(has_facts, self._files)
            for key in set(map(target_name, self.facts(path).targets))
        )

    def files_linking_name(self, name: str) -> list[VaultPath]:
        return self._naming.get(name, [])

    @cached_property
    def _named(self) -> dict[str, list[VaultPath]]:
        return _grouped((file_name(path), path) for path in self._files)

    def files_named(self, name: str) -> list[VaultPath]:
        return self._named.get(name, [])

    def bases(self) -> list[VaultPath]:
        return [path for path in self._files if path.suffix == BASE]

    def notes_with_references(self) -> list[VaultPath]:
        return [path for path in self._files if self.facts(path).references]

    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteContent]:
        return (NoteContent(path, read_note(self._view, path)) for path in self.notes(folder))

    def text(self, path: VaultPath) -> bytes | Problem:
        return read_note(self._view, path)

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        return ((alias, path) for path in self.notes(ROOT) for alias in self.facts(path).aliases)

    def _scanned(self, path: VaultPath) -> Facts:
        if not has_facts(path):
            return NO_FACTS
        try:
            return scan_facts(path, self._view.read(path))
        except VaultError as error:
            self._problems[path.text] = error.problem()
            return NO_FACTS


def _grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    groups: dict[str, list[T]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups
