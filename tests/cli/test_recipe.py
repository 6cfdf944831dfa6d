"""`recipe list`, `show` and `run`, which scripts use instead of sentences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import MakeCommands
from obsidian_agent.cli.main import main
from support import options_for

Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def call(commands: MakeCommands) -> Call:
    """Run a command with `--json`; the exit code and the document."""
    return commands({"Inbox.md": "#done\n", "Notes/A.md": "#done\n", "Archive/": ""}).json


def test_recipes_are_listed_and_shown(call: Call) -> None:
    code, document = call("recipe", "list")
    move = next(each for each in document["recipes"] if each["name"] == "move")
    assert (code, move["inputs"]["folder"]) == (
        0,
        {"kind": "folder", "description": "To the folder", "needed": True},
    )
    assert call("recipe", "show", "move")[1]["plan"]["steps"]
    code, document = call("recipe", "show", "mvoe")
    assert (code, document["errors"][0]["code"]) == (2, "RECIPE_NOT_FOUND")
    assert "move" in document["message"]


def test_a_recipe_is_previewed_run_and_undone(call: Call, tmp_path: Path) -> None:
    values = ["--param", "notes=tag:#done folder:Notes", "--param", "folder=Archive"]
    code, preview = call("recipe", "run", "move", *values, "--dry-run")
    assert (code, [change["newPath"] for change in preview["changes"]]) == (0, ["Archive/A.md"])
    assert (tmp_path / "vault/Notes/A.md").exists()
    code, result = call("recipe", "run", "move", *values, "--yes")
    assert (code, result["effects"]["renamed"]) == (
        0,
        [{"from": "Notes/A.md", "to": "Archive/A.md"}],
    )
    assert call("undo", "--yes")[0] == 0
    assert (tmp_path / "vault/Notes/A.md").exists()


def test_a_question_is_answered(call: Call) -> None:
    code, document = call("recipe", "run", "find-notes", "--param", "notes=#done")
    assert (code, document["answer"], document["sources"]) == (
        0,
        "2 notes tagged #done:\n- [[A]]\n- [[Inbox]]",
        ["Notes/A.md", "Inbox.md"],
    )


def test_a_recipe_for_notes_that_do_not_exist_plans_nothing(call: Call, tmp_path: Path) -> None:
    values = ["--param", "notes=tag:#none", "--param", "folder=New"]
    code, document = call("recipe", "run", "move", *values, "--yes")
    assert (code, document["answer"]) == (
        0,
        "No note matches: notes tagged #none. Nothing was changed.",
    )
    assert not (tmp_path / "vault/New").exists()


def test_what_is_missing_or_wrong_is_told(call: Call) -> None:
    code, document = call("recipe", "run", "move", "--param", "folder=Archive", "--yes")
    assert (code, document["outcome"], document["missing"]) == (3, "needs-input", ["notes"])
    code, document = call(
        "recipe", "run", "move", "--param", "folder=../x", "--param", "notes=#done", "--yes"
    )
    assert (code, document["errors"][0]["code"]) == (2, "PATH_OUTSIDE_VAULT")


def test_a_refusal_says_in_its_message_why(call: Call) -> None:
    code, document = call("do", "Delete A", "--offline", "--yes")
    assert (code, document["message"]) == (3, document["errors"][0]["message"])
    assert "--allow-deletes" in document["message"]


def test_obsidians_comparisons_are_understood_or_refused(call: Call) -> None:
    code, document = call("recipe", "run", "find-notes", "--param", "notes=[rating:>]")
    assert (code, document["errors"][0]["code"]) == (2, "ARGUMENT_INVALID")


@pytest.mark.parametrize(
    ("count", "told"), [(1, "Restored 1 file or folder."), (2, "Restored 2 files and folders.")]
)
def test_undo_counts_what_it_restored(
    call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int, told: str
) -> None:
    notes = "Inbox" if count == 1 else "tag:done"
    call(
        "recipe",
        "run",
        "set-property",
        "--param",
        "property=x",
        "--param",
        "value=1",
        "--param",
        f"notes={notes}",
        "--yes",
    )
    main(
        [
            "undo",
            "--yes",
            *options_for(tmp_path / "vault", tmp_path),
        ]
    )
    assert told in capsys.readouterr().out
