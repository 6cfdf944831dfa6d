"""The layers of the settings: the user's file, its table for a vault, environment, and options.

Each layer overrides those before it. `[vaults."PATH"]` in the file holds the settings for the
vault at that path. A vault's own files are never read for settings.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from obsidian_agent.config.settings import Settings, patterns_of
from obsidian_agent.errors import ConfigError

ENVIRONMENT_PREFIX: Final = "OBSIDIAN_AGENT_"

VAULTS: Final = "vaults"
"""The table of the file that holds a table for each vault, by its path."""

OLD_NAMES: Final[Mapping[str, str]] = {
    "enableLangSmith": "tracing",
    "langsmithEnabled": "tracing",
    "langsmith_enabled": "tracing",
    "customEndpoint": "base_url",
    "pluginSystemMessage": "system_message",
    "enableToolCalling": "tool_calling",
    "autoInferTitle": "auto_title",
    "generateAtCursor": "insert_at_cursor",
    "stream": "streaming",
    "maxTokens": "max_tokens",
    "confirmWrites": "confirm_writes",
    "allowDeletes": "allow_deletes",
    "autoApproveReadOnly": "auto_approve_read_only",
}
"""Names of settings in programs that users may migrate from, accepted in the file."""

RETIRED: Final = frozenset({"confirm_commands", "confirmCommands"})
"""Removed settings, ignored in the file. Commands always require approval."""


class Layers(NamedTuple):
    """The values of each layer by setting. Options extend `share_allow` instead of replacing it."""

    file: Mapping[str, Any] = {}
    vault: Mapping[str, Any] = {}
    environment: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}

    def merged(self) -> dict[str, Any]:
        """Return the values in effect.

        A `base_url` belongs to the model of its layer: a later layer with a model of another
        service drops it.
        """
        values: dict[str, Any] = {}
        for layer in self:
            if "model" in layer and "model" in values and _service(layer) != _service(values):
                values.pop("base_url", None)
            values |= layer
        if allowed := self.options.get("share_allow"):
            configured = Layers(self.file, self.vault, self.environment).merged()
            patterns = patterns_of(configured.get("share_allow", ()))
            values["share_allow"] = (*patterns, *allowed)
        return values

    def settings(self) -> Settings:
        """Return the settings in effect. Raises pydantic's `ValidationError`."""
        return Settings.model_validate(self.merged())


def _service(layer: Mapping[str, Any]) -> str:
    return str(layer["model"]).partition("/")[0].lower()


def load_layers(
    file: Path,
    environment: Mapping[str, str] | None = None,
    vault: Path | None = None,
    options: Mapping[str, Any] | None = None,
) -> Layers:
    """Read and validate all layers. Raises `ConfigError` that names an invalid file or value."""
    layers = Layers(*in_file(file, vault), in_environment(environment), options or {})
    try:
        layers.settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"Setting {name!r} is not valid: {first['msg']}.",
            path=str(file),
            hint=f"Correct it in {file}.",
        ) from error
    return layers


def load_settings(file: Path, environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings that apply to any vault. Raises `ConfigError`."""
    return load_layers(file, environment).settings()


def in_file(file: Path, vault: Path | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values in a settings file for all vaults, and for this vault.

    Both are empty if there is no file. Raises `ConfigError`.
    """
    try:
        return values_of(tomllib.loads(read_file(file)), vault)
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise _unreadable(file, error) from error


def values_of(
    document: Mapping[str, Any], vault: Path | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of a parsed settings file for all vaults, and for a vault's real path.

    Old names are translated unless the current name is there too, and retired settings are
    omitted. Raises TypeError for a malformed `vaults` table.
    """
    stored = {
        name: value for name, value in document.items() if name not in RETIRED and name != VAULTS
    }
    values = {
        OLD_NAMES.get(name, name): value
        for name, value in stored.items()
        if name not in OLD_NAMES or OLD_NAMES[name] not in stored
    }
    table = table_of(document, vault)
    return values, values_of(document[VAULTS][table])[0] if table is not None else {}


def table_of(document: Mapping[str, Any], vault: Path | None) -> str | None:
    """Return the key of a vault's table under `vaults`, or None if there is none.

    Raises TypeError for a malformed `vaults` table.
    """
    tables = document.get(VAULTS, {})
    if not isinstance(tables, Mapping) or not all(
        isinstance(table, Mapping) for table in tables.values()
    ):
        raise TypeError(f'{VAULTS} may only hold tables [{VAULTS}."PATH"]')
    if vault is None:
        return None
    return next((path for path in tables if Path(path).expanduser().resolve() == vault), None)


def read_file(file: Path) -> str:
    """Return the text of a settings file with its line endings; "" if there is no file.

    Raises `ConfigError`.
    """
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"The settings file {file} cannot be read: {error}.",
        path=str(file),
        hint="Correct or remove it.",
    )


def in_environment(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the values in the environment variables of settings."""
    variables = os.environ if environment is None else environment
    names = {name: ENVIRONMENT_PREFIX + name.upper() for name in Settings.model_fields}
    return {name: variables[variable] for name, variable in names.items() if variable in variables}
