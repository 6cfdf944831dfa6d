"""Where API keys come from: the environment, else the system's keyring, else a file that nobody else can read. They never lie in a vault.

Keys travel as `SecretStr`, which shows stars in every repr and log. A keyring counts when it is one of the systems' own; some stand-ins
forget what they are given, others write it down in plain text.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from pydantic import SecretStr

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ConfigError
from obsidian_agent.providers.registry import Vendor, environment_key
from obsidian_agent.state_files import replace_file

SERVICE: Final = "obsidian-agent"
"""What entries are called in a keyring; the user name is the vendor's name."""
KEY_FILE: Final = "keys.toml"
_REAL: Final = (
    "keyring.backends.SecretService",
    "keyring.backends.kwallet",
    "keyring.backends.libsecret",
)
_REAL_ELSEWHERE: Final = ("keyring.backends.macOS", "keyring.backends.Windows")

KeySource = Literal["environment", "keyring", "file"]


class Ring(Protocol):
    """As much of a keyring as we need; its methods may raise anything."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


def system_ring() -> Ring | None:
    """The system's keyring; None without a real one. May block, and import."""
    try:
        import keyring

        found = keyring.get_keyring()
    except Exception:
        return None
    return _real(found)


def _real(ring: Any) -> Ring | None:
    inner = getattr(ring, "backends", None)
    if inner:
        return next((real for each in inner if (real := _real(each)) is not None), None)
    kept: Ring | None = (
        ring if type(ring).__module__.startswith((*_REAL, *_REAL_ELSEWHERE)) else None
    )
    return kept


@dataclass(frozen=True, slots=True)
class KeyStore:
    """Finds and keeps keys. `file` is the person's key file, which need not exist. Methods may block."""

    file: Path
    ring: Callable[[], Ring | None] = system_ring

    def find(self, vendor: Vendor) -> SecretStr | None:
        """The key for a service. Raises `ConfigError` for a key file that others can read, or that is no TOML."""
        found = self._found(vendor)
        return found[1] if found is not None else None

    def source(self, vendor: Vendor) -> KeySource | None:
        """Where the key for a service comes from; None when there is none."""
        found = self._found(vendor)
        return found[0] if found is not None else None

    def save(self, vendor: Vendor, key: SecretStr) -> KeySource:
        """Keep a key in the system's keyring, or where there is none that works in the file; says where. Raises `ConfigError`."""
        secret = key.get_secret_value().strip()
        if not secret or not secret.isprintable():
            raise ConfigError(
                "That is no key.", code="ARGUMENT_INVALID", hint="Paste it again, in one line."
            )
        if self._into_ring(vendor, secret):
            self._write(vendor, None)
            return "keyring"
        self._write(vendor, secret)
        return "file"

    def forget(self, vendor: Vendor) -> None:
        """Remove a key from keyring and file. Raises `ConfigError`."""
        with contextlib.suppress(Exception):
            if (ring := self.ring()) is not None:
                ring.delete_password(SERVICE, vendor.name)
        self._write(vendor, None)

    def _found(self, vendor: Vendor) -> tuple[KeySource, SecretStr] | None:
        if (key := environment_key(vendor)) is not None:
            return "environment", key
        if (secret := self._from_ring(vendor)) is not None:
            return "keyring", SecretStr(secret)
        if (secret := self._read().get(vendor.name)) is not None:
            return "file", SecretStr(secret)
        return None

    def _from_ring(self, vendor: Vendor) -> str | None:
        # A keyring may be locked, gone, or ask questions that nobody sees: then there is no key in it.
        with contextlib.suppress(Exception):
            if (ring := self.ring()) is not None:
                return ring.get_password(SERVICE, vendor.name) or None
        return None

    def _into_ring(self, vendor: Vendor, secret: str) -> bool:
        """Whether a keyring took it, which is known when it gives it back."""
        with contextlib.suppress(Exception):
            if (ring := self.ring()) is not None:
                ring.set_password(SERVICE, vendor.name, secret)
                return ring.get_password(SERVICE, vendor.name) == secret
        return False

    def _read(self) -> dict[str, str]:
        try:
            status = os.stat(self.file)
            data = self.file.read_bytes()
        except OSError:
            return {}
        if os.name == "posix" and stat.S_IMODE(status.st_mode) & 0o077:
            hint = f"Run: chmod 600 {self.file}"
            raise ConfigError(
                f"Others can read the key file {self.file}, so it is not used.",
                code="KEY_FILE_OPEN",
                hint=hint,
            )
        try:
            document = tomllib.loads(data.decode("utf-8"))
        except (UnicodeDecodeError, tomllib.TOMLDecodeError):
            # The reason would quote a line of the file.
            raise ConfigError(
                f"The key file {self.file} is no TOML.",
                code="KEY_FILE_INVALID",
                hint='Write lines like openai = "sk-…".',
            ) from None
        return {
            name: value
            for name, value in document.items()
            if isinstance(value, str) and value.strip()
        }

    def _write(self, vendor: Vendor, secret: str | None) -> None:
        keys = self._read()
        if keys.get(vendor.name) == secret:
            return
        keys = {name: value for name, value in keys.items() if name != vendor.name} | (
            {vendor.name: secret} if secret else {}
        )
        text = "".join(
            f'{_quoted(name)} = "{_escaped(value)}"\n' for name, value in sorted(keys.items())
        )
        try:
            replace_file(self.file, text.encode())
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ConfigError(
                f"The key file {self.file} cannot be written ({reason}).", code="IO_ERROR"
            ) from None


def _quoted(name: str) -> str:
    return f'"{name}"' if ":" in name else name


def _escaped(secret: str) -> str:
    return secret.replace("\\", "\\\\").replace('"', '\\"')
