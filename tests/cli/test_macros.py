"""macro from the command line: kept, shown, run and exchanged without a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.cli.main import main
from support import MakeVault

Call = Callable[..., tuple[int, Any]]

STEP = {
    "id": "notes",
    "tool": "vault.createFile",
    "args": {"path": "${folder}/${item|filename}.md", "content": "${item} of ${count}\n"},
    "foreach": {"from": "${items}", "itemName": "item"},
}
PLAN = {"version": "1.0", "goal": "Make notes", "riskLevel": "writes", "parameters": {"count": {"type": "number"}}, "steps": [STEP]}
HOSTILE = 'a "quoted" \\ line\nand ${selection} $steps.x'


@pytest.fixture
def call(tmp_path: Path, make_vault: MakeVault, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command with `--json`; the exit code and the document."""
    vault = make_vault({"a.md": "one\n"}).real_path

    def run(*arguments: str) -> tuple[int, Any]:
        state = ["--vault", vault, "--state-dir", str(tmp_path / "state"), "--config", str(tmp_path / "none.toml")]
        code = main([*arguments, "--json", *state])
        return code, json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "macro.json"
    path.write_text(json.dumps({"name": "Make notes", "parameters": ["folder"], "plan": PLAN, "colour": "red"}))
    return str(path)


def text(tmp_path: Path, name: str) -> str:
    return (tmp_path / "vault" / name).read_text()


def test_an_import_is_inert_until_accepted(call: Call, file: str, tmp_path: Path) -> None:
    code, document = call("macro", "import", file)
    assert (code, document["outcome"], document["errors"][0]["code"]) == (3, "refused", "NOT_APPROVED")
    assert call("macro", "list")[1] == {"macros": []}
    code, document = call("macro", "import", file, "--yes")
    assert (code, document["parameters"]) == (0, ["folder", "count", "items"])
    assert call("macro", "import", file, "--yes")[0] == 2
    assert call("macro", "import", file, "--yes", "--replace")[0] == 0
    assert [path.name for path in (tmp_path / "vault/.obsidian-agent/macros").iterdir()] == ["Make notes.json"]


def test_what_is_missing_is_named(call: Call, file: str) -> None:
    call("macro", "import", file, "--yes")
    for mode in ("--yes", "--dry-run"):
        code, document = call("macro", "run", "Make notes", mode, "--param", "count=2")
        assert (code, document["outcome"], document["missing"]) == (3, "needs-input", ["folder", "items"])


def test_a_run_binds_by_type_counts_and_can_be_undone(call: Call, file: str, tmp_path: Path) -> None:
    call("macro", "import", file, "--yes")
    given = ["--param", "folder=New", "--param", f"items={json.dumps(['One', HOSTILE])}", "--param", "count=2"]
    code, preview = call("macro", "run", "make notes", "--dry-run", *given)
    assert (code, len(preview["changes"])) == (0, 3)
    assert not (tmp_path / "vault/New").exists()
    assert call("macro", "list")[1]["macros"][0]["used"] == 0
    code, result = call("macro", "run", "make notes", "--yes", *given)
    assert (code, len(result["effects"]["created"])) == (0, 2)
    assert text(tmp_path, "New/One.md") == "One of 2\n"
    assert any(HOSTILE in path.read_text() for path in (tmp_path / "vault/New").iterdir())
    assert call("macro", "list")[1]["macros"][0]["used"] == 1
    assert call("undo", "--yes")[0] == 0
    assert not (tmp_path / "vault/New").exists()


@pytest.mark.parametrize("items", ["One, Two", '["One", "Two"]'])
def test_a_list_is_written_either_way(call: Call, file: str, items: str) -> None:
    call("macro", "import", file, "--yes")
    code, result = call("macro", "run", "Make notes", "--yes", "--param", "folder=New", "--param", f"items={items}", "--param", "count=1")
    assert (code, result["effects"]["created"]) == (0, ["New/One.md", "New/Two.md"])


@pytest.mark.parametrize("given", ["count=many", "colour=red", "count"])
def test_a_value_that_does_not_fit_is_refused(call: Call, file: str, given: str) -> None:
    call("macro", "import", file, "--yes")
    assert call("macro", "run", "Make notes", "--yes", "--param", "folder=N", "--param", "items=a", "--param", given)[0] == 2


def test_a_good_run_is_saved_with_its_literals_as_inputs(call: Call, tmp_path: Path) -> None:
    code, result = call("do", "create a note 'Projects/Kick-off' with the text 'Hello'", "--offline", "--yes")
    assert (code, result["effects"]["created"]) == (0, ["Projects/Kick-off.md"])
    code, _ = call("macro", "save", "New project", "--run", result["runId"], "--description", "A note for a project")
    assert code == 0
    listed = call("macro", "list")[1]["macros"][0]
    assert listed["description"] == "A note for a project"
    assert listed["parameters"]["path"] == {"description": "Name of the new note", "type": "path", "default": "Projects/Kick-off.md"}
    code, result = call("macro", "run", "New project", "--yes", "--param", "path=Projects/Second.md")
    assert (code, text(tmp_path, "Projects/Second.md")) == (0, "Hello")


@pytest.mark.parametrize(("literal", "type_"), [("status=done", "text"), ("number=3", "number"), ("flag=true", "boolean")])
def test_any_literal_of_a_plan_becomes_an_input(call: Call, tmp_path: Path, literal: str, type_: str) -> None:
    plan = tmp_path / "plan.json"
    step = {"id": "set", "tool": "vault.setFrontmatter", "args": {"path": "a.md", "set": {"s": "done", "n": 3, "f": True}}}
    plan.write_text(json.dumps(PLAN | {"parameters": {}, "steps": [step]}))
    run_id = call("run", str(plan), "--yes")[1]["runId"]
    assert call("macro", "save", "M", "--run", run_id, "--parameter", literal)[0] == 0
    name = literal.partition("=")[0]
    assert call("macro", "show", "M")[1]["plan"]["parameters"][name].get("type", "text") == type_
    assert call("macro", "save", "M2", "--run", run_id, "--parameter", "x=nowhere")[0] == 2


def test_show_rename_export_delete(call: Call, file: str, tmp_path: Path) -> None:
    call("macro", "import", file, "--yes")
    call("macro", "run", "Make notes", "--yes", "--param", "folder=N", "--param", "items=a", "--param", "count=1")
    assert call("macro", "rename", "Make notes", "Notes: many")[0] == 0
    assert call("macro", "list")[1]["macros"][0]["used"] == 1
    exported = tmp_path / "out.json"
    assert call("macro", "export", "notes: MANY", str(exported))[0] == 0
    assert json.loads(exported.read_text()) == call("macro", "show", "Notes: many")[1]
    assert call("macro", "delete", "Notes: many")[0] == 3
    assert call("macro", "delete", "Notes: many", "--yes")[0] == 0
    assert call("macro", "show", "Notes: many")[0] == 2
    assert call("macro", "import", str(exported), "--yes")[0] == 0


def test_a_changed_document_takes_its_place_and_keeps_the_count(call: Call, file: str, tmp_path: Path) -> None:
    call("macro", "import", file, "--yes")
    call("macro", "run", "Make notes", "--param", "folder=N", "--param", "count=1", "--param", "items=a", "--yes")
    document = call("macro", "show", "Make notes")[1]
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(document | {"name": "Make files", "description": "new"}))
    assert call("macro", "edit", "Make notes", str(changed)) == (
        0,
        {"name": "Make files", "outcome": "done", "parameters": ["folder", "count", "items"]},
    )
    assert [(each["name"], each["description"], each["used"]) for each in call("macro", "list")[1]["macros"]] == [("Make files", "new", 1)]
    changed.write_text(json.dumps({"name": "Broken", "plan": {}}))
    assert call("macro", "edit", "Make files", str(changed))[0] == 2


def test_counts_stay_outside_the_vault(call: Call, file: str, tmp_path: Path) -> None:
    call("macro", "import", file, "--yes")
    call("macro", "run", "Make notes", "--yes", "--param", "folder=N", "--param", "items=a", "--param", "count=1")
    assert "used" not in (tmp_path / "vault/.obsidian-agent/macros/Make notes.json").read_text()
    assert len(list((tmp_path / "state").rglob("macro-usage.json"))) == 1


def test_a_value_that_an_instruction_lacks_can_be_given(call: Call, tmp_path: Path) -> None:
    code, document = call("do", "please rename a", "--offline", "--yes")
    assert (code, document["outcome"]) == (3, "needs-input")
    number = [each["recipe"] for each in document["candidates"]].index("rename") + 1
    assert document["candidates"][number - 1]["missing"] == ["to"]
    code, document = call("do", "please rename a", "--offline", "--yes", "--pick", str(number), "--param", "from=a", "--param", "to=b")
    assert (code, text(tmp_path, "b.md")) == (0, "one\n")
