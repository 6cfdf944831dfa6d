"""Which files of a vault the person trusts: by path and by content. A file that changes by one byte is a stranger again.

Agents, skills, instructions and macros are all asked for here.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from obsidian_agent.errors import ConfigError
from obsidian_agent.state_files import make_private

Standing = Literal["trusted", "new", "changed"]
"""`changed`: another content of the file was trusted once."""


def standing(known: str | None, sha256: str) -> Standing:
    """How a file stands whose trusted content has the hash `known` (None: none was trusted)."""
    return "trusted" if known == sha256 else "changed" if known is not None else "new"


@dataclass(frozen=True, slots=True)
class TrustStore:
    """The file, outside of the vault, that holds the hashes of trusted files by their paths. Methods may block."""

    file: Path

    def hashes(self) -> dict[str, str]:
        """What is trusted; nothing when the file is missing or damaged."""
        try:
            document = json.loads(self.file.read_bytes())
        except (OSError, ValueError):
            return {}
        return {str(path): value for path, value in document.items() if isinstance(value, str)} if isinstance(document, dict) else {}

    def trust(self, path: str, sha256: str) -> None:
        """Trust a file with exactly this content. Raises `ConfigError`."""
        self._write({**self.hashes(), path: sha256})

    def distrust(self, path: str) -> None:
        """Trust it no longer."""
        self._write({name: value for name, value in self.hashes().items() if name != path})

    def _write(self, hashes: Mapping[str, str]) -> None:
        fresh = self.file.with_name(f".{self.file.name}.new")
        try:
            make_private(self.file.parent)
            fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
            with contextlib.closing(os.fdopen(fd, "wb")) as file:
                file.write(json.dumps(hashes, ensure_ascii=False, indent=1).encode())
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self.file)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ConfigError(f"What you trust cannot be written down in {self.file} ({reason}).", code="IO_ERROR") from error
