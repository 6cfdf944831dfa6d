from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.cli.main import main
from obsidian_agent.integrations.community_plugins import URL_VARIABLE
from support import MakeVault

LIST = [
    {
        "id": "dataview",
        "name": "Dataview",
        "author": "M",
        "description": "Data views.",
        "repo": "m/dataview",
    },
    {
        "id": "kanban",
        "name": "Kanban",
        "author": "k",
        "description": "\x1b[31mBoards\x1b[0m of data.",
        "repo": "k/kanban",
    },
    {
        "id": "datacards",
        "name": "Data cards",
        "author": "d",
        "description": "Data as cards.",
        "repo": "d/cards",
    },
]


@pytest.fixture
def search(
    tmp_path: Path,
    make_vault: MakeVault,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """`plugins search` with a list that is kept already; the network leads nowhere."""
    vault = make_vault(
        {
            ".obsidian/community-plugins.json": '["dataview"]',
            ".obsidian/plugins/kanban/manifest.json": "{}",
            "a.md": "",
        }
    ).real_path
    monkeypatch.setenv(URL_VARIABLE, "http://127.0.0.1:9/none")
    state = tmp_path / "state"

    def run(*arguments: str, kept: bool = True, fetched: str | None = None) -> tuple[int, str, str]:
        state.mkdir(exist_ok=True)
        if kept:
            moment = fetched or datetime.now().astimezone().isoformat()
            (state / "plugin-index.json").write_text(
                json.dumps({"fetchedAt": moment, "plugins": LIST})
            )
        code = main(
            [
                "plugins",
                "search",
                *arguments,
                "--vault",
                vault,
                "--state-dir",
                str(state),
                "--config",
                str(tmp_path / "none.toml"),
            ]
        )
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def test_what_is_found_says_what_the_vault_has(search: Any, tmp_path: Path) -> None:
    before = sorted(path.name for path in (tmp_path / "vault").rglob("*"))
    code, out, _ = search("data", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["stale"] is False
    found = {item["id"]: (item["installed"], item["enabled"]) for item in document["plugins"]}
    assert found == {"dataview": (True, True), "kanban": (True, False), "datacards": (False, False)}
    assert document["plugins"][0].keys() == {
        "id",
        "name",
        "author",
        "description",
        "repo",
        "url",
        "score",
        "installed",
        "enabled",
    }
    assert sorted(path.name for path in (tmp_path / "vault").rglob("*")) == before


def test_for_people_it_is_plain_and_harmless(search: Any) -> None:
    code, out, err = search("kanban")
    assert code == 0
    assert out.splitlines()[0].startswith("Kanban (installed, disabled):")
    assert "\x1b" not in out
    assert "https://github.com/k/kanban" in out
    assert "Settings" not in err


def test_an_old_list_is_said_to_be_old(search: Any) -> None:
    code, out, err = search("data", "--limit", "1", fetched="2020-01-01T00:00:00+00:00")
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "2020-01-01" in err


def test_without_a_list_the_service_failed(search: Any) -> None:
    code, out, _ = search("data", "--json", kept=False)
    assert code == 5
    assert json.loads(out)["errors"][0]["code"] == "NETWORK_ERROR"


def test_without_a_list_a_well_known_plugin_is_named(search: Any) -> None:
    code, _, err = search("kanban board", kept=False)
    assert code == 5
    assert "A plugin for boards with columns is Kanban." in err
