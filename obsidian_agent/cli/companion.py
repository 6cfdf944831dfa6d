"""`companion`: install or remove our Obsidian plugin, and check the connections to Obsidian.

The plugin is never enabled from here.
"""

from __future__ import annotations

import argparse
from importlib.resources import files
from typing import Final

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, Parser, add_actions, add_approval
from obsidian_agent.cli.session_factory import open_vault

_FILES: Final = ("manifest.json", "main.js")
_EXPERIMENTAL: Final = "Experimental: the plugin has not been tried in a real Obsidian yet."


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its actions."""
    action = add_actions(
        commands.add(
            "companion",
            None,
            examples=["companion install --vault ~/Notes", "companion status --vault ~/Notes"],
        )
    )
    install = action.add(
        "install",
        _install,
        summary="copy the plugin into the vault; you enable it in Obsidian",
    )
    action.add(
        "status",
        _status,
        summary="show which connections to Obsidian work, and how to set up the others",
    )
    remove = action.add("remove", _remove, summary="delete the plugin's folder from the vault")
    for parser in (install, remove):
        add_approval(parser)
        _config_folder(parser)


def _config_folder(parser: Parser) -> None:
    parser.add_argument(
        "--config-folder",
        metavar="NAME",
        help="Obsidian's configuration folder in the vault, if it is not detected",
    )


def _install(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.obsidian.companion_client import PLUGIN_ID
    from obsidian_agent.vault.filesystem.app_folder import PluginFolder

    packaged = files("obsidian_agent.obsidian").joinpath("companion")
    contents = {name: packaged.joinpath(name).read_bytes() for name in _FILES}
    folder = PluginFolder(open_vault(options), PLUGIN_ID, options.config_folder)
    stale = {name: data for name, data in contents.items() if folder.read(name) != data}
    if stale and not out.confirmed(
        f"Copy the plugin to {folder.path}? No other Obsidian settings are changed.",
        options.yes,
    ):
        return Exit.NOT_APPROVED
    folder.write(stale)
    steps = (
        "In Obsidian: Settings > Community plugins > Turn on community plugins, if they are off. "
        "Then enable Agent Companion.",
        "In Obsidian: Settings > General > Command line interface: turn it on.",
    )
    if out.as_json:
        out.document({"path": folder.path.text, "written": sorted(stale), "next": list(steps)})
    state = "Copied to" if stale else "Already in"
    out.line(f"{state} {folder.path}. Two steps are left, which you do in Obsidian:")
    for number, step in enumerate(steps, 1):
        out.line(f"  {number}. {step}")
    out.line("Check the connection with: obsidian-agent companion status")
    out.line(_EXPERIMENTAL)
    return Exit.DONE


def _status(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.bootstrap import open_obsidian

    status = open_obsidian(open_vault(options)).status()
    if out.as_json:
        channels = [
            {
                "name": channel.name,
                "can": list(channel.can),
                "works": channel.works,
                "why": channel.why,
            }
            for channel in status.channels
        ]
        out.document({"ways": channels, "best": status.best})
    for channel in status.channels:
        out.line(f"{'ok  ' if channel.works else 'no  '} {channel.name:10} {channel.why}")
        out.line(f"                {', '.join(channel.can)}")
    out.line(_EXPERIMENTAL)
    return Exit.DONE


def _remove(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.obsidian.companion_client import PLUGIN_ID
    from obsidian_agent.vault.filesystem.app_folder import PluginFolder

    folder = PluginFolder(open_vault(options), PLUGIN_ID, options.config_folder)
    is_installed = folder.read("manifest.json") is not None
    if is_installed and not out.confirmed(
        f"Delete {folder.path}, with the plugin's settings?", options.yes
    ):
        return Exit.NOT_APPROVED
    removed = is_installed and folder.remove()
    if out.as_json:
        out.document({"path": folder.path.text, "removed": removed})
    out.line(f"Removed {folder.path}." if removed else f"There is no plugin in {folder.path}.")
    return Exit.DONE
