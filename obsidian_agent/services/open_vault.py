"""One vault while it is open: its notes as they are now, its index, and what the person looks at, frozen when a preview starts.

The index is loaded or built behind the screen and kept as the vault is. Nothing of that blocks the caller, and nothing heavy is imported before
its thread has started. Scanning many files is left to processes: the screen would have to wait for Python's one lock otherwise.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.errors import ObsidianError, PathRefused, Problem, ToolError, VaultError
from obsidian_agent.obsidian.registry import recent_files
from obsidian_agent.obsidian.transport import find_transport
from obsidian_agent.obsidian.watcher import Watcher
from obsidian_agent.tools.core.moment import format_moment
from obsidian_agent.tools.core.tool import (
    AppCommand,
    EditorPosition,
    NoteSettings,
    RunContext,
    Selection,
)
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.keeper import IndexKeeper
from obsidian_agent.vault.links.link_text import link_style
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.text import decode, with_newlines
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.filtered import FilteredView
from obsidian_agent.vault.views.view import VaultView

if TYPE_CHECKING:
    from obsidian_agent.journal.records import Effects
    from obsidian_agent.obsidian.companion_client import LiveContext
    from obsidian_agent.obsidian.live import Obsidian
    from obsidian_agent.vault.index.index import VaultIndex
    from obsidian_agent.vault.index.keeper import IndexKeeper, IndexStatus
    from obsidian_agent.vault.index.watcher import VaultWatcher
    from obsidian_agent.vault.paths.path import VaultPath


TELL_SECONDS: Final = 0.5
"""Progress is told no more often than this, and its end always."""

FEW: Final = 500
"""With more changed files than this the whole vault is compared instead."""


class IndexFollower:
    """One vault's index kept fresh. `tell` is called in threads, whenever the status is another one."""

    def __init__(
        self, root: str, keeper: Callable[[], IndexKeeper], tell: Callable[[IndexStatus], None]
    ) -> None:
        self._root = root
        self._make_keeper = keeper
        self._tell = tell
        self._told = 0.0
        self._lock = threading.Lock()
        self._stopped = False
        self._watcher: VaultWatcher | None = None

    def start(self) -> None:
        """Begin, in a thread of its own."""
        threading.Thread(target=self._begin, name="vault-following", daemon=True).start()

    def stop(self) -> None:
        """End. What is being scanned is given up; nothing is lost by that."""
        with self._lock:
            self._stopped = True
        if self._watcher is not None:
            self._watcher.stop()

    def look_again(self) -> None:
        """Compare the whole vault: the window has the focus again, or much has changed. Returns at once."""
        if self._watcher is not None:
            self._watcher.compare_soon()

    def learn(self, effects: Effects) -> None:
        """Take in what a run of our own did, without waiting for events. May block for as long as it takes to read those files."""
        watcher = self._watcher
        if watcher is None:
            return
        paths = _files(effects)
        if paths is None:
            watcher.compare_soon()
        else:
            watcher.update_paths(paths)

    def _begin(self) -> None:
        from obsidian_agent.vault.index.watcher import VaultWatcher

        keeper = self._make_keeper()
        keeper.use_process(lambda *_: self._tell_sometimes(keeper.status))
        with self._lock:
            if self._stopped:
                return
            self._watcher = VaultWatcher(self._root, keeper, lambda: self._tell(keeper.status))
            self._watcher.start()

    def _tell_sometimes(self, status: IndexStatus) -> None:
        now = time.monotonic()
        if not status.total or now - self._told >= TELL_SECONDS:
            self._told = now
            self._tell(status)


def _files(effects: Effects) -> list[VaultPath] | None:
    """The files that a run has touched; None when these are many, or folders are among them."""
    texts = [
        *effects.created,
        *effects.modified,
        *effects.deleted,
        *(text for pair in effects.renamed for text in pair),
    ]
    if (
        effects.folders
        or len(texts) > FEW
        or any("." not in text.rpartition("/")[2] for text in texts)
    ):
        return None
    try:
        return [parse(text, PathUse.READ) for text in texts]
    except PathRefused:
        return None


@dataclass(frozen=True, slots=True)
class Focus:
    """What the person looks at: the open note (vault path as text), the selection, the cursor."""

    active_file: str | None = None
    selection: Selection | None = None
    cursor: EditorPosition | None = None
    has_screen: bool = False
    """Whether an app shows this, and can open notes."""
    file_hash: str | None = None
    """Of an open note in Obsidian: the SHA-256 of its text."""
    open_files: tuple[str, ...] = ()
    """Notes that are open beside it."""


def live_focus(context: LiveContext) -> Focus:
    """What the person looks at in Obsidian. Of several selections the place is not kept: they are one text."""
    cursor = selection = None
    if context.mode == "source" and context.selections:
        ends = [
            EditorPosition(end.line, end.ch)
            for end in (context.selections[0].anchor, context.selections[0].head)
        ]
        cursor = ends[1]
        if context.selected:
            start, end = (
                sorted(ends, key=lambda place: (place.line, place.ch))
                if len(context.selections) == 1
                else (None, None)
            )
            selection = Selection(context.selected, start, end)
    return Focus(context.active, selection, cursor, file_hash=context.hash, open_files=context.open)


def run_context(
    store: VaultStore,
    view: VaultView,
    focus: Focus,
    now: datetime,
    params: Mapping[str, Any],
    commands: Callable[[], Sequence[AppCommand]] | None = None,
) -> RunContext:
    """Freeze the focus for a run. A note that is no longer there counts as no note."""
    active = _existing(view, focus.active_file)
    notes = note_settings(store.obsidian_config)
    recent = tuple(
        path
        for path in (
            _existing(view, name) for name in recent_files(store.obsidian_config("workspace"))
        )
        if path is not None
    )
    return RunContext(
        vault_name=store.name,
        now=now,
        active_file=active,
        selection=focus.selection
        if active is not None or (focus.selection and focus.selection.start is None)
        else None,
        cursor=focus.cursor if active is not None else None,
        active_hash=focus.file_hash if active is not None else None,
        open_files=tuple(
            dict.fromkeys(
                path
                for path in (active, *(_existing(view, name) for name in focus.open_files))
                if path is not None
            )
        ),
        recent_files=recent,
        has_screen=focus.has_screen,
        runs_commands=commands is not None,
        commands=commands or tuple,
        has_desktop=_has_desktop,
        params=params,
        link_style=link_style(store),
        notes=notes if not isinstance(view, FilteredView) else _visible(notes, view, now),
    )


def _has_desktop() -> bool:
    from obsidian_agent.obsidian.live import opener

    return opener() is not None


def _visible(settings: NoteSettings, view: FilteredView, now: datetime) -> NoteSettings:
    """Return the settings as far as what they name is not hidden in `view`, else the defaults."""
    default = NoteSettings()
    note = format_moment(now, settings.daily_format)
    if _hides(view, f"{settings.daily_folder}/{note}.md"):
        settings = replace(
            settings, daily_folder=default.daily_folder, daily_format=default.daily_format
        )
    if settings.daily_template is not None and _hides(view, settings.daily_template):
        settings = replace(settings, daily_template=None)
    if not settings.templates or _hides(view, settings.templates):
        settings = replace(
            settings,
            templates=default.templates,
            date_format=default.date_format,
            time_format=default.time_format,
        )
    return settings


def _hides(view: FilteredView, name: str) -> bool:
    """Return whether a path of Obsidian's settings is hidden in `view`, or cannot be in a vault."""
    try:
        return view.is_hidden(parse(name.strip("/"), PathUse.FOLDER))
    except PathRefused:
        return True


def note_settings(config: Callable[[Any], object | None]) -> NoteSettings:
    """From Obsidian's `daily-notes.json` and `templates.json`, whose keys differ between versions; else as Obsidian has it by default."""
    daily, templates = _texts(config("daily-notes")), _texts(config("templates"))
    own = NoteSettings()
    return NoteSettings(
        daily_folder=daily.get("folder", "").strip("/"),
        daily_format=daily.get("format") or own.daily_format,
        daily_template=daily.get("template") or None,
        templates=templates.get("folder", "").strip("/"),
        date_format=templates.get("dateFormat") or templates.get("date_format") or own.date_format,
        time_format=templates.get("timeFormat") or templates.get("time_format") or own.time_format,
    )


def _texts(document: object) -> dict[str, str]:
    return (
        {key: value.strip() for key, value in document.items() if isinstance(value, str)}
        if isinstance(document, dict)
        else {}
    )


def selection_in(
    view: VaultView, active_file: str, start: EditorPosition, end: EditorPosition
) -> Selection:
    """The text between two places of a note. Raises ToolError when a place lies outside of it."""
    path = parse(active_file, PathUse.UPDATE)
    entry = view.locate(path)
    if entry is None:
        raise VaultError(
            f"The active file {path} does not exist in the vault.",
            code="FILE_NOT_FOUND",
            path=path.text,
        )
    text = decode(view.read(entry.path), path.text)
    first, last = start.offset_in(text), end.offset_in(text)
    if first is None or last is None:
        raise ToolError(
            "The selection lies outside of the note.", code="ARGUMENT_INVALID", path=path.text
        )
    if last < first:
        raise ToolError(
            "The selection ends before it starts.", code="ARGUMENT_INVALID", path=path.text
        )
    return Selection(text[first:last], start, end)


def moved_selection(view: VaultView, context: RunContext) -> Problem | None:
    """Whether what was selected in Obsidian when the context was frozen is no longer at its place."""
    file, selection = context.active_file, context.selection
    if (
        context.active_hash is None
        or file is None
        or selection is None
        or selection.start is None
        or selection.end is None
    ):
        return None
    try:
        if hashlib.sha256(view.read(file)).hexdigest() == context.active_hash:
            return None
        found = selection_in(view, file.text, selection.start, selection.end).text
    except (VaultError, ToolError):
        found = ""
    if with_newlines(found, "\n") == selection.text:
        return None
    message = f"{file} was changed in Obsidian meanwhile: what you selected is no longer at its place. Select it again."
    return Problem("CONFLICT", message, path=file.text)


def _existing(view: VaultView, name: str | None) -> VaultPath | None:
    if name is None:
        return None
    try:
        entry = view.locate(parse(name, PathUse.READ))
    except VaultError:
        return None
    return entry.path if entry is not None and entry.kind == "file" else None


class OpenVault:
    """The vault behind a session. Without `make_keeper` every question makes the index it needs."""

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
        """What the person looks at in Obsidian, as far as is known."""
        self._open_obsidian = open_obsidian
        self._watcher: Watcher | None = None
        self._make_keeper = make_keeper
        self._follower: IndexFollower | None = None

    @property
    def name(self) -> str:
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

    def files_below(self, start: str) -> Iterator[VaultPath]:
        """The files below a folder ("": all), or the file itself. All of them as the index has them, if it is there. May block."""
        from obsidian_agent.services.vault_agents.library import files_below

        latest = (
            self.keeper.latest if self._follower is not None and self.keeper is not None else None
        )
        return (
            latest.files()
            if latest is not None and not start
            else files_below(DiskView(self.store), start)
        )

    def set_focus(
        self, active_file: str | None, selection: Selection | None, cursor: EditorPosition | None
    ) -> None:
        """What the person looks at; frozen into the next turn."""
        live = (
            self.live if self.live is not None and self.live.active_file == active_file else Focus()
        )
        self.focus = Focus(
            active_file,
            selection,
            cursor,
            has_screen=True,
            file_hash=live.file_hash,
            open_files=live.open_files,
        )

    # --- Obsidian beside the screen ---------------------------------------------------------------------------------------------------

    def focus_on_obsidian(self) -> None:
        """Take what the person looks at in Obsidian for what they look at, if one with the companion runs. May block."""
        with suppress(ObsidianError):
            find_transport()
            if (
                self._open_obsidian is not None
                and (context := self._open_obsidian().context()) is not None
            ):
                self.focus = live_focus(context)

    def commands(self) -> Callable[[], Sequence[AppCommand]] | None:
        """What asks Obsidian for its commands, once; None where none seems to run, which is found out without asking it."""
        obsidian = self._open_obsidian
        try:
            find_transport()
        except ObsidianError:
            return None
        if obsidian is None:
            return None
        asked: list[Sequence[AppCommand]] = []

        def commands() -> Sequence[AppCommand]:
            if not asked:
                asked.append(obsidian().commands())
            return asked[0]

        return commands

    def run_command(self, id: str, name: str) -> None:
        """Have Obsidian run the command that was shown with this id and name. ObsidianError when it did not. May block."""
        if self._open_obsidian is None:
            raise ObsidianError("Obsidian is not asked here.")
        self._open_obsidian().run(id, name)

    def watch_obsidian(self, tell: Callable[[Focus | None], None]) -> None:
        """Keep up with what the person looks at in Obsidian; `tell` is called in a thread. Does not block, and may be done once."""

        def seen(context: LiveContext | None) -> None:
            self.live = None if context is None else live_focus(context)
            tell(self.live)

        if self._open_obsidian is not None and self._watcher is None:
            self._watcher = Watcher(self._open_obsidian, seen)
            self._watcher.look(True)

    def looked_at(self, looking: bool) -> None:
        """Whether the person looks at this program: else Obsidian is not asked. Does not block."""
        if self._watcher is not None:
            self._watcher.look(looking)

    def open_outside(self, path: str, line: int | None = None, *, new_pane: bool = False) -> str:
        """Show a file in Obsidian, at a line (from 1) where that is possible; by which way. ObsidianError when there is none. May block."""
        place = self.store.resolve(parse(path, PathUse.READ))
        if self._open_obsidian is None:
            raise ObsidianError("Obsidian is not asked here.")
        return self._open_obsidian().open(place.text, line, new_pane=new_pane)

    # --- the index behind the screen -------------------------------------------------------------------------------------------------

    def follow(self, tell: Callable[[IndexStatus], None]) -> None:
        """Load or build the index behind the screen and keep it fresh; `tell` is called in threads. Does not block, and may be done once."""
        make = self._make_keeper
        if make is not None and self._follower is None:
            self._follower = IndexFollower(
                self.store.real_path, lambda: self.keeper or make(), tell
            )
            self._follower.start()

    def unfollow(self) -> None:
        """End what `follow` and `watch_obsidian` began."""
        if self._follower is not None:
            self._follower.stop()
        if self._watcher is not None:
            self._watcher.stop()

    def look_again(self) -> None:
        """Somebody else may have changed the vault: compare the index with it. Does not block."""
        if self._follower is not None:
            self._follower.look_again()

    def learn(self, effects: Effects) -> None:
        if self._follower is not None:
            self._follower.learn(effects)
