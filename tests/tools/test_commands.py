from __future__ import annotations

from dataclasses import replace

import pytest

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.tool import Risk
from obsidian_agent.tools.editor.workspace import LIST_COMMANDS, RUN_COMMAND


def test_without_obsidian_there_are_no_commands(bench):
    assert bench().run(LIST_COMMANDS, filter="daily") == {"commands": [], "count": 0}


def test_running_a_command_is_never_previewed(bench):
    vault = bench()
    vault.run_context = replace(vault.run_context, runs_commands=True)
    assert vault.run(RUN_COMMAND, id="app:reload") == {"id": "app:reload", "executed": False}
    assert vault.last.changes == ()
    assert (RUN_COMMAND.risk, RUN_COMMAND.opaque) == (Risk.COMMANDS, True)


def test_without_obsidian_no_command_can_be_run(bench):
    with pytest.raises(ToolError) as caught:
        bench().propose(RUN_COMMAND, id="app:reload")
    assert caught.value.problem().code == "COMMANDS_UNAVAILABLE"
