"""show: a run with the diffs of its files, as they were when it ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import MakeCommands

Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def call(commands: MakeCommands) -> Call:
    """Run a command with `--json`; the exit code and the document."""
    return commands({"Inbox.md": "# Inbox\n", "Home.md": "[[Inbox]]\n"}).json


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
