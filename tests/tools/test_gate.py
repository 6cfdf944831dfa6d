"""Every path argument of every tool passes the one gate."""

from __future__ import annotations

from typing import Any

import pytest

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.plan.arguments import marks_of
from obsidian_agent.tools.core.tool import Tool
from obsidian_agent.tools.registry import TOOLS

REST: dict[str, dict[str, Any]] = {
    "vault.createFile": {"content": "x"},
    "vault.writeFile": {"content": "x"},
    "vault.updateFile": {"content": "x", "mode": "append", "create": True},
    "vault.replaceText": {"find": "a", "replace": "b"},
    "vault.rename": {"from": "a.md", "to": "b.md", "overwrite": True},
    "vault.delete": {"recursive": True},
    "vault.setFrontmatter": {"set": {"a": 1}},
    "vault.searchText": {"query": "a"},
    "vault.renameTag": {"from": "a", "to": "b"},
    "vault.renameProperty": {"from": "a", "to": "b"},
    "vault.takeSection": {"path": "a.md", "heading": "H"},
    "vault.retargetLinks": {"from": "b.md", "to": "a.md"},
    "vault.convertLinks": {"to": "markdown"},
    "vault.linkMentions": {"to": "a.md"},
    "vault.addLines": {"path": "a.md", "content": "x"},
    "vault.takeLines": {"path": "a.md", "text": "a"},
    "vault.takeTasks": {"path": "a.md"},
    "vault.arrangeLists": {"sort": "az"},
    "vault.changeHeading": {"heading": "H", "to": "I"},
    "vault.shiftHeadings": {"by": 1},
    "util.noteBody": {"path": "a.md"},
    "vault.addTableRow": {"text": "x"},
    "vault.addTask": {"text": "x"},
    "vault.setTaskDue": {"text": "x", "due": "2026-01-01"},
    "vault.removeValues": {"property": "p", "values": ["a"]},
    "vault.addValues": {"property": "p", "values": ["a"]},
}

PLACES = [
    (tool, name, marks.items is not None)
    for tool in TOOLS.values()
    for name, marks in marks_of(tool.input).fields.items()
    if marks.path or (marks.items is not None and marks.items.path)
]

HOSTILE = [
    "../outside.md",
    "a/../../outside.md",
    "..\\outside.md",
    "/etc/passwd",
    "C:\\x.md",
    "~/x.md",
    "file:///etc/passwd",
    "%2e%2e/outside.md",
    ".obsidian/app.json",
    ".git/config",
    ".trash/old.md",
    "a.md\x00",
    "link/secret.md",
    "way/secret.md",
]


def test_the_gate_is_tried_on_every_tool_with_a_path():
    assert {tool.name for tool, _, _ in PLACES} >= (REST.keys() & TOOLS.keys()) | {
        "vault.ensureFolder",
        "vault.readFile",
        "vault.readFiles",
        "vault.listFiles",
    }
    assert {name for tool, name, _ in PLACES if tool.name == "vault.replaceText"} == {"path", "folder", "paths"}


@pytest.mark.parametrize(("tool", "name", "many"), PLACES, ids=lambda value: value.name if isinstance(value, Tool) else str(value))
def test_no_path_argument_leaves_the_vault(bench, tmp_path, tool, name, many):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "secret.md").write_text("a secret")
    vault = bench({"a.md": "a\n# H\n", "b.md": "b", ".obsidian/app.json": "{}", ".trash/old.md": "a", ".git/config": "a"})
    (vault.folder / "link").symlink_to(outside)
    (vault.folder / "way").symlink_to("../elsewhere")
    codes = {path: _refusal(vault, tool, {**REST.get(tool.name, {}), name: [path] if many else path}) for path in HOSTILE}
    assert set(codes.values()) <= {"PATH_OUTSIDE_VAULT", "PATH_NOT_ALLOWED", "PATH_INVALID"}, codes
    assert vault.changes() == []


def _refusal(vault, tool, args):
    """The code with which a call is refused; `vault.readFiles` tells it in the file's place."""
    if tool is TOOLS["vault.readFiles"]:
        return vault.run(tool.name, **args)["files"][0]["error"].partition(":")[0]
    try:
        vault.run(tool.name, **args)
    except ObsidianAgentError as error:
        return error.code
    return "not refused"
