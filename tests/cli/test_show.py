"""show: a run with the diffs of its files, as they were when it ran."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.cli.main import main
from support import MakeVault

Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def call(tmp_path: Path, make_vault: MakeVault, capsys: pytest.CaptureFixture[str]) -> Call:
    files = {"Inbox.md": "# Inbox\n", "Home.md": "[[Inbox]]\n"}
    options = ["--vault", make_vault(files).real_path, "--state-dir", str(tmp_path / "state")]

    def run(*arguments: str) -> tuple[int, Any]:
        config = ["--config", str(tmp_path / "none.toml")]
        code = main([*arguments, "--json", *options, *config])
        return code, json.loads(capsys.readouterr().out)

    return run


def test_a_run_is_shown_with_its_diffs_also_after_later_edits(call: Call, tmp_path: Path) -> None:
    _, result = call("rename", "Inbox", "Start", "--yes")
    (tmp_path / "vault" / "Home.md").write_text("edited since\n")
    code, document = call("show", result["runId"])
    assert code == 0
    assert document["changes"] == [
        {
            "kind": "modify",
            "path": "Home.md",
            "diff": "--- Home.md\n+++ Home.md\n@@ -1 +1 @@\n-[[Inbox]]\n+[[Start]]\n",
        },
        {"kind": "rename", "path": "Inbox.md", "newPath": "Start.md", "diff": ""},
    ]
    assert (document["runId"], document["status"], document["undone"]) == (
        result["runId"],
        "done",
        False,
    )
    assert document["effects"] == result["effects"]
    assert document["planHash"]
    assert call("show") == (0, document)


def test_an_unknown_run_is_an_error(call: Call) -> None:
    code, document = call("show", "20200101-000000-abcdef")
    assert (code, document["errors"][0]["code"]) == (1, "RUN_NOT_FOUND")
