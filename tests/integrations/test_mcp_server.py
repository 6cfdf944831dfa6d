"""The vault for other agents, asked by the official client, in memory or through the command."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from msgspec.structs import replace

from obsidian_agent.agent.turn.tool_round import Scrubber
from obsidian_agent.bootstrap import Wiring, app_socket, build_shared_vault
from obsidian_agent.cli.main import main
from obsidian_agent.cli.parser import build_parser
from obsidian_agent.cli.session_factory import wiring_of
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import PlanError
from obsidian_agent.integrations import shared_vault
from obsidian_agent.integrations.mcp_server import MAX_PREVIEWS, Calls, server
from obsidian_agent.integrations.proposals import (
    SOCKET_VARIABLE,
    ClientProposal,
    Outcome,
    proposal_socket,
)
from obsidian_agent.integrations.shared_vault import SharedVault
from obsidian_agent.providers.other_agent import OUR_TOOL
from obsidian_agent.tools.search import search
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.keeper import IndexKeeper
from support import MakeVault, content_of

NOTES = {
    "Shared/Plan.md": "---\nstatus: active\n---\nThe launch is in May. [[Team]]\n",
    "Shared/Team.md": "Ada and Ben\n",
    "Shared/Deep/Idea.md": "A kite, see [[Plan]]\n",
    "Private/Diary.md": "The launch code is CANARY-1\n",
    "Private/Team.md": "CANARY-2, see [[Plan]]\n",
    "Shared/Secret.md": "CANARY-3 launch\n",
}
READ = {"id": "read", "tool": "vault.readFile", "args": {"path": "Private/Diary.md"}}
COPY = {
    "id": "copy",
    "tool": "vault.createFile",
    "args": {"path": "Shared/Copy.md", "content": "$steps.read.content"},
}
EDIT = {
    "id": "edit",
    "tool": "vault.updateFile",
    "args": {"path": "Shared/Team.md", "mode": "append", "content": "Cleo\n"},
}


def plan(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"version": "1.0", "goal": "Something", "riskLevel": "writes", "steps": list(steps)}


def tree(folder: Path) -> dict[str, str]:
    """Return every file and folder below `folder` with its text, or the target of a link."""
    return {
        path.relative_to(folder).as_posix(): content_of(path) for path in sorted(folder.rglob("*"))
    }


def write_all(vault: Path, files: dict[str, str]) -> None:
    """Write these files into a vault, with their folders."""
    for name, text in files.items():
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        (vault / name).write_text(text)


class Served:
    """A vault that is served, and what a client heard of it."""

    def __init__(self, vault: Path, folder: Path) -> None:
        self.vault, self.folder = vault, folder
        self.places = [
            "--vault",
            str(vault),
            "--state-dir",
            str(folder / "state"),
            "--config",
            str(folder / "config.toml"),
        ]

    def ask(self, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
        """Make these calls in one session; each answer, or `{"refused": text}`."""
        return self.with_client(lambda client: self.each(client, calls))

    def with_client(
        self, work: Callable[[Client], Awaitable[Any]], *, installed: bool = False
    ) -> Any:
        """Connect a client to the server of the command, which runs here or as a program."""
        words = ["mcp", "serve", *self.places]

        async def run() -> Any:
            if installed:
                command = [sys.executable, "-m", "obsidian_agent", *words]
                program = StdioServerParameters(command=command[0], args=command[1:])
                async with Client(program) as client:
                    return await work(client)
            wiring = wiring_of(build_parser("mcp").parse_args(words), app=True)
            with wiring.store:
                scrubber = Scrubber.of(wiring.store.real_path, str(wiring.state))
                served = server(build_shared_vault(wiring), scrubber, Calls())
                async with Client(served) as client:
                    return await work(client)

        return asyncio.run(run())

    async def each(
        self, client: Client, calls: tuple[tuple[str, dict[str, Any]], ...]
    ) -> list[dict[str, Any]]:
        answers = []
        for name, args in calls:
            result = await client.call_tool(name, args)
            text = "".join(part.text for part in result.content if part.type == "text")
            answers.append(
                {"refused": text}
                if result.is_error
                else result.structured_content or json.loads(text)
            )
        return answers


@pytest.fixture
def served(make_vault: MakeVault, tmp_path: Path) -> Served:
    make_vault(NOTES)
    (tmp_path / "config.toml").write_text(
        'share_allow = ["Shared/**"]\nshare_deny = ["Secret.md"]\n'
    )
    return Served(tmp_path / "vault", tmp_path)


def test_a_client_finds_the_tools_under_the_names_that_people_know(served: Served) -> None:
    async def names(client: Client) -> dict[str, set[str]]:
        return {
            tool.name: set(tool.input_schema["properties"])
            for tool in (await client.list_tools()).tools
        }

    promised = {
        "search_notes": {"limit", "query"},
        "read_note": {"path"},
        "read_multiple_notes": {"paths"},
        "list_directory": {"path"},
        "get_frontmatter": {"path"},
        "get_backlinks": {"path"},
        "preview_plan": {"plan"},
        "propose_plan": {"plan"},
    }
    offered = served.with_client(names, installed=True)
    assert {name: promised[name] & offered[name] for name in promised} == promised
    assert "run_plan" not in offered


def test_every_tool_says_what_it_does_and_what_its_arguments_mean(served: Served) -> None:
    async def listed(client: Client) -> Any:
        return (await client.list_tools()).tools, client.server_capabilities

    tools, capabilities = served.with_client(listed)
    assert capabilities.prompts is None, "there are none"
    assert capabilities.resources is not None
    for tool in tools:
        assert OUR_TOOL.fullmatch(tool.name), "agents in the app may call it"
        assert tool.title, tool.name
        assert tool.description, tool.name
        assert tool.output_schema is None, "a result is sent once, as text"
        hints = tool.annotations
        proposes = tool.name.startswith("propose_")
        assert (hints.read_only_hint, hints.idempotent_hint) == (not proposes, not proposes)
        assert (hints.destructive_hint, hints.open_world_hint) == (False, False)
        for name, field in tool.input_schema["properties"].items():
            assert field.get("description"), f"{tool.name}: {name}"
    schemas = {tool.name: tool.input_schema["properties"] for tool in tools}
    steps = schemas["propose_plan"]["plan"]["properties"]["steps"]["items"]
    assert {"id", "tool", "args", "foreach", "when"} <= steps["properties"].keys()


def test_the_plan_language_is_a_resource_and_a_tool(served: Served) -> None:
    async def read(client: Client) -> Any:
        (resource,) = (await client.list_resources()).resources
        (text,) = (await client.read_resource(resource.uri)).contents
        return text.model_dump()["text"], *await served.each(
            client,
            (
                ("get_plan_language", {}),
                ("get_plan_language", {"tools": ["vault.rename"]}),
                ("get_plan_language", {"tools": ["vault.renam"]}),
            ),
        )

    text, whole, some, none = served.with_client(read)
    assert whole == {"language": text}
    examples = [line for line in text.splitlines() if line.startswith('{"version":"1.0"')]
    assert len(examples) >= 2
    assert "vault.setFrontmatter*" in text
    assert "updateLinks" in some["tools"]
    assert "Did you mean 'vault.rename'?" in none["refused"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (("search_notes", {"query": "a", "limit": 0}), "'limit' must be at least 1"),
        (("search_notes", {"query": "a", "limit": 10**6}), "'limit' must be at most 50"),
        (("search_notes", {"query": "a", "offset": -1}), "'offset' must be at least 0"),
        (("search_notes", {"q": "a"}), "Unknown field 'q'."),
        (("read_note", {}), "'path' is missing."),
        (("read_note", {"path": 7}), "'path' must be text, not the number 7."),
        (("read_note", {"path": "Shared/Paln"}), "Did you mean 'Shared/Plan.md'?"),
        (("read_note", {"path": ""}), "'path' must have at least 1 character, not 0."),
        (("search_notes", {"query": "a" * 1001}), "must have at most 1,000 characters, not 1,001."),
        (("read_multiple_notes", {"paths": []}), "'paths' must have at least 1 item, not 0."),
        (("read_multiple_notes", {"paths": ["a", 1]}), "Item 2 of 'paths' must be text"),
        (("list_tasks", {"limit": 500}), "'limit' must be at most 200"),
        (("list_tasks", {"dueBefore": "soon"}), "'soon' is not a day (YYYY-MM-DD)"),
        (("propose_properties", {"path": "Shared/Team.md"}), "give at least one of set"),
        (("read_notes", {}), "There is no tool 'read_notes'. Did you mean 'read_note'?"),
    ],
)
def test_wrong_arguments_are_explained(
    served: Served, call: tuple[str, dict[str, Any]], sentence: str
) -> None:
    (answer,) = served.ask(call)
    assert sentence in answer["refused"]


MORE = {
    "Shared/Big/Garden plan.md": "---\ntags: [garden]\nstatus: active\naliases: [Backyard]\n---\n"
    "# Beds\nTomatoes and basil.\nA second line.\n\n# Tools\n- [ ] buy a spade 📅 2026-04-01\n"
    "- [x] rake\n",
    "Shared/Kitchen.md": "---\nstatus: [done]\n---\nBasil in the kitchen.\n- [ ] cook #food\n",
    "Shared/A/Twin.md": "One.\n",
    "Shared/B/Twin.md": "Two.\n",
    "Private/Backyard.md": "CANARY-4 Tomatoes and basil #garden\n- [ ] CANARY-5 📅 2026-03-01\n",
    "Private/Only here.md": "CANARY-6\n",
}


def test_notes_are_found_by_words_filters_and_names(served: Served) -> None:
    write_all(served.vault, MORE)
    found, quoted, active, tagged, latest, none = served.ask(
        ("search_notes", {"query": "basil tomatoes"}),
        ("search_notes", {"query": '"in the kitchen"'}),
        ("search_notes", {"query": "basil", "properties": {"status": "active"}}),
        ("search_notes", {"tag": "#garden"}),
        ("search_notes", {"folder": "Shared/Big"}),
        ("search_notes", {"query": "basil", "folder": "Shared/A"}),
    )
    garden = "Shared/Big/Garden plan.md"
    assert [match["path"] for match in found["matches"]] == [garden, "Shared/Kitchen.md"]
    assert found["matches"][0] == {
        "path": garden,
        "line": 7,
        "heading": "Beds",
        "preview": "Tomatoes and basil.\nA second line.",
    }
    assert quoted["matches"][0]["path"] == "Shared/Kitchen.md"
    for answer in (active, tagged, latest):
        assert [match["path"] for match in answer["matches"]] == [garden]
    assert none == {"matches": [], "total": 0, "hasMore": False}
    by_name, by_alias, twins, hidden = served.ask(
        ("read_note", {"path": "garden plan"}),
        ("read_note", {"path": "Backyard"}),
        ("read_note", {"path": "Twin"}),
        ("read_note", {"path": "Only here"}),
    )
    assert by_name["path"] == by_alias["path"] == garden
    assert "2 notes are called 'Twin': Shared/A/Twin.md, Shared/B/Twin.md" in twins["refused"]
    assert "Only here does not exist or is not shared" in hidden["refused"]
    write_all(served.vault, {"Shared/Typo.md": "A kitchn.\n"})
    first, second = served.ask(
        ("search_notes", {"query": "kitchn", "limit": 1}),
        ("search_notes", {"query": "kitchn", "limit": 1, "offset": 1}),
    )
    assert (first["matches"][0]["path"], first["hasMore"]) == ("Shared/Typo.md", True)
    assert (second["matches"][0]["path"], second["hasMore"]) == ("Shared/Kitchen.md", False)


def test_no_line_of_a_note_makes_an_answer_long(served: Served) -> None:
    line = "zeta " + "🎉" * 50_000
    note = f"---\nabout: {line}\n---\n# {line}\nzeta needle\n- [ ] {line}\n[[Plan|{line}]] [[{line}]]\n"
    write_all(served.vault, {"Shared/Long.md": note})
    answers = served.ask(
        ("search_notes", {"query": "zeta needle"}),
        ("list_tasks", {}),
        ("get_backlinks", {"path": "Plan"}),
        ("get_note_outline", {"path": "Long"}),
        ("get_frontmatter", {"path": "Long"}),
        ("get_vault_overview", {}),
        ("read_note", {"path": "Long", "section": "Nowhere"}),
        ("propose_append", {"path": "Long", "content": "x", "heading": "Nowhere"}),
    )
    for answer in answers:
        assert len(json.dumps(answer, ensure_ascii=False).encode()) < 10_000


def test_parts_of_notes_and_of_the_vault_are_read(served: Served) -> None:
    write_all(served.vault, MORE)
    section, no_section, outline, overview, tasks, due, day = served.ask(
        ("read_note", {"path": "Garden plan", "section": "Tools"}),
        ("read_note", {"path": "Garden plan", "section": "Seeds"}),
        ("get_note_outline", {"path": "Shared/Plan.md"}),
        ("get_vault_overview", {}),
        ("list_tasks", {}),
        ("list_tasks", {"dueBefore": "2027-01-01"}),
        ("get_periodic_note", {"period": "day"}),
    )
    assert section["content"] == "- [ ] buy a spade 📅 2026-04-01\n- [x] rake"
    assert "The headings are “Beds”, “Tools”." in no_section["refused"]
    assert outline["links"] == [{"to": "Shared/Team.md", "lines": [4]}]
    assert overview["notes"] == 7
    assert overview["folders"] == [{"path": "Shared", "notes": 7}]
    assert overview["tags"] == [{"tag": "food", "notes": 1}, {"tag": "garden", "notes": 1}]
    assert overview["properties"][0] == {
        "name": "status",
        "notes": 3,
        "values": ["active", "done"],
    }
    assert [task["text"] for task in tasks["tasks"]] == ["buy a spade 📅 2026-04-01", "cook #food"]
    assert [task["due"] for task in due["tasks"]] == ["2026-04-01"]
    assert not day["exists"]
    assert "CANARY" not in json.dumps([overview, tasks, due, outline])


CHANGES: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "propose_note",
        {"path": "Shared/New note", "content": "$steps.x ${vaultName}\n"},
        "Shared/New note.md",
        "$steps.x ${vaultName}\n",
    ),
    (
        "propose_append",
        {"path": "Team", "content": "Cleo ${title}"},
        "Shared/Team.md",
        "Ada and Ben\nCleo ${title}\n",
    ),
    (
        "propose_properties",
        {"path": "Team.md", "set": {"size": 2}, "addTags": ["#people"]},
        "Shared/Team.md",
        "---\nsize: 2\ntags:\n  - people\n---\nAda and Ben\n",
    ),
    (
        "propose_move",
        {"path": "Team", "to": "Shared/Deep/"},
        "Shared/Deep/Team.md",
        "Ada and Ben\n",
    ),
]


@pytest.mark.parametrize(("tool", "args", "path", "text"), CHANGES)
def test_a_simple_proposal_waits_and_does_what_it_says_once_it_is_approved(
    served: Served, tool: str, args: dict[str, Any], path: str, text: str
) -> None:
    before = tree(served.vault)
    (proposed,) = served.ask((tool, args))
    assert tree(served.vault) == before
    assert proposed["preview"]["valid"]
    assert main(["plans", "run", proposed["planId"], "--yes", *served.places]) == 0
    assert (served.vault / path).read_text() == text


def test_a_simple_proposal_that_cannot_be_carried_out_is_not_stored(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = served.ask(
        ("propose_note", {"path": "Shared/Team", "content": "x"}),
        ("propose_append", {"path": "Private/Diary.md", "content": "x"}),
        ("propose_append", {"path": "Shared/Team", "content": "x", "heading": "None"}),
        ("propose_move", {"path": "Shared/Team", "to": "Shared/Plan.md"}),
        ("propose_move", {"path": "Shared/Team", "to": "../Team.md"}),
    )
    assert all("vault." not in answer["refused"] for answer in answers)  # tools of plans
    codes = [json.loads(answer["refused"])["error"]["code"] for answer in answers]
    assert codes[:4] == ["FILE_EXISTS", "FILE_NOT_FOUND", "MARKER_NOT_FOUND", "FILE_EXISTS"]
    assert codes[4] in ("PATH_OUTSIDE_VAULT", "PATH_INVALID")
    assert main(["plans", "list", "--json", *served.places]) == 0
    assert json.loads(capsys.readouterr().out)["plans"] == []


def test_the_name_of_a_note_goes_without_its_extension(served: Served) -> None:
    note, several, properties, backlinks, hidden, missing = served.ask(
        ("read_note", {"path": "Shared/Plan"}),
        ("read_multiple_notes", {"paths": ["Shared/Plan", "Shared/Team.md"]}),
        ("get_frontmatter", {"path": "Shared/Plan"}),
        ("get_backlinks", {"path": "Shared/Plan"}),
        ("read_note", {"path": "Private/Diary"}),
        ("read_note", {"path": "Private/Nothing"}),
    )
    assert "The launch is in May" in note["content"]
    assert [file["path"] for file in several["files"]] == ["Shared/Plan.md", "Shared/Team.md"]
    assert properties["frontmatter"] == {"status": "active"}
    assert "Shared/Deep/Idea.md" in json.dumps(backlinks)
    assert hidden["refused"].replace("Diary", "Nothing") == missing["refused"]


@pytest.mark.parametrize("deny", ["Private/**", "Private", "Private/*", "Diary.md"])
def test_a_hidden_folder_answers_as_a_missing_one(
    make_vault: MakeVault, tmp_path: Path, deny: str
) -> None:
    make_vault({"Open.md": "x", "Private/Diary.md": "", "hidden/Open.md": ""})
    (tmp_path / "config.toml").write_text(f'share_allow = ["**"]\nshare_deny = ["{deny}"]\n')
    served = Served(tmp_path / "vault", tmp_path)

    def asked(name: str) -> list[tuple[str, dict[str, Any]]]:
        listing = {"id": "s", "tool": "vault.listFiles", "args": {"folder": name}}
        return [
            ("list_directory", {"path": name}),
            ("list_directory", {"path": f"/{name}/"}),
            ("read_note", {"path": name}),
            ("get_backlinks", {"path": name}),
            ("read_multiple_notes", {"paths": [name]}),
            ("preview_plan", {"plan": plan(listing)}),
        ]

    answers = served.ask(*asked("Private"), *asked("Nowhere"), ("list_directory", {}))
    hidden, missing = answers[:6], answers[6:12]
    assert json.dumps(hidden).replace("Private", "Nowhere") == json.dumps(missing)
    assert "Private" not in json.dumps(answers[12])
    (dotted,) = served.ask(("list_directory", {"path": ".hidden"}))
    assert "PATH_NOT_ALLOWED" in dotted["refused"], "the dot belongs to the name"


def test_a_plan_runs_unasked_only_under_a_rule_that_names_it_and_only_among_what_is_shared(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    config = served.folder / "config.toml"
    rules = config.read_text()
    delete = {"id": "gone", "tool": "vault.delete", "args": {"path": "Shared/Team.md"}}
    rename = {
        "id": "move",
        "tool": "vault.rename",
        "args": {"from": "Shared/Plan.md", "to": "Shared/New.md"},
    }
    for off in (
        "",
        'tools_allow = ["*"]\n',
        'tools_allow = ["run_plan"]\ntools_deny = ["run_*"]\n',
    ):
        config.write_text(rules + off)
        (refused,) = served.ask(("run_plan", {"plan": plan(EDIT)}))
        assert "run_plan" in refused["refused"], off
    config.write_text(rules + 'tools_allow = ["run_plan"]\nallow_deletes = true\n')
    hidden, deleted, linked, ran = served.ask(
        *(
            ("run_plan", {"plan": plan(*steps)})
            for steps in ((READ, COPY), (delete,), (rename,), (EDIT,))
        )
    )
    assert "FILE_NOT_FOUND" in hidden["refused"]
    assert "PERMISSION_DENIED" in deleted["refused"]
    (proposed,) = served.ask(("propose_plan", {"plan": plan(delete)}))
    assert proposed["preview"]["valid"], "but it may be proposed"
    assert "PERMISSION_DENIED" in linked["refused"], (
        "a link in a note that is not shared would change"
    )
    assert (ran["success"], ran["status"], ran["errors"]) == (True, "done", [])
    changed = {
        name: text for name, text in NOTES.items() if (served.vault / name).read_text() != text
    }
    assert list(changed) == ["Shared/Team.md"]
    assert main(["undo", ran["runId"], "--yes", *served.places]) == 0
    assert (served.vault / "Shared/Team.md").read_text() == NOTES["Shared/Team.md"]


WRITES: dict[str, tuple[dict[str, Any], ...]] = {
    "a note outside": (
        {"tool": "vault.createFile", "args": {"path": "Outside.md", "content": "x"}},
    ),
    "a note at a denied name": (
        {"tool": "vault.createFile", "args": {"path": "Shared/secret.md", "content": "x"}},
    ),
    "a note in a folder of a denied name": (
        {"tool": "vault.createFile", "args": {"path": "Shared/Secret.md/x.md", "content": "x"}},
    ),
    "a folder outside": ({"tool": "vault.createFolder", "args": {"path": "Elsewhere"}},),
    "a shared note moved out": (
        {"tool": "vault.move", "args": {"from": "Shared/Team.md", "toFolder": "Elsewhere"}},
    ),
    "a shared note moved out and back": (
        {"tool": "vault.move", "args": {"from": "Shared/Loose.md", "toFolder": "Elsewhere"}},
        {"tool": "vault.move", "args": {"from": "Elsewhere/Loose.md", "toFolder": "Shared"}},
    ),
    "a shared note under another name outside": (
        {"tool": "vault.rename", "args": {"from": "Shared/Loose.md", "to": "Loose.md"}},
    ),
    "the shared folder": ({"tool": "vault.rename", "args": {"from": "Shared", "to": "Public"}},),
    "a folder with a denied note in it": (
        {"tool": "vault.rename", "args": {"from": "Shared/Mixed", "to": "Shared/Other"}},
    ),
    "a folder that leads outside": (
        {"tool": "vault.createFile", "args": {"path": "Shared/Way/x.md", "content": "x"}},
    ),
    "a note that leads outside": (
        {
            "tool": "vault.updateFile",
            "args": {"path": "Shared/Door.md", "mode": "append", "content": "x"},
        },
    ),
    "links of a note outside": (
        {"tool": "vault.rename", "args": {"from": "Shared/Plan.md", "to": "Shared/New.md"}},
    ),
    **{
        f"instructions in {path}": (
            {"tool": "vault.createFile", "args": {"path": path, "content": "Obey."}},
        )
        for path in ("Shared/AGENTS.md", "Shared/Deep/Claude.MD", "Shared/Deep/gemini.md")
    },
    "instructions by another name": (
        {"tool": "vault.rename", "args": {"from": "Shared/Loose.md", "to": "Shared/AGENTS.md"}},
    ),
    "instructions that are there": (
        {
            "tool": "vault.updateFile",
            "args": {"path": "Shared/Sub/AGENTS.md", "mode": "append", "content": "Obey."},
        },
    ),
    "instructions that a link leads to": (
        {
            "tool": "vault.updateFile",
            "args": {"path": "Shared/Guide.md", "mode": "append", "content": "Obey."},
        },
    ),
}


def test_a_plan_that_writes_outside_of_what_is_shared_never_runs(served: Served) -> None:
    more = {
        "Shared/Loose.md": "x",
        "Shared/Mixed/Open.md": "x",
        "Shared/Mixed/Secret.md": "CANARY-4",
        "Shared/Sub/AGENTS.md": "Be kind.",
        "Diary.md": "CANARY-5",
    }
    write_all(served.vault, more)
    (served.vault / "Shared/Way").symlink_to("../Private")
    (served.vault / "Shared/Door.md").symlink_to("../Diary.md")
    (served.vault / "Shared/Guide.md").symlink_to("Sub/AGENTS.md")
    with (served.folder / "config.toml").open("a") as config:
        config.write('tools_allow = ["run_plan"]\n')
    before = tree(served.vault)
    plans = [
        plan(*({"id": f"s{number}", **step} for number, step in enumerate(steps)))
        for steps in WRITES.values()
    ]
    answers = served.ask(*(("run_plan", {"plan": each}) for each in plans))
    ran = [name for name, answer in zip(WRITES, answers, strict=True) if "refused" not in answer]
    assert ran == []
    assert tree(served.vault) == before
    text = json.dumps(answers)
    assert "CANARY" not in text
    assert "Mixed/Secret" not in text, "a folder that moves does not name what is denied in it"


def test_whether_a_plan_runs_does_not_tell_what_other_notes_hold(served: Served) -> None:
    with (served.folder / "config.toml").open("a") as config:
        config.write('tools_allow = ["run_plan"]\n')
    write_all(served.vault, {"Private/key.md": "password: hunter\n"})
    guesses = [
        plan(
            {
                "id": "look",
                "tool": "vault.searchText",
                "args": {"query": f"^password: {letter}", "regex": True},
            },
            {
                "id": "write",
                "tool": "vault.createFile",
                "args": {"path": "Shared/New.md", "content": "x"},
                "when": "$steps.look.total",
            },
        )
        for letter in "gh"
    ]
    wrong, right = served.ask(*(("run_plan", {"plan": guess}) for guess in guesses))
    assert wrong["status"] == "done"
    assert right == wrong | {"runId": right.get("runId")}
    assert not (served.vault / "Shared/New.md").exists()


def test_a_plan_within_what_is_shared_runs(served: Served) -> None:
    with (served.folder / "config.toml").open("a") as config:
        config.write('tools_allow = ["run_plan"]\n')
    create = {
        "id": "create",
        "tool": "vault.createFile",
        "args": {"path": "Shared/New/Note.md", "content": "At ${now}"},
    }
    move = {
        "id": "move",
        "tool": "vault.rename",
        "args": {"from": "Shared/Deep", "to": "Shared/Deeper"},
    }
    answers = served.ask(*(("run_plan", {"plan": plan(step)}) for step in (create, move)))
    assert [answer.get("status") for answer in answers] == ["done", "done"], answers
    assert (served.vault / "Shared/New/Note.md").read_text().startswith("At 20")
    assert (served.vault / "Shared/Deeper/Idea.md").exists()


def test_what_is_shared_is_read_and_nothing_else_exists(served: Served) -> None:
    search, note, notes, root, folder, properties, backlinks, denied, outside, gone = served.ask(
        ("search_notes", {"query": "launch"}),
        ("read_note", {"path": "Shared/Plan.md"}),
        ("read_multiple_notes", {"paths": ["Shared/Team.md", "Private/Diary.md"]}),
        ("list_directory", {}),
        ("list_directory", {"path": "Shared"}),
        ("get_frontmatter", {"path": "Shared/Plan.md"}),
        ("get_backlinks", {"path": "Shared/Plan.md"}),
        ("read_note", {"path": "Shared/Secret.md"}),
        ("read_note", {"path": "../config.toml"}),
        ("read_note", {"path": "Shared/Nothing.md"}),
    )
    assert [match["path"] for match in search["matches"]] == ["Shared/Plan.md"]
    assert note["content"] == NOTES["Shared/Plan.md"]
    assert [entry.get("content") for entry in notes["files"]] == ["Ada and Ben\n", None]
    assert (root["files"], root["folders"]) == ([], ["Shared"])
    assert [entry["path"] for entry in folder["files"]] == ["Shared/Plan.md", "Shared/Team.md"]
    assert properties == {"path": "Shared/Plan.md", "frontmatter": {"status": "active"}}
    assert [entry["path"] for entry in backlinks["items"]] == ["Shared/Deep/Idea.md"]
    assert "FILE_NOT_FOUND" in denied["refused"]
    assert denied["refused"].replace("Secret", "Nothing") == gone["refused"], (
        "what is denied and what is not there are the same"
    )
    assert "PATH_OUTSIDE_VAULT" in outside["refused"]
    everything = json.dumps(
        [search, note, notes, root, folder, properties, backlinks, denied, outside]
    )
    assert "CANARY" not in everything
    assert str(served.vault) not in everything


def test_nothing_is_shared_until_a_rule_says_so(served: Served) -> None:
    (served.folder / "config.toml").write_text("")
    search, root = served.ask(("search_notes", {"query": "launch"}), ("list_directory", {}))
    assert (search["matches"], root["files"], root["folders"]) == ([], [], [])


def test_what_was_handed_over_stands_in_the_ledger(served: Served) -> None:
    served.ask(
        ("read_note", {"path": "Shared/Team.md"}),
        ("read_note", {"path": "Private/Team.md"}),
        ("preview_plan", {"plan": plan(EDIT)}),
    )
    (ledger,) = (served.folder / "state").rglob("audit.jsonl")
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    calls = [
        (line["tool"], line["decision"], line.get("rule"))
        for line in lines
        if line["kind"] == "call"
    ]
    assert calls == [
        ("vault.readFile", "allow", None),
        ("vault.readFile", "deny", "FILE_NOT_FOUND"),
    ]
    entries = [line for line in lines if line["kind"] == "sent"]
    assert [(entry["tool"], [file["path"] for file in entry["files"]]) for entry in entries] == [
        ("vault.readFile", ["Shared/Team.md"]),
        ("preview_plan", ["Shared/Team.md"]),
    ]
    assert entries[0]["provider"].startswith("mcp/")


def test_a_preview_shows_the_diff_and_copies_nothing_that_is_not_shared(served: Served) -> None:
    edited, copied, wrong = served.ask(
        ("preview_plan", {"plan": plan(EDIT)}),
        ("preview_plan", {"plan": plan(READ, COPY)}),
        ("preview_plan", {"plan": plan({"id": "x"})}),
    )
    assert "+Cleo" in edited["changes"][0]["diff"]
    assert not copied["valid"]
    assert "CANARY" not in json.dumps(copied)
    assert "SCHEMA_INVALID" in wrong["refused"]
    assert (served.vault / "Shared/Team.md").read_text() == NOTES["Shared/Team.md"]


def test_a_preview_of_many_changes_is_of_bounded_size(served: Served) -> None:
    line = "A long line about the team. " * 40
    write_all(
        served.vault,
        {f"Shared/N{number}.md": f"{line}[[Team]]\n" for number in range(200)},
    )
    (moved,) = served.ask(("propose_move", {"path": "Shared/Team", "to": "Shared/Crew.md"}))
    assert moved["preview"]["valid"]
    assert moved["preview"]["count"] > 200
    assert len(moved["preview"]["changes"]) == 50
    assert len(json.dumps(moved)) < 40_000
    (file,) = served.folder.glob("state/**/proposals/*.json")
    assert json.loads(file.read_text())["changes"] == moved["preview"]["count"]


SETTINGS = {
    ".obsidian/daily-notes.json": '{"folder": "Shared/Days", "format": "YYYY", "template": "T"}',
    ".obsidian/templates.json": '{"folder": "Shared/Templates", "dateFormat": "[on] YYYY"}',
}
HIDDEN_SETTINGS: dict[str, dict[str, str]] = {
    "the folder": {
        ".obsidian/daily-notes.json": '{"folder": "CANARY-6", "format": "YYYY"}',
    },
    "the format": {
        ".obsidian/daily-notes.json": '{"folder": "", "format": "[CANARY-7/]YYYY"}',
    },
    "a denied name": {
        ".obsidian/daily-notes.json": '{"folder": "Shared/Secret.md", "format": "[CANARY-8] YYYY"}',
    },
    "the template": {
        ".obsidian/daily-notes.json": '{"folder": "Shared", "template": "../CANARY-9"}',
    },
    "the folder of templates": {
        ".obsidian/templates.json": '{"folder": "Private", "dateFormat": "[CANARY-10]"}',
    },
    "no folder of templates": {
        ".obsidian/templates.json": '{"dateFormat": "[CANARY-11]", "timeFormat": "[CANARY-12]"}',
    },
}


@pytest.mark.parametrize("what", HIDDEN_SETTINGS)
def test_settings_of_obsidian_that_lead_outside_do_not_exist(served: Served, what: str) -> None:
    write_all(served.vault, {"Shared/Template.md": "{{date}} {{time}}"} | HIDDEN_SETTINGS[what])
    (document,) = served.ask(("preview_plan", {"plan": plan(*TELLING)}))
    assert document["valid"], document
    assert "CANARY" not in json.dumps(document)


def test_settings_of_obsidian_that_lead_to_what_is_shared_count(served: Served) -> None:
    write_all(served.vault, {"Shared/Template.md": "{{date}}"} | SETTINGS)
    (document,) = served.ask(("preview_plan", {"plan": plan(*TELLING)}))
    text = json.dumps(document)
    assert "Shared/Days/20" in text
    assert "on 20" in text


TELLING: list[dict[str, Any]] = [
    {"id": "day", "tool": "util.periodNote", "args": {"period": "day"}},
    {"id": "filled", "tool": "template.render", "args": {"path": "Shared/Template.md"}},
    {
        "id": "copy",
        "tool": "vault.createFile",
        "args": {
            "path": "Shared/Copy.md",
            "content": "${steps.day.path} ${steps.day.title} ${steps.filled.text}",
        },
    },
]


def test_names_in_the_trash_are_not_given(served: Served) -> None:
    write_all(served.vault, {".trash/Team.md": "CANARY-13"})
    with (served.folder / "config.toml").open("a") as config:
        config.write("allow_deletes = true\n")
    gone = {"id": "gone", "tool": "vault.delete", "args": {"path": "Shared/Team.md"}}
    copy = {
        "id": "copy",
        "tool": "vault.createFile",
        "args": {"path": "Shared/Copy.md", "content": "$steps.gone.trashPath"},
    }
    (document,) = served.ask(("preview_plan", {"plan": plan(gone, copy)}))
    assert "+.trash/Team.md" in json.dumps(document)


def test_a_proposed_plan_waits_for_the_person(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    proposed, hidden = served.ask(
        ("propose_plan", {"plan": plan(EDIT)}), ("propose_plan", {"plan": plan(READ, COPY)})
    )
    assert (served.vault / "Shared/Team.md").read_text() == NOTES["Shared/Team.md"]
    assert "CANARY" not in json.dumps(hidden)
    assert main(["run", "--plan", proposed["planId"], "--yes", "--json", *served.places]) == 0
    assert (served.vault / "Shared/Team.md").read_text() == "Ada and Ben\nCleo\n"
    assert json.loads(capsys.readouterr().out)["success"] is True
    assert main(["run", "--plan", "0" * 12, "--yes", *served.places]) == 2
    assert main(["run", "--plan", "../config", "--yes", *served.places]) == 2


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("status", "kept"), [("applied", False), ("refused", False), ("shown", True)]
)
def test_a_proposed_plan_goes_to_whoever_shows_it_and_its_client_hears_the_decision(
    served: Served, monkeypatch: pytest.MonkeyPatch, *, named: bool, status: Any, kept: bool
) -> None:
    with VaultStore.open(served.vault) as store:
        place = (
            served.folder / "mine.sock"
            if named
            else app_socket(Wiring(store, served.folder / "state"))
        )
    seen: list[ClientProposal] = []

    async def decide(proposal: ClientProposal) -> Outcome:
        seen.append(proposal)
        return Outcome(status, "decided", "run-1")

    async def propose(client: Client) -> dict[str, Any]:
        async with proposal_socket(place, decide):
            return (await served.each(client, (("propose_plan", {"plan": plan(EDIT)}),)))[0]

    if named:
        monkeypatch.setenv(SOCKET_VARIABLE, str(place))
    answer = served.with_client(propose)
    assert (answer["status"], answer["message"], answer["runId"]) == (status, "decided", "run-1")
    assert [step["id"] for step in seen[0].plan["steps"]] == ["edit"]
    assert main(["run", "--plan", answer["planId"], "--yes", *served.places]) == (
        0 if kept else 2
    ), "what is settled is kept no longer"


# --- time ---

SLOW: dict[str, Any] = {
    "id": "slow",
    "tool": "vault.searchText",
    "foreach": {"from": list(range(1000)), "itemName": "round"},
    "onError": "skip",
    "args": {"query": "(a|aa)+$", "regex": True},
}
"""A pattern that takes as long as it may, a thousand times."""


@pytest.fixture
def shared(served: Served) -> SharedVault:
    write_all(served.vault, {"Shared/Slow.md": "a" * 40 + "b" + "\n"})
    settings = LiveSettings.load(served.folder / "config.toml", {})
    store = VaultStore.open(served.vault)
    return build_shared_vault(Wiring(store, served.folder / "state", settings=settings))


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pattern take a twentieth of a second."""
    compiled = search.compile_pattern
    monkeypatch.setattr(
        search,
        "compile_pattern",
        lambda *args, **how: replace(compiled(*args, **how), seconds_left=0.05),
    )


def test_all_rounds_of_a_preview_have_one_budget(
    shared: SharedVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_vault, "CALL_SECONDS", 0.5)
    impatient(monkeypatch)
    with pytest.raises(PlanError, match=r"It takes longer than 0\.5 s") as ended:
        shared.preview(plan(SLOW))
    assert ended.value.code == "PLAN_TOO_LARGE"


def test_a_cancelled_preview_ends(shared: SharedVault, monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)
    threading.Timer(0.3, shared.cancel.set).start()
    for call in (shared.preview, shared.propose):
        with pytest.raises(PlanError, match="cancelled") as ended:
            call(plan(SLOW))
        assert ended.value.code == "CANCELLED"
    assert not shared.waiting.all(), "a cancelled proposal is not stored"


async def test_a_client_that_waits_for_the_index_sees_how_far_it_is(
    shared: SharedVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported, messages = threading.Event(), list[tuple[float, float | None, str | None]]()
    refresh = IndexKeeper.refresh

    def slow_refresh(keeper: IndexKeeper, *args: Any) -> Any:
        keeper._report(3, 10)
        assert reported.wait(60), "progress is sent while the index is read"
        return refresh(keeper, *args)

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        messages.append((progress, total, message))
        reported.set()

    monkeypatch.setattr(IndexKeeper, "refresh", slow_refresh)
    async with Client(server(shared, Scrubber.of("/nowhere"), Calls())) as client:
        result = await client.call_tool("list_directory", {}, progress_callback=on_progress)
    assert not result.is_error
    assert messages == [(3, 10, "Reading the vault: 3 of 10 files.")]


async def test_few_plans_are_previewed_at_once_and_a_call_nobody_waits_for_is_cancelled() -> None:
    calls = Calls()
    started: Queue[int] = Queue()

    def work(number: int, cancel: threading.Event) -> None:
        started.put(number)
        assert cancel.wait(60), "the call is cancelled"

    tasks = [
        asyncio.create_task(calls.answer(partial(work, number), previews=True, writes=False))
        for number in range(MAX_PREVIEWS + 1)
    ]
    for _ in range(MAX_PREVIEWS):
        await asyncio.to_thread(started.get, timeout=60)
    quick = await calls.answer(lambda cancel: "read", previews=False, writes=False)
    assert quick == "read", "a call that only reads does not wait"
    assert started.empty(), "the last one waits"
    tasks[0].cancel()
    assert await asyncio.to_thread(started.get, timeout=60) == MAX_PREVIEWS
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=60)
    assert all(task.cancelled() for task in tasks)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "closed input", "closed pipes"])
def test_a_server_ends_with_its_client_and_at_a_signal(
    served: Served, how: str, *, busy: bool
) -> None:
    write_all(served.vault, {"Shared/Slow.md": "a" * 40 + "b" + "\n"})
    command = [sys.executable, "-m", "obsidian_agent", "mcp", "serve", *served.places]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def send(method: str, number: int | None = None, **params: Any) -> None:
            assert process.stdin is not None
            message = {"jsonrpc": "2.0", "method": method, "params": params}
            process.stdin.write(
                json.dumps(message if number is None else message | {"id": number}) + "\n"
            )
            process.stdin.flush()

        client = {"name": "test", "version": "1"}
        send("initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        process.stdout.readline()
        send("notifications/initialized")
        if busy:
            send("tools/call", 2, name="preview_plan", arguments={"plan": plan(SLOW)})
            send("tools/call", 3, name="list_directory", arguments={})
            assert json.loads(process.stdout.readline())["id"] == 3, "the preview goes on"
        if how.startswith("SIG"):
            process.send_signal(signal.Signals[how])
        else:
            process.stdin.close()
        if how == "closed pipes":
            process.stdout.close()
        try:
            code = process.wait(60)
        finally:
            process.kill()
        assert code == (130 if how.startswith("SIG") else 0)
        assert process.stderr is not None
        assert process.stderr.read() == ""
