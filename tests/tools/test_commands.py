from __future__ import annotations

from msgspec.structs import replace

from obsidian_agent.tools.commands import CommandItem
from obsidian_agent.tools.core.tool import Risk
from obsidian_agent.tools.registry import TOOLS


def test_without_obsidian_there_are_no_commands(bench):
    assert bench().run("commands.list", filter="daily") == {"commands": [], "count": 0}


def test_running_a_command_is_never_previewed(bench):
    vault = bench()
    reload = CommandItem(id="app:reload", name="Reload without saving", source="app")
    vault.run_context = replace(vault.run_context, runs_commands=True, commands=lambda: (reload,))
    assert vault.run("commands.list", filter="RELOAD") == {
        "commands": [reload.model_dump()],
        "count": 1,
    }
    assert vault.refusal("commands.run", id="app:other") == "COMMANDS_UNAVAILABLE"
    assert vault.run("commands.run", id="app:reload") == {"id": "app:reload", "executed": False}
    assert vault.last.changes == ()
    assert (TOOLS["commands.run"].risk, TOOLS["commands.run"].opaque) == (Risk.COMMANDS, True)


def test_without_obsidian_no_command_can_be_run(bench):
    assert bench().refusal("commands.run", id="app:reload") == "COMMANDS_UNAVAILABLE"
