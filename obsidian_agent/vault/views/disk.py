"""The view of a vault on disk, which lists each folder once."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from operator import attrgetter

from msgspec import Struct, field

from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.vault.filesystem.inventory import Inventory, differences, inventory_of
from obsidian_agent.vault.filesystem.store import (
    ScanKind,
    VaultStore,
    kind_of,
    missing,
    not_a_file,
    not_a_folder,
)
from obsidian_agent.vault.index.file_names import FileNames
from obsidian_agent.vault.index.index import VaultIndex
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


class _Item(Struct):
    kind: ScanKind
    link: bool


class _Listing(Struct, dict=True):
    """One folder at the time it was listed, without protected names."""

    path: VaultPath
    items: dict[str, _Item] = field(default_factory=dict)
    """The entries by their names on disk."""
    unreadable: list[str] = field(default_factory=list)
    """Names that no path can express."""

    @cached_property
    def by_nfc(self) -> dict[str, str]:
        names = sorted(self.items, reverse=True)
        return {unicodedata.normalize("NFC", name): name for name in names if not name.isascii()}

    @cached_property
    def by_key(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for name in self.items:
            names.setdefault(collision_key(name), []).append(name)
        return names

    def name_of(self, name: str) -> str | None:
        """Return the name on disk that equals `name`, exactly if possible, else in NFC."""
        if name in self.items:
            return name
        return None if name.isascii() else self.by_nfc.get(unicodedata.normalize("NFC", name))


class DiskView(VaultView):
    """A view of the vault of one store. Listings are cached, so a view serves one preview or run.

    `make_index` returns a current index (`IndexKeeper.refresh`). Without it, files are scanned.
    """

    def __init__(
        self, store: VaultStore, make_index: Callable[[], VaultIndex] | None = None
    ) -> None:
        self._store = store
        self._listings: dict[str, _Listing] = {}
        self._forbidden_folders: set[str] = set()
        self._links: dict[str, bool] = {}
        self._folders: dict[str, VaultPath | None] = {"": ROOT}
        self._folder_twins: dict[str, tuple[VaultPath, ...]] = {"": (ROOT,)}
        self._make_index = make_index
        self._names = FileNames(store)
        self._index: VaultIndex | None = None

    @property
    def index(self) -> VaultIndex:
        if self._index is None:
            self._index = self._new_index()
        return self._index

    def _new_index(self) -> VaultIndex:
        if self._make_index is not None:
            return self._make_index()
        from obsidian_agent.vault.views.scan_index import ScanIndex

        return ScanIndex(self)

    @property
    def unreadable_names(self) -> int:
        """The number of omitted entries so far.

        These have names that no path can express, or are folders that may not be read.
        """
        return sum(len(listing.unreadable) for listing in self._listings.values()) + len(
            self._forbidden_folders
        )

    def locate(self, path: VaultPath) -> VaultEntry | None:
        """Return the entry at `path` with its spelling on disk, or None.

        Raise PathRefused for a link to nothing, to a protected name, or out of the vault.
        """
        if path.is_root:
            return VaultEntry(ROOT, "folder")
        match = self._item(path)
        if match is None:
            return None
        real, item = match
        if item.kind == "other":
            if item.link:
                raise self._link_refusal(real)
            return None
        return VaultEntry(real, item.kind)

    def twin(self, path: VaultPath) -> VaultPath | None:
        """Return the first of `twins`, or None. Raise PathRefused for a link that is refused."""
        match = None if path.is_root else self._item(path)
        return super().twin(path) if match is None else match[0]

    def twins(self, path: VaultPath) -> list[VaultPath]:
        """Return the paths of existing entries that equal `path` in NFC and case folding.

        Special files and refused links are included, because they occupy their names.
        """
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
        match = self._item(path)
        if match is None:
            raise missing(path)
        return self._store.read(match[0])

    def stat(self, path: VaultPath) -> FileStat:
        match = self._item(path)
        status = self._store.stat(match[0]) if match else None
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
        """Yield every file and folder below a folder, all sorted by the text of the path.

        A link to a folder and a folder that may not be read are entries with nothing below them.
        """
        listings = self._listings_below(self._existing_folder(folder))
        return iter(
            sorted(
                (entry for listing in listings for entry in self._entries(listing)),
                key=attrgetter("path.text"),
            )
        )

    def inventory(self, path: VaultPath) -> Inventory | None:
        """Return what moves along with the entry at `path`, as this view lists it.

        Return None on platforms where nothing can be moved. Raise PATH_NOT_ALLOWED for a link to a
        folder, which is not moved.
        """
        match = self._item(path)
        if match is None:
            raise missing(path)
        real, item = match
        if item.link and item.kind == "folder":
            raise VaultError(
                f"{real} is a link to a folder, which cannot be moved.",
                code="PATH_NOT_ALLOWED",
                path=real.text,
            )
        if self._store.root_fd < 0:
            return None
        return inventory_of(self._store, real, self._listed_names(real, item))

    def is_link(self, path: VaultPath) -> bool:
        """Return whether the entry at `path` is itself a symbolic link."""
        match = self._item(path)
        return match is not None and match[1].link

    def real(self, path: VaultPath) -> VaultPath:
        """Return the path of the entry at `path` with all links resolved."""
        return self._store.resolve(path) if self._has_link(path) else path

    def names(self, path: VaultPath) -> Sequence[VaultPath]:
        return self._names(path)

    def differences(self, before: Inventory) -> Iterator[tuple[str, str]]:
        """Yield how this view differs from an inventory: a path and what happened to it."""
        match = self._item(before.path)
        listed = [] if match is None else self._listed_names(*match)
        return differences(self._store, before, listed)

    def _listed_names(self, path: VaultPath, item: _Item) -> Iterator[tuple[VaultPath, list[str]]]:
        if item.kind != "folder":
            return iter([(path.parent, [path.name])])
        return (
            (listing.path, [*listing.items, *listing.unreadable])
            for listing in self._listings_below(path)
        )

    def trash_names(self) -> set[str]:
        """Return the names in use in the vault's `.trash/`; empty if it does not exist."""
        try:
            return {name for name, _, _ in self._store.scan(trash_path())}
        except VaultError as error:
            if error.code == "FILE_NOT_FOUND":
                return set()
            raise

    def origin(self, path: VaultPath) -> VaultPath | None:
        """Return the file's own path, or None if it is missing: on disk nothing has moved."""
        entry = self.locate(path)
        return entry.path if entry else None

    def current(self, origin: VaultPath) -> VaultPath | None:
        """Return the file's own path, or None if it is missing."""
        return self.origin(origin)

    def _item(self, path: VaultPath) -> tuple[VaultPath, _Item] | None:
        folder = self._folder(path.parent)
        if folder is None:
            return None
        listing = self._listing(folder)
        name = listing.name_of(path.name)
        if name is None:
            return None
        # Most paths are spelled as listed; these need no new path.
        if name != path.name or folder.text != path.parent.text:
            path = from_disk(folder, name)
        return path, listing.items[name]

    def _has_link(self, path: VaultPath) -> bool:
        """Return whether an existing entry is a link or is below one."""
        has_link = self._links.get(path.text)
        if has_link is None:
            has_link = self._links[path.text] = not path.is_root and (
                self.is_link(path) or self._has_link(path.parent)
            )
        return has_link

    def _folder(self, path: VaultPath) -> VaultPath | None:
        """Return the folder at `path` with its spelling on disk."""
        text = path.text
        if text in self._folders:
            return self._folders[text]
        entry = self.locate(path)
        folder = entry.path if entry and entry.kind == "folder" else None
        self._folders[text] = folder
        return folder

    def _twins_of_folder(self, path: VaultPath) -> tuple[VaultPath, ...]:
        key = path.key
        if key not in self._folder_twins:
            name = collision_key(path.name)
            self._folder_twins[key] = tuple(
                from_disk(folder, twin)
                for folder in self._twins_of_folder(path.parent)
                for twin in self._listing(folder).by_key.get(name, ())
                if self._listing(folder).items[twin].kind == "folder"
            )
        return self._folder_twins[key]

    def _existing_folder(self, path: VaultPath) -> VaultPath:
        entry = self.locate(path)
        if entry is None:
            raise missing(path)
        if entry.kind != "folder":
            raise not_a_folder(path)
        return entry.path

    def _listings_below(self, start: VaultPath) -> Iterator[_Listing]:
        """Yield the listings of a folder and of the folders below it. Links are not followed."""
        pending = [start]
        while pending:
            folder = pending.pop()
            listing = self._listing(folder) if folder is start else self._listing_if_allowed(folder)
            yield listing
            pending.extend(
                from_disk(folder, name)
                for name, item in listing.items.items()
                if item.kind == "folder" and not item.link
            )

    def _entries(self, listing: _Listing) -> Iterator[VaultEntry]:
        for name, item in listing.items.items():
            if item.kind != "other":
                yield VaultEntry(from_disk(listing.path, name), item.kind)

    def _listing_if_allowed(self, folder: VaultPath) -> _Listing:
        """Return the listing of a folder on a walk.

        It is empty for a deleted folder, and for one that may not be read, which is counted.
        """
        try:
            return self._listing(folder)
        except VaultError as error:
            if not isinstance(error.__cause__, (PermissionError, FileNotFoundError)):
                raise
            if isinstance(error.__cause__, PermissionError):
                self._forbidden_folders.add(folder.text)
            return _Listing(folder)

    def _link_refusal(self, path: VaultPath) -> VaultError:
        """Return the error why a link is not followed, that of the store if it has one."""
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
        listing = self._listings.get(folder.text)
        if listing is None:
            entries = self._store.scan(folder)
            listing = self._listings[folder.text] = _Listing(folder)
            for name, kind, link in entries:
                if not PLAIN.fullmatch(name):
                    if protected(name):
                        continue
                    try:
                        from_disk(folder, name)
                    except PathRefused:
                        listing.unreadable.append(name)
                        continue
                listing.items[name] = _Item(kind, link)
        return listing
