"""The index of a vault: who is tagged how, who links to whom, which properties a note has, for one state of the vault.

`index_of` gives the index that belongs to a view. On a disk it is the shared one where the program keeps one, else files are scanned when
a question needs them; over an overlay it is the index of what is below it with the changed files scanned anew. So a later step of a plan
sees tags, names and links as the earlier steps left them, and no answer is older than the view's own listing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from obsidian_agent.errors import Problem
from obsidian_agent.vault.index.facts import Facts
from obsidian_agent.vault.index.needle import Needle
from obsidian_agent.vault.index.texts import NoteText
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.view import VaultView

if TYPE_CHECKING:
    from obsidian_agent.vault.index.name_search import NameHits


class NameFinder(Protocol):
    """A `NameSearch`, or several as one."""

    def search(self, query: str, limit: int | None = None) -> NameHits:
        """See `NameSearch.search`."""
        ...


class VaultIndex(Protocol):
    """Questions about one state of a vault. Lists are sorted by path. What cannot be read counts as empty and is in `problems`."""

    @property
    def problems(self) -> Mapping[str, Problem]:
        """Notes and canvases that could not be read so far, by path."""
        ...

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        """The notes below a folder."""
        ...

    def files(self) -> Iterator[VaultPath]:
        """Every file of the vault."""
        ...

    def facts(self, path: VaultPath) -> Facts:
        """What is known of a file that exists."""
        ...

    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        """The notes below a folder that have a tag (with or without `#`, in any case) or one nested below it."""
        ...

    def naming(self, name: str) -> list[VaultPath]:
        """The files with a link whose target ends with a name (a key of `index_facts.file_name`), wherever that leads."""
        ...

    def named(self, name: str) -> list[VaultPath]:
        """The files of a name (a key of `index_facts.file_name`): all that a link which ends with it can mean."""
        ...

    def bases(self) -> list[VaultPath]:
        """The files that are bases, sorted."""
        ...

    def referring(self) -> list[VaultPath]:
        """The notes with references to files that are no links of the graph (`references.py`), sorted."""
        ...

    def linking(self, path: VaultPath) -> list[VaultPath]:
        """The other files with a link that leads to this one."""
        ...

    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteText]:
        """The notes below a folder that may hold all needles (None counts for none), with their texts; also some that do not."""
        ...

    def text(self, path: VaultPath) -> bytes | Problem:
        """The bytes of a note, or why it cannot be read."""
        ...

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        """The other names of notes, in no order."""
        ...

    def names(self) -> NameFinder:
        """The names and aliases of all files, ready to be searched."""
        ...

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        """The file that a link's target means in a file, or None."""
        ...


def index_of(view: VaultView) -> VaultIndex:
    """The index that belongs to a view; made once for each view."""
    from obsidian_agent.vault.index.filtered import HidingIndex
    from obsidian_agent.vault.index.live import ScanIndex
    from obsidian_agent.vault.index.overlay import OverlayIndex
    from obsidian_agent.vault.views.disk import DiskView
    from obsidian_agent.vault.views.filtered import HidingView
    from obsidian_agent.vault.views.overlay import OverlayVault

    match view:
        case OverlayVault():
            if view.index is None:
                view.index = OverlayIndex(index_of(view.base), view)
            return view.index
        case DiskView():
            if view.index is None:
                view.index = view.make_index() if view.make_index is not None else ScanIndex(view)
            return view.index
        case HidingView():
            if view.index is None:
                view.index = HidingIndex(index_of(view.inner), view)
            return view.index
        case _:
            return ScanIndex(view)
