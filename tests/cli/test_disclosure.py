"""Plans that carry files of `share_deny` elsewhere need the user's approval, or are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.agent.events import PreviewReady
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.vault.filesystem.store import VaultStore

SECRET = "The code is 4711."
FILES = {"Private/p.md": f"# P\n{SECRET}\n[[a]]\n", "Open/a.md": "See [[p]].\n"}
PLAN: dict[str, Any] = {
    "version": "1.0",
    "goal": "Copy",
    "riskLevel": "writes",
    "steps": [
        {"id": "read", "tool": "vault.readFile", "args": {"path": "Private/p.md"}},
        {
            "id": "write",
            "tool": "vault.createFile",
            "args": {"path": "Open/new.md", "content": "${steps.read.content}"},
        },
    ],
}


@pytest.fixture
def here(commands: Callable[..., Any]) -> Any:
    made = commands(FILES)
    made.config.write_text('share_deny = ["Private"]\nshare_allow = ["Open/**"]\n')
    return made


def unchanged(here: Any) -> bool:
    files = {path: (here.vault / path).read_text() for path in FILES}
    return files == FILES and len(list(here.vault.rglob("*.md"))) == len(FILES)


def model(here: Any, plan: object) -> tuple[str, str]:
    script = here.folder / "answers.jsonl"
    script.write_text(json.dumps({"plan": plan}))
    return "--model", f"scripted/{script}"


def test_a_plan_of_a_model_cannot_use_a_denied_note(here: Any) -> None:
    code, document = here.json("do", "copy it", "--yes", *model(here, PLAN))
    assert (code, document["success"]) == (3, False)
    assert document["errors"][0]["code"] == "PERMISSION_DENIED"
    assert "“Private/p.md”, which share_deny hides" in document["errors"][0]["message"]
    assert SECRET not in json.dumps(document)
    assert unchanged(here)


def test_nor_where_the_step_that_fails_may_be_skipped(here: Any) -> None:
    plan = PLAN | {"defaults": {"onError": "skip"}}
    code, document = here.json("do", "copy it", "--yes", *model(here, plan))
    assert (code, document["errors"][0]["code"]) == (3, "PERMISSION_DENIED")
    assert unchanged(here)


def test_yes_does_not_cover_a_change_of_a_model_to_a_denied_note(here: Any) -> None:
    rename = {"id": "r", "tool": "vault.rename", "args": {"from": "Open/a.md", "to": "Open/b.md"}}
    plan = PLAN | {"steps": [rename]}
    code, document = here.json("do", "rename it", "--yes", *model(here, plan))
    assert (code, document["errors"][0]["code"]) == (3, "NOT_APPROVED")
    assert "Private/p.md. --yes never covers" in document["errors"][0]["message"]
    assert unchanged(here)


def test_yes_does_not_cover_what_a_denied_note_prevents(here: Any) -> None:
    args = {"find": "code is 4", "replace": "$0", "regex": True, "expectCount": 0}
    steps = [
        {"id": "no", "tool": "vault.replaceText", "args": args, "onError": "skip"},
        PLAN["steps"][1] | {"args": {"path": "Open/not 4.md", "content": "x"}, "dependsOn": ["no"]},
    ]
    code, document = here.json("do", "try it", "--yes", *model(here, PLAN | {"steps": steps}))
    assert (code, document["errors"][0]["code"]) == (3, "NOT_APPROVED")
    assert "Open/not 4.md. --yes never covers" in document["errors"][0]["message"]
    assert unchanged(here)


def test_the_path_of_a_denied_open_note_is_not_written_for_a_model(here: Any) -> None:
    write = PLAN["steps"][1] | {"args": {"path": "Open/new.md", "content": "${activeFile}"}}
    plan, active = PLAN | {"steps": [write]}, ("--active-file", "Private/p.md")
    code, document = here.json("do", "note it", "--yes", *active, *model(here, plan))
    assert code == 3
    assert unchanged(here)


@pytest.mark.parametrize("options", [("--yes",), ()])
def test_yes_does_not_cover_a_plan_of_yours_that_carries_such_text(
    here: Any, options: tuple[str, ...]
) -> None:
    file = here.plan(*PLAN["steps"])
    code, document = here.json("run", file, *options)
    assert (code, document["errors"][0]["code"]) == (3, "NOT_APPROVED")
    assert "Open/new.md. --yes never covers" in document["errors"][0]["message"]
    assert unchanged(here)
    flags = here.json("preview", file)[1]["flags"]
    assert [(flag["kind"], flag["path"]) for flag in flags] == [("deniedText", "Open/new.md")]


def test_expect_hash_does_not_cover_it_either(here: Any) -> None:
    file = here.plan(*PLAN["steps"])
    digest = here.json("preview", file)[1]["planHash"]
    assert here.json("run", file, "--yes", "--expect-hash", digest)[0] == 3
    assert unchanged(here)


@pytest.mark.parametrize(
    "command",
    [
        ("rename", "Private/p.md", "Open/p.md"),
        ("do", "move Private/p to Open"),
        ("recipe", "run", "copy-note", "--param", "note=p", "--param", "path=Open/copy"),
        ("recipe", "run", "move", "--param", "notes=p", "--param", "folder=Open"),
    ],
)
def test_every_command_that_runs_a_plan_asks(here: Any, command: tuple[str, ...]) -> None:
    code, document = here.json(*command, "--yes")
    assert (code, document["errors"][0]["code"]) == (3, "NOT_APPROVED")
    assert unchanged(here)


async def test_settings_that_ask_nothing_ask_about_it(here: Any, tmp_path: Path) -> None:
    with here.config.open("a") as config:
        config.write("confirm_writes = false\nauto_approve_read_only = true\n")
    settings = LiveSettings.load(here.config)
    with VaultStore.open(here.vault) as store:
        session = build_session(Wiring(store, tmp_path / "state", None, settings=settings))
        event = [event async for event in session.preview_plan(PLAN)][-1]
        assert isinstance(event, PreviewReady)
        assert event.preview.approval.decision == "ask"
        assert event.preview.discloses
