"""The part of the audit record about content sent to models: the files, and how much of them.

Content that cannot be recorded is not sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from obsidian_agent.agent.privacy.consent import AllowedBy, Level, SharedPart
from obsidian_agent.agent.privacy.record import AuditRecord
from obsidian_agent.errors import ConfigError

_LEVELS: Final[Mapping[str, int]] = {level.name.lower(): int(level) for level in Level}


class Sending(Struct, frozen=True):
    """A text about to be sent, with its parts of files and the reason why each may be sent."""

    tool: str
    call_id: str
    text: str
    parts: tuple[tuple[SharedPart, AllowedBy], ...]


class FileRead(Struct, frozen=True):
    """A file that was sent: the highest level ("name", "preview" or "text"), to whom, how often."""

    path: str
    shared: str
    providers: tuple[str, ...]
    times: int


class Ledger(Struct, frozen=True):
    """The ledger of one vault."""

    record: AuditRecord

    def write(
        self,
        sendings: Iterable[Sending],
        *,
        provider: str,
        address: str,
        conversation: str,
        before: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """Record durably what is about to be sent, after the entries `before` it.

        Raise `ConfigError` LEDGER_ERROR.
        """
        head = {
            "kind": "sent",
            "provider": provider,
            "address": address,
            "conversation": conversation,
        }
        sent = [{**head, **_entry(sending)} for sending in sendings if sending.parts]
        entries = [*before, *sent]
        if not entries:
            return
        try:
            self.record.append(entries)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            message = (
                f"Nothing was sent, because the record {self.record.file} "
                f"cannot be written: {reason}."
            )
            raise ConfigError(
                message,
                code="LEDGER_ERROR",
                hint="Make room, or correct the permissions of that file.",
            ) from error

    def files_read(self, conversation: str) -> list[FileRead]:
        """Return the files sent in a conversation, by descending level."""
        files_read: dict[str, FileRead] = {}
        for entry in self.entries():
            files = entry.get("files") if entry.get("conversation") == conversation else None
            for file in files if isinstance(files, list) else ():
                path, shared = str(file.get("path", "")), str(file.get("shared", "name"))
                if not path:
                    continue
                old = files_read.get(path) or FileRead(path, "name", (), 0)
                most = max(old.shared, shared, key=lambda level: _LEVELS.get(level, 0))
                providers = tuple(dict.fromkeys((*old.providers, str(entry.get("provider", "")))))
                files_read[path] = FileRead(path, most, providers, old.times + 1)
        return sorted(
            files_read.values(), key=lambda file: (-_LEVELS.get(file.shared, 0), file.path)
        )

    def entries(self) -> list[Mapping[str, Any]]:
        """Return all entries of kind "sent", oldest first."""
        return [entry for entry in self.record.entries() if entry.get("kind") == "sent"]


def _entry(sending: Sending) -> dict[str, Any]:
    return {
        "tool": sending.tool,
        "callId": sending.call_id,
        "characters": len(sending.text),
        "sha256": hashlib.sha256(sending.text.encode("utf-8", "surrogatepass")).hexdigest(),
        "files": [
            {
                "path": part.path,
                "shared": part.level.name.lower(),
                "characters": part.characters,
                "allowedBy": allowed_by,
            }
            for part, allowed_by in sending.parts
        ],
    }
