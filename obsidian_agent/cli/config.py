"""`config`: every setting, its value and the source of it. Needs no vault."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, add_actions
from obsidian_agent.cli.session_factory import find_vault, settings_of
from obsidian_agent.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from obsidian_agent.config.live import LiveSettings, SettingRow

MAX_NAMES = 40
"""From this number on, the known names are not listed in an error."""


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its actions."""
    examples = [
        "config",
        "config get model",
        "config set share_allow 'Projects/**; Inbox.md'",
        "config unset model",
        "config set level read-only --vault ~/Notes",
    ]
    action = add_actions(commands.add("config", _list, examples=examples), required=False)
    action.add("list", _list, summary="list all settings")
    action.add("get", _get, summary="print one setting").add_argument("name", metavar="NAME")
    command = action.add("set", _set, summary="change a setting in the settings file")
    command.add_argument("name", metavar="NAME")
    command.add_argument("value", metavar="VALUE", help="separate the items of a list with ;")
    command = action.add("unset", _unset, summary="reset a setting to its default")
    command.add_argument("name", metavar="NAME")


def _list(options: argparse.Namespace, out: Output) -> Exit:
    settings = _settings(options)
    return _print(settings, settings.rows(), out)


def _get(options: argparse.Namespace, out: Output) -> Exit:
    settings = _settings(options)
    row = _find_row(settings, options.name)
    if out.as_json:
        return _print(settings, [row], out)
    out.line(_text(row.value))
    return Exit.DONE


def _set(options: argparse.Namespace, out: Output) -> Exit:
    return _change(options, options.value, out)


def _unset(options: argparse.Namespace, out: Output) -> Exit:
    return _change(options, None, out)


def _change(options: argparse.Namespace, value: str | None, out: Output) -> Exit:
    settings = _settings(options)
    name = _find_row(settings, options.name).name
    if value is not None:
        _check(name, value, settings.vault)
    settings.change({name: value}, for_vault=options.vault is not None)
    row = _find_row(settings, name)
    if row.override:
        out.note(row.override)
    return _print(settings, [row], out)


def _settings(options: argparse.Namespace) -> LiveSettings:
    """Return the settings for all vaults, or for that of the options."""
    vault = find_vault(options.vault).resolve() if options.vault is not None else None
    return settings_of(options, vault)


def _check(name: str, value: str, vault: Path | None) -> None:
    """Raise `ConfigError` for a value of the right type that has no meaning.

    Examples are an unknown provider, theme or key, and a pattern outside the vault.
    """
    match name:
        case "model":
            _check_model(value)
        case "theme":
            from textual.theme import BUILTIN_THEMES

            from obsidian_agent.tui.themes import SHORT_NAMES, THEMES

            themes = [*SHORT_NAMES, *(theme.name for theme in THEMES), *BUILTIN_THEMES]
            check_known("theme", value, themes)
        case "keymap":
            from obsidian_agent.tui.bindings import KEYS

            for key in _table(value):
                check_known("key", key, [binding.id for binding in KEYS])
        case "hooks":
            from typing import get_args

            from obsidian_agent.config.settings import HookEvent

            for event in _table(value):
                check_known("event", event, get_args(HookEvent))
        case "services":
            from obsidian_agent.providers.registry import known_vendors

            known_vendors(map(str, _table(value)))
        case "share_allow" | "share_deny" | "write_allow" | "write_deny":
            from obsidian_agent.plan.policy import SharingRules

            patterns = tuple(part.strip() for part in value.split(";") if part.strip())
            SharingRules.of(deny=patterns, root=str(vault or ""))


def _check_model(value: str) -> None:
    from obsidian_agent.config.settings import NO_MODEL
    from obsidian_agent.providers.registry import SCRIPTED, VENDORS, find_vendor

    if value in ("", NO_MODEL):
        return
    provider, _, model = value.partition("/")
    if not model:
        raise ConfigError(
            f"{value!r} is not a model.",
            code="ARGUMENT_INVALID",
            hint="Write PROVIDER/NAME, such as openai/gpt-5, or none.",
        )
    if provider.startswith("custom:"):
        find_vendor(provider)
    else:
        providers = [*(vendor.name for vendor in VENDORS), SCRIPTED]
        check_known("provider", provider.lower(), providers)


def _table(value: str) -> dict[str, object]:
    """Parse a JSON object. Return an empty one for anything else."""
    try:
        table = json.loads(value)
    except ValueError:
        return {}
    return table if isinstance(table, dict) else {}


def check_known(subject: str, name: str, names: Sequence[str]) -> None:
    """Raise `ConfigError` if a name is not among the known ones."""
    if name in names:
        return
    raise ConfigError(
        f"There is no {subject} {name!r}.{did_you_mean(name, names)}",
        code="ARGUMENT_INVALID",
        hint=f"Known are {', '.join(sorted(names))}." if len(names) < MAX_NAMES else "",
    )


def _find_row(settings: LiveSettings, name: str) -> SettingRow:
    rows = {row.name: row for row in settings.rows()}
    if name not in rows:
        raise ConfigError(
            f"There is no setting {name!r}.{did_you_mean(name, rows)}",
            code="ARGUMENT_INVALID",
            hint="obsidian-agent config lists all.",
        )
    return rows[name]


def _print(settings: LiveSettings, rows: list[SettingRow], out: Output) -> Exit:
    """Print settings, as JSON `{file, settings: {NAME: …}}`."""
    file = settings.file
    if out.as_json:
        out.document({"file": str(file), "settings": {row.name: _document(row) for row in rows}})
    is_missing = file is None or not file.exists()
    out.line(f"{file} (does not exist yet: defaults)" if is_missing else str(file))
    for row in rows:
        out.line(f"{row.name} = {_text(row.value)}  ({row.source})  {row.description}")
    return Exit.DONE


def _document(row: SettingRow) -> dict[str, Any]:
    return {
        "value": _plain(row.value),
        "default": _plain(row.default),
        "source": row.source,
        "variable": row.variable,
        "description": row.description,
    }


def _plain(value: Any) -> Any:
    """Convert the value of a setting to JSON values."""
    from obsidian_agent.config.settings import McpServer

    match value:
        case tuple():
            return list(value)
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case McpServer():
            return value.model_dump(mode="json", exclude_defaults=True)
        case _:
            return value


def _text(value: Any) -> str:
    """Format a value for the terminal; a table as it may be written in the settings file."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return "; ".join(map(str, value)) or "none"
    if isinstance(value, dict) and value:
        import tomlkit

        table = tomlkit.inline_table()
        table.update(_plain(value))
        return table.as_string()
    return "none" if value in (None, "", {}) else str(value)
