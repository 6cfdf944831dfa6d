"""The settings in use: where each value comes from, and changing values in the file."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field
from pydantic import ValidationError

from obsidian_agent.config.layers import (
    ENVIRONMENT_PREFIX,
    Layers,
    in_environment,
    in_file,
    load_layers,
)
from obsidian_agent.config.settings import NO_MODEL, Settings
from obsidian_agent.errors import ConfigError

Source = Literal["default", "file", "vault", "environment", "option"]
Kind = Literal["switch", "number", "text", "list", "choice", "table"]

_SOURCES: tuple[Source, ...] = ("file", "vault", "environment", "option")
"""The source of each layer."""

_KINDS: Mapping[str, Kind] = {
    "boolean": "switch",
    "number": "number",
    "integer": "number",
    "array": "list",
    "object": "table",
}
"""The kind of a setting by its JSON Schema type."""

_BOOLEANS = {
    "on": True,
    "true": True,
    "yes": True,
    "1": True,
    "off": False,
    "false": False,
    "no": False,
    "0": False,
}


class SettingRow(Struct, frozen=True, kw_only=True):
    """A setting with its value, for display and editing.

    `variable` is the environment variable that overrides the file. The source "vault" is the
    vault's table in the file.
    """

    name: str
    group: str
    title: str
    description: str
    value: Any
    default: Any
    source: Source
    kind: Kind
    choices: tuple[str, ...] = ()
    variable: str = ""

    @property
    def override(self) -> str:
        """A sentence about the layer that overrides the file; "" if none does."""
        match self.source:
            case "environment":
                return f"{self.variable} is set, which overrides the settings file."
            case "option":
                return "An option of the command line overrides the settings file."
            case _:
                return ""


class LiveSettings(Struct, kw_only=True):
    """The settings in use for a vault's real path. Methods may block.

    Without a `file` they are not stored.
    """

    file: Path | None = None
    current: Settings = field(default_factory=Settings)
    environment: Mapping[str, str] | None = None
    vault: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def load(
        cls,
        file: Path,
        environment: Mapping[str, str] | None = None,
        *,
        vault: Path | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> LiveSettings:
        """Load the settings from a file, which need not exist. Raises `ConfigError`."""
        layers = load_layers(file, environment, vault, options)
        return cls(
            file=file,
            current=layers.settings(),
            environment=environment,
            vault=vault,
            options=layers.options,
        )

    @property
    def model(self) -> str | None:
        """The model in use; None for the menu alone."""
        return None if self.current.model == NO_MODEL else self.current.model

    def rows(self) -> list[SettingRow]:
        """Return every setting, in the order of `Settings`."""
        layers, schema = self._layers(), Settings.model_json_schema()["properties"]
        return [_row(name, schema[name], self.current, layers) for name in Settings.model_fields]

    def set(self, name: str, value: Any) -> Settings:
        """Change a setting in the file and in use. None resets it to its default.

        Text is parsed as `/set` and forms accept it. Raises `ConfigError` for an unknown name, an
        invalid value or a file that cannot be written; nothing is changed then.
        """
        return self.change({name: value})

    def change(self, changes: Mapping[str, Any], *, for_vault: bool = False) -> Settings:
        """Change several settings, such as a model and its address, or none of them.

        They are changed for all vaults. With `for_vault`, or if this vault's table already holds
        one of them, they are changed for this vault only. Otherwise the same as `set`.
        """
        for name in changes:
            if name not in Settings.model_fields:
                raise ConfigError(
                    f"There is no setting {name!r}.",
                    code="ARGUMENT_INVALID",
                    hint="/settings lists all.",
                )
        layers = self._layers()
        for_vault = for_vault or any(name in layers.vault for name in changes)
        stored = layers.vault if for_vault else layers.file
        values = {name: value for name, value in stored.items() if name not in changes}
        values |= {
            name: _parsed(name, value) for name, value in changes.items() if value is not None
        }
        try:
            checked = Settings.model_validate(values)
            current = layers._replace(**{"vault" if for_vault else "file": values}).settings()
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] else ", ".join(changes)
            raise ConfigError(
                f"{name} is not valid: {first['msg']}.", code="ARGUMENT_INVALID"
            ) from error
        if self.file is not None:
            from obsidian_agent.config.edit import edit_file

            edit_file(self.file, changes, checked, self.vault if for_vault else None)
        self.current = current
        return current

    def _layers(self) -> Layers:
        environment = in_environment(self.environment)
        if self.file is None:
            current = self.current.model_dump(exclude_unset=True)
            return Layers(current, {}, environment, self.options)
        return Layers(*in_file(self.file, self.vault), environment, self.options)


def _row(name: str, schema: Mapping[str, Any], settings: Settings, layers: Layers) -> SettingRow:
    info = Settings.model_fields[name]
    source: Source = "default"
    for layer_source, layer in zip(_SOURCES, layers, strict=True):
        if name in layer:
            source = layer_source
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    choices = tuple(str(choice) for choice in schema.get("enum", ()))
    types = {schema.get("type"), *(option.get("type") for option in schema.get("anyOf", ()))}
    kind: Kind = "choice"
    if not choices:
        kind = next((_KINDS[type_] for type_ in _KINDS if type_ in types), "text")
    return SettingRow(
        name=name,
        group=str(extra.get("group", "App")),
        title=info.title or name,
        description=info.description or "",
        value=getattr(settings, name),
        default=info.get_default(call_default_factory=True),
        source=source,
        kind=kind,
        choices=choices,
        variable=ENVIRONMENT_PREFIX + name.upper(),
    )


def _parsed(name: str, value: Any) -> Any:
    """Convert typed text to the type of its setting."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    types = str(Settings.model_fields[name].annotation)
    if "bool" in types:
        return _BOOLEANS.get(text.lower(), text)
    if not text and "None" in types:
        return None
    if "dict" in types:
        with contextlib.suppress(ValueError):
            return json.loads(text)
    return value
