from __future__ import annotations

from dataclasses import replace

import pytest

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.tool import Risk
from obsidian_agent.tools.registry import TOOLS


def test_without_obsidian_there_are_no_commands(bench):
    assert bench().run("commands.list", filter="daily") == {"commands": [], "count": 0}


def test_running_a_command_is_never_previewed(bench):
    vault = bench()
    vault.run_context = replace(vault.run_context, runs_commands=True)
    assert vault.run("commands.run", id="app:reload") == {"id": "app:reload", "executed": False}
    assert vault.last.changes == ()
    assert (TOOLS["commands.run"].risk, TOOLS["commands.run"].opaque) == (Risk.COMMANDS, True)


def test_without_obsidian_no_command_can_be_run(bench):
    with pytest.raises(ToolError) as caught:
        bench().propose("commands.run", id="app:reload")
    assert caught.value.problem().code == "COMMANDS_UNAVAILABLE"
