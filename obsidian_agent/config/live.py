"""The settings as they are in use: where each value comes from, and changing one in the file, which keeps everything else that is in it."""

from __future__ import annotations

import contextlib
import json
import tomllib
from collections.abc import Mapping, MutableMapping, MutableSequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from obsidian_agent.config.settings import (
    ENVIRONMENT_PREFIX,
    NO_MODEL,
    OLD_NAMES,
    VAULTS,
    Layers,
    Settings,
    in_environment,
    in_file,
    load_layers,
    meaning,
    read_text,
    table_of,
)
from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import ConfigError
from obsidian_agent.state_files import replace_file

Source = Literal["default", "file", "vault", "environment", "option"]


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting as a screen shows it. `variable` is the environment variable that is stronger than the file; `kind` how it is edited.

    The source "vault" is what the file says for this vault alone.
    """

    name: str
    group: str
    title: str
    description: str
    value: Any
    default: Any
    source: Source
    kind: Literal["switch", "number", "text", "list", "choice", "table"]
    choices: tuple[str, ...] = ()
    variable: str = ""

    @property
    def stronger(self) -> str:
        """What is stronger than the settings file, as a sentence; "" for nothing."""
        match self.source:
            case "environment":
                return f"{self.variable} is set, and stronger than the settings file."
            case "option":
                return "The command line says so, and is stronger than the settings file."
            case _:
                return ""


@dataclass(slots=True)
class LiveSettings:
    """`file` None: settings that are nowhere on disk. `vault`: the real path of the vault they are for. Methods may block."""

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
        """From a settings file, which need not exist, for a vault, with what options say on top. Raises `ConfigError`."""
        layers = load_layers(file, environment, vault, options)
        return cls(file, layers.settings(), environment, vault, layers.options)

    @property
    def chosen(self) -> str | None:
        """The model of the settings; None for the menu alone."""
        return None if self.current.model == NO_MODEL else self.current.model

    def rows(self) -> list[SettingRow]:
        """Every setting, in the order of the model."""
        layers = self._layers()
        return [_row(name, self.current, layers) for name in Settings.model_fields]

    def set(self, name: str, value: Any) -> Settings:
        """Change a setting (None: back to its default), in the file and in use. Text is understood as `/set` and a form give it.

        Raises `ConfigError` for an unknown name, a bad value, and a file that cannot be written; then everything stays as it was.
        """
        return self.change({name: value})

    def change(self, changes: Mapping[str, Any], *, here: bool = False) -> Settings:
        """Change settings that belong together, such as a model and its address: all of them or none. As `set` otherwise.

        They change for all vaults, or (`here`, or where the file says one of them for this vault) for this vault alone.
        """
        for name in changes:
            if name not in Settings.model_fields:
                raise ConfigError(f"There is no setting {name!r}.", code="ARGUMENT_INVALID", hint="/settings lists all.")
        layers = self._layers()
        here = here or any(name in layers.vault for name in changes)
        stored = layers.vault if here else layers.file
        values = {key: each for key, each in stored.items() if key not in changes}
        values |= {name: _understood(name, value) for name, value in changes.items() if value is not None}
        try:
            checked = Settings.model_validate(values)
            current = layers._replace(**{"vault" if here else "file": values}).settings()
        except ValidationError as error:
            first = error.errors()[0]
            at = str(first["loc"][0]) if first["loc"] else ", ".join(changes)
            raise ConfigError(f"{at} is not valid: {first['msg']}.", code="ARGUMENT_INVALID") from error
        if self.file is not None:
            # TOML has no null: a setting without a value is one that the file does not name.
            dumped = checked.model_dump(mode="json")
            kept = {name: None if value is None else dumped[name] for name, value in changes.items()}
            _write(self.file, _edited(read_text(self.file), kept, checked, self.vault if here else None))
        self.current = current
        return current

    def _layers(self) -> Layers:
        if self.file is None:
            return Layers(self.current.model_dump(exclude_unset=True), {}, in_environment(self.environment), self.options)
        return Layers(*in_file(self.file, self.vault), in_environment(self.environment), self.options)


_SOURCES: tuple[Source, ...] = ("file", "vault", "environment", "option")


def _row(name: str, settings: Settings, layers: Layers) -> SettingRow:
    info = Settings.model_fields[name]
    schema = Settings.model_json_schema()["properties"][name]
    source: Source = next((source for source, layer in reversed([*zip(_SOURCES, layers, strict=True)]) if name in layer), "default")
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    choices = tuple(str(each) for each in schema.get("enum", ()))
    types = {schema.get("type"), *(each.get("type") for each in schema.get("anyOf", ()))}
    kinds = {"boolean": "switch", "number": "number", "integer": "number", "array": "list", "object": "table"}
    kind: Any = "choice" if choices else next((kinds[each] for each in kinds if each in types), "text")
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


def _understood(name: str, value: Any) -> Any:
    """A value that was typed, as the type of its setting."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    types = str(Settings.model_fields[name].annotation)
    if "bool" in types:
        known = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}
        return known.get(text.lower(), text)
    if not text and "None" in types:
        return None
    if "dict" in types:
        with contextlib.suppress(ValueError):
            return json.loads(text)
    return value


def _edited(text: str, changes: Mapping[str, Any], intended: Settings, vault: Path | None) -> str:
    """The file's text with some keys changed where they stand, or taken out (None); comments, order and everything else stay.

    They are those of a vault's own table, or for all vaults (None); `intended` is what all keys there are to mean then. Raises `ConfigError`
    when they, or any others, would mean anything else.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    names = ", ".join(changes)
    try:
        document = tomlkit.parse(text)
        before = tomllib.loads(text)
        place: Any = document
        if vault is not None:
            name = table_of(before, vault) or str(vault)
            tables = document.setdefault(VAULTS, tomlkit.table(is_super_table=True))
            place = tables.setdefault(name, tomlkit.table())
        _put(place, changes)
        fresh = tomlkit.dumps(document)
        after = tomllib.loads(fresh)
        meant = Settings.model_validate(meaning(after, vault)[vault is not None])
        as_intended = meant == intended and _others(after, vault) == _others(before, vault)
    except (TOMLKitError, tomllib.TOMLDecodeError, TypeError) as error:
        raise ConfigError(f"{names} cannot be changed in the settings file: {error}.", hint="Change it by hand.") from error
    if not as_intended:
        raise ConfigError(f"{names} cannot be changed in the settings file without touching the rest of it.", hint="Change it by hand.")
    return fresh


def _others(document: Mapping[str, Any], vault: Path | None) -> Any:
    """What of a file is not of the place that a vault (None: all of them) has in it."""
    if vault is None:
        return document.get(VAULTS)
    own, tables = table_of(document, vault), document.get(VAULTS, {})
    return meaning(document)[0], {name: table for name, table in tables.items() if name != own}


def _put(place: Any, changes: Mapping[str, Any]) -> None:
    """Change the keys of a document or table."""
    from tomlkit.container import OutOfOrderTableProxy

    for name, value in changes.items():
        written = [key for key in (name, *(old for old, ours in OLD_NAMES.items() if ours == name)) if key in place]
        kept = None if value is None else written.pop(0) if written else name
        if kept is not None and isinstance(place.get(kept), OutOfOrderTableProxy):
            written.append(kept)  # a table in pieces: tomlkit changes those for sure only as a whole
        for key in written:
            place.remove(key)
        if kept is not None and not _changed(place.get(kept), value):
            place[kept] = value


def _changed(item: Any, value: Any) -> bool:
    """Change a list or table of the file in its parts, so that comments between them stay; False when that does not do."""
    match item, value:
        case MutableMapping(), dict():
            for key in [key for key in item if key not in value]:
                del item[key]
            for key, each in value.items():
                if item.get(key) != each:
                    item[key] = each
        case MutableSequence(), list():
            for at in reversed(range(len(item))):
                if item[at] not in value:
                    del item[at]
            item.extend(value[len(item) :])
        case _:
            return False
    return bool(item == value)


def _write(file: Path, text: str) -> None:
    """Replace the file: all or nothing, and nobody else's to read. A link stays one: what it leads to is replaced."""
    file = file.resolve()
    try:
        replace_file(file, text.encode())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"The settings file {file} cannot be written ({reason}).", path=str(file), hint="Correct its permissions."
        ) from error
