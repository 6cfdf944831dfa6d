"""The settings as they are in use: where each value comes from, and changing one in the file, which keeps everything else that is in it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from obsidian_agent.config.settings import ENVIRONMENT_PREFIX, NO_MODEL, Settings, in_environment, in_file, load_settings
from obsidian_agent.errors import ConfigError

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
            text, kept = _text(self.file), checked.model_dump(mode="json")
            for name, value in changes.items():
                text = _edited(text, name, None if value is None else kept[name])
            _write(self.file, text)
        self.current = current
        return current


def _row(name: str, settings: Settings, stored: Mapping[str, Any], variables: Mapping[str, Any]) -> SettingRow:
    info = Settings.model_fields[name]
    schema = Settings.model_json_schema()["properties"][name]
    source: Source = "environment" if name in variables else "file" if name in stored else "default"
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    choices = tuple(str(each) for each in schema.get("enum", ()))
    types = {schema.get("type"), *(each.get("type") for each in schema.get("anyOf", ()))}
    kind: Any = (
        "choice"
        if choices
        else "switch"
        if "boolean" in types
        else "number"
        if types & {"number", "integer"}
        else "list"
        if "array" in types
        else "table"
        if "object" in types
        else "text"
    )
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


def _edited(text: str, name: str, value: Any) -> str:
    """The file's text with one key set, changed where it stands, or taken out; comments and everything else stay."""
    if isinstance(value, dict):
        line = f"{name} = {{ {', '.join(f'{json.dumps(key)} = {json.dumps(each)}' for key, each in value.items())} }}"
    else:
        line = f"{name} = {json.dumps(value, ensure_ascii=False)}"
    lines = text.splitlines(keepends=True)
    place = _place(lines, name)
    if place is not None:
        start, end = place
        fresh = "".join([*lines[:start], *([] if value is None else [f"{line}\n"]), *lines[end:]])
    elif value is None:
        return text
    else:
        table = next((at for at, each in enumerate(lines) if re.match(r"\s*\[", each)), len(lines))
        before = "".join(lines[:table])
        fresh = before + ("" if not before or before.endswith("\n") else "\n") + f"{line}\n" + "".join(lines[table:])
    tomllib.loads(fresh)
    return fresh


def _place(lines: list[str], name: str) -> tuple[int, int] | None:
    """The lines of a key of the first table; a value may go on over several."""
    for start, line in enumerate(lines):
        if re.match(r"\s*\[", line):
            header = re.match(rf"\s*\[{re.escape(name)}\]", line)
            if header is None:
                continue
            end = next((at for at in range(start + 1, len(lines)) if re.match(r"\s*\[", lines[at])), len(lines))
            return start, end
        if re.match(rf"\s*(?:{re.escape(name)}|\"{re.escape(name)}\")\s*=", line):
            for end in range(start + 1, len(lines) + 1):
                with contextlib.suppress(tomllib.TOMLDecodeError):
                    tomllib.loads("".join(lines[start:end]))
                    return start, end
    return None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The settings file {file} cannot be read: {error}.", path=str(file)) from error


def _write(file: Path, text: str) -> None:
    """Replace the file: all or nothing, and nobody else's to read."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, fresh = tempfile.mkstemp(dir=file.parent, prefix=".settings-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(fresh, file.resolve() if file.is_symlink() else file)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"The settings file {file} cannot be written ({reason}).", path=str(file), hint="Correct its permissions."
        ) from error
