from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from obsidian_agent.tools.core.tool import Risk
from obsidian_agent.tools.registry import (
    _MODULES,
    TOOLS,
    aliases,
    defined_tools,
    from_wire,
    wire_name,
)

READ_ONLY = {
    "vault.readFile",
    "vault.readFiles",
    "vault.searchText",
    "vault.listFiles",
    "editor.getSelection",
    "editor.getActiveFilePath",
    "workspace.openFile",
    "workspace.getContext",
    "commands.list",
    "util.parseMarkdownBullets",
    "util.parseHeadings",
    "util.parseTasks",
    "util.formatList",
    "util.slugifyTitle",
}
WRITES = {
    "vault.ensureFolder",
    "vault.createFile",
    "vault.writeFile",
    "vault.updateFile",
    "vault.replaceText",
    "vault.rename",
    "vault.delete",
    "vault.setFrontmatter",
    "editor.replaceSelection",
    "editor.insertAtCursor",
}


def test_the_tools_and_their_risks():
    expected = {
        **dict.fromkeys(READ_ONLY, Risk.READ_ONLY),
        **dict.fromkeys(WRITES, Risk.WRITES),
        "commands.run": Risk.COMMANDS,
    }
    assert expected.items() <= {name: tool.risk for name, tool in TOOLS.items()}.items()
    assert [name for name, tool in TOOLS.items() if tool.deletes] == ["vault.delete"]
    assert [name for name, tool in TOOLS.items() if tool.opaque] == ["commands.run"]


def test_every_tool_has_a_schema_in_camel_case():
    for tool in TOOLS.values():
        for model in (tool.input, tool.output):
            schema = json.dumps(model.model_json_schema())
            assert not re.search(r'"[a-z]+_[a-z_]*": \{"', schema), tool.name
        assert tool.summary.endswith(".")
        assert tool.input.model_json_schema()["additionalProperties"] is False


def test_names_on_the_wire_come_back():
    for name in TOOLS:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", wire_name(name))
        assert from_wire(wire_name(name)) == name
        assert from_wire(name) == name


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("file_read", "vault.readFiles"),
        ("read_vault_file", "vault.readFile"),
        ("list_vault_files", "vault.listFiles"),
        ("vault_search", "vault.searchText"),
        ("obsidian.create_note", "vault.createFile"),
        ("obsidian__update_note", "vault.updateFile"),
        ("vault__nothing", "vault__nothing"),
        ("rm", "rm"),
    ],
)
def test_aliases(called, name):
    assert from_wire(called) == name


def test_aliases_are_no_names():
    assert not aliases().keys() & TOOLS.keys()
    assert set(aliases().values()) <= TOOLS.keys()


def test_a_name_belongs_to_one_tool():
    tools = set(defined_tools())
    spellings = [
        spelling
        for tool in tools
        for name in (tool.name, *tool.aliases)
        for spelling in {name, wire_name(name)}
    ]
    assert sorted(spellings) == sorted(set(spellings))
    assert {tool.name for tool in tools} == set(TOOLS)


@pytest.mark.parametrize("name", _MODULES)
def test_a_tool_is_at_the_place_that_the_table_tells(name):
    assert TOOLS[name].name == name


def test_a_tool_is_imported_without_the_others():
    code = "import sys; from obsidian_agent.tools.registry import TOOLS; TOOLS['vault.createFile'], 'vault.find' in TOOLS; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    packages = {"files", "links", "search", "text", "properties", "editor", "workspace"}
    found = {
        name
        for name in loaded
        if name.startswith("obsidian_agent.tools.") and name.split(".")[2] in packages
    }
    assert found == {
        "obsidian_agent.tools.files",
        "obsidian_agent.tools.files.create",
        "obsidian_agent.tools.files.move",
    }
