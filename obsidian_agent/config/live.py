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
    Settings,
    in_environment,
    in_file,
    load_settings,
    meaning,
    read_text,
)
from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import ConfigError
from obsidian_agent.state_files import replace_file

Source = Literal["default", "file", "environment"]


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting as a screen shows it. `variable` is the environment variable that is stronger than the file; `kind` how it is edited."""

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


@dataclass(slots=True)
class LiveSettings:
    """`file` None: settings that are nowhere on disk. Methods may block."""

    file: Path | None = None
    current: Settings = field(default_factory=Settings)
    environment: Mapping[str, str] | None = None

    @classmethod
    def load(cls, file: Path, environment: Mapping[str, str] | None = None) -> LiveSettings:
        """From a settings file, which need not exist. Raises `ConfigError`."""
        known = dict(environment) if environment is not None else None
        return cls(file, load_settings(file, known), environment)

    @property
    def chosen(self) -> str | None:
        """The model of the settings; None for the menu alone."""
        return None if self.current.model == NO_MODEL else self.current.model

    def rows(self) -> list[SettingRow]:
        """Every setting, in the order of the model."""
        stored = in_file(self.file) if self.file is not None else {}
        variables = in_environment(self.environment)
        return [_row(name, self.current, stored, variables) for name in Settings.model_fields]

    def set(self, name: str, value: Any) -> Settings:
        """Change a setting (None: back to its default), in the file and in use. Text is understood as `/set` and a form give it.

        Raises `ConfigError` for an unknown name, a bad value, and a file that cannot be written; then everything stays as it was.
        """
        return self.change({name: value})

    def change(self, changes: Mapping[str, Any]) -> Settings:
        """Change settings that belong together, such as a model and its address: all of them or none. As `set` otherwise."""
        stored = in_file(self.file) if self.file is not None else {}
        values = {key: each for key, each in stored.items() if key not in changes}
        for name, value in changes.items():
            if name not in Settings.model_fields:
                raise ConfigError(f"There is no setting {name!r}.", code="ARGUMENT_INVALID", hint="/settings lists all.")
            if value is not None:
                values[name] = _understood(name, value)
        try:
            checked = Settings.model_validate(values)
            current = Settings.model_validate(values | in_environment(self.environment))
        except ValidationError as error:
            first = error.errors()[0]
            at = str(first["loc"][0]) if first["loc"] else ", ".join(changes)
            raise ConfigError(f"{at} is not valid: {first['msg']}.", code="ARGUMENT_INVALID") from error
        if self.file is not None:
            # TOML has no null: a setting without a value is one that the file does not name.
            dumped = checked.model_dump(mode="json")
            kept = {name: None if value is None else dumped[name] for name, value in changes.items()}
            _write(self.file, _edited(read_text(self.file), kept, checked))
        self.current = current
        return current


def _row(name: str, settings: Settings, stored: Mapping[str, Any], variables: Mapping[str, Any]) -> SettingRow:
    info = Settings.model_fields[name]
    schema = Settings.model_json_schema()["properties"][name]
    source: Source = "environment" if name in variables else "file" if name in stored else "default"
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


def _edited(text: str, changes: Mapping[str, Any], intended: Settings) -> str:
    """The file's text with some keys changed where they stand, or taken out (None); comments, order and everything else stay.

    `intended` is what the whole file is to mean then. Raises `ConfigError` when it would mean anything else.
    """
    import tomlkit
    from tomlkit.container import OutOfOrderTableProxy
    from tomlkit.exceptions import TOMLKitError

    names = ", ".join(changes)
    try:
        document = tomlkit.parse(text)
        for name, value in changes.items():
            written = [key for key in (name, *(old for old, ours in OLD_NAMES.items() if ours == name)) if key in document]
            kept = None if value is None else written.pop(0) if written else name
            if kept is not None and isinstance(document.get(kept), OutOfOrderTableProxy):
                written.append(kept)  # a table in pieces: tomlkit changes those for sure only as a whole
            for key in written:
                document.remove(key)
            if kept is not None and not _changed(document.get(kept), value):
                document[kept] = value
        fresh = tomlkit.dumps(document)
        as_intended = Settings.model_validate(meaning(tomllib.loads(fresh))) == intended
    except (TOMLKitError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{names} cannot be changed in the settings file: {error}.", hint="Change it by hand.") from error
    if not as_intended:
        raise ConfigError(f"{names} cannot be changed in the settings file without touching the rest of it.", hint="Change it by hand.")
    return fresh


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
