"""`companion`: our plugin in Obsidian. Install it, see which ways to Obsidian work, remove it. It is never enabled from here."""

from __future__ import annotations

import argparse
from importlib.resources import files
from typing import Final

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, Parser, actions, approval
from obsidian_agent.cli.session_factory import open_vault

_FILES: Final = ("manifest.json", "main.js")
_EXPERIMENTAL: Final = "Experimental: the plugin has not been tried in a real Obsidian yet."


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its actions."""
    known = actions(
        commands.add(
            "companion",
            None,
            examples=["companion install --vault ~/Notes", "companion status --vault ~/Notes"],
        )
    )
    install = known.add(
        "install",
        _install,
        summary="copy the plugin into the vault; you enable it in Obsidian yourself",
    )
    known.add(
        "status",
        _status,
        summary="which ways to a running Obsidian work now, and what to do for the others",
    )
    remove = known.add("remove", _remove, summary="delete the plugin's folder from the vault")
    for parser in (install, remove):
        approval(parser, "without asking")
        _config_folder(parser)


def _config_folder(parser: Parser) -> None:
    parser.add_argument(
        "--config-folder",
        metavar="NAME",
        help="Obsidian's own folder in the vault, where it is not the one that is found",
    )


def _install(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.obsidian.companion_client import PLUGIN_ID
    from obsidian_agent.vault.filesystem.app_folder import PluginFolder

    packaged = files("obsidian_agent.obsidian").joinpath("companion")
    wanted = {name: packaged.joinpath(name).read_bytes() for name in _FILES}
    folder = PluginFolder(open_vault(options), PLUGIN_ID, options.config_folder)
    stale = {name: data for name, data in wanted.items() if folder.read(name) != data}
    if stale and not out.confirmed(
        f"Copy the plugin to {folder.path}? Nothing else of Obsidian's settings is changed.",
        options.yes,
    ):
        return Exit.NOT_APPROVED
    folder.write(stale)
    steps = (
        "In Obsidian: Settings > Community plugins > Turn on community plugins, if it says so; then switch on Agent Companion.",
        "And: Settings > General > Command line interface, on.",
    )
    if out.as_json:
        out.document({"path": folder.path.text, "written": sorted(stale), "next": list(steps)})
    out.line(
        f"{'Copied to' if stale else 'Already in'} {folder.path}. Two clicks are left, which only you can do:"
    )
    for number, step in enumerate(steps, 1):
        out.line(f"  {number}. {step}")
    out.line("Then `obsidian-agent companion status` says whether it answers.")
    out.line(_EXPERIMENTAL)
    return Exit.DONE


def _status(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.bootstrap import open_obsidian

    status = open_obsidian(open_vault(options)).status()
    if out.as_json:
        ways = [
            {
                "name": channel.name,
                "can": list(channel.can),
                "works": channel.works,
                "why": channel.why,
            }
            for channel in status.channels
        ]
        out.document({"ways": ways, "best": status.best})
    for channel in status.channels:
        out.line(f"{'ok  ' if channel.works else 'no  '} {channel.name:10} {channel.why}")
        out.line(f"                {', '.join(channel.can)}")
    out.line(_EXPERIMENTAL)
    return Exit.DONE


def _remove(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.obsidian.companion_client import PLUGIN_ID
    from obsidian_agent.vault.filesystem.app_folder import PluginFolder

    folder = PluginFolder(open_vault(options), PLUGIN_ID, options.config_folder)
    there = folder.read("manifest.json") is not None
    if there and not out.confirmed(
        f"Delete {folder.path}, with the plugin's settings?", options.yes
    ):
        return Exit.NOT_APPROVED
    removed = there and folder.remove()
    if out.as_json:
        out.document({"path": folder.path.text, "removed": removed})
    out.line(f"Removed {folder.path}." if removed else f"There is no plugin in {folder.path}.")
    return Exit.DONE
