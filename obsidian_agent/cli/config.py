"""`config`: every setting with its value and where that comes from; `config set NAME VALUE` and `config unset NAME`."""

from __future__ import annotations

import argparse
from typing import Any

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.config.directories import directories
from obsidian_agent.config.live import LiveSettings, SettingRow
from obsidian_agent.errors import ConfigError
from obsidian_agent.plan.nearest import did_you_mean


def config_command(options: argparse.Namespace, out: Output) -> Exit:
    """Show the settings, or change one in the settings file. Needs no vault."""
    file = directories(options.state_dir, options.config).config
    settings = LiveSettings.load(file)
    if options.action in ("set", "unset"):
        settings.set(options.name, options.value if options.action == "set" else None)
    name = getattr(options, "name", None)
    rows = [row for row in settings.rows() if name in (None, row.name)]
    if not rows:
        near = did_you_mean(name or "", [row.name for row in settings.rows()])
        raise ConfigError(f"There is no setting {name!r}.{near}", code="ARGUMENT_INVALID", hint="obsidian-agent config lists all.")
    if options.action == "get" and not out.as_json:
        out.line(_shown(rows[0].value))
        return Exit.DONE
    if out.as_json:
        out.document({"file": str(file), "settings": {row.name: setting_document(row) for row in rows}})
    out.line(f"{file}{'' if file.exists() else ' (not there yet: defaults)'}")
    for row in rows:
        out.line(f"{row.name} = {_shown(row.value)}  ({row.source})  {row.description}")
    return Exit.DONE


def setting_document(row: SettingRow) -> dict[str, Any]:
    """`{value, default, source, variable, description}`; source is default, file or environment."""
    value, default = _plain(row.value), _plain(row.default)
    return {"value": value, "default": default, "source": row.source, "variable": row.variable, "description": row.description}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, dict) else value


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return "; ".join(map(str, value)) or "none"
    return "none" if value in (None, "", {}) else str(value)
