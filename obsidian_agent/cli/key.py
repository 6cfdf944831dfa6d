"""`key`: the API keys of model services. Needs no vault. Keys are never displayed."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from obsidian_agent.cli.config import check_known
from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output, on_terminal
from obsidian_agent.cli.parser import Commands, UsageError, add_actions
from obsidian_agent.cli.session_factory import settings_of
from obsidian_agent.errors import ConfigError

if TYPE_CHECKING:
    from obsidian_agent.providers.keys import KeyStore
    from obsidian_agent.providers.registry import Vendor

MAX_KEY_LENGTH: Final = 20_000


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its actions."""
    examples = ["key list", "key save openai < openai.key", "key forget openai"]
    action = add_actions(commands.add("key", None, examples=examples))
    action.add("list", _list, summary="list services, and the source of each key")
    command = action.add(
        "save",
        _save,
        summary=(
            "read a key from standard input and store it in the system's keyring, or else in a "
            "private file"
        ),
    )
    command.add_argument("service", metavar="SERVICE")
    command.add_argument("key", nargs="*", help=argparse.SUPPRESS)
    command = action.add(
        "forget", _forget, summary="remove a key from the keyring and the key file"
    )
    command.add_argument("service", metavar="SERVICE")


def _list(options: argparse.Namespace, out: Output) -> Exit:
    """Print `{keys[{service, source}]}`. A source is environment, keyring, file or null."""
    store = _keys(options)
    sources = {vendor.name: store.source(vendor) for vendor in _services(options)}
    if out.as_json:
        keys = [{"service": service, "source": source} for service, source in sources.items()]
        out.document({"keys": keys})
    for service, source in sources.items():
        out.line(f"{service:14} {source or 'no key'}")
    return Exit.DONE


def _save(options: argparse.Namespace, out: Output) -> Exit:
    from pydantic import SecretStr

    vendor = _service(options)
    if options.key:
        raise ConfigError(
            "A key is not accepted on the command line.",
            code="USAGE",
            hint=(
                "Pass it on standard input. Other programs and the shell's history could read "
                "the one you typed, so replace it with a new one."
            ),
        )
    store = _keys(options)
    location = store.save(vendor, SecretStr(_read_key(vendor)))
    if out.as_json:
        out.document({"service": vendor.name, "source": location})
    names = {"keyring": "the system’s keyring"}
    target = names.get(location, "the key file, which only you can read")
    out.line(f"The key of {vendor.title} is stored in {target}.")
    if store.source(vendor) == "environment":
        out.note(f"The environment also has a key for {vendor.title}, which is used first.")
    return Exit.DONE


def _forget(options: argparse.Namespace, out: Output) -> Exit:
    vendor, store = _service(options), _keys(options)
    store.forget(vendor)
    source = store.source(vendor)
    if out.as_json:
        out.document({"service": vendor.name, "source": source})
    if source is None:
        out.line(f"No key of {vendor.title} is stored.")
    else:
        out.line(f"The {source} still has a key for {vendor.title}.")
    return Exit.DONE


def _read_key(vendor: Vendor) -> str:
    """Read a key from standard input, or from the terminal without echo.

    Other programs could see an argument of the command line.
    """
    if on_terminal(sys.stdin):
        from getpass import getpass

        return getpass(f"Key of {vendor.title} (hidden): ")
    key = sys.stdin.readline(MAX_KEY_LENGTH + 1)
    if len(key) > MAX_KEY_LENGTH:
        raise UsageError(f"The key is longer than {MAX_KEY_LENGTH:,} characters.")
    return key


def _services(options: argparse.Namespace) -> list[Vendor]:
    """Return the services that accept a key."""
    from obsidian_agent.providers.registry import known_vendors

    return [
        vendor
        for vendor in known_vendors(settings_of(options).current.services)
        if vendor.needs_key or vendor.base_url is None
    ]


def _service(options: argparse.Namespace) -> Vendor:
    vendors = {vendor.name: vendor for vendor in _services(options)}
    check_known("service", options.service, list(vendors))
    return vendors[options.service]


def _keys(options: argparse.Namespace) -> KeyStore:
    from obsidian_agent.providers.keys import KEY_FILE, KeyStore
    from obsidian_agent.state_files import directories

    return KeyStore(directories(options.state_dir, options.config).config.parent / KEY_FILE)
