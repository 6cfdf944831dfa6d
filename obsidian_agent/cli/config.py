"""`config`: every setting with its value and where that comes from. `key`: where the keys of services are kept. Neither needs a vault."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output, on_terminal
from obsidian_agent.cli.parser import Commands, UsageError, actions
from obsidian_agent.cli.session_factory import find_vault, settings_of
from obsidian_agent.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from obsidian_agent.config.live import LiveSettings, SettingRow
    from obsidian_agent.providers.keys import KeyStore
    from obsidian_agent.providers.registry import Vendor


def arguments(commands: Commands) -> None:
    """Add the parsers of these commands and of their actions."""
    examples = [
        "config",
        "config get model",
        "config set share_allow 'Projects/**; Inbox.md'",
        "config unset model",
        "config set level read-only --vault ~/Notes",
    ]
    action = actions(commands.add("config", _list, examples=examples), required=False)
    action.add("list", _list, summary="all of them")
    action.add("get", _get, summary="one setting").add_argument("name", metavar="NAME")
    command = action.add("set", _set, summary="change one in the settings file")
    command.add_argument("name", metavar="NAME")
    command.add_argument("value", metavar="VALUE", help="lists with ; between their parts")
    action.add("unset", _unset, summary="back to its default").add_argument("name", metavar="NAME")
    examples = ["key list", "key save openai < openai.key", "key forget openai"]
    action = actions(commands.add("key", None, examples=examples))
    action.add("list", _list_keys, summary="services, and where the key of each comes from")
    command = action.add(
        "save",
        _save_key,
        summary="keep the key that comes on standard input, in the system's keyring where there is one",
    )
    command.add_argument("service", metavar="SERVICE")
    command.add_argument("given", nargs="*", help=argparse.SUPPRESS)
    action.add(
        "forget", _forget_key, summary="remove a key from the keyring and the key file"
    ).add_argument("service", metavar="SERVICE")


def _list(options: argparse.Namespace, out: Output) -> Exit:
    settings = _settings(options)
    return _show(settings, settings.rows(), out)


def _get(options: argparse.Namespace, out: Output) -> Exit:
    settings = _settings(options)
    row = _named(settings, options.name)
    if out.as_json:
        return _show(settings, [row], out)
    out.line(_shown(row.value))
    return Exit.DONE


def _set(options: argparse.Namespace, out: Output) -> Exit:
    return _change(options, options.value, out)


def _unset(options: argparse.Namespace, out: Output) -> Exit:
    return _change(options, None, out)


def _change(options: argparse.Namespace, value: str | None, out: Output) -> Exit:
    settings = _settings(options)
    name = _named(settings, options.name).name
    if value is not None:
        _check(name, value, settings.vault)
    settings.change({name: value}, for_vault=options.vault is not None)
    row = _named(settings, name)
    if row.override:
        out.note(row.override)
    return _show(settings, [row], out)


def _settings(options: argparse.Namespace) -> LiveSettings:
    """The settings for all vaults, or for the one that is named."""
    return settings_of(
        options, find_vault(options.vault).resolve() if options.vault is not None else None
    )


def _check(name: str, value: str, vault: Path | None) -> None:
    """Refuse what is a value by its type, and means nothing: an unknown provider, theme or key, a pattern outside the vault."""
    match name:
        case "model":
            _check_model(value)
        case "theme":
            from textual.theme import BUILTIN_THEMES

            from obsidian_agent.tui.themes import SHORT, THEMES

            _known("theme", value, [*SHORT, *(theme.name for theme in THEMES), *BUILTIN_THEMES])
        case "keymap":
            from obsidian_agent.tui.bindings import KEYS

            for key in _table(value):
                _known("key", key, [each.id for each in KEYS])
        case "hooks":
            from typing import get_args

            from obsidian_agent.config.settings import HookEvent

            for event in _table(value):
                _known("event", event, get_args(HookEvent))
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
            f"{value!r} is no model.",
            code="ARGUMENT_INVALID",
            hint="Write PROVIDER/NAME, such as openai/gpt-5, or none.",
        )
    if provider.startswith("custom:"):
        find_vendor(provider)
    else:
        _known("provider", provider.lower(), [*(vendor.name for vendor in VENDORS), SCRIPTED])


def _table(value: str) -> dict[str, object]:
    try:
        found = json.loads(value)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _known(what: str, name: str, names: Sequence[str]) -> None:
    from obsidian_agent.errors import did_you_mean

    if name not in names:
        known = f"Known are {', '.join(sorted(names))}." if len(names) < 40 else ""
        raise ConfigError(
            f"There is no {what} {name!r}.{did_you_mean(name, names)}",
            code="ARGUMENT_INVALID",
            hint=known,
        )


def _named(settings: LiveSettings, name: str) -> SettingRow:
    from obsidian_agent.errors import did_you_mean

    rows = {row.name: row for row in settings.rows()}
    if name not in rows:
        near = did_you_mean(name, rows)
        raise ConfigError(
            f"There is no setting {name!r}.{near}",
            code="ARGUMENT_INVALID",
            hint="obsidian-agent config lists all.",
        )
    return rows[name]


def _show(settings: LiveSettings, rows: list[SettingRow], out: Output) -> Exit:
    """`{file, settings: {NAME: {value, default, source, variable, description}}}`; source is default, file, vault (in the file, for this vault) or environment."""
    file = settings.file
    if out.as_json:
        out.document({"file": str(file), "settings": {row.name: _document(row) for row in rows}})
    out.line(f"{file}{'' if file is not None and file.exists() else ' (not there yet: defaults)'}")
    for row in rows:
        out.line(f"{row.name} = {_shown(row.value)}  ({row.source})  {row.description}")
    return Exit.DONE


def _document(row: SettingRow) -> dict[str, Any]:
    value, default = _plain(row.value), _plain(row.default)
    return {
        "value": value,
        "default": default,
        "source": row.source,
        "variable": row.variable,
        "description": row.description,
    }


def _plain(value: Any) -> Any:
    from obsidian_agent.config.settings import McpServer

    match value:
        case tuple():
            return list(value)
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case McpServer():
            return value.model_dump(mode="json", exclude_defaults=True)
        case _:
            return value


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return "; ".join(map(str, value)) or "none"
    if isinstance(value, dict) and value:
        import tomlkit

        table = tomlkit.inline_table()
        table.update(_plain(value))
        return table.as_string()  # as it may stand in the file
    return "none" if value in (None, "", {}) else str(value)


def _list_keys(options: argparse.Namespace, out: Output) -> Exit:
    """`{keys[{service, source}]}`; source is environment, keyring, file or null. Never a value."""
    store = _keys(options)
    found = {vendor.name: store.source(vendor) for vendor in _services(options)}
    if out.as_json:
        out.document(
            {"keys": [{"service": name, "source": source} for name, source in found.items()]}
        )
    for name, source in found.items():
        out.line(f"{name:14} {source or 'no key'}")
    return Exit.DONE


def _save_key(options: argparse.Namespace, out: Output) -> Exit:
    from pydantic import SecretStr

    vendor = _service(options)
    if options.given:
        hint = "It comes on standard input; where it was typed other programs and the shell's history could read it, so get a new one."
        raise ConfigError("A key is not taken from the command line.", code="USAGE", hint=hint)
    where = _keys(options).save(vendor, SecretStr(_secret(vendor)))
    if out.as_json:
        out.document({"service": vendor.name, "source": where})
    out.line(
        f"The key of {vendor.title} is kept in the {'system’s keyring' if where == 'keyring' else 'key file, which only you can read'}."
    )
    if (stronger := _keys(options).source(vendor)) == "environment":
        out.note(f"The {stronger} has a key for {vendor.title} too, which is used first.")
    return Exit.DONE


def _forget_key(options: argparse.Namespace, out: Output) -> Exit:
    vendor, store = _service(options), _keys(options)
    store.forget(vendor)
    left = store.source(vendor)
    if out.as_json:
        out.document({"service": vendor.name, "source": left})
    out.line(
        f"No key of {vendor.title} is kept."
        if left is None
        else f"The {left} still has a key for {vendor.title}."
    )
    return Exit.DONE


_LONGEST_KEY: Final = 20_000


def _secret(vendor: Vendor) -> str:
    """From standard input, on a terminal asked for without an echo; never from the command line, where other programs can see it."""
    if on_terminal(sys.stdin):
        from getpass import getpass

        return getpass(f"Key of {vendor.title} (it is not shown): ")
    key = sys.stdin.readline(_LONGEST_KEY + 1)
    if len(key) > _LONGEST_KEY:
        raise UsageError(f"The key is longer than {_LONGEST_KEY:,} characters.")
    return key


def _services(options: argparse.Namespace) -> list[Vendor]:
    """The services that take a key."""
    from obsidian_agent.providers.registry import known_vendors

    return [
        each
        for each in known_vendors(settings_of(options).current.services)
        if each.needs_key or each.base_url is None
    ]


def _service(options: argparse.Namespace) -> Vendor:
    vendors = {vendor.name: vendor for vendor in _services(options)}
    _known("service", options.service, list(vendors))
    return vendors[options.service]


def _keys(options: argparse.Namespace) -> KeyStore:
    from obsidian_agent.providers.keys import KEY_FILE, KeyStore
    from obsidian_agent.state_files import directories

    return KeyStore(directories(options.state_dir, options.config).config.parent / KEY_FILE)
