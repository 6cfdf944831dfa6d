"""The protocol of the companion, our plugin in Obsidian, over Obsidian's own command line.

Every request and reply is JSON. A request is the parameter `req` of the command `agent-companion`,
in base64url, because the command line would interpret `\\n` and `\\t`. The reply is the last line
that starts with `OA1 `; anything else is text of Obsidian. Both contain the vault's folder, which
is compared, so that another vault, or another Obsidian that now owns the socket, is never read or
changed. Positions count as in Obsidian: lines and columns from 0, columns and offsets in UTF-16
units.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from obsidian_agent.errors import ObsidianError
from obsidian_agent.obsidian.registry import KnownVault
from obsidian_agent.obsidian.transport import Transport

PLUGIN_ID: Final = "agent-companion"
PROTOCOL: Final = 1
LONGEST_WAIT: Final = 20.0
"""Seconds that `watch` waits for a change."""

TextChange = tuple[int, int, str]
"""The start and end of a range in the old text, in UTF-16 units, and its replacement."""

_PREFIX: Final = "OA1 "


class _Reply(BaseModel):
    """The fields of every reply."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)
    protocol: int
    vault: str
    version: int = 0
    """A number that increases with every change of the selection, text, open file or pane."""
    ok: bool
    code: str = "FAILED"
    message: str = ""


class TextPosition(BaseModel):
    """A position in a text: line and column, from 0."""

    model_config = ConfigDict(frozen=True)
    line: int = Field(ge=0)
    ch: int = Field(ge=0)


class LiveSelection(BaseModel):
    """A selection of the editor; an empty one is a cursor."""

    model_config = ConfigDict(frozen=True)
    anchor: TextPosition
    head: TextPosition
    """The end with the cursor."""


class LiveContext(_Reply):
    """The active file in Obsidian with its selection, and the open notes."""

    active: str | None = None
    mode: Literal["source", "preview"] | None = None
    hash: str | None = None
    """The SHA-256 of the editor's text."""
    length: int = 0
    selections: tuple[LiveSelection, ...] = ()
    selected: str = ""
    open: tuple[str, ...] = ()
    text: str | None = None


class SavedFile(BaseModel):
    """An open file after it was saved."""

    model_config = ConfigDict(frozen=True)
    path: str
    open: bool
    mode: Literal["source", "preview"] | None = None
    """`None` for an open file that is not a note, such as a canvas."""
    hash: str | None = None
    """The hash of the editor's text."""
    saved: bool = False
    """True if the file on the disk has the editor's text."""


class _Saved(_Reply):
    files: tuple[SavedFile, ...] = ()


class _Opened(_Reply):
    opened: bool = False


class ObsidianCommand(BaseModel):
    """A command of Obsidian."""

    model_config = ConfigDict(frozen=True)
    id: str
    name: str
    source: str
    """The plugin that it belongs to, or "core"."""


class _Commands(_Reply):
    commands: tuple[ObsidianCommand, ...] = ()


class _Executed(_Reply):
    executed: bool = False


_AnyReply = TypeVar("_AnyReply", bound=_Reply)


class CompanionUnavailable(ObsidianError):
    """A failure to reach the companion in a running Obsidian, or one of another version.

    `sent` is True if the companion may have executed the request.
    """

    def __init__(self, message: str, *, hint: str, sent: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.sent = sent


class CompanionClient(Struct, frozen=True):
    """A client of the companion of a vault. `folder` is the vault's real path.

    Every method blocks, and raises `Unreachable`, `CompanionUnavailable`, or `ObsidianError` with
    the companion's code if it refuses the request.
    """

    transport: Transport
    vault: KnownVault
    folder: str

    def context(self) -> LiveContext:
        """Return the current context."""
        return self._request("context", LiveContext)

    def watch(self, since: int, wait: float = LONGEST_WAIT) -> LiveContext:
        """Wait until the context is no longer that of the version `since`, and return it.

        It is returned after `wait` seconds at the latest.
        """
        return self._request("watch", LiveContext, delay=wait, since=since, wait=int(wait * 1000))

    def save(self, paths: Sequence[str]) -> tuple[SavedFile, ...]:
        """Save these files where they are open, and return their state."""
        return self._request("settle", _Saved, paths=list(paths)).files

    def edit(self, path: str, before: str, after: str, changes: Sequence[TextChange]) -> None:
        """Change an open note in one step of the editor's undo, and save it.

        `before` and `after` are the hashes of its text. Text that the user types during the save is
        kept, so the file may have more than that. The codes STALE, NOT_OPEN, NOT_SOURCE, DIFFERENT
        and BAD_REQUEST mean that the note is unchanged; UNSAVED means that the change is in the
        editor but did not reach the disk.
        """
        self._request("edit", _Reply, path=path, before=before, after=after, changes=changes)

    def open(self, path: str, line: int | None = None, *, new_pane: bool = False) -> bool:
        """Open a file at a line (from 1). Return True if it was opened."""
        position = {} if line is None else {"line": line}
        return self._request("open", _Opened, path=path, newPane=new_pane, **position).opened

    def commands(self) -> tuple[ObsidianCommand, ...]:
        """Return all commands that can be run now."""
        return self._request("commands", _Commands).commands

    def run(self, id: str, name: str) -> bool:
        """Run the command with this id and name. Return True if Obsidian executed it."""
        return self._request("run", _Executed, id=id, name=name).executed

    def _request(
        self, action: str, kind: type[_AnyReply], delay: float = 0.0, **fields: Any
    ) -> _AnyReply:
        request = json.dumps(
            {"protocol": PROTOCOL, "vault": self.vault.written, "action": action, **fields}
        ).encode("ascii")
        encoded = base64.urlsafe_b64encode(request).decode("ascii").rstrip("=")
        argv = [f"vault={self.vault.id}", PLUGIN_ID, f"req={encoded}"]
        reply = _parse(self.transport.request(argv, delay), kind)
        if not reply.ok and reply.code == "PROTOCOL":
            raise _other_protocol()
        if os.path.realpath(reply.vault) != self.folder or reply.code == "OTHER_VAULT":
            raise CompanionUnavailable(
                "The Obsidian that answers has another vault open.",
                hint="Open this vault in Obsidian.",
            )
        if not reply.ok:
            raise ObsidianError(f"Obsidian refused: {reply.message}", code=reply.code)
        return reply


def _parse(text: str, kind: type[_AnyReply]) -> _AnyReply:
    line = next((line for line in reversed(text.splitlines()) if line.startswith(_PREFIX)), None)
    if line is None:
        raise CompanionUnavailable(
            "The companion plugin is not installed in this vault, or not enabled.",
            hint="Run `obsidian-agent companion install`, then enable it in Obsidian.",
            sent=not text,
        )
    try:
        document = json.loads(line[len(_PREFIX) :])
    except (ValueError, RecursionError) as error:
        raise CompanionUnavailable(
            "The companion's reply was truncated.", hint="Try again.", sent=True
        ) from error
    if isinstance(document, dict) and document.get("protocol") != PROTOCOL:
        raise _other_protocol()
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise CompanionUnavailable(
            "The companion's reply is not in the expected form.",
            hint="Run `obsidian-agent companion install` again.",
            sent=True,
        ) from error


def _other_protocol() -> CompanionUnavailable:
    return CompanionUnavailable(
        "The companion plugin in this vault has another version.",
        hint="Run `obsidian-agent companion install` again, then turn the plugin off and on in "
        "Obsidian.",
    )
