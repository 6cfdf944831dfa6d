from __future__ import annotations

import json
from pathlib import Path

import pytest

from obsidian_agent.cli.main import main
from obsidian_stand_in import stand_in

PLUGIN = "plugins/agent-companion"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    (folder / ".obsidian").mkdir(parents=True)
    (folder / ".obsidian" / "app.json").write_text("{}")
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_installing_copies_the_plugin_and_enables_nothing(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of(vault)
    assert main(["companion", "install", "--vault", str(vault), "--yes"]) == 0
    assert "Two steps are left" in capsys.readouterr().out
    added = files_of(vault).keys() - before.keys()
    assert added == {f".obsidian/{PLUGIN}/main.js", f".obsidian/{PLUGIN}/manifest.json"}
    manifest = json.loads((vault / ".obsidian" / PLUGIN / "manifest.json").read_bytes())
    assert manifest["id"] == "agent-companion"
    assert main(["companion", "install", "--vault", str(vault), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] == []
    assert main(["companion", "remove", "--vault", str(vault), "--yes"]) == 0
    assert files_of(vault) == before
    assert not (vault / ".obsidian" / PLUGIN).exists()


@pytest.mark.parametrize("action", ["install", "remove"])
def test_nothing_is_done_that_nobody_agreed_to(vault: Path, action: str) -> None:
    if action == "remove":
        main(["companion", "install", "--vault", str(vault), "--yes"])
    before = files_of(vault)
    assert main(["companion", action, "--vault", str(vault)]) == 3
    assert files_of(vault) == before


def test_a_folder_of_obsidian_with_another_name_is_found_or_named(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (vault / ".obsidian").rename(vault / ".config-desk")
    main(["companion", "install", "--vault", str(vault), "--yes"])
    assert (vault / ".config-desk" / PLUGIN / "main.js").exists()
    main(["companion", "install", "--vault", str(vault), "--yes", "--config-folder", ".other"])
    assert (vault / ".other" / PLUGIN / "main.js").exists()
    capsys.readouterr()
    assert (
        main(["companion", "install", "--vault", str(vault), "--yes", "--config-folder", "Notes"])
        == 2
    )
    assert "not a configuration folder" in capsys.readouterr().err


def test_the_plugin_does_not_go_where_a_link_leads(vault: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (vault / ".obsidian" / "plugins").symlink_to(elsewhere)
    assert main(["companion", "install", "--vault", str(vault), "--yes"]) != 0
    assert list(elsewhere.iterdir()) == []


def test_the_status_tells_every_way(
    vault: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["companion", "status", "--vault", str(vault), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["best"] is None
    assert [way["name"] for way in document["ways"]] == ["companion", "cli", "uri", "workspace"]
    with stand_in(vault, home) as running:
        main(["companion", "status", "--vault", str(vault), "--json"])
        document = json.loads(capsys.readouterr().out)
        assert document["best"] == "companion"
        assert "selection" in document["ways"][0]["can"]
        running.companion = False
        main(["companion", "status", "--vault", str(vault)])
        printed = capsys.readouterr().out
        assert "companion install" in printed
        assert "Experimental" in printed
