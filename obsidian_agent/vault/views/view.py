"""How tools and previews look at a vault: the same questions, answered by the disk or by an overlay of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, Protocol

from obsidian_agent.dataclass import dataclass
from obsidian_agent.vault.filesystem.inventory import Inventory
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse

EntryKind = Literal["file", "folder"]


@dataclass(frozen=True, slots=True)
class FileStat:
    """Size in bytes, times in milliseconds since the epoch. `created_ms` is the birth time where the platform knows it,
    else the change time. `shared` is the (device, inode) of a file with several names (hard links)."""

    size: int
    mtime_ms: float
    created_ms: float
    shared: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class VaultEntry:
    """A file or folder as listed, its path spelled as on disk."""

    path: VaultPath
    kind: EntryKind


class VaultView(Protocol):
    """A vault at one moment. A path is found under the very spelling it has, else under one that is the same in NFC, the first by text;
    case is significant. Two names on disk that differ in their Unicode form alone are two files.

    Protected names (dot folders and the like) do not exist for a view. Errors are `VaultError`s with the codes of the plan language.
    """

    @property
    def index(self) -> VaultIndex:
        """The index of what this view shows, made when it is first asked for."""
        ...

    def locate(self, path: VaultPath) -> VaultEntry | None:
        """The entry at `path` under the spelling it has in the vault, or None. The root ("") is a folder."""
        ...

    def twin(self, path: VaultPath) -> VaultPath | None:
        """The first of `twins`, or None."""
        return next(iter(self.twins(path)), None)

    def twins(self, path: VaultPath) -> Sequence[VaultPath]:
        """The existing entries whose paths equal `path` in NFC and case folding: `path` itself first, then what is equal in NFC,
        then by text."""
        ...

    def read(self, path: VaultPath) -> bytes:
        """The bytes of a file. FILE_NOT_FOUND when missing, NOT_TEXT for a folder or special file, FILE_TOO_LARGE over
        the store's limit."""
        ...

    def stat(self, path: VaultPath) -> FileStat:
        """Size and times of a file. A file that the overlay has written has the frozen time of the preview."""
        ...

    def children(self, folder: VaultPath) -> list[VaultEntry]:
        """Direct entries of a folder, sorted by path text. NOT_A_FOLDER for a file, FILE_NOT_FOUND when missing."""
        ...

    def walk(self, folder: VaultPath) -> Iterator[VaultEntry]:
        """Every entry below a folder, files and folders, sorted by path text within the whole walk."""
        ...

    def origin(self, path: VaultPath) -> VaultPath | None:
        """Where the file that is now at `path` was in the vault at the start, or None if it is new or missing."""
        ...

    def current(self, origin: VaultPath) -> VaultPath | None:
        """Where the file that was at `origin` at the start is now, or None if it is gone."""
        ...

    def is_link(self, path: VaultPath) -> bool:
        """Whether the entry at `path` is itself a link, to wherever it leads."""
        ...

    def real(self, path: VaultPath) -> VaultPath:
        """Where what is found at `path` lies: a link is another name of that."""
        ...

    def inventory(self, path: VaultPath) -> Inventory | None:
        """What goes along when the file or folder at `path` is moved; None where nothing can be moved."""
        ...

    def trash_names(self) -> Collection[str]:
        """The names that are taken in the vault's `.trash/`."""
        ...


def locate_by_name(view: VaultView, name: str, kind: EntryKind | None = None) -> VaultEntry | None:
    """Return the entry of this kind that a user names; a note may go without `.md`. Raises `PathRefused`."""
    path = parse(name, PathUse.READ)
    entries = (view.locate(path), view.locate(parse(f"{path.text}.md", PathUse.READ)))
    return next((each for each in entries if each is not None and kind in (None, each.kind)), None)


def find_conflict(view: VaultView, target: VaultPath, moving: VaultPath) -> VaultPath | None:
    """What has the name that `moving` is to get, or one that some disk takes for it; None: nothing but `moving` itself."""
    return next((twin for twin in view.twins(target) if twin != moving), None)


def sorted_twins(path: VaultPath, found: Iterable[VaultPath]) -> list[VaultPath]:
    """Other spellings of a path in the order of `VaultView.twins`."""
    return sorted(
        found, key=lambda other: (other.text != path.text, other.nfc != path.nfc, other.text)
    )
