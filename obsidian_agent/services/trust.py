"""Which files of a vault this person trusts: by path and content, so that one that changes by a byte is a stranger again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ConfigError
from obsidian_agent.state_files import replace_file

if TYPE_CHECKING:
    from obsidian_agent.agent.privacy.record import AuditRecord

Standing = Literal["trusted", "new", "changed"]
"""`changed`: another content of the file was trusted once."""


def standing(known: str | None, sha256: str) -> Standing:
    """How a file stands whose trusted content has the hash `known` (None: none was trusted)."""
    return "trusted" if known == sha256 else "changed" if known is not None else "new"


@dataclass(frozen=True, slots=True)
class TrustStore:
    """The file, outside of the vault, that holds the hashes of trusted files by their paths; `record` takes down each change. Methods may block."""

    file: Path
    record: AuditRecord | None = None

    def hashes(self) -> dict[str, str]:
        """What is trusted; nothing when the file is missing or damaged."""
        try:
            document = json.loads(self.file.read_bytes())
        except (OSError, ValueError):
            return {}
        return (
            {str(path): value for path, value in document.items() if isinstance(value, str)}
            if isinstance(document, dict)
            else {}
        )

    def trust(self, path: str, sha256: str) -> None:
        """Trust a file with exactly this content. Raises `ConfigError`."""
        self._write({**self.hashes(), path: sha256}, path, sha256)

    def distrust(self, path: str) -> None:
        self._write(
            {name: value for name, value in self.hashes().items() if name != path}, path, None
        )

    def _write(self, hashes: Mapping[str, str], path: str, sha256: str | None) -> None:
        try:
            replace_file(self.file, json.dumps(hashes, ensure_ascii=False, indent=1).encode())
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ConfigError(
                f"What you trust cannot be written down in {self.file} ({reason}).", code="IO_ERROR"
            ) from error
        if self.record is not None:
            self.record.note("trust", path=path, sha256=sha256)
