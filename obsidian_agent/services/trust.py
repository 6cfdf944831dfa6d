"""The files of a vault that the user trusts, by path and content.

A file that changes by a single byte is no longer trusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from obsidian_agent.errors import ConfigError
from obsidian_agent.state_files import replace_file

if TYPE_CHECKING:
    from obsidian_agent.agent.privacy.record import AuditRecord

Standing = Literal["trusted", "new", "changed"]
"""`changed`: different content of the file was trusted before."""


def standing(trusted_sha256: str | None, sha256: str) -> Standing:
    """Return the standing of a file, given the hash of its trusted content, if there is any."""
    if trusted_sha256 == sha256:
        return "trusted"
    return "new" if trusted_sha256 is None else "changed"


class TrustStore(Struct, frozen=True):
    """The file outside the vault that holds the hashes of trusted files by path.

    Each change is noted in `record`. Methods may block.
    """

    file: Path
    record: AuditRecord | None = None

    def hashes(self) -> dict[str, str]:
        """Return the trusted hashes by path; nothing if the file is missing or damaged."""
        try:
            document = json.loads(self.file.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(document, dict):
            return {}
        return {str(path): value for path, value in document.items() if isinstance(value, str)}

    def trust(self, path: str, sha256: str) -> None:
        """Trust a file with exactly this content. Raise `ConfigError` if that cannot be saved."""
        self._write({**self.hashes(), path: sha256}, path, sha256)

    def distrust(self, path: str) -> None:
        """Stop trusting a file. Raise `ConfigError` if that cannot be saved."""
        hashes = {name: value for name, value in self.hashes().items() if name != path}
        self._write(hashes, path, None)

    def _write(self, hashes: Mapping[str, str], path: str, sha256: str | None) -> None:
        try:
            replace_file(self.file, json.dumps(hashes, ensure_ascii=False, indent=1).encode())
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ConfigError(
                f"The list of trusted files cannot be saved in {self.file} ({reason}).",
                code="IO_ERROR",
            ) from error
        if self.record is not None:
            self.record.note("trust", path=path, sha256=sha256)
