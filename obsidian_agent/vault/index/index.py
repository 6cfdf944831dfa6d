"""The index of a vault: who is tagged how, who links to whom, which properties a note has, for one state of the vault.

Every view gives its own (`VaultView.index`). On a disk it is the shared one where the program keeps one (`stored.py`), else files are scanned
when a question needs them; over an overlay it is the index of what is below it with the changed files scanned anew. So a later step of a plan
sees tags, names and links as the earlier steps left them, and no answer is older than the view's own listing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.vault.index.facts import Facts
from obsidian_agent.vault.index.name_search import NameFinder, NameSearch
from obsidian_agent.vault.index.text_search import Needle
from obsidian_agent.vault.links.resolve import LinksByName, asked_name, file_name
from obsidian_agent.vault.paths.path import VaultPath


class NoteText(NamedTuple):
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
        self._links = LinksByName(self.named)

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

    @abstractmethod
    def facts(self, path: VaultPath) -> Facts:
        """What is known of a file that exists."""

    @abstractmethod
    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        """The notes below a folder that have a tag (with or without `#`, in any case) or one nested below it."""

    @abstractmethod
    def naming(self, name: str) -> list[VaultPath]:
        """The files with a link whose target ends with a name (a key of `resolve.file_name`), wherever that leads."""

    @abstractmethod
    def named(self, name: str) -> list[VaultPath]:
        """The files of a name (a key of `resolve.file_name`): all that a link which ends with it can mean."""

    @abstractmethod
    def bases(self) -> list[VaultPath]:
        """The files that are bases."""

    @abstractmethod
    def referring(self) -> list[VaultPath]:
        """The notes with references to files that are no links of the graph (`references.py`)."""

    @abstractmethod
    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteText]:
        """The notes below a folder that may hold all needles (None counts for none), with their texts; also some that do not."""

    @abstractmethod
    def text(self, path: VaultPath) -> bytes | Problem:
        """The bytes of a note, or why it cannot be read."""

    @abstractmethod
    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        """The other names of notes, in no order."""

    def names(self) -> NameFinder:
        """The names and aliases of all files, ready to be searched."""
        return NameSearch((path.text for path in self.files()), ((alias, path.text) for alias, path in self.aliases()))

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        """The file that a link's target means in a file, or None."""
        return self._links.resolve(target, source)

    def linking(self, path: VaultPath) -> list[VaultPath]:
        """The other files with a link that leads to this one: of those that name it, the ones that mean it."""
        name = file_name(path)
        sources = {source for ending in (name, ".", "..") for source in self.naming(ending)}
        return sorted(source for source in sources if self._means(source, path))

    def _means(self, source: VaultPath, path: VaultPath) -> bool:
        """Whether a file has a link that leads to another one."""
        name = file_name(path)
        targets = self.facts(source).targets if source != path else ()
        return any(asked_name(target, source) == name and self.resolve(target, source) == path for target in targets)
