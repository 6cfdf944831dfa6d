"""The protocol of the companion, our plugin in Obsidian: one request, one reply, both JSON, over Obsidian's own command line.

A request is the parameter `req` of the command `agent-companion`: JSON in base64url, because the command line would read `\\n` and `\\t` in it.
The reply is the last line that starts with `OA1 `; anything else is Obsidian's own text. Both name the vault's folder and compare it, so that
another vault, or another Obsidian that took the socket over, is never read or changed. Places count as in Obsidian: lines and columns from 0,
columns and offsets in UTF-16 units.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ObsidianError
from obsidian_agent.obsidian.registry import KnownVault
from obsidian_agent.obsidian.transport import Transport

PLUGIN_ID: Final = "agent-companion"
PROTOCOL: Final = 1
LONGEST_WAIT: Final = 20.0
"""Seconds that `watch` waits for something to happen."""

TextChange = tuple[int, int, str]
"""From, to, and the text that takes the place of what is between; UTF-16 units of the text before."""

_PREFIX: Final = "OA1 "


class _Reply(BaseModel):
    """What every reply holds; `version` counts changes of the selection, the text, the open file and the pane."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)
    protocol: int
    vault: str
    version: int = 0
    ok: bool
    code: str = "FAILED"
    message: str = ""


class TextPosition(BaseModel):
    """A line and a column, from 0."""

    model_config = ConfigDict(frozen=True)
    line: int = Field(ge=0)
    ch: int = Field(ge=0)


class LiveSelection(BaseModel):
    """A selection as the editor has it: `head` is the end with the cursor. Without text in it, it is a cursor."""

    model_config = ConfigDict(frozen=True)
    anchor: TextPosition
    head: TextPosition


class LiveContext(_Reply):
    """What the person looks at in Obsidian. `hash` is the SHA-256 of the editor's text; `open` are the open notes."""

    active: str | None = None
    mode: Literal["source", "preview"] | None = None
    hash: str | None = None
    length: int = 0
    selections: tuple[LiveSelection, ...] = ()
    selected: str = ""
    open: tuple[str, ...] = ()
    text: str | None = None


class SavedFile(BaseModel):
    """An open note after it was saved: the hash of the editor's text, and whether the disk holds that too (`saved`).

    A file that is open, and not as a note (a canvas), has no mode.
    """

    model_config = ConfigDict(frozen=True)
    path: str
    open: bool
    mode: Literal["source", "preview"] | None = None
    hash: str | None = None
    saved: bool = False


class _Saved(_Reply):
    files: tuple[SavedFile, ...] = ()


class _Opened(_Reply):
    opened: bool = False


class ObsidianCommand(BaseModel):
    """A command of Obsidian; `source` is the plugin it belongs to, or "core"."""

    model_config = ConfigDict(frozen=True)
    id: str
    name: str
    source: str


class _Commands(_Reply):
    commands: tuple[ObsidianCommand, ...] = ()


class _Executed(_Reply):
    executed: bool = False


_AnyReply = TypeVar("_AnyReply", bound=_Reply)


class CompanionUnavailable(ObsidianError):
    """Obsidian answers, but not the companion, or not one that this program can talk to. `sent`: it may have done what was asked."""

    def __init__(self, message: str, *, hint: str, sent: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.sent = sent


@dataclass(frozen=True, slots=True)
class CompanionClient:
    """The companion of a vault. `folder` is the vault's real path.

    Every method blocks, and raises `Unreachable`, `NoCompanion`, or `ObsidianError` with the companion's code when it refuses.
    """

    transport: Transport
    vault: KnownVault
    folder: str

    def context(self) -> LiveContext:
        """What the person looks at now."""
        return self._ask("context", LiveContext)

    def watch(self, since: int, wait: float = LONGEST_WAIT) -> LiveContext:
        """What the person looks at, when that is no longer what it was at the version `since`, at the latest after `wait` seconds."""
        return self._ask("watch", LiveContext, delay=wait, since=since, wait=int(wait * 1000))

    def save(self, paths: Sequence[str]) -> tuple[SavedFile, ...]:
        """Save these notes where they are open, and say how they stand."""
        return self._ask("settle", _Saved, paths=list(paths)).files

    def edit(self, path: str, before: str, after: str, changes: Sequence[TextChange]) -> None:
        """Change an open note in one step of the editor's undo, from the text with hash `before` to that with hash `after`, and save it.

        What the person typed while it was saved is kept, so the disk may hold more than that. STALE, NOT_OPEN, NOT_SOURCE, DIFFERENT and
        BAD_REQUEST leave the note as it was; UNSAVED says that the change stands in the editor and did not reach the disk.
        """
        self._ask("edit", _Reply, path=path, before=before, after=after, changes=changes)

    def open(self, path: str, line: int | None = None, *, new_pane: bool = False) -> bool:
        """Show a file, at a line (from 1)."""
        place = {} if line is None else {"line": line}
        return self._ask("open", _Opened, path=path, newPane=new_pane, **place).opened

    def commands(self) -> tuple[ObsidianCommand, ...]:
        """All commands that can be run now."""
        return self._ask("commands", _Commands).commands

    def run(self, id: str, name: str) -> bool:
        """Run a command that has this id and this name; whether Obsidian did."""
        return self._ask("run", _Executed, id=id, name=name).executed

    def _ask(
        self, action: str, kind: type[_AnyReply], delay: float = 0.0, **fields: Any
    ) -> _AnyReply:
        request = json.dumps(
            {"protocol": PROTOCOL, "vault": self.vault.written, "action": action, **fields}
        ).encode("ascii")
        packed = base64.urlsafe_b64encode(request).decode("ascii").rstrip("=")
        reply = _parse(
            self.transport.ask([f"vault={self.vault.id}", PLUGIN_ID, f"req={packed}"], delay), kind
        )
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


def _parse(answer: str, kind: type[_AnyReply]) -> _AnyReply:
    line = next((line for line in reversed(answer.splitlines()) if line.startswith(_PREFIX)), None)
    if line is None:
        raise CompanionUnavailable(
            "The companion plugin is not installed in this vault, or not enabled.",
            hint="Run `obsidian-agent companion install`, then enable it in Obsidian.",
            sent=not answer,
        )
    try:
        document = json.loads(line[len(_PREFIX) :])
    except (ValueError, RecursionError) as error:
        raise CompanionUnavailable(
            "The companion's reply was cut off.", hint="Try again.", sent=True
        ) from error
    if isinstance(document, dict) and document.get("protocol") != PROTOCOL:
        raise _other_protocol()
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise CompanionUnavailable(
            "The companion's reply is not what was agreed.",
            hint="Run `obsidian-agent companion install` again.",
            sent=True,
        ) from error


def _other_protocol() -> CompanionUnavailable:
    return CompanionUnavailable(
        "The companion plugin in this vault is of another version.",
        hint="Run `obsidian-agent companion install` again, then turn the plugin off and on in Obsidian.",
    )
