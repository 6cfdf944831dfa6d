"""The view of a vault: one interface for tools and previews, over the disk or an overlay of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from obsidian_agent.vault.filesystem.inventory import Inventory
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse

EntryKind = Literal["file", "folder"]


class FileStat(Struct, frozen=True):
    """Size in bytes and times of a file, in milliseconds since the epoch."""

    size: int
    mtime_ms: float
    created_ms: float
    """The birth time if the platform knows it, else the change time."""
    shared: tuple[int, int] | None = None
    """Device and inode of a file with several names (hard links)."""


class VaultEntry(Struct, frozen=True):
    """A file or folder, with its path spelled as in the listing."""

    path: VaultPath
    kind: EntryKind


class VaultView(Protocol):
    """A vault at one moment.

    A path names the entry with exactly this spelling, else the first one that is equal in NFC. Case
    is significant. Two names on disk that differ only in their Unicode form are two files.

    A view hides protected names, such as folders that begin with a dot. Errors are `VaultError`s
    with the codes of the plan language.
    """

    @property
    def index(self) -> VaultIndex:
        """The index of this view, created when it is first needed."""
        ...

    def locate(self, path: VaultPath) -> VaultEntry | None:
        """Return the entry at `path` with its spelling in the vault, or None.

        The root ("") is a folder.
        """
        ...

    def twin(self, path: VaultPath) -> VaultPath | None:
        """Return the first of `twins`, or None."""
        return next(iter(self.twins(path)), None)

    def twins(self, path: VaultPath) -> Sequence[VaultPath]:
        """Return the existing paths that equal `path` after NFC normalization and case folding.

        `path` itself comes first, then paths that differ only in Unicode form, then the others.
        """
        ...

    def read(self, path: VaultPath) -> bytes:
        """Return the bytes of a file.

        Raise FILE_NOT_FOUND if it is missing, NOT_TEXT for a folder or special file,
        FILE_TOO_LARGE above the store's limit.
        """
        ...

    def stat(self, path: VaultPath) -> FileStat:
        """Return size and times of a file.

        A file that an overlay has changed has the time at which the preview started.
        """
        ...

    def children(self, folder: VaultPath) -> list[VaultEntry]:
        """Return the direct entries of a folder, sorted by the text of the path.

        Raise NOT_A_FOLDER for a file, FILE_NOT_FOUND if it is missing.
        """
        ...

    def walk(self, folder: VaultPath) -> Iterator[VaultEntry]:
        """Yield every file and folder below a folder, all sorted by the text of the path."""
        ...

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        """Yield the Markdown files below a folder, sorted by path."""
        for entry in self.walk(folder):
            if entry.kind == "file" and entry.path.is_note:
                yield entry.path

    def origin(self, path: VaultPath) -> VaultPath | None:
        """Return the original path of the file that is now at `path`, None if new or missing."""
        ...

    def current(self, origin: VaultPath) -> VaultPath | None:
        """Return the current path of the file that was originally at `origin`, None if deleted."""
        ...

    def is_link(self, path: VaultPath) -> bool:
        """Return whether the entry at `path` is itself a symbolic link."""
        ...

    def real(self, path: VaultPath) -> VaultPath:
        """Return the path of the entry at `path` with symbolic links resolved."""
        ...

    def names(self, path: VaultPath) -> Sequence[VaultPath]:
        """Return `path`, its target through links, and the hard links of that file."""
        ...

    def inventory(self, path: VaultPath) -> Inventory | None:
        """Return the files that move along with the entry at `path`.

        The executor compares them with the disk before the move. Return None if there is nothing
        to compare.
        """
        ...

    def trash_names(self) -> Collection[str]:
        """Return the names in use in the vault's `.trash/`."""
        ...


def locate_by_name(view: VaultView, name: str, kind: EntryKind | None = None) -> VaultEntry | None:
    """Return the entry of this kind that a user names, or None. A note may omit `.md`.

    Raise PathRefused.
    """
    path = parse(name, PathUse.READ)
    entries = (view.locate(path), view.locate(parse(f"{path.text}.md", PathUse.READ)))
    return next(
        (entry for entry in entries if entry is not None and kind in (None, entry.kind)), None
    )


def find_conflict(view: VaultView, target: VaultPath, moving: VaultPath) -> VaultPath | None:
    """Return an existing entry that prevents `moving` from being renamed to `target`, or None.

    Names that differ only in case or Unicode form conflict, as they do on some file systems.
    """
    return next((twin for twin in view.twins(target) if twin != moving), None)


def sorted_twins(path: VaultPath, twins: Iterable[VaultPath]) -> list[VaultPath]:
    """Return other spellings of a path in the order of `VaultView.twins`."""
    return sorted(
        twins, key=lambda other: (other.text != path.text, other.nfc != path.nfc, other.text)
    )
