from __future__ import annotations

import pytest
from msgspec.structs import replace

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.tool import Risk
from obsidian_agent.tools.registry import TOOLS


def test_open_file(bench):
    vault = bench({"a#b.md": ""})
    assert vault.run("workspace.openFile", path="a#b.md", line=3, newPane=False) == {
        "path": "a#b.md",
        "opened": False,
        "via": "none",
    }
    vault.run_context = replace(vault.run_context, has_screen=True)
    assert vault.run("workspace.openFile", path="a#b.md") == {
        "path": "a#b.md",
        "opened": True,
        "via": "app",
    }
    vault.run_context = replace(vault.run_context, has_screen=False, has_desktop=lambda: True)
    assert vault.run("workspace.openFile", path="a#b.md")["via"] == "desktop"
    vault.run_context = replace(vault.run_context, has_screen=True)
    assert TOOLS["workspace.openFile"].risk is Risk.READ_ONLY
    vault.run("vault.createFile", path="new.md", content="")
    assert vault.run("workspace.openFile", path="new.md")["opened"] is True


@pytest.mark.parametrize(
    ("path", "code"),
    [("no.md", "FILE_NOT_FOUND"), ("D", "NOT_TEXT"), ("../x.md", "PATH_OUTSIDE_VAULT")],
)
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
    vault = bench(
        {"a.md": "text"}, active="a.md", selected=("text", None, None), open_files=("a.md",)
    )
    assert vault.run("workspace.getContext") == {
        "vaultName": vault.folder.name,
        "activeFilePath": "a.md",
        "selection": "text",
        "openFiles": ["a.md"],
        "recentFiles": [],
    }


def test_get_context_of_nothing_open(bench):
    vault = bench()
    expected = {
        "vaultName": vault.folder.name,
        "activeFilePath": None,
        "openFiles": [],
        "recentFiles": [],
    }
    assert vault.run("workspace.getContext") == expected
    assert vault.last.output.model_dump(by_alias=True, exclude_unset=True) == expected
