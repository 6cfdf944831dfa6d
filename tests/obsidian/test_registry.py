from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.obsidian import registry
from obsidian_agent.obsidian.registry import active_file, known_vault, known_vaults, recent_files


def _register(file: Path, document: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))


def test_vaults_of_every_installation_are_found_latest_first(home: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "One", tmp_path / "Two"
    one.mkdir()
    two.mkdir()
    _register(
        home / "obsidian" / "obsidian.json",
        {"vaults": {"a" * 16: {"path": str(one), "ts": 1}, "b": {"path": "/gone", "ts": 9}}},
    )
    flatpak = (
        home / ".var" / "app" / "md.obsidian.Obsidian" / "config" / "obsidian" / "obsidian.json"
    )
    _register(flatpak, {"vaults": {"c" * 16: {"path": str(two), "ts": 2}}})
    assert [(vault.name, vault.id) for vault in known_vaults()] == [
        ("Two", "c" * 16),
        ("One", "a" * 16),
    ]


def test_a_vault_is_known_by_where_it_really_is(home: Path, tmp_path: Path) -> None:
    vault, link = tmp_path / "vault", tmp_path / "link"
    vault.mkdir()
    link.symlink_to(vault)
    _register(
        home / "obsidian" / "obsidian.json", {"vaults": {"d" * 16: {"path": str(link), "ts": 1}}}
    )
    found = known_vault(str(vault.resolve()))
    assert found is not None
    assert (found.id, found.written) == ("d" * 16, str(link))
    assert known_vault(str(tmp_path)) is None


@pytest.mark.parametrize(
    "document", ["text", {"vaults": []}, {"vaults": {"a": "b", "c": {"path": 5}}}, {}]
)
def test_a_registry_that_is_not_as_expected_holds_no_vaults(home: Path, document: object) -> None:
    _register(home / "obsidian" / "obsidian.json", document)
    assert known_vaults() == []


def test_under_wsl_the_registry_of_windows_counts(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSL_DISTRO_NAME", "Ubuntu")
    monkeypatch.setattr(registry, "_WSL_USERS", str(tmp_path / "Users"))
    vault = tmp_path / "vault"
    vault.mkdir()
    _register(
        tmp_path / "Users" / "me" / "AppData" / "Roaming" / "obsidian" / "obsidian.json",
        {"vaults": {"e": {"path": str(vault)}}},
    )
    assert [found.path for found in known_vaults()] == [vault]
    assert registry._native_path("C:\\Users\\me\\Notes") == "/mnt/c/Users/me/Notes"


# --- Obsidian's own record of what is open ---


def leaf(id: str, file: str | None = None) -> dict[str, Any]:
    return {
        "id": id,
        "type": "leaf",
        "state": {"type": "markdown", "state": {"file": file} if file else {}},
    }


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
def test_the_active_pane_counts_then_the_tab_in_front(
    document: object, expected: str | None
) -> None:
    assert active_file(document) == expected


def test_recent_files_are_those_with_a_name() -> None:
    assert recent_files(layout("a")) == ["Old.md"]
    assert recent_files("no") == []


def test_the_layouts_of_real_vaults_are_read(shared: Path) -> None:
    for file in (shared / "data").rglob("workspace.json"):
        found = active_file(json.loads(file.read_text()))
        assert found is None or found in file.read_text()
