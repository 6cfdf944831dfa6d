"""An open vault: its notes as they are now, its index, and the user's focus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from obsidian_agent.errors import ObsidianError, VaultError
from obsidian_agent.obsidian.transport import find_transport
from obsidian_agent.services.focus import Focus, live_focus
from obsidian_agent.tools.core.tool import AppCommand, EditorPosition, Selection
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.keeper import IndexKeeper
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.text import decode
from obsidian_agent.vault.views.disk import DiskView

if TYPE_CHECKING:
    from obsidian_agent.journal.records import Effects
    from obsidian_agent.obsidian.companion_client import LiveContext
    from obsidian_agent.obsidian.live import Obsidian
    from obsidian_agent.obsidian.watcher import Watcher
    from obsidian_agent.services.index_follower import IndexFollower
    from obsidian_agent.vault.index.index import VaultIndex
    from obsidian_agent.vault.index.keeper import IndexStatus
    from obsidian_agent.vault.index.stored import StoredIndex


class OpenVault:
    """The vault of a session. Without `make_keeper` each view builds the index it needs.

    Without `open_obsidian` no running Obsidian is used.
    """

    def __init__(
        self,
        store: VaultStore,
        clock: Callable[[], datetime],
        make_keeper: Callable[[], IndexKeeper] | None = None,
        open_obsidian: Callable[[], Obsidian] | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.focus = Focus()
        self.live: Focus | None = None
        """The focus in Obsidian, `None` while it is unknown."""
        self._open_obsidian = open_obsidian
        self._watcher: Watcher | None = None
        self._make_keeper = make_keeper
        self._follower: IndexFollower | None = None

    @property
    def name(self) -> str:
        return self.store.name

    @cached_property
    def keeper(self) -> IndexKeeper | None:
        """The keeper of the vault's index, created on first use."""
        return None if self._make_keeper is None else self._make_keeper()

    def view(self) -> DiskView:
        """Return the vault on disk. The view loads or refreshes the index on its first query."""
        return DiskView(self.store, None if self._make_keeper is None else self._fresh_index)

    def _fresh_index(self) -> VaultIndex:
        assert self.keeper is not None
        return self.keeper.refresh()

    def stored_index(self, *, followed: bool = False) -> StoredIndex:
        """Return the index, compared with the disk. May block.

        With `followed` it is not compared while file events keep it current, and may lack the
        changes of the last second.
        """
        keeper = self.keeper
        if keeper is None:
            raise VaultError("This vault is opened without an index.", code="NO_INDEX")
        if followed and self.is_followed and keeper.latest is not None:
            return keeper.latest
        return keeper.refresh()

    @property
    def is_followed(self) -> bool:
        """True if file events keep the index current."""
        return self._follower is not None and self._follower.is_following

    def notes(self) -> list[str]:
        """Return the sorted paths of all notes. May block."""
        return [entry.path.text for entry in self.view().walk(ROOT) if entry.path.is_note]

    def read_note(self, path: str) -> str:
        """Return the text of a note with its own line ends. May block."""
        note = parse(path, PathUse.READ)
        return decode(self.view().read(note), note.text)

    def files_below(self, start: str) -> Iterator[VaultPath]:
        """Yield the files below a folder ("" is the vault), or the file itself. May block.

        All files of the vault come from the index if it is ready.
        """
        from obsidian_agent.services.vault_agents.library import files_below

        latest = None
        if self._follower is not None and self.keeper is not None:
            latest = self.keeper.latest
        if latest is not None and not start:
            return latest.files()
        return files_below(DiskView(self.store), start)

    def set_focus(
        self, active_file: str | None, selection: Selection | None, cursor: EditorPosition | None
    ) -> None:
        """Set the focus of the app, which the next turn freezes."""
        live = self.live
        if live is None or live.active_file != active_file:
            live = Focus()
        self.focus = Focus(
            active_file,
            selection,
            cursor,
            has_screen=True,
            file_hash=live.file_hash,
            open_files=live.open_files,
        )

    # --- a running Obsidian -----------------------------------------------------------------

    def focus_on_obsidian(self) -> None:
        """Use the focus of a running Obsidian with the companion, if there is one. May block."""
        with suppress(ObsidianError):
            find_transport()
            if self._open_obsidian is None:
                return
            context = self._open_obsidian().context()
            if context is not None:
                self.focus = live_focus(context)

    def commands(self) -> Callable[[], Sequence[AppCommand]] | None:
        """Return a function that asks Obsidian for its commands once, `None` without Obsidian.

        Whether one runs is detected without a request.
        """
        obsidian = self._open_obsidian
        try:
            find_transport()
        except ObsidianError:
            return None
        if obsidian is None:
            return None
        answers: list[Sequence[AppCommand]] = []

        def commands() -> Sequence[AppCommand]:
            if not answers:
                answers.append(obsidian().commands())
            return answers[0]

        return commands

    def run_command(self, id: str, name: str) -> None:
        """Have Obsidian run the command that was displayed with this id and name.

        Raise `ObsidianError` if it did not. May block.
        """
        self._obsidian().run(id, name)

    def watch_obsidian(self, report: Callable[[Focus | None], None]) -> None:
        """Call `report` in a thread whenever the focus in Obsidian changes.

        Does not block. Only the first call has an effect.
        """

        def update(context: LiveContext | None) -> None:
            self.live = None if context is None else live_focus(context)
            report(self.live)

        if self._open_obsidian is not None and self._watcher is None:
            from obsidian_agent.obsidian.watcher import Watcher

            self._watcher = Watcher(self._open_obsidian, update)
            self._watcher.set_active(True)

    def set_app_focused(self, has_focus: bool) -> None:
        """Watch Obsidian only while this program has the focus. Does not block."""
        if self._watcher is not None:
            self._watcher.set_active(has_focus)

    def open_in_obsidian(
        self, path: str, line: int | None = None, *, new_pane: bool = False
    ) -> str:
        """Open a file in Obsidian, at a line (from 1) if possible. May block.

        Return the method used. Raise `ObsidianError` if there is none.
        """
        file = self.store.resolve(parse(path, PathUse.READ))
        return self._obsidian().open(file.text, line, new_pane=new_pane)

    def _obsidian(self) -> Obsidian:
        if self._open_obsidian is None:
            raise ObsidianError("This session does not use Obsidian.")
        return self._open_obsidian()

    # --- the index in the background --------------------------------------------------------

    def follow(self, report: Callable[[IndexStatus], None]) -> None:
        """Load or build the index in the background and keep it up to date.

        `report` is called in threads. Does not block. Only the first call has an effect.
        """
        make = self._make_keeper
        if make is not None and self._follower is None:
            from obsidian_agent.services.index_follower import IndexFollower

            self._follower = IndexFollower(
                self.store.real_path, lambda: self.keeper or make(), report
            )
            self._follower.start()

    def unfollow(self) -> None:
        """Stop following the index and watching Obsidian."""
        if self._follower is not None:
            self._follower.stop()
        if self._watcher is not None:
            self._watcher.stop()

    def refresh_soon(self) -> None:
        """Compare the index with the vault, which another program may have changed.

        Does not block.
        """
        if self._follower is not None:
            self._follower.refresh_soon()

    def learn(self, effects: Effects) -> None:
        """Index the effects of a run. May block."""
        if self._follower is not None:
            self._follower.learn(effects)
