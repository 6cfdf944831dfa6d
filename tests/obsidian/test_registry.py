from __future__ import annotations

import json
from pathlib import Path

import pytest

from obsidian_agent.obsidian import registry
from obsidian_agent.obsidian.registry import known_vault, known_vaults


def _register(file: Path, document: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))


def test_vaults_of_every_installation_are_found_latest_first(home: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "One", tmp_path / "Two"
    one.mkdir()
    two.mkdir()
    _register(home / "obsidian" / "obsidian.json", {"vaults": {"a" * 16: {"path": str(one), "ts": 1}, "b": {"path": "/gone", "ts": 9}}})
    flatpak = home / ".var" / "app" / "md.obsidian.Obsidian" / "config" / "obsidian" / "obsidian.json"
    _register(flatpak, {"vaults": {"c" * 16: {"path": str(two), "ts": 2}}})
    assert [(vault.name, vault.id) for vault in known_vaults()] == [("Two", "c" * 16), ("One", "a" * 16)]


def test_a_vault_is_known_by_where_it_really_is(home: Path, tmp_path: Path) -> None:
    vault, link = tmp_path / "vault", tmp_path / "link"
    vault.mkdir()
    link.symlink_to(vault)
    _register(home / "obsidian" / "obsidian.json", {"vaults": {"d" * 16: {"path": str(link), "ts": 1}}})
    found = known_vault(str(vault.resolve()))
    assert found is not None
    assert (found.id, found.written) == ("d" * 16, str(link))
    assert known_vault(str(tmp_path)) is None


@pytest.mark.parametrize("document", ["text", {"vaults": []}, {"vaults": {"a": "b", "c": {"path": 5}}}, {}])
def test_a_registry_that_is_not_as_expected_holds_no_vaults(home: Path, document: object) -> None:
    _register(home / "obsidian" / "obsidian.json", document)
    assert known_vaults() == []


def test_under_wsl_the_registry_of_windows_counts(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSL_DISTRO_NAME", "Ubuntu")
    monkeypatch.setattr(registry, "_WSL_USERS", str(tmp_path / "Users"))
    vault = tmp_path / "vault"
    vault.mkdir()
    _register(tmp_path / "Users" / "me" / "AppData" / "Roaming" / "obsidian" / "obsidian.json", {"vaults": {"e": {"path": str(vault)}}})
    assert [found.path for found in known_vaults()] == [vault]
    assert registry._here("C:\\Users\\me\\Notes") == "/mnt/c/Users/me/Notes"
