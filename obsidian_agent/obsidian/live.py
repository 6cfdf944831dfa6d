"""The running Obsidian that has a vault open, and the channels to it.

The channels are, best first: the companion (our plugin), Obsidian's own command line, an
`obsidian://` address, which the desktop forwards without a reply, and the file `workspace.json`.
Each call uses the best one that works. Nothing is cached between calls, because Obsidian may start
and quit at any time. While it is not running, a call costs one check for its socket.

The command line has neither the selection nor the names of commands. It strips backslashes from
values (and `\\n` becomes a line end), so values with a backslash or a control character are not
sent. Before each call, Obsidian is asked which folder the window has open: the vault's id alone
does not prove which window answers.

Source: Obsidian help, "Obsidian URI" and "Obsidian CLI".
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Final, Literal
from urllib.parse import quote

from msgspec import Struct

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

CAPABILITIES: Final[dict[ChannelName, tuple[str, ...]]] = {
    "companion": ("activeFile", "selection", "edit", "openFile", "listCommands", "runCommands"),
    "cli": ("activeFile", "openFile", "listCommands", "runCommands"),
    "uri": ("openFile",),
    "workspace": ("activeFile",),
}

_FAILED: Final = re.compile(
    r'Error\b|Command ".*" not found|Missing required parameter|Vault not found', re.DOTALL
)
_PATH_ROW: Final = re.compile(r"^path[:\t ]+(.+)$", re.MULTILINE)
_UNSAFE: Final = re.compile(r"[\\\x00-\x1f\x7f]")
_OPENER_SECONDS: Final = 1.0


class Channel(Struct, frozen=True):
    """A channel to Obsidian."""

    name: ChannelName
    works: bool
    why: str
    """The connection that it uses, or why it does not work and what to do."""

    @property
    def can(self) -> tuple[str, ...]:
        """The requests that the channel supports."""
        return CAPABILITIES[self.name]


class Status(Struct, frozen=True):
    """The status of all channels, best first."""

    channels: tuple[Channel, ...]

    @property
    def best(self) -> ChannelName | None:
        """The first channel that works."""
        return next((channel.name for channel in self.channels if channel.works), None)


class ActiveFile(Struct, frozen=True):
    """The active file in Obsidian."""

    path: str
    """The vault path."""
    via: ChannelName
    may_be_old: bool = False
    """True if it is from a file that Obsidian writes only now and then."""


class Obsidian:
    """The Obsidian that may have the vault in `folder` (a real path) open.

    `workspace` reads its workspace.json. `timeout` is the time limit for a reply in seconds.
    Methods may block.
    """

    def __init__(
        self, folder: str, workspace: Callable[[], object], timeout: float = ANSWER_SECONDS
    ) -> None:
        self._folder = folder
        self._timeout = timeout
        self._workspace = workspace

    def companion(self) -> CompanionClient:
        """Return a client of the companion, without sending a request.

        Raises `ObsidianError` if Obsidian is unreachable.
        """
        transport, vault = self._connect()
        return CompanionClient(transport, vault, self._folder)

    def _core(self) -> CoreCommands:
        transport, vault = self._connect()
        return CoreCommands(transport, self._folder, vault.id)

    def _connect(self) -> tuple[Transport, KnownVault]:
        transport = find_transport(self._timeout)
        vault = known_vault(self._folder)
        if vault is None:
            raise Unreachable(
                "Obsidian does not know this folder as a vault.",
                hint="Open it there once as a vault.",
            )
        return transport, vault

    def context(self) -> LiveContext | None:
        """Return the active file and selection, or None if no companion answers."""
        try:
            return self.companion().context()
        except ObsidianError:
            return None

    def active_file(self) -> ActiveFile | None:
        """Return the active file from the best channel that knows it."""
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
        """Open a file (a vault path) at a line (from 1), and return the channel used.

        Raises `ObsidianError` if there is none.
        """
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
        open_by_uri(os.path.join(self._folder, path), new_pane=new_pane)
        return "uri"

    def commands(self) -> tuple[ObsidianCommand, ...]:
        """Return the commands that can be run now. Raises `ObsidianError`."""
        try:
            return self.companion().commands()
        except CompanionUnavailable:
            return self._core().commands()

    def run(self, id: str, name: str) -> None:
        """Run the command that was displayed with this id and name.

        Raises `ObsidianError` if the command has changed since, or was not executed.
        """
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
        """Return the status of every channel. Sends requests to Obsidian."""
        companion, cli = self._request_channels()
        has_desktop = opener() is not None
        reason = "The desktop opens it." if has_desktop else "There is no desktop here."
        uri = Channel("uri", has_desktop, reason)
        path = active_file(self._workspace())
        reason = "It names no open file." if path is None else f"It names {path}, which may be old."
        workspace = Channel("workspace", path is not None, reason)
        return Status((companion, cli, uri, workspace))

    def _request_channels(self) -> tuple[Channel, Channel]:
        """Return the status of the companion and the command line.

        If Obsidian is unreachable for one, the other is not tried.
        """
        companion = None
        try:
            connection = f"It answers through {self._connect()[0].name}."
            try:
                self.companion().context()
                companion = Channel("companion", True, connection)
            except Unreachable:
                raise
            except ObsidianError as error:
                companion = Channel("companion", False, error.problem().message)
            self._core().check()
            return companion, Channel("cli", True, connection)
        except ObsidianError as error:
            reason = error.problem().message
            return (
                companion or Channel("companion", False, reason),
                Channel("cli", False, reason),
            )


def open_address(path: str, *, new_pane: bool = False) -> str:
    """Return the address that opens a file (an absolute path) in Obsidian."""
    return f"obsidian://open?path={quote(path, safe='')}{'&paneType=split' if new_pane else ''}"


def opener() -> str | None:
    """Return the desktop's program that opens addresses, or None without a desktop.

    On Windows it is "", because the system opens them itself.
    """
    if sys.platform == "win32":
        return ""
    if sys.platform == "darwin":
        return shutil.which("open")
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return shutil.which("xdg-open")
    return None


def open_by_uri(path: str, *, new_pane: bool = False) -> None:
    """Have the desktop open a file (an absolute path) in Obsidian.

    The program is waited for only a moment: it may stay as long as Obsidian is open. Raise
    `ObsidianError` if there is no desktop, or none of its programs opens such addresses.
    """
    address, program = open_address(path, new_pane=new_pane), opener()
    if program is None:
        raise ObsidianError("There is no desktop that could open Obsidian.")
    if sys.platform == "win32":
        os.startfile(address)
        return
    process = subprocess.Popen(
        [program, address],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        if process.wait(_OPENER_SECONDS) != 0:
            raise ObsidianError(
                "The desktop did not open the file in Obsidian.",
                hint="Is Obsidian installed, and registered for obsidian:// addresses?",
            )


class CoreCommands(Struct, frozen=True):
    """The command line of the Obsidian that has the vault in `folder` (a real path) open.

    Methods block, and raise `ObsidianError`.
    """

    transport: Transport
    folder: str
    vault_id: str

    def check(self) -> None:
        """Raise `ObsidianError` unless the window that answers has this vault open."""
        path = self._call("vault", "info=path")
        if os.path.realpath(path) != self.folder:
            raise ObsidianError(
                "The Obsidian that answers has another vault open.",
                hint="Open this vault in Obsidian.",
            )

    def active_file(self) -> str | None:
        """Return the vault path of the active file, or None."""
        self.check()
        try:
            row = _PATH_ROW.search(self._call("file"))
        except ObsidianError:
            return None
        return row[1].strip() if row else None

    def open(self, path: str, *, new_pane: bool = False) -> None:
        """Open a file."""
        self.check()
        self._call("open", f"path={_safe(path)}", *(["newtab"] if new_pane else []))

    def commands(self) -> tuple[ObsidianCommand, ...]:
        """Return all commands. Their names are their ids, because the command line has no names."""
        self.check()
        ids = (line.split("\t")[0].strip() for line in self._call("commands").splitlines())
        return tuple(ObsidianCommand(id=id, name=id, source=source_of(id)) for id in ids if id)

    def run(self, id: str) -> None:
        """Run a command."""
        self.check()
        self._call("command", f"id={_safe(id)}")

    def _call(self, *argv: str) -> str:
        reply = self.transport.request([f"vault={self.vault_id}", *argv])
        if _FAILED.match(reply):
            raise ObsidianError(f"Obsidian reports: {reply.splitlines()[0][:200]}", code="FAILED")
        return reply


def source_of(id: str) -> str:
    """Return the plugin that a command belongs to: the part of its id before the colon."""
    return id.partition(":")[0]


def _safe(value: str) -> str:
    if _UNSAFE.search(value):
        raise ObsidianError(
            "Obsidian's command line cannot receive a backslash or a control character.",
            code="BAD_REQUEST",
        )
    return value
