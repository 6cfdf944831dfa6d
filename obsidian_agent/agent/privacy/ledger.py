"""The list of what went where: an entry of the record for each thing of the vault that was sent to a model, written before it was sent.

It names files and says how much of them went; it does not repeat their text. What cannot be written down is not sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from obsidian_agent.agent.privacy.consent import AllowedBy, Level, Part
from obsidian_agent.agent.privacy.record import Record
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Sending:
    """Something that is about to be sent: the text as it goes out, what of which files is in it, and who allowed each."""

    tool: str
    call_id: str
    text: str
    parts: tuple[tuple[Part, AllowedBy], ...]


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file of which something was sent: at most so much ("name", "preview" or "text"), to whom, and how often."""

    path: str
    shared: str
    providers: tuple[str, ...]
    times: int


_LEVELS: Final[Mapping[str, int]] = {level.name.lower(): int(level) for level in Level}


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger of one vault."""

    record: Record

    def write(self, sendings: Iterable[Sending], *, provider: str, address: str, conversation: str) -> None:
        """Append what is about to be sent to a provider, durably. Raises `ConfigError` LEDGER_ERROR when that is not possible."""
        head = {"kind": "sent", "provider": provider, "address": address, "conversation": conversation}
        entries = [{**head, **_entry(sending)} for sending in sendings if sending.parts]
        if not entries:
            return
        try:
            self.record.append(entries)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            message = f"What would be sent cannot be written down in {self.record.file} ({reason}), so nothing was sent."
            raise ConfigError(message, code="LEDGER_ERROR", hint="Make room, or correct the permissions of that file.") from error

    def files_read(self, conversation: str) -> list[FileRead]:
        """The files of which something went to a model in a conversation, those of which most went first."""
        found: dict[str, FileRead] = {}
        for entry in self.entries():
            files = entry.get("files") if entry.get("conversation") == conversation else None
            for each in files if isinstance(files, list) else ():
                path, shared = str(each.get("path", "")), str(each.get("shared", "name"))
                if not path:
                    continue
                old = found.get(path) or FileRead(path, "name", (), 0)
                most = max(old.shared, shared, key=lambda level: _LEVELS.get(level, 0))
                providers = tuple(dict.fromkeys((*old.providers, str(entry.get("provider", "")))))
                found[path] = FileRead(path, most, providers, old.times + 1)
        return sorted(found.values(), key=lambda each: (-_LEVELS.get(each.shared, 0), each.path))

    def entries(self) -> list[Mapping[str, Any]]:
        """Everything that was sent, oldest first."""
        return [entry for entry in self.record.entries() if entry.get("kind") == "sent"]


def _entry(sending: Sending) -> dict[str, Any]:
    return {
        "tool": sending.tool,
        "callId": sending.call_id,
        "characters": len(sending.text),
        "sha256": hashlib.sha256(sending.text.encode("utf-8", "surrogatepass")).hexdigest(),
        "files": [
            {"path": part.path, "shared": part.level.name.lower(), "characters": part.characters, "allowedBy": allowed_by}
            for part, allowed_by in sending.parts
        ],
    }
