"""One vault while it is open: its notes as they are now, its index, and what the person looks at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from obsidian_agent.agent.index_follower import IndexFollower
from obsidian_agent.agent.run_context import Focus
from obsidian_agent.agent.vault_agents.files import files_below
from obsidian_agent.errors import VaultError
from obsidian_agent.tools.core.tool import Position, Selection
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.text import decode
from obsidian_agent.vault.views.disk import DiskView

if TYPE_CHECKING:
    from obsidian_agent.journal.effects import Effects
    from obsidian_agent.vault.index.index import VaultIndex
    from obsidian_agent.vault.index.keeper import IndexKeeper, IndexStatus


class OpenVault:
    """The vault behind a session. Without `make_keeper` every question makes the index it needs."""

    def __init__(self, store: VaultStore, clock: Callable[[], datetime], make_keeper: Callable[[], IndexKeeper] | None = None) -> None:
        self.store = store
        self.clock = clock
        self.focus = Focus()
        self._make_keeper = make_keeper
        self._follower: IndexFollower | None = None

    @property
    def name(self) -> str:
        """The name of the vault's folder."""
        return self.store.name

    @cached_property
    def keeper(self) -> IndexKeeper | None:
        """The keeper of the vault's index, made when first asked for; None without one."""
        return None if self._make_keeper is None else self._make_keeper()

    def view(self) -> DiskView:
        """The vault on disk as it is now. What needs an index makes or refreshes it on its first question."""
        return DiskView(self.store, None if self._make_keeper is None else self._fresh_index)

    def _fresh_index(self) -> VaultIndex:
        assert self.keeper is not None
        return self.keeper.refresh()

    def resolve(self, path: VaultPath) -> VaultPath:
        """Where a path leads when links are followed; one that cannot be followed leads to itself."""
        try:
            return self.store.resolve(path)
        except VaultError:
            return path

    def notes(self) -> list[str]:
        """Paths of all notes, sorted. May block."""
        return [entry.path.text for entry in self.view().walk(ROOT) if entry.path.is_note]

    def read_note(self, path: str) -> str:
        """The text of a note, line ends as they are. May block."""
        where = parse(path, PathUse.READ)
        return decode(self.view().read(where), where.text)

    def place_of(self, path: str) -> str:
        """Where a note lies on this machine, as an absolute path. Raises `VaultError` for what is no path in the vault. May block."""
        return os.path.join(self.store.real_path, self.store.resolve(parse(path, PathUse.READ)).text)

    def files_below(self, start: str) -> Iterator[VaultPath]:
        """The files below a folder ("": all), or the file itself. All of them as the index has them, if it is there. May block."""
        latest = self.keeper.latest if self._follower is not None and self.keeper is not None else None
        return latest.files() if latest is not None and not start else files_below(DiskView(self.store), start)

    def set_focus(self, active_file: str | None, selection: Selection | None, cursor: Position | None) -> None:
        """What the person looks at; frozen into the next turn."""
        self.focus = Focus(active_file, selection, cursor, has_screen=True)

    # --- the index behind the screen -------------------------------------------------------------------------------------------------

    def follow(self, tell: Callable[[IndexStatus], None]) -> None:
        """Load or build the index behind the screen and keep it fresh; `tell` is called in threads. Does not block, and may be done once."""
        make = self._make_keeper
        if make is not None and self._follower is None:
            self._follower = IndexFollower(self.store.real_path, lambda: self.keeper or make(), tell)
            self._follower.start()

    def unfollow(self) -> None:
        """End what `follow` began."""
        if self._follower is not None:
            self._follower.stop()

    def look_again(self) -> None:
        """Somebody else may have changed the vault: compare the index with it. Does not block."""
        if self._follower is not None:
            self._follower.look_again()

    def learn(self, effects: Effects) -> None:
        """A run has changed these files."""
        if self._follower is not None:
            self._follower.learn(effects)
