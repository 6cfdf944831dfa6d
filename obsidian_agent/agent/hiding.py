"""A vault without what nobody else may know of: for models, denied files and folders do not exist, whichever way they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.store import missing
from obsidian_agent.vault.view import Entry, FileStat, VaultView


class HidingView:
    """A `VaultView` of what is left of another one.

    `denied` says what is hidden; `real` where a path leads when links are followed. A link to something hidden is hidden too.
    """

    def __init__(self, inner: VaultView, denied: Callable[[VaultPath], bool], real: Callable[[VaultPath], VaultPath]) -> None:
        self._inner = inner
        self._denied = denied
        self._real = real

    def locate(self, path: VaultPath) -> Entry | None:
        """See `VaultView.locate`."""
        return None if self._hidden(path) else self._inner.locate(path)

    def twin(self, path: VaultPath) -> VaultPath | None:
        """See `VaultView.twin`."""
        found = self._inner.twin(path)
        return None if found is None or self._hidden(found) else found

    def read(self, path: VaultPath) -> bytes:
        """See `VaultView.read`."""
        self._refuse(path)
        return self._inner.read(path)

    def stat(self, path: VaultPath) -> FileStat:
        """See `VaultView.stat`."""
        self._refuse(path)
        return self._inner.stat(path)

    def children(self, folder: VaultPath) -> list[Entry]:
        """See `VaultView.children`."""
        self._refuse(folder)
        return [entry for entry in self._inner.children(folder) if not self._denied(entry.path)]

    def walk(self, folder: VaultPath) -> Iterator[Entry]:
        """See `VaultView.walk`."""
        self._refuse(folder)
        return (entry for entry in self._inner.walk(folder) if not self._denied(entry.path))

    def origin(self, path: VaultPath) -> VaultPath | None:
        """See `VaultView.origin`."""
        return None if self._hidden(path) else self._inner.origin(path)

    def current(self, origin: VaultPath) -> VaultPath | None:
        """See `VaultView.current`."""
        return None if self._hidden(origin) else self._inner.current(origin)

    def _refuse(self, path: VaultPath) -> None:
        if self._hidden(path):
            raise missing(path)

    def _hidden(self, path: VaultPath) -> bool:
        if self._denied(path):
            return True
        try:
            real = self._real(path)
        except VaultError:
            return False  # a link to nowhere or out of the vault: the view below says what it says of those
        return real.text != path.text and self._denied(real)
