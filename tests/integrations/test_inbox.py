"""One inbox: plans of every source wait in the same list with the same preview."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp import schema as acp
from acp import spawn_agent_process, text_block
from mcp import Client, StdioServerParameters

from obsidian_agent.cli.main import main
from obsidian_agent.services.schedule import timer
from support import MakeVault

SENTENCE = "append 'Call Ada' to Inbox"
RECIPE = ("--recipe", "add-text", "--param", "text=Call Ada", "--param", "notes=Inbox")

Run = Callable[..., Any]


@pytest.fixture
def places(make_vault: MakeVault, tmp_path: Path) -> list[str]:
    vault = make_vault({"Inbox.md": "# Inbox\n"}).real_path
    config = tmp_path / "config.toml"
    hook = [
        sys.executable,
        "-c",
        f"import sys; open({str(tmp_path / 'hook')!r}, 'a').write(sys.stdin.read() + chr(10))",
    ]
    config.write_text(f'share_allow = ["**"]\n[hooks]\nplan_waiting = {json.dumps(hook)}\n')
    return ["--vault", vault, "--state-dir", str(tmp_path / "state"), "--config", str(config)]


@pytest.fixture
def call(places: list[str], capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> Any:
        capsys.readouterr()
        main([*arguments, "--json", *places])
        return json.loads(capsys.readouterr().out)

    return run


class Editor:
    """A client of `acp` whose user does not decide now."""

    async def request_permission(self, **_: Any) -> acp.RequestPermissionResponse:
        outcome = acp.AllowedOutcome(outcome="selected", option_id="later")
        return acp.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, **_: Any) -> None: ...

    def on_connect(self, connection: Any) -> None: ...


async def by_acp(places: list[str]) -> None:
    command = [sys.executable, "-m", "obsidian_agent", "acp", *places, "--offline"]
    editor: Any = Editor()
    async with spawn_agent_process(editor, *command) as (client, _):
        await client.initialize(
            protocol_version=1, client_info=acp.Implementation(name="Zed", version="1")
        )
        session = await client.new_session(cwd="/", mcp_servers=[])
        await client.prompt(prompt=[text_block(SENTENCE)], session_id=session.session_id)


async def by_mcp(places: list[str], plan: dict[str, Any]) -> None:
    args = ["-m", "obsidian_agent", "mcp", "serve", *places]
    async with Client(StdioServerParameters(command=sys.executable, args=args)) as client:
        result = await client.call_tool("propose_plan", {"plan": plan})
        assert not result.is_error


def test_every_door_ends_in_the_same_inbox_with_the_same_preview(
    places: list[str], call: Run, tmp_path: Path
) -> None:
    plan = call("plan", SENTENCE, "--offline")
    call("do", SENTENCE, "--offline", "--later")
    call("rule", "add", "By hand", "--notes", "Inbox", *RECIPE)
    call("rule", "run")
    past = "2026-01-01T00:00:00+00:00"
    call("rule", "add", "By timer", "--at", "0 7 * * *", *RECIPE, "--now", past)
    unit = dict(timer(places[1], places[2:], 10, platform="linux", has_systemd=True).files)
    (line,) = [
        line.removeprefix("ExecStart=")
        for text in unit.values()
        for line in text.splitlines()
        if line.startswith("ExecStart=")
    ]
    subprocess.run(shlex.split(line), check=True, stdout=subprocess.DEVNULL, timeout=60)
    asyncio.run(by_mcp(places, plan))
    asyncio.run(by_acp(places))

    waiting = call("plans", "list")["plans"]
    assert {row["from"] for row in waiting} == {
        "",
        "rule “By hand”",
        "rule “By timer”",
        "mcp",
        "Zed",
    }
    previews = [call("plans", "show", row["id"]) for row in waiting]
    assert [preview["planHash"] for preview in previews] == [previews[0]["planHash"]] * 5
    assert [preview["changes"] for preview in previews] == [previews[0]["changes"]] * 5
    assert len(previews[0]["changes"]) == 1
    assert (tmp_path / "vault" / "Inbox.md").read_text() == "# Inbox\n"
    told = [json.loads(line) for line in (tmp_path / "hook").read_text().splitlines()]
    assert {event["planId"] for event in told} == {row["id"] for row in waiting}
    assert call("plans", "run", waiting[-1]["id"], "--yes")["status"] == "done"
    assert (tmp_path / "vault" / "Inbox.md").read_text() == "# Inbox\nCall Ada\n"
    (proposed,) = [row["id"] for row in waiting if row["from"] == "mcp"]
    assert [row["stale"] for row in call("plans", "list")["plans"]] == [True] * 4
    assert call("plans", "run", proposed, "--yes")["errors"][0]["code"] == "CONFLICT"
