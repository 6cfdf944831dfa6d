"""How tools and previews look at a vault: the same questions, answered by the disk or by an overlay of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from obsidian_agent.vault.paths.path import VaultPath

EntryKind = Literal["file", "folder"]


@dataclass(frozen=True, slots=True)
class FileStat:
    """Size in bytes, times in milliseconds since the epoch. `created_ms` is the birth time where the platform knows it,
    else the change time."""

    size: int
    mtime_ms: float
    created_ms: float


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder as listed, its path spelled as on disk."""

    path: VaultPath
    kind: EntryKind


class VaultView(Protocol):
    """A vault at one moment. Paths are looked up in NFC and found under the spelling on disk; case is significant.

    Protected names (dot folders and the like) do not exist for a view. Errors are `VaultError`s with the codes of the plan language.
    """

    def locate(self, path: VaultPath) -> Entry | None:
        """The entry at `path` under the spelling it has in the vault, or None. The root ("") is a folder."""
        ...

    def twin(self, path: VaultPath) -> VaultPath | None:
        """An existing entry whose path equals `path` in NFC and case folding (it may be `path` itself), or None."""
        ...

    def read(self, path: VaultPath) -> bytes:
        """The bytes of a file. FILE_NOT_FOUND when missing, NOT_TEXT for a folder or special file, FILE_TOO_LARGE over
        the store's limit."""
        ...

    def stat(self, path: VaultPath) -> FileStat:
        """Size and times of a file. A file that the overlay has written has the frozen time of the preview."""
        ...

    def children(self, folder: VaultPath) -> list[Entry]:
        """Direct entries of a folder, sorted by path text. NOT_A_FOLDER for a file, FILE_NOT_FOUND when missing."""
        ...

    def walk(self, folder: VaultPath) -> Iterator[Entry]:
        """Every entry below a folder, files and folders, sorted by path text within the whole walk."""
        ...

    def origin(self, path: VaultPath) -> VaultPath | None:
        """Where the file that is now at `path` was in the vault at the start, or None if it is new or missing."""
        ...

    def current(self, origin: VaultPath) -> VaultPath | None:
        """Where the file that was at `origin` at the start is now, or None if it is gone."""
        ...
