from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.obsidian.registry import active_file, recent_files


def leaf(id: str, file: str | None = None) -> dict[str, Any]:
    return {"id": id, "type": "leaf", "state": {"type": "markdown", "state": {"file": file} if file else {}}}


def layout(active: str, *leaves: dict[str, Any], front: int = 0) -> dict[str, Any]:
    tabs = {"id": "t", "type": "tabs", "children": list(leaves), "currentTab": front}
    return {
        "main": {"id": "m", "type": "split", "children": [tabs]},
        "left": leaf("side"),
        "active": active,
        "lastOpenFiles": ["Old.md", 5],
    }


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (layout("b", leaf("a", "A.md"), leaf("b", "B.md")), "B.md"),
        (layout("side", leaf("a", "A.md"), leaf("b", "B.md"), front=1), "B.md"),
        (layout("gone", leaf("a", "A.md"), front=7), "A.md"),
        (layout("a", leaf("a")), None),
        (layout("a"), None),
        (None, None),
        ([], None),
        ({"main": {"children": "no"}}, None),
    ],
)
def test_the_active_pane_counts_then_the_tab_in_front(document: object, expected: str | None) -> None:
    assert active_file(document) == expected


def test_recent_files_are_those_with_a_name() -> None:
    assert recent_files(layout("a")) == ["Old.md"]
    assert recent_files("no") == []


def test_the_layouts_of_real_vaults_are_read(shared: Path) -> None:
    for file in (shared / "data").rglob("workspace.json"):
        found = active_file(json.loads(file.read_text()))
        assert found is None or found in file.read_text()
