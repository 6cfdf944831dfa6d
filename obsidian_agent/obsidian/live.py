"""The Obsidian beside this program, for one vault: what it can be asked, and by which way.

The ways, best first: the companion (our plugin), Obsidian's own command line, an `obsidian://` address, which the desktop hands on and nothing comes
back of, and the file `workspace.json`. Each call takes the best one that answers. Nothing is kept between calls, because Obsidian may start and
end at any time; while it does not run, a call costs a look for its socket.

The command line knows no selection, and no names of commands. Values lose their backslashes (`\\n` becomes a line end), so what holds one, or a
control character, is not handed over. Before each call the window is asked which folder it has open: the id alone does not say who answers.

Source: Obsidian help, "Obsidian URI" and "Obsidian CLI".
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Final, Literal
from urllib.parse import quote

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ObsidianError
from obsidian_agent.obsidian.companion_client import (
    CompanionClient,
    CompanionUnavailable,
    LiveContext,
    ObsidianCommand,
)
from obsidian_agent.obsidian.registry import KnownVault, active_file, known_vault
from obsidian_agent.obsidian.transport import ANSWER_SECONDS, Transport, Unreachable, find_transport

ChannelName = Literal["companion", "cli", "uri", "workspace"]

CAN: Final[dict[ChannelName, tuple[str, ...]]] = {
    "companion": ("activeFile", "selection", "edit", "openFile", "listCommands", "runCommands"),
    "cli": ("activeFile", "openFile", "listCommands", "runCommands"),
    "uri": ("openFile",),
    "workspace": ("activeFile",),
}


@dataclass(frozen=True, slots=True)
class Channel:
    """One way to Obsidian: what it is good for, whether it works now, and through what, or why not and what to do."""

    name: ChannelName
    works: bool
    why: str

    @property
    def can(self) -> tuple[str, ...]:
        """What it is good for."""
        return CAN[self.name]


@dataclass(frozen=True, slots=True)
class Status:
    """All ways, best first; `best` is the first that works."""

    channels: tuple[Channel, ...]

    @property
    def best(self) -> ChannelName | None:
        """The best way that works now."""
        return next((way.name for way in self.channels if way.works), None)


@dataclass(frozen=True, slots=True)
class ActiveFile:
    """The file in front in Obsidian, as a vault path. `may_be_old`: it stands in a file that Obsidian writes now and then."""

    path: str
    via: ChannelName
    may_be_old: bool = False


class Obsidian:
    """What a running Obsidian can do for the vault in `folder` (a real path); `workspace` reads its workspace.json. Methods may block.

    `patience` is how many seconds an answer may take.
    """

    def __init__(
        self, folder: str, workspace: Callable[[], object], timeout: float = ANSWER_SECONDS
    ) -> None:
        self._folder = folder
        self._patience = timeout
        self._workspace = workspace

    def companion(self) -> CompanionClient:
        """The companion, not asked yet. Raises `ObsidianError` when Obsidian cannot be reached."""
        transport, vault = self._reach()
        return CompanionClient(transport, vault, self._folder)

    def _core(self) -> CoreCommands:
        transport, vault = self._reach()
        return CoreCommands(transport, self._folder, vault.id)

    def _reach(self) -> tuple[Transport, KnownVault]:
        transport = find_transport(self._patience)
        vault = known_vault(self._folder)
        if vault is None:
            raise Unreachable(
                "Obsidian does not know this folder as a vault.",
                hint="Open it there once as a vault.",
            )
        return transport, vault

    def context(self) -> LiveContext | None:
        """What the person looks at, with the selection; None where no companion answers."""
        try:
            return self.companion().context()
        except ObsidianError:
            return None

    def active_file(self) -> ActiveFile | None:
        """The file in front, by the best way that can tell it."""
        try:
            path = self.companion().context().active
            return None if path is None else ActiveFile(path, "companion")
        except Unreachable:
            pass
        except ObsidianError:
            try:
                path = self._core().active_file()
                return None if path is None else ActiveFile(path, "cli")
            except ObsidianError:
                pass
        path = active_file(self._workspace())
        return None if path is None else ActiveFile(path, "workspace", may_be_old=True)

    def open(self, path: str, line: int | None = None, *, new_pane: bool = False) -> ChannelName:
        """Show a file (a vault path) at a line (from 1); the way it went. Raises `ObsidianError` when there is none."""
        try:
            if self.companion().open(path, line, new_pane=new_pane):
                return "companion"
        except Unreachable:
            pass
        except ObsidianError:
            try:
                self._core().open(path, new_pane=new_pane)
                return "cli"
            except ObsidianError:
                pass
        if open_by_uri(os.path.join(self._folder, path), new_pane=new_pane):
            return "uri"
        raise ObsidianError("There is no desktop here that could open Obsidian.")

    def commands(self) -> tuple[ObsidianCommand, ...]:
        """The commands that can be run now. Raises `ObsidianError` when Obsidian cannot be asked."""
        try:
            return self.companion().commands()
        except CompanionUnavailable:
            return self._core().commands()

    def run(self, id: str, name: str) -> None:
        """Run the command that was shown with this id and name. Raises `ObsidianError` when it is another by now, or was not executed."""
        try:
            executed = self.companion().run(id, name)
        except CompanionUnavailable:
            core = self._core()
            if all((command.id, command.name) != (id, name) for command in core.commands()):
                raise ObsidianError(
                    f"There is no command {id} called {name} now.", code="COMMAND_NOT_FOUND"
                ) from None
            core.run(id)
        else:
            if not executed:
                raise ObsidianError(
                    f"Obsidian did not execute {id}: it cannot be run just now.", code="FAILED"
                )

    def status(self) -> Status:
        """How each way stands now. Asks Obsidian."""
        companion, cli = self._asked()
        uri = (
            Channel("uri", True, "The desktop opens it.")
            if opener() is not None
            else Channel("uri", False, "There is no desktop here.")
        )
        known = active_file(self._workspace())
        why = "It names no open file." if known is None else f"It names {known}, which may be old."
        return Status((companion, cli, uri, Channel("workspace", known is not None, why)))

    def _asked(self) -> tuple[Channel, Channel]:
        """How the companion and the command line stand. When one finds Obsidian out of reach, the other need not wait for that too."""
        companion = None
        try:
            through = f"It answers through {self._reach()[0].name}."
            try:
                self.companion().context()
                companion = Channel("companion", True, through)
            except Unreachable:
                raise
            except ObsidianError as error:
                companion = Channel("companion", False, error.problem().message)
            self._core().check()
            return companion, Channel("cli", True, through)
        except ObsidianError as error:
            why = error.problem().message
            return companion or Channel("companion", False, why), Channel("cli", False, why)


def open_address(place: str, *, new_pane: bool = False) -> str:
    """The address that shows the file at `place` (absolute)."""
    return f"obsidian://open?path={quote(place, safe='')}{'&paneType=split' if new_pane else ''}"


def opener() -> str | None:
    """The program of the desktop that opens addresses ("" on Windows, where the system does); None without a desktop."""
    if sys.platform == "win32":
        return ""
    name = (
        "open"
        if sys.platform == "darwin"
        else "xdg-open"
        if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        else ""
    )
    return shutil.which(name) if name else None


def open_by_uri(place: str, *, new_pane: bool = False) -> bool:
    """Ask the desktop to show the file at `place` (absolute) in Obsidian. False where there is no desktop to ask. Does not wait."""
    address, program = open_address(place, new_pane=new_pane), opener()
    if program is None:
        return False
    if sys.platform == "win32":
        os.startfile(address)
        return True
    subprocess.Popen(
        [program, address],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return True


_FAILED: Final = re.compile(
    r'Error\b|Command ".*" not found|Missing required parameter|Vault not found', re.DOTALL
)
_PATH_ROW: Final = re.compile(r"^path[:\t ]+(.+)$", re.MULTILINE)
_UNSAFE: Final = re.compile(r"[\\\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class CoreCommands:
    """The command line of the Obsidian that has the vault in `folder` (a real path) open. Methods block, and raise `ObsidianError`."""

    transport: Transport
    folder: str
    vault_id: str

    def check(self) -> None:
        """Whether this vault is what answers."""
        found = self._call("vault", "info=path")
        if os.path.realpath(found) != self.folder:
            raise ObsidianError(
                "The Obsidian that answers has another vault open.",
                hint="Open this vault in Obsidian.",
            )

    def active_file(self) -> str | None:
        """The vault path of the active file; None when there is none."""
        self.check()
        try:
            row = _PATH_ROW.search(self._call("file"))
        except ObsidianError:
            return None
        return row[1].strip() if row else None

    def open(self, path: str, *, new_pane: bool = False) -> None:
        """Show a file."""
        self.check()
        self._call("open", f"path={_safe(path)}", *(["newtab"] if new_pane else []))

    def commands(self) -> tuple[ObsidianCommand, ...]:
        """All commands. The ids stand for the names, which this way does not know."""
        self.check()
        ids = (line.split("\t")[0].strip() for line in self._call("commands").splitlines())
        return tuple(ObsidianCommand(id=id, name=id, source=source_of(id)) for id in ids if id)

    def run(self, id: str) -> None:
        """Run a command."""
        self.check()
        self._call("command", f"id={_safe(id)}")

    def _call(self, *argv: str) -> str:
        answer = self.transport.ask([f"vault={self.vault_id}", *argv])
        if _FAILED.match(answer):
            raise ObsidianError(f"Obsidian says: {answer.splitlines()[0][:200]}", code="FAILED")
        return answer


def source_of(id: str) -> str:
    """The plugin that a command belongs to, which is what stands before the colon."""
    return id.partition(":")[0]


def _safe(value: str) -> str:
    if _UNSAFE.search(value):
        raise ObsidianError(
            "Obsidian's command line cannot take a backslash or a control character.",
            code="BAD_REQUEST",
        )
    return value
