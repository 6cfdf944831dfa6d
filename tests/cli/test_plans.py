"""plans: what waits is listed, previewed again, run with the approval it got, or dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import MakeCommands
from obsidian_agent.cli.main import main

Call = Callable[..., tuple[int, Any]]

SENTENCE = "append 'Call Ada' to Inbox"


@pytest.fixture
def call(commands: MakeCommands) -> Call:
    """Run a command with `--json`; the exit code and the document."""
    return commands({"Inbox.md": "# Inbox\n"}).json


def inbox(tmp_path: Path) -> str:
    return (tmp_path / "vault" / "Inbox.md").read_text()


def test_a_plan_for_later_waits_and_runs_once(call: Call, tmp_path: Path) -> None:
    code, waiting = call("do", SENTENCE, "--offline", "--later")
    assert (code, waiting["changes"], inbox(tmp_path)) == (0, 1, "# Inbox\n")
    code, document = call("plans", "list")
    (plan,) = document["plans"]
    assert code == 0
    assert plan.keys() == {"id", "from", "goal", "created", "changes", "stale"}
    assert (plan["id"], plan["from"], plan["changes"], plan["stale"]) == (
        waiting["id"],
        "",
        1,
        False,
    )
    code, preview = call("plans", "show", plan["id"])
    assert (code, preview["valid"], len(preview["changes"])) == (0, True, 1)
    code, result = call("plans", "run", plan["id"], "--yes")
    assert (code, result["status"]) == (0, "done")
    assert "Call Ada" in inbox(tmp_path)
    assert call("plans", "list")[1] == {"plans": []}
    assert call("plans", "run", plan["id"], "--yes")[1]["errors"][0]["code"] == "PLAN_NOT_FOUND"


def test_yes_does_not_cover_a_plan_whose_result_changed(call: Call, tmp_path: Path) -> None:
    _, waiting = call("do", SENTENCE, "--offline", "--later")
    (tmp_path / "vault" / "Inbox.md").write_text("# Other\n")
    assert call("plans", "list")[1]["plans"][0]["stale"] is True
    code, result = call("plans", "run", waiting["id"], "--yes")
    assert (code, result["status"], inbox(tmp_path)) == (4, "conflict", "# Other\n")
    assert len(call("plans", "list")[1]["plans"]) == 1


def test_a_dropped_plan_waits_no_longer(call: Call, tmp_path: Path) -> None:
    _, waiting = call("do", SENTENCE, "--offline", "--later")
    assert call("plans", "drop", waiting["id"]) == (0, {"dropped": waiting["id"]})
    assert call("plans", "list")[1] == {"plans": []}
    assert inbox(tmp_path) == "# Inbox\n"


def test_rules_and_plans_of_a_moved_vault_are_not_empty_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    (old / "Inbox.md").write_text("# Inbox\n")
    options = ["--state-dir", str(tmp_path / "state"), "--config", str(tmp_path / "none.toml")]

    def call(vault: Path, *arguments: str) -> str:
        main([*arguments, "--vault", str(vault), *options])
        printed = capsys.readouterr()
        return printed.out + printed.err

    call(old, "do", SENTENCE, "--offline", "--yes")
    call(old, "do", SENTENCE, "--offline", "--later")
    old.rename(new)
    for command in (("plans", "list"), ("rule", "list"), ("rule", "run")):
        assert f"moved from {old}" in call(new, *command)
    call(new, "doctor", "--adopt")
    assert "Call Ada" in call(new, "plans", "list")
