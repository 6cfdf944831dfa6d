from __future__ import annotations

from dataclasses import replace

import pytest

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.tool import Risk
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.tools.workspace import Command


def test_open_file(bench):
    vault = bench({"a#b.md": ""})
    assert vault.run("workspace.openFile", path="a#b.md", line=3, newPane=False) == {"path": "a#b.md", "opened": False, "via": "none"}
    vault.run_context = replace(vault.run_context, has_screen=True)
    assert vault.run("workspace.openFile", path="a#b.md") == {"path": "a#b.md", "opened": True, "via": "app"}
    assert TOOLS["workspace.openFile"].risk is Risk.READ_ONLY
    vault.run("vault.createFile", path="new.md", content="")
    assert vault.run("workspace.openFile", path="new.md")["opened"] is True


@pytest.mark.parametrize(("path", "code"), [("no.md", "FILE_NOT_FOUND"), ("D", "NOT_TEXT"), ("../x.md", "PATH_OUTSIDE_VAULT")])
def test_open_file_needs_a_file(bench, path, code):
    assert bench({"D/": ""}).refusal("workspace.openFile", path=path) == code


@pytest.mark.parametrize("has_screen", [True, False])
def test_a_new_pane_is_refused_where_nothing_has_panes(bench, has_screen):
    vault = bench({"a.md": ""})
    vault.run_context = replace(vault.run_context, has_screen=has_screen)
    with pytest.raises(ToolError) as caught:
        vault.propose("workspace.openFile", path="a.md", newPane=True)
    assert caught.value.problem().code == "ARGUMENT_INVALID"
    assert "newPane" in caught.value.problem().message


def test_get_context(bench):
    vault = bench({"a.md": "text"}, active="a.md", selected=("text", None, None), open_files=("a.md",))
    assert vault.run("workspace.getContext") == {
        "vaultName": vault.folder.name,
        "activeFilePath": "a.md",
        "selection": "text",
        "openFiles": ["a.md"],
        "recentFiles": [],
    }


def test_get_context_of_nothing_open(bench):
    vault = bench()
    expected = {"vaultName": vault.folder.name, "activeFilePath": None, "openFiles": [], "recentFiles": []}
    assert vault.run("workspace.getContext") == expected
    assert vault.last.output.model_dump(by_alias=True, exclude_unset=True) == expected


def test_without_obsidian_there_are_no_commands(bench):
    assert bench().run("commands.list", filter="daily") == {"commands": [], "count": 0}


def test_running_a_command_is_never_previewed(bench):
    vault = bench()
    reload = Command(id="app:reload", name="Reload without saving", source="app")
    vault.run_context = replace(vault.run_context, runs_commands=True, commands=lambda: (reload,))
    assert vault.run("commands.list", filter="RELOAD") == {"commands": [reload.model_dump()], "count": 1}
    assert vault.refusal("commands.run", id="app:other") == "COMMANDS_UNAVAILABLE"
    assert vault.run("commands.run", id="app:reload") == {"id": "app:reload", "executed": False}
    assert vault.last.changes == ()
    assert (TOOLS["commands.run"].risk, TOOLS["commands.run"].opaque) == (Risk.COMMANDS, True)


def test_without_obsidian_no_command_can_be_run(bench):
    assert bench().refusal("commands.run", id="app:reload") == "COMMANDS_UNAVAILABLE"
