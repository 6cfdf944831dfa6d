from __future__ import annotations

import dataclasses
import json
import re

import pytest

from obsidian_agent.errors import ConfigError
from obsidian_agent.tools.core.tool import Risk
from obsidian_agent.tools.registry import TOOLS, aliases, by_name, from_wire, wire_name

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
    expected = {**dict.fromkeys(READ_ONLY, Risk.READ_ONLY), **dict.fromkeys(WRITES, Risk.WRITES), "commands.run": Risk.COMMANDS}
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
    tool = TOOLS["vault.ensureFolder"]
    for other in (tool, dataclasses.replace(tool, name="x.y", aliases=(tool.name,)), dataclasses.replace(tool, name="vault__ensureFolder")):
        with pytest.raises(ConfigError):
            by_name([tool, other])
