"""API keys from the environment, the system's keyring, or a private file; never from a vault.

Keys are passed as `SecretStr`, which hides them in every repr and log. Only the keyrings of the
operating systems are used: some replacements lose keys, others store them in plain text.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from msgspec import Struct
from pydantic import SecretStr

from obsidian_agent.errors import ConfigError
from obsidian_agent.providers.registry import Vendor, environment_key
from obsidian_agent.state_files import replace_file

SERVICE: Final = "obsidian-agent"
"""Name of the entries in a keyring; the user name is the vendor's name."""
KEY_FILE: Final = "keys.toml"
_REAL: Final = (
    "keyring.backends.SecretService",
    "keyring.backends.kwallet",
    "keyring.backends.libsecret",
)
_REAL_ELSEWHERE: Final = ("keyring.backends.macOS", "keyring.backends.Windows")

KeySource = Literal["environment", "keyring", "file"]


class Ring(Protocol):
    """The used part of a keyring. Its methods may raise any exception."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


def system_ring() -> Ring | None:
    """Return the system's keyring, or None if there is none. May block."""
    try:
        import keyring

        ring = keyring.get_keyring()
    except Exception:
        return None
    return _real(ring)


def _real(ring: Any) -> Ring | None:
    backends = getattr(ring, "backends", None)
    if backends:
        return next(filter(None, map(_real, backends)), None)
    if type(ring).__module__.startswith((*_REAL, *_REAL_ELSEWHERE)):
        real: Ring = ring
        return real
    return None


class KeyStore(Struct, frozen=True):
    """The store of keys. `file` is the user's key file, which may not exist. Methods may block."""

    file: Path
    ring: Callable[[], Ring | None] = system_ring

    def find(self, vendor: Vendor) -> SecretStr | None:
        """Return the key for a service, or None.

        Raise `ConfigError` if other users can read the key file, or if it is not TOML.
        """
        match = self._find(vendor)
        return match[1] if match is not None else None

    def source(self, vendor: Vendor) -> KeySource | None:
        """Return the source of the key for a service, or None if there is no key."""
        match = self._find(vendor)
        return match[0] if match is not None else None

    def save(self, vendor: Vendor, key: SecretStr) -> KeySource:
        """Store a key in the system's keyring, or in the file if no keyring works.

        Return which of them. Raise `ConfigError`.
        """
        secret = key.get_secret_value().strip()
        if not secret or not secret.isprintable():
            raise ConfigError(
                "This is not a key.", code="ARGUMENT_INVALID", hint="Paste it again, in one line."
            )
        if self._into_ring(vendor, secret):
            self._write(vendor, None)
            return "keyring"
        self._write(vendor, secret)
        return "file"

    def forget(self, vendor: Vendor) -> None:
        """Remove a key from keyring and file. Raise `ConfigError`."""
        with contextlib.suppress(Exception):
            if (ring := self.ring()) is not None:
                ring.delete_password(SERVICE, vendor.name)
        self._write(vendor, None)

    def _find(self, vendor: Vendor) -> tuple[KeySource, SecretStr] | None:
        if (key := environment_key(vendor)) is not None:
            return "environment", key
        if (secret := self._from_ring(vendor)) is not None:
            return "keyring", SecretStr(secret)
        if (secret := self._read().get(vendor.name)) is not None:
            return "file", SecretStr(secret)
        return None

    def _from_ring(self, vendor: Vendor) -> str | None:
        # A keyring may be locked, missing, or waiting for an invisible prompt.
        with contextlib.suppress(Exception):
            if (ring := self.ring()) is not None:
                return ring.get_password(SERVICE, vendor.name) or None
        return None

    def _into_ring(self, vendor: Vendor, secret: str) -> bool:
        """Store a key in the keyring. Return True if it can be read back."""
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
                f"Other users can read the key file {self.file}, so it is not used.",
                code="KEY_FILE_OPEN",
                hint=hint,
            )
        try:
            document = tomllib.loads(data.decode("utf-8"))
        except (UnicodeDecodeError, tomllib.TOMLDecodeError):
            # The reason would quote a line of the file.
            raise ConfigError(
                f"The key file {self.file} is not valid TOML.",
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
        keys.pop(vendor.name, None)
        if secret:
            keys[vendor.name] = secret
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
