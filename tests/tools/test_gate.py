"""Every path argument of every tool passes the one gate."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from obsidian_agent.bootstrap import Wiring, build_session, build_shared_vault
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.obsidian.companion_client import LiveContext
from obsidian_agent.plan.arguments import marks_of
from obsidian_agent.services.focus import live_focus
from obsidian_agent.tools.core.tool import Tool
from obsidian_agent.tools.registry import TOOLS
from support import settings_with

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
    "vault.renameValue": {"property": "p", "from": ["a"], "to": "b"},
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
    "vault.takeProperties": {"path": "a.md", "from": "b.md"},
    "vault.propertyFromHeading": {"property": "p"},
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
    assert {name for tool, name, _ in PLACES if tool.name == "vault.replaceText"} == {
        "path",
        "folder",
        "paths",
    }


@pytest.mark.parametrize(
    ("tool", "name", "many"),
    PLACES,
    ids=lambda value: value.name if isinstance(value, Tool) else str(value),
)
def test_no_path_argument_leaves_the_vault(bench, tmp_path, tool, name, many):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "secret.md").write_text("a secret")
    vault = bench(
        {
            "a.md": "a\n# H\n",
            "b.md": "b",
            ".obsidian/app.json": "{}",
            ".trash/old.md": "a",
            ".git/config": "a",
        }
    )
    (vault.folder / "link").symlink_to(outside)
    (vault.folder / "way").symlink_to("../elsewhere")
    codes = {
        path: _refusal(vault, tool, {**REST.get(tool.name, {}), name: [path] if many else path})
        for path in HOSTILE
    }
    assert set(codes.values()) <= {"PATH_OUTSIDE_VAULT", "PATH_NOT_ALLOWED", "PATH_INVALID"}, codes
    assert vault.changes() == []


def _refusal(vault, tool, args):
    """Return the code that refuses a call; `vault.readFiles` reports it for the file."""
    if tool is TOOLS["vault.readFiles"]:
        return vault.run(tool.name, **args)["files"][0]["error"].partition(":")[0]
    try:
        vault.run(tool.name, **args)
    except ObsidianAgentError as error:
        return error.code
    except ValidationError:
        return "SCHEMA_INVALID"
    return "not refused"


NEW_FILES = {"vault.createFile", "vault.writeFile"}
ONLY_FOR_NEW_NAMES = {
    "PATH_PORTABILITY",
    "PATH_UNICODE",
    "PATH_UNLINKABLE",
    "PATH_COLLISION",
    "PATH_LENGTH",
    "PATH_EXTENSION",
    "PATH_COMPONENT",
}
"""Forbidden new names; searching for such a file is harmless."""


def _cases(shared: Path) -> list[dict[str, Any]]:
    rows = [
        json.loads(line)
        for line in (shared / "data/cases/paths.jsonl").read_text("utf-8").splitlines()
    ]
    return [
        row
        for row in rows
        if row["expect"] == "deny"
        and not row.get("setup")
        and "gen" not in row
        and isinstance(row["path"], str)
        and row["op"] != "template"
    ]


def test_no_path_of_other_peoples_cases_is_taken_by_any_tool(bench, shared):
    """Every refused path through every path argument of every tool."""
    vault = bench({"a.md": "a\n# H\n", "b.md": "b"})
    taken = []
    for case in _cases(shared):
        # A note that instructs agents is a protected file; folders may be the vault.
        only_new = case["code"] in ONLY_FOR_NEW_NAMES or case["path"] == "AGENTS.md"
        for tool, name, many in PLACES:
            is_folder = name == "folder" or tool.name == "vault.ensureFolder"
            if (
                name == "into"
                or (only_new and tool.name not in NEW_FILES)
                or (case["code"] == "PATH_EMPTY" and is_folder)
            ):
                continue
            said = _refusal(
                vault,
                tool,
                {**REST.get(tool.name, {}), name: [case["path"]] if many else case["path"]},
            )
            if said == "not refused":
                taken.append((case["id"], tool.name, name, case["path"], case["code"]))
    assert taken == []
    assert vault.changes() == []


def test_nor_by_a_macro_a_client_or_a_message_of_the_companion(make_vault, tmp_path, shared):
    store = make_vault({"a.md": "a\n"})
    wiring = Wiring(store, tmp_path / "state", settings=settings_with(share_allow=["**"]))
    session, served = build_session(wiring), build_shared_vault(wiring)
    step = {"id": "c", "tool": "vault.createFile", "args": {"path": "${p}", "content": "x"}}
    plan = {
        "version": "1.0",
        "goal": "g",
        "riskLevel": "writes",
        "parameters": {"p": {"type": "text"}},
        "steps": [step],
    }
    taken = []
    for case in _cases(shared):
        with suppress(ObsidianAgentError):
            if session.plans.dry_run(plan, {"p": case["path"]}).valid:
                taken.append((case["id"], "macro", case["path"]))
        with suppress(ObsidianAgentError):
            taken.append(
                (case["id"], "client", served.read("vault.readFile", {"path": case["path"]}))
            )
        session.vault.focus = live_focus(
            LiveContext(
                ok=True,
                protocol=1,
                vault="v",
                active=case["path"],
                mode="source",
                open=(case["path"],),
            )
        )
        with suppress(ObsidianAgentError):
            context = session.plans.context()
            if context.active_file is not None or context.open_files:
                taken.append((case["id"], "companion", case["path"]))
    assert taken == []
