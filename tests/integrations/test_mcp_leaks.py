"""Random calls over every MCP tool and every argument, against a vault with notes that are not shared.

The same calls go to a second vault that holds nothing but the shared notes. A client that gets the
same answers from both learns nothing of the others. `OBSIDIAN_AGENT_LEAK_CALLS` sets how many.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client

from obsidian_agent.agent.turn.tool_round import Scrubber
from obsidian_agent.bootstrap import Wiring, build_shared_vault
from obsidian_agent.integrations.mcp_server import Calls, server
from obsidian_agent.integrations.shared_vault import UPDATES_LINKS
from obsidian_agent.tools.core.tool import Tool
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.filesystem.store import VaultStore
from support import content_of, settings_with

CALLS: Final = int(os.environ.get("OBSIDIAN_AGENT_LEAK_CALLS", "100"))
SEEDS: Final = (1, 2)
NOW: Final = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)

SHARED: Final = {
    "Shared/Plan.md": "---\nstatus: active\naliases: [Blueprint]\ntags: [work]\n---\n# Goals\n"
    "See [[Team]], [[Diary]] and ![[Falcon]].\n- [ ] call Ada 📅 2026-03-01\n- [x] done\n\n"
    "| a | b |\n| --- | --- |\n| 1 | 2 |\n",
    "Shared/Team.md": "Ada and Ben, #people/core\n\n## Notes\n- b\n- a\n- a\n\nkey:: value\n",
    "Shared/Sub/Idea.md": "A kite. [[Plan#Goals|the plan]] [t](../Team.md) [[Nothing]]\n",
    "Shared/Sub/2026-W10.md": "A week.\n",
    "Shared/Sub/Template.md": "{{title}} {{date}} {{time}}\n",
    "Shared/Board.canvas": '{"nodes": [{"id": "1", "type": "file", "file": "Shared/Plan.md"}]}',
    "Root.md": "At the root: [[Shared/Plan]] [[Private/Diary]]\n",
    "Mixed/Open.md": "Open, see [[Deep]] and [[Secret plans]]\n",
}
HIDDEN: Final = {
    "Private/Diary.md": "---\nstatus: active\naliases: [Team, Blueprint]\nCANARYprop: 1\n---\n"
    "CANARY1 launch #work #CANARYtag [[Plan]] [[Shared/Team|x]] ![[Idea]]\n- [ ] CANARY2 task\n",
    "Private/Plan.md": "CANARY3 [[Team]]\n",
    "Private/Falcon.md": "# CANARY4 heading\n## Goals\n",
    "Private/2026-W11.md": "CANARY5\n",
    "Private/Weeks/2026-W09.md": "CANARY6\n",
    "Private/Board.canvas": '{"nodes": [{"id": "1", "type": "file", "file": "Shared/Plan.md"}]}',
    "Private/All.base": 'filters: file.hasLink("Shared/Plan")\nviews: []\n',
    "Shared/Secret plans.md": "CANARY7 [[Plan]] [[Team]]\n",
    "Shared/Sub/secret.md": "CANARY8 [[Idea]] #people\n",
    "Shared/Closed/Team.md": "CANARY9\n",
    "Shared/Closed/Nothing.md": "CANARY10\n",
    "Mixed/Deep/Deep.md": "CANARY11 [[Open]]\n",
    "Mixed/Token.key": "CANARY12",
    "Diary.md": "CANARY13\n",
    ".trash/Plan.md": "CANARY14\n",
    ".trash/Team.md": "CANARY15\n",
    ".obsidian/daily-notes.json": '{"folder": "Private/CANARY16", "format": "[CANARY17] YYYY"}',
    ".obsidian/templates.json": '{"folder": "Private", "dateFormat": "[CANARY18]"}',
    ".obsidian/workspace.json": '{"lastOpenFiles": ["Private/Diary.md", "Diary.md"]}',
    ".obsidian-agent/macros/x.json": '{"goal": "CANARY19"}',
}
LINKS: Final = {
    "Shared/Way": "../Private",
    "Shared/Door.md": "../Private/Diary.md",
    "Shared/Inside.md": "Secret plans.md",
}
HARD_LINKS: Final = {"Shared/Hard.md": "Private/Falcon.md"}
"""Another name of a file that is not shared."""
OUTSIDE: Final = {"Shared/Out": "../../outside"}
"""A link that leads out of the vault: its name is shared, and it is never followed."""
OWN: Final = "vault/.obsidian-agent/vault.json"
"""The id of the vault, which the program writes with the first run."""
PERIODS: Final = ("day", "week", "month", "quarter", "year")
PATHS: Final = (
    *SHARED,
    *HIDDEN,
    *LINKS,
    *HARD_LINKS,
    *OUTSIDE,
    "",
    *("Shared", "Shared/Sub", "Shared/Closed", "Mixed", "Mixed/Deep", "Private", "Private/Weeks"),
    *("Shared/Way/Diary.md", "Shared/Out/file.md", "Shared/Way/New.md", "Shared/Door"),
    *("Plan", "Diary", "Secret plans", "shared/secret PLANS.md", "Shared/Sub/Secret"),
    *("New.md", "Shared/New.md", "Private/New.md", "Shared/Closed/New.md", "Mixed/Deep/New.md"),
    *("Shared/AGENTS.md", "Shared/Sub/CLAUDE.md", "Elsewhere", "Shared/Elsewhere", "Nowhere/x.md"),
    *("../outside/file.md", "/etc/passwd", "~/x", ".trash", "${vaultName}.md", "$activeFile"),
)
WORDS: Final = (
    *("launch", "Plan", "Diary", "status", "active", "Goals", "work", "#people", "key", "a", "."),
    *("Team", "Blueprint", "Falcon", "2026-03-01", "open", "Secret", "Private", "Notes", "path"),
    *("(?i)canary", r"\[\[.*", "{{link}}", "${item.path}", "- b\n- a", "[[Plan]] [[Diary]]"),
)


class Vault:
    """A vault on disk behind an MCP server in this process."""

    def __init__(self, folder: Path, files: Mapping[str, str], links: Mapping[str, str]) -> None:
        self.folder = folder / "vault"
        (folder / "outside").mkdir(parents=True)
        (folder / "outside/file.md").write_text("CANARY0")
        for name, text in files.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            os.utime(file, (1e9, 1e9))
        for name, target in links.items():
            if name in HARD_LINKS:
                os.link(self.folder / target, self.folder / name)
            else:
                (self.folder / name).symlink_to(target)
        settings = settings_with(
            share_allow=("Shared/**", "Root.md", "Mixed/*.md"),
            share_deny=("secret*", "Shared/Closed/**", "*.key"),
            tools_allow=("run_plan",),
            allow_deletes=True,
        )
        store = VaultStore.open(self.folder)
        wiring = Wiring(store, folder / "state", now=NOW, settings=settings, policy=None)
        self.shared = build_shared_vault(wiring)
        self.scrubber = Scrubber.of(store.real_path, str(folder / "state"))

    def client(self) -> Client:
        return Client(server(self.shared, self.scrubber, Calls()))

    def unshared(self) -> dict[str, str]:
        """Return every path that no rule shares, with its content, and all that lies outside."""
        found = {}
        for path in sorted(self.folder.parent.rglob("*")):
            name = path.relative_to(self.folder.parent).as_posix()
            if not name.startswith("state") and name != OWN and not _is_shared(name):
                found[name] = content_of(path)
        return found


def _is_shared(name: str) -> bool:
    """Return whether the rules above share `vault/…`, worked out by hand and not by the program."""
    parts = name.split("/")[1:]
    if any(re.fullmatch(r"secret.*|.*\.key", part, re.IGNORECASE) for part in parts):
        return False
    match parts:
        case ["Shared", "Closed" | "Way" | "Out" | "Door.md" | "Inside.md", *_]:
            return False
        case ["Shared", *_] | ["Root.md"]:
            return True
        case ["Mixed", file]:
            return file.endswith(".md")
        case _:
            return False


class Caller:
    """Makes up calls. The same seed makes the same ones."""

    def __init__(self, seed: int, tools: Iterable[Tool] = TOOLS.values()) -> None:
        self.random = random.Random(seed)
        self.tools = list(tools)
        self.schemas = {name: tool.input.model_json_schema() for name, tool in TOOLS.items()}

    def reading(self) -> tuple[str, dict[str, Any]]:
        """Return a call that changes nothing."""
        path, word = self.path(), self.random.choice(WORDS)
        calls: list[tuple[str, dict[str, Any]]] = [
            ("read_note", {"path": path}),
            ("read_multiple_notes", {"paths": self.random.choices(PATHS, k=3)}),
            ("list_directory", {"path": path}),
            ("get_frontmatter", {"path": path}),
            ("get_backlinks", {"path": path}),
            ("search_notes", {"query": word, "offset": self.random.choice((0, 1))}),
            ("search_notes", self.some(query=word, folder=path, tag=word, sort="modified")),
            ("search_notes", {"properties": {self.random.choice(WORDS): word}}),
            ("read_note", {"path": path, "section": word}),
            ("get_note_outline", {"path": path}),
            ("get_vault_overview", self.some(folder=path)),
            ("list_tasks", self.some(folder=path, text=word, status="all", dueBefore="2027-01-01")),
            ("list_tasks", self.some(path=path, tag=word)),
            ("get_periodic_note", self.some(period=self.random.choice(PERIODS), offset=1)),
            ("propose_note", {"path": path, "content": word}),
            ("propose_append", {"path": path, "content": word}),
            ("propose_properties", {"path": path, "addTags": ["x"]}),
            ("propose_move", {"path": path, "to": self.path()}),
            ("propose_plan", {"plan": self.plan()}),
            *[("preview_plan", {"plan": self.plan()})] * 20,
        ]
        return self.random.choice(calls)

    def some(self, **args: Any) -> dict[str, Any]:
        """Return some of these arguments."""
        return {name: value for name, value in args.items() if self.random.random() < 0.5}

    def path(self) -> str:
        """Return a path, half of the time one of a shared note: other calls soon fail."""
        return self.random.choice(self.random.choice((list(SHARED), PATHS)))

    def plan(self) -> dict[str, Any]:
        """Return a plan of some tools, each with a note that copies what came out of it."""
        steps: list[dict[str, Any]] = []
        for number, tool in enumerate(self.random.choices(self.tools, k=2)):
            args = self.args(tool)
            step: dict[str, Any] = {"id": f"s{number}", "tool": tool.name, "args": args}
            if self.random.random() < 0.2:
                paths = self.random.choices(PATHS, k=3)
                step["foreach"] = {"from": paths, "itemName": "item"}
                step["args"] = args | {key: "${item}" for key in args if key in PATH_NAMES}
            told = {"path": f"Shared/Told{number}.md", "content": f"${{steps.s{number}|json}}"}
            copy = {"id": f"t{number}", "tool": "vault.writeFile", "args": told}
            steps += [step, copy]
        return {
            "version": "1.0",
            "goal": "Look around",
            "riskLevel": "writes",
            "steps": [step | {"onError": self.random.choice(("skip", "stop"))} for step in steps],
        }

    def args(self, tool: Tool) -> dict[str, Any]:
        """Return arguments for a tool, made up from its schema."""
        schema = self.schemas[tool.name]
        return self.value("", schema, schema)

    def value(self, name: str, schema: dict[str, Any], root: dict[str, Any]) -> Any:
        if "$ref" in schema:
            return self.value(name, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        if "anyOf" in schema:
            some = [each for each in schema["anyOf"] if each.get("type") != "null"]
            return self.value(name, self.random.choice(some), root)
        match schema.get("type"):
            case "object" if "properties" in schema:
                required = schema.get("required", ())
                few = 0.3 if len(schema["properties"]) < 12 else 0.12
                return {
                    key: self.value(key, below, root)
                    for key, below in schema["properties"].items()
                    if key in required or self.random.random() < few
                }
            case "object":
                return {self.random.choice(WORDS): self.random.choice(WORDS)}
            case "array":
                items = schema.get("items", {})
                return [self.value(name, items, root) for _ in range(self.random.randint(1, 3))]
            case "boolean":
                return self.random.random() < 0.5
            case "integer" | "number":
                return self.random.randint(0, 3)
            case _ if "pattern" in schema:
                return self.random.choice(("open", "done", "any", "none"))
            case _ if name in PATH_NAMES:
                return self.path()
            case _:
                return self.random.choice((*WORDS, *PATHS))


PATH_NAMES: Final = frozenset(
    ("path", "from", "to", "into", "folder", "paths", "filePaths", "files", "linksTo", "linkedFrom")
)


async def answer(client: Client, call: tuple[str, dict[str, Any]]) -> str:
    """Return all that a client gets, without what differs from one call to the next."""
    result = await client.call_tool(*call)
    text = "".join(part.text for part in result.content if part.type == "text")
    text += json.dumps(result.structured_content)
    text = re.sub(r'((created|mtime)\w*\\*"?: ?)[\d.]+', r"\1…", text)
    text = re.sub(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b", "…", text)
    return re.sub(r"\b[0-9a-f]{12}\b", "…", text)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_client_gets_the_same_answers_where_nothing_is_hidden(
    tmp_path: Path, seed: int
) -> None:
    whole = Vault(tmp_path / "a", SHARED | HIDDEN, LINKS | OUTSIDE | HARD_LINKS)
    bare = Vault(tmp_path / "b", SHARED, OUTSIDE)
    caller, different = Caller(seed), []
    valid = 0
    async with whole.client() as one, bare.client() as other:
        for _ in range(CALLS):
            call = caller.reading()
            told, expected = await answer(one, call), await answer(other, call)
            valid += '"valid": true' in told
            if told != expected or "CANARY" in told or str(whole.folder) in told:
                different.append(f"{call}\n  {told}\n  {expected}")
    assert not different, "\n".join(different)
    assert valid > CALLS // 20, "most plans fail, so the answers say little"


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_call_changes_what_is_not_shared(tmp_path: Path, seed: int) -> None:
    caller, ran = Caller(seed), 0
    for batch in range(CALLS // 25):
        vault = Vault(tmp_path / str(batch), SHARED | HIDDEN, LINKS | OUTSIDE | HARD_LINKS)
        before = vault.unshared()
        async with vault.client() as client:
            calls = [("run_plan", {"plan": caller.plan()}) for _ in range(25)]
            answers = [await answer(client, call) for call in calls]
        ran += sum('"runId"' in told for told in answers)
        assert "CANARY" not in "\n".join(answers)
        assert vault.unshared() == before
    assert ran > CALLS // 50, "hardly a plan ran"


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_client_learns_nothing_from_what_runs_and_what_is_refused(
    tmp_path: Path, seed: int
) -> None:
    """Two things do tell: a link in a hidden note that had to follow, and a name that is taken."""
    tools = [tool for tool in TOOLS.values() if tool.name not in UPDATES_LINKS]
    caller, different, ran = Caller(seed, tools), [], 0
    for batch in range(CALLS // 10):
        folder = tmp_path / str(batch)
        whole = Vault(folder / "a", SHARED | HIDDEN, OUTSIDE)
        bare = Vault(folder / "b", SHARED, OUTSIDE)
        async with whole.client() as one, bare.client() as other:
            for _ in range(10):
                call = ("run_plan", {"plan": caller.plan()})
                told, expected = await answer(one, call), await answer(other, call)
                ran += '"runId"' in told
                if told != expected or "CANARY" in told:
                    different.append(f"{call}\n  {told}\n  {expected}")
    assert not different, "\n".join(different)
    assert ran > CALLS // 50, "hardly a plan ran"
