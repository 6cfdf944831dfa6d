"""Editing config.toml in place: comments, order and all other keys are preserved."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, MutableMapping, MutableSequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.container import OutOfOrderTableProxy
from tomlkit.exceptions import TOMLKitError

from obsidian_agent.config.layers import OLD_NAMES, VAULTS, read_file, table_of, values_of
from obsidian_agent.config.settings import Settings
from obsidian_agent.errors import ConfigError
from obsidian_agent.state_files import replace_file


def edit_file(
    file: Path, changes: Mapping[str, Any], intended: Settings, vault: Path | None
) -> None:
    """Change keys of a settings file, for all vaults or in the table of `vault`.

    A value of None removes its key. `intended` is the meaning of all keys there after the change.
    Raises `ConfigError` if the file cannot be written, or only with another meaning.
    """
    # TOML has no null: a setting without a value is absent from the file.
    dumped = intended.model_dump(mode="json")
    values = {name: None if value is None else dumped[name] for name, value in changes.items()}
    _write(file, _edited(read_file(file), values, intended, vault))


def _edited(text: str, changes: Mapping[str, Any], intended: Settings, vault: Path | None) -> str:
    names = ", ".join(changes)
    try:
        document = tomlkit.parse(text)
        before = tomllib.loads(text)
        table: Any = document
        if vault is not None:
            name = table_of(before, vault) or str(vault)
            tables = document.setdefault(VAULTS, tomlkit.table(is_super_table=True))
            table = tables.setdefault(name, tomlkit.table())
        _change_keys(table, changes)
        edited = tomlkit.dumps(document)
        after = tomllib.loads(edited)
        meaning = Settings.model_validate(values_of(after, vault)[vault is not None])
        is_intended = meaning == intended and _others(after, vault) == _others(before, vault)
    except (TOMLKitError, tomllib.TOMLDecodeError, TypeError) as error:
        raise ConfigError(
            f"{names} cannot be changed in the settings file: {error}.", hint="Change it by hand."
        ) from error
    if not is_intended:
        raise ConfigError(
            f"{names} cannot be changed in the settings file without changing other settings.",
            hint="Change it by hand.",
        )
    return edited


def _others(document: Mapping[str, Any], vault: Path | None) -> Any:
    """Return the values of a file outside a vault's table; for None, the tables of all vaults."""
    if vault is None:
        return document.get(VAULTS)
    own, tables = table_of(document, vault), document.get(VAULTS, {})
    return values_of(document)[0], {name: table for name, table in tables.items() if name != own}


def _change_keys(table: Any, changes: Mapping[str, Any]) -> None:
    for name, value in changes.items():
        old_names = (old for old, current in OLD_NAMES.items() if current == name)
        superseded = [key for key in (name, *old_names) if key in table]
        if value is None:
            for key in superseded:
                table.remove(key)
            continue
        key = superseded.pop(0) if superseded else name
        if isinstance(table.get(key), OutOfOrderTableProxy):
            # tomlkit cannot reliably change a table in several parts, so it is replaced.
            superseded.append(key)
        for old in superseded:
            table.remove(old)
        if not _change_parts(table.get(key), value):
            table[key] = value


def _change_parts(item: Any, value: Any) -> bool:
    """Change a list or table in place, preserving the comments in it. Return False on failure."""
    match item, value:
        case MutableMapping(), dict():
            for key in [key for key in item if key not in value]:
                del item[key]
            for key, part in value.items():
                if item.get(key) != part:
                    item[key] = part
        case MutableSequence(), list():
            for index in reversed(range(len(item))):
                if item[index] not in value:
                    del item[index]
            item.extend(value[len(item) :])
        case _:
            return False
    return bool(item == value)


def _write(file: Path, text: str) -> None:
    """Replace the file atomically. A symbolic link is kept, and its target is replaced."""
    file = file.resolve()
    try:
        replace_file(file, text.encode())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"The settings file {file} cannot be written ({reason}).",
            path=str(file),
            hint="Correct its permissions.",
        ) from error
