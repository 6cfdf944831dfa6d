"""`links` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from obsidian_agent.cli.main import main
from support import MakeVault

NOTES = {"a.md": "[[b]] [[none]] [[#h]]", "sub/b.md": "", "c.md": "", "x.canvas": "{}"}


def test_every_note_and_canvas_is_a_key(
    make_vault: MakeVault, capsys: pytest.CaptureFixture[str]
) -> None:
    vault = make_vault(NOTES).real_path
    assert main(["links", "--json", "--vault", vault]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "a.md": {"outgoing": ["a.md", "sub/b.md"], "unresolved": ["none"], "backlinks": []},
        "c.md": {"outgoing": [], "unresolved": [], "backlinks": []},
        "sub/b.md": {"outgoing": [], "unresolved": [], "backlinks": ["a.md"]},
        "x.canvas": {"outgoing": [], "unresolved": [], "backlinks": []},
    }


def test_one_note_for_people(make_vault: MakeVault, capsys: pytest.CaptureFixture[str]) -> None:
    vault = make_vault(NOTES).real_path
    assert main(["links", "sub/b", "--vault", vault]) == 0
    assert capsys.readouterr().out == "sub/b.md\n  <- a.md\n"
    assert main(["links", "--vault", vault]) == 0
    assert (
        capsys.readouterr().out
        == "a.md\n  -> a.md\n  -> sub/b.md\n  ?? none\nsub/b.md\n  <- a.md\n"
    )


def test_a_canvas_links_as_a_note_does(
    make_vault: MakeVault, capsys: pytest.CaptureFixture[str]
) -> None:
    cards = [{"type": "file", "file": "sub/b.md"}, {"type": "text", "text": "[[c]] [[gone]]"}]
    place = {"x": 0, "y": 0, "width": 1, "height": 1}
    canvas = json.dumps(
        {
            "nodes": [{"id": str(number)} | place | card for number, card in enumerate(cards)],
            "edges": [],
        }
    )
    vault = make_vault({**NOTES, "Boards/x.canvas": canvas}).real_path
    assert main(["links", "--vault", vault]) == 0
    assert (
        capsys.readouterr().out
        == "Boards/x.canvas\n  -> c.md\n  -> sub/b.md\n  ?? gone\na.md\n  -> a.md\n  -> sub/b.md\n  ?? none\nc.md\n  <- Boards/x.canvas\nsub/b.md\n  <- a.md\n  <- Boards/x.canvas\n"
    )
    assert main(["links", "--json", "--vault", vault]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["Boards/x.canvas"] == {
        "outgoing": ["c.md", "sub/b.md"],
        "unresolved": ["gone"],
        "backlinks": [],
    }
    assert document["c.md"]["backlinks"] == [], "Obsidian lists notes only as backlinks"
    assert main(["links", "c", "--json", "--vault", vault]) == 0
    expected = {"outgoing": [], "unresolved": [], "backlinks": [], "canvases": ["Boards/x.canvas"]}
    assert json.loads(capsys.readouterr().out) == {"c.md": expected}
    assert main(["links", "Boards/x.canvas", "--vault", vault]) == 0
    assert capsys.readouterr().out == "Boards/x.canvas\n  -> c.md\n  -> sub/b.md\n  ?? gone\n"


def test_a_path_that_is_no_file(make_vault: MakeVault, capsys: pytest.CaptureFixture[str]) -> None:
    vault = make_vault(NOTES).real_path
    for path in ("none.md", "sub", "../a.md"):
        assert main(["links", path, "--json", "--vault", vault]) == 2
        assert json.loads(capsys.readouterr().out)["errors"][0]["code"] in (
            "FILE_NOT_FOUND",
            "PATH_OUTSIDE_VAULT",
        )


def test_a_real_vault_as_obsidian_sees_it(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = shared / "data/truth"
    assert main(["links", "--json", "--vault", str(truth / "tasks-demo-vault")]) == 0
    document = json.loads(capsys.readouterr().out)
    canvas = document.pop("Manual Testing/Frontmatter/Frontmatter code.canvas")
    assert canvas["outgoing"]
    assert document == json.loads((truth / "tasks-demo.json").read_text("utf-8"))


def test_a_folder_of_the_same_name_does_not_hide_a_note(
    make_vault: MakeVault, capsys: pytest.CaptureFixture[str]
) -> None:
    vault = make_vault({"Plan.md": "[[b]]", "Plan/b.md": ""}).real_path
    assert main(["links", "Plan", "--vault", vault]) == 0
    assert capsys.readouterr().out == "Plan.md\n  -> Plan/b.md\n"
