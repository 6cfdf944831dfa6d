from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.errors import PlanError
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.services.macro import Macro, MacroError, read_macro
from obsidian_agent.services.macro_store import MacroStore
from obsidian_agent.services.trust import TrustStore
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.filesystem.app_folder import AppFolder
from obsidian_agent.vault.filesystem.store import VaultStore


def plan(**fields: Any) -> dict[str, Any]:
    return {
        "version": "1.0",
        "goal": "Start a project",
        "riskLevel": "writes",
        "steps": [
            {
                "id": "n",
                "tool": "vault.createFile",
                "args": {
                    "path": "Projects/${projectName}.md",
                    "content": "# ${projectName} ${other}\n",
                },
            }
        ],
    } | fields


def macro(name: str = "New project", **fields: Any) -> Macro:
    return read_macro({"name": name, "plan": plan()} | fields, TOOLS).macro


@pytest.fixture
def vault(make_vault: Callable[[Mapping[str, str | bytes]], VaultStore]) -> VaultStore:
    return make_vault({"a.md": ""})


@pytest.fixture
def store(vault: VaultStore, tmp_path: Path) -> MacroStore:
    usage, trusted = (
        tmp_path / "state" / "macro-usage.json",
        TrustStore(tmp_path / "trusted" / "trusted.json"),
    )
    return MacroStore(
        folder=AppFolder(vault, "macros"),
        usage=usage,
        trust=trusted,
        tools=TOOLS,
        plan_of=dict[str, ActionPlan]().__getitem__,
    )


# --- reading a document ---


def test_names_that_nothing_declares_become_parameters_where_they_must_be():
    read = macro()
    assert list(read.plan.parameters) == ["projectName"]
    assert read.plan.parameters["projectName"].type == "text"


@pytest.mark.parametrize(
    "beside",
    [
        ["projectName", "other"],
        {"projectName": {}, "other": {"type": "text", "description": "More"}},
    ],
)
def test_parameters_beside_the_plan_are_merged(beside):
    assert list(macro(parameters=beside).plan.parameters) == ["projectName", "other"]


def test_what_the_plan_declares_wins_over_what_stands_beside_it():
    declared = plan(parameters={"projectName": {"type": "text", "default": "X"}})
    read = read_macro(
        {"name": "m", "plan": declared, "parameters": {"projectName": {"default": "Y"}}}, TOOLS
    ).macro
    assert read.plan.parameters["projectName"].default == "X"


def test_unknown_fields_are_left_out_and_said():
    read = read_macro({"name": "Daily", "plan": plan(), "autoRun": True, "approved": True}, TOOLS)
    assert {
        warning.message.split("“")[1].split("”")[0]
        for warning in read.warnings
        if warning.code == "UNKNOWN_FIELD"
    } == {
        "autoRun",
        "approved",
    }
    assert read.macro.to_json().keys() == {"name", "plan"}


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ([], "SCHEMA_INVALID"),
        ({}, "SCHEMA_INVALID"),
        ({"name": "x"}, "SCHEMA_INVALID"),
        ({"name": "", "plan": plan()}, "SCHEMA_INVALID"),
        ({"name": "../../x[/]\x1b[2J", "plan": plan()}, "SCHEMA_INVALID"),
        ({"name": "x" * 101, "plan": plan()}, "SCHEMA_INVALID"),
        ({"name": "x", "plan": {}}, "SCHEMA_INVALID"),
        ({"name": "x", "plan": plan(version="9.0")}, "SCHEMA_INVALID"),
        (
            {"name": "x", "plan": plan(steps=[{"id": "a", "tool": "shell.run", "args": {}}])},
            "TOOL_NOT_FOUND",
        ),
        (
            {
                "name": "x",
                "plan": plan(
                    steps=[{"id": "a", "tool": "vault.readFile", "args": {"path": "../x"}}]
                ),
            },
            "PATH_OUTSIDE_VAULT",
        ),
        ({"name": "x", "plan": plan(), "parameters": "projectName"}, "SCHEMA_INVALID"),
        (
            {"name": "x", "plan": plan(), "parameters": {"projectName": {"type": "spell"}}},
            "SCHEMA_INVALID",
        ),
    ],
)
def test_a_document_that_is_no_valid_macro_is_refused(document, code):
    with pytest.raises(PlanError) as caught:
        read_macro(document, TOOLS)
    assert code in {problem.code for problem in caught.value.problems}


def test_deletes_and_commands_are_judged_when_a_macro_runs():
    steps = [{"id": "x", "tool": "vault.delete", "args": {"path": "${folderName}"}}]
    assert list(
        read_macro({"name": "x", "plan": plan(steps=steps)}, TOOLS).macro.plan.parameters
    ) == ["folderName"]


# --- keeping ---


def test_what_is_saved_reads_back(store):
    saved = store.put(macro(description="Makes a note", phrases=["start {projectName}"]))
    assert store.get("new PROJECT") == saved
    assert store.list() == [saved]
    assert saved.description == "Makes a note"
    assert saved.phrases == ("start {projectName}",)


def test_a_macro_is_one_file_in_the_vaults_own_folder(store, vault):
    store.put(macro("Weekly: review / plan?"))
    files = list((Path(vault.real_path) / ".obsidian-agent" / "macros").iterdir())
    assert len(files) == 1
    assert json.loads(files[0].read_text("utf-8"))["name"] == "Weekly: review / plan?"


def test_names_that_make_the_same_file_name_are_kept_apart(store):
    store.put(macro("a/b"))
    store.put(macro("a:b"))
    store.put(macro("a?b"))
    assert [each.name for each in store.list()] == ["a/b", "a:b", "a?b"]


def test_a_name_that_exists_is_replaced_only_when_asked(store):
    store.put(macro())
    with pytest.raises(MacroError) as caught:
        store.put(macro("NEW project"))
    assert caught.value.code == "MACRO_EXISTS"
    store.put(macro("NEW project", description="again"), replacing=True)
    assert [(each.name, each.description) for each in store.list()] == [("NEW project", "again")]


def test_renaming_keeps_the_plan_and_the_count(store):
    kept = store.put(macro())
    store.put(macro("Other"))
    store.count("New project")
    store.rename("new project", "Fresh start")
    assert store.get("Fresh start").plan == kept.plan
    assert store.use_count("Fresh start") == 1
    assert [each.name for each in store.list()] == ["Fresh start", "Other"]
    with pytest.raises(MacroError):
        store.rename("Fresh start", "other")


def test_renaming_may_change_only_the_case(store):
    store.put(macro())
    store.rename("New project", "NEW PROJECT")
    assert [each.name for each in store.list()] == ["NEW PROJECT"]


def test_deleting_removes_file_and_count(store, vault):
    store.put(macro())
    store.count("New project")
    store.delete("New project")
    assert store.list() == []
    assert list((Path(vault.real_path) / ".obsidian-agent" / "macros").iterdir()) == []
    store.put(macro())
    assert store.use_count("New project") == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.get("x"),
        lambda s: s.delete("x"),
        lambda s: s.rename("x", "y"),
        lambda s: s.use_count("x"),
        lambda s: s.count("x"),
    ],
)
def test_a_macro_that_is_not_there_is_said_with_those_that_are(store, call):
    store.put(macro())
    with pytest.raises(MacroError) as caught:
        call(store)
    assert caught.value.code == "MACRO_NOT_FOUND"
    assert "“New project”" in caught.value.problem().message


def test_counts_are_kept_outside_the_vault(store, vault, tmp_path):
    store.put(macro())
    for _ in range(3):
        store.count("New project")
    assert store.use_count("New project") == 3
    assert json.loads((tmp_path / "state" / "macro-usage.json").read_text("utf-8")) == {
        "New project": 3
    }
    assert "usage" not in (
        Path(vault.real_path) / ".obsidian-agent" / "macros" / "New project.json"
    ).read_text("utf-8")


def test_a_broken_usage_file_counts_from_zero(store, tmp_path):
    store.put(macro())
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "macro-usage.json").write_text("{")
    assert store.use_count("New project") == 0
    store.count("New project")
    assert store.use_count("New project") == 1


def test_a_broken_file_hides_no_other(store, vault):
    store.put(macro())
    folder = Path(vault.real_path) / ".obsidian-agent" / "macros"
    (folder / "broken.json").write_text("{")
    (folder / "odd.json").write_text('{"name": "odd"}')
    assert [each.name for each in store.list()] == ["New project"]


def test_goal_and_lines_say_the_values(vault):
    document = plan(goal="Start ${projectName}: ${other|default:x}")
    document["steps"][0]["preview"] = "Make ${projectName}, $${kept}"
    made = read_macro({"name": "New", "plan": document}, TOOLS).macro.for_values(
        {"projectName": "A & B"}
    )
    assert made["goal"] == "Start A & B: ${other|default:x}"
    assert made["steps"][0]["preview"] == "Make A & B, $${kept}"
    assert made["steps"][0]["args"]["path"] == "Projects/${projectName}.md"


# --- trust ---


def placed(vault: VaultStore, document: Macro, file: str) -> Path:
    """Return the macro as a file that a sync or a clone brought."""
    path = Path(vault.real_path) / ".obsidian-agent" / "macros" / f"{file}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document.to_json()))
    return path


def test_what_this_person_saves_is_trusted_and_what_came_with_the_vault_is_not(store, vault):
    placed(vault, macro("Came along"), "x")
    store.put(macro("Mine"))
    assert [(each.name, each.standing) for each in store.list()] == [
        ("Came along", "new"),
        ("Mine", "trusted"),
    ]


def test_a_change_of_the_file_takes_trust_away_and_its_return_gives_it_back(store, vault):
    path = placed(vault, macro("Mine"), "x")
    shown = store.get("mine")
    assert store.accept("mine", shown.sha256).trusted
    data = path.read_bytes()
    path.write_bytes(data + b" ")
    assert store.get("Mine").standing == "changed"
    path.write_bytes(data)
    assert store.get("Mine").trusted


def test_only_what_was_shown_is_accepted(store, vault):
    path = placed(vault, macro("Mine"), "x")
    shown = store.get("Mine")
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(MacroError) as caught:
        store.accept("Mine", shown.sha256)
    assert caught.value.code == "MACRO_CHANGED"
    assert store.get("Mine").standing == "new"


def test_renaming_keeps_how_a_macro_stands(store, vault):
    placed(vault, macro("Came along"), "x")
    store.put(macro("Mine"))
    store.rename("Came along", "Still strange")
    store.rename("Mine", "Still mine")
    assert [(each.name, each.standing) for each in store.list()] == [
        ("Still mine", "trusted"),
        ("Still strange", "new"),
    ]


def test_a_deleted_macro_that_comes_back_has_to_be_accepted_again(store, vault):
    store.put(macro("Mine"))
    [path] = (Path(vault.real_path) / ".obsidian-agent" / "macros").iterdir()
    data = path.read_bytes()
    store.delete("Mine")
    path.write_bytes(data)
    assert store.get("Mine").standing == "new"


def test_a_strange_file_cannot_hide_the_persons_own_macro_by_taking_its_name(store, vault):
    kept = store.put(macro("Mine"))
    placed(vault, macro("mine", description="strange"), "0")
    assert store.get("MINE") == kept
    assert store.get("Mine").trusted
