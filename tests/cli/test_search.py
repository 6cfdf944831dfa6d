"""`search` and `index` from the command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import MakeCommands
from obsidian_agent.cli.main import main
from support import MakeVault

NOTES = {
    "Garden.md": "Roses. [[none]] [[Else]] [[Else]] [[#h]]\n",
    "Else.md": "In the garden. #plant/Rose\n",
    "logo.png": "",
}

Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def call(commands: MakeCommands) -> Call:
    """Run a command with `--json`; the exit code and the document."""
    return commands(NOTES).json


def test_search_by_default_looks_for_names_first(call: Call) -> None:
    code, document = call("search", "garden")
    assert code == 0
    assert [
        (item["path"], item.get("line"), item.get("preview")) for item in document["items"]
    ] == [
        ("Garden.md", None, None),
        ("Else.md", 1, "In the garden. #plant/Rose"),
    ]
    assert (document["total"], document["hasMore"]) == (2, False)


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        (["rose", "--mode", "content"], ["Else.md", "Garden.md"]),
        (["#plant", "--mode", "tag"], ["Else.md"]),
        (["log", "--mode", "name"], ["logo.png"]),
        (["^R.ses", "--regex"], ["Garden.md"]),
        (["r.ses", "--regex", "--case-sensitive"], []),
        (["rose", "--mode", "content", "--limit", "1", "--offset", "1"], ["Garden.md"]),
    ],
)
def test_modes_and_pages(call: Call, arguments: list[str], paths: list[str]) -> None:
    _, document = call("search", *arguments)
    assert sorted(item["path"] for item in document["items"]) == paths


def test_a_limit_out_of_range_is_refused(call: Call) -> None:
    code, document = call("search", "x", "--limit", "1001")
    assert (code, document["errors"][0]["code"]) == (2, "ARGUMENT_INVALID")


def test_index_counts_what_it_knows(call: Call) -> None:
    for arguments in (["index"], ["index"], ["index", "--rebuild"]):
        code, figures = call(*arguments)
        assert code == 0
        assert figures.pop("seconds") >= 0
        assert figures == {"notes": 2, "files": 3, "links": 3, "unresolved": 1, "tags": 1}


def test_the_folders_of_the_state_are_private(make_vault: MakeVault, tmp_path: Path) -> None:
    vault = make_vault({"a.md": "one"}).real_path
    state = tmp_path / "deep/state"
    before = os.umask(0o022)
    try:
        assert main(["index", "--vault", str(vault), "--state-dir", str(state)]) == 0
    finally:
        os.umask(before)
    folders = [state.parent, state, *(path for path in state.rglob("*") if path.is_dir())]
    assert len(folders) > 3
    assert {path: path.stat().st_mode & 0o777 for path in folders} == dict.fromkeys(folders, 0o700)
