from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.services.model_turns import preview_request
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_stand_in import Cli, StandIn
from support import settings_with

CREATE = {"id": "make", "tool": "vault.createFile", "args": {"path": "Log.md", "content": "made\n"}}
BOLD = {"id": "bold", "tool": "commands.run", "args": {"id": "editor:toggle-bold"}}
APPEND = {
    "id": "add",
    "tool": "vault.updateFile",
    "args": {"path": "${$steps.make.path}", "mode": "append", "content": "after\n"},
}

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(*steps: dict[str, Any]) -> str:
        file = tmp_path / "plan.json"
        file.write_text(
            json.dumps(
                {"version": "1.0", "goal": "g", "riskLevel": "commands", "steps": list(steps)}
            )
        )
        return str(file)

    return make


def codes(result: dict[str, Any]) -> list[str]:
    return [error["code"] for error in result["errors"]]


def test_commands_are_listed_with_name_and_source(running: StandIn, write: Write, cli: Cli) -> None:
    result = cli(
        "run",
        write({"id": "list", "tool": "commands.list", "args": {"filter": "BOLD"}}),
        "--yes",
        "--allow-commands",
    )
    assert result["outputs"]["list"]["commands"] == [
        {"id": "editor:toggle-bold", "name": "Toggle bold", "source": "editor"}
    ]


def test_a_command_is_off_by_default_and_named_before_it_runs(
    running: StandIn, write: Write, cli: Cli
) -> None:
    plan = write(BOLD)
    assert (cli("run", plan, "--yes")["exit"], running.ran) == (3, [])
    shown = cli("preview", plan, "--allow-commands")
    assert "Toggle bold" in shown["flags"][0]["detail"]
    assert (cli("run", plan, "--yes", "--allow-commands")["effects"]["commands"], running.ran) == (
        ["editor:toggle-bold"],
    ) * 2


def test_a_command_that_takes_something_away_is_flagged(
    running: StandIn, write: Write, cli: Cli
) -> None:
    shown = cli("preview", write({**BOLD, "args": {"id": "app:delete-file"}}), "--allow-commands")
    assert "may delete" in shown["flags"][0]["detail"]


def test_without_a_way_a_plan_with_commands_is_invalid(
    home: Path, folder: Path, write: Write, cli: Cli
) -> None:
    result = cli("run", write(CREATE, BOLD), "--yes", "--allow-commands")
    assert (result["exit"], codes(result), list(folder.iterdir())) == (
        2,
        ["COMMANDS_UNAVAILABLE"],
        [],
    )


def test_an_unknown_command_and_one_that_obsidian_does_not_execute_are_errors(
    running: StandIn, write: Write, cli: Cli
) -> None:
    running.commands.append(("unready:x", "Not now"))
    unknown = cli("run", write({**BOLD, "args": {"id": "no:such"}}), "--yes", "--allow-commands")
    assert (unknown["exit"], codes(unknown)) == (2, ["COMMANDS_UNAVAILABLE"])
    refused = cli("run", write({**BOLD, "args": {"id": "unready:x"}}), "--yes", "--allow-commands")
    assert (refused["exit"], codes(refused), running.ran) == (1, ["COMMAND_FAILED"], [])


def test_what_stands_behind_a_command_is_previewed_when_that_has_run(
    running: StandIn, folder: Path, write: Write, cli: Cli
) -> None:
    plan = write(CREATE, BOLD, APPEND)
    shown = cli("preview", plan, "--allow-commands")
    assert shown["errors"] == []
    assert "made" in shown["changes"][0]["diff"]
    assert "after" not in shown["changes"][0]["diff"]
    result = cli("run", plan, "--yes", "--allow-commands")
    assert (result["exit"], running.ran) == (0, ["editor:toggle-bold"])
    assert (folder / "Log.md").read_text() == "made\nafter\n"
    assert (result["completedSteps"], result["totalSteps"]) == (3, 3)
    assert result["effects"]["created"] == ["Log.md"]


def test_a_rest_that_is_no_longer_what_was_covered_is_not_run(
    running: StandIn, folder: Path, write: Write, cli: Cli
) -> None:
    def meddle(id: str) -> None:
        (folder / "Log.md").write_text("the command wrote this\n")

    running.on_command = meddle
    result = cli("run", write(CREATE, BOLD, APPEND), "--yes", "--allow-commands")
    assert (result["exit"], result["status"], codes(result)) == (4, "conflict", ["CONFLICT"])
    assert (folder / "Log.md").read_text() == "the command wrote this\n"
    assert result["effects"]["commands"] == ["editor:toggle-bold"]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, []),
        ({"allow_commands": True}, ["quickadd:choice:1", "editor:toggle-bold", "app:delete-file"]),
        (
            {"allow_commands": True, "commands_deny": ("app:*",)},
            ["quickadd:choice:1", "editor:toggle-bold"],
        ),
    ],
)
async def test_a_model_is_told_which_commands_it_may_plan(
    running: StandIn, folder: Path, tmp_path: Path, settings: dict[str, Any], told: list[str]
) -> None:
    running.commands.append(("quickadd:choice:1", 'Log "today" DATA'))
    (tmp_path / "script").write_text('{"text": "x"}')
    with VaultStore.open(folder) as store:
        wiring = Wiring(
            store,
            tmp_path / "state",
            None,
            settings=settings_with(model=f"scripted/{tmp_path / 'script'}", **settings),
        )
        turns = build_session(wiring).open_model_turns()
        assert turns is not None
        text = (await preview_request(turns, Conversation(), "Run my log")).text
    shown = re.findall(r'^\["(.*?)", "', text, re.MULTILINE)
    assert shown == told, "those that fit the words first"
    assert ("for commands.run" in text) == bool(told)


async def test_commands_that_cannot_be_listed_are_not_waited_for(
    running: StandIn, folder: Path, tmp_path: Path
) -> None:
    running.raw = lambda argv: b"Vault not found."
    (tmp_path / "script").write_text('{"text": "x"}')
    with VaultStore.open(folder) as store:
        settings = settings_with(model=f"scripted/{tmp_path / 'script'}", allow_commands=True)
        turns = build_session(
            Wiring(store, tmp_path / "state", None, settings=settings)
        ).open_model_turns()
        assert turns is not None
        assert "for commands.run" not in (await preview_request(turns, Conversation(), "Hi")).text


@pytest.mark.parametrize("new_pane", [True, False])
def test_a_plan_can_show_a_file_in_obsidian(
    running: StandIn, folder: Path, write: Write, cli: Cli, *, new_pane: bool
) -> None:
    (folder / "A & B.md").write_text("a\n")
    result = cli(
        "run",
        write(
            {
                "id": "o",
                "tool": "workspace.openFile",
                "args": {"path": "A & B.md", "line": 1, "newPane": new_pane},
            }
        ),
        "--yes",
    )
    assert (result["exit"], result["outputs"]["o"]["via"]) == (0, "obsidian")
    assert running.opened == [("A & B.md", 1, new_pane)]


@pytest.mark.skipif(sys.platform == "win32", reason="the system opens addresses there")
def test_without_obsidian_the_desktop_opens_a_file(
    home: Path,
    folder: Path,
    tmp_path: Path,
    write: Write,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder / "A & B.md").write_text("a\n")
    opened, programs = tmp_path / "opened", tmp_path / "bin"
    programs.mkdir()
    opener = programs / ("open" if sys.platform == "darwin" else "xdg-open")
    opener.write_text(f'#!/bin/sh\necho "$1" > {opened}.new; mv {opened}.new {opened}\n')
    opener.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    plan = write({"id": "o", "tool": "workspace.openFile", "args": {"path": "A & B.md"}})
    monkeypatch.setenv("DISPLAY", ":0")
    shown = cli("preview", plan)
    assert (shown["valid"], opened.exists()) == (True, False), "a preview opens nothing"
    result = cli("run", plan, "--yes")
    assert (result["exit"], result["outputs"]["o"]) == (
        0,
        {"path": "A & B.md", "opened": True, "via": "desktop"},
    )
    end = time.monotonic() + 20
    while not opened.exists() and time.monotonic() < end:
        time.sleep(0.01)
    place = quote(os.path.realpath(folder / "A & B.md"), safe="")
    assert opened.read_text() == f"obsidian://open?path={place}\n"
    opener.write_text("#!/bin/sh\nexit 3\n")
    result = cli("run", plan, "--yes")
    assert (result["status"], result["outputs"]["o"]["opened"]) == ("done", False)
    assert [each["message"] for each in result["warnings"]] == [
        "The desktop did not open the file in Obsidian. "
        "Is Obsidian installed, and registered for obsidian:// addresses?"
    ]
    if sys.platform == "linux":
        monkeypatch.delenv("DISPLAY")
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        assert cli("run", plan, "--yes")["outputs"]["o"]["opened"] is False


def test_a_run_that_only_ran_a_command_is_not_undone(
    running: StandIn, write: Write, cli: Cli
) -> None:
    assert cli("run", write(BOLD), "--yes", "--allow-commands")["exit"] == 0
    (run,) = cli("history")["runs"]
    assert (run["effects"]["commands"], run["undone"]) == (["editor:toggle-bold"], False)
    assert cli("undo", "--yes")["exit"] != 0, "and cannot be"


def test_a_plan_about_the_selection_does_not_run_over_another_one(
    running: StandIn, folder: Path, tmp_path: Path
) -> None:
    (folder / "Day.md").write_text("one\ntwo\n")
    note = running.open_note("Day.md")
    running.select("Day.md", (1, 0), (1, 3), "two")
    document = {
        "version": "1.0",
        "goal": "g",
        "riskLevel": "writes",
        "steps": [{**CREATE, "args": {"path": "N.md", "content": "${selection}"}}],
    }
    with VaultStore.open(folder) as store:
        session = build_session(Wiring(store, tmp_path / "state"))
        session.vault.focus_on_obsidian()
        ready = session.plans.dry_run(document)
        assert (ready.valid, ready.warnings) == (True, ())
        note.text = "typed\n" + note.text
        refused = session.plans.apply(ready, lambda _: None, threading.Event())
        assert (refused.status, refused.run_id, (folder / "N.md").exists()) == (
            "conflict",
            None,
            False,
        )
        assert "the selected text has moved" in session.plans.dry_run(document).warnings[0].message
        note.text = "one\ntwo\nand more, elsewhere\n"
        assert session.plans.apply(ready, lambda _: None, threading.Event()).success
