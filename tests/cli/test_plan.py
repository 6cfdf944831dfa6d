"""`preview`, `run`, `plan` and `do`: documents, exit codes, and a clean standard output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import MakeCommands
from obsidian_agent.cli.main import main
from obsidian_agent.services.plans import Plans
from obsidian_agent.vault.views.changes import NetChange
from support import MakeVault

Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def call(commands: MakeCommands) -> Call:
    """Run a command with `--json`; the exit code and the document."""
    return commands({"a.md": "one\n", "Daily/d.md": "# Day\n\n- Alpha\n- Beta\n"}).json


@pytest.fixture
def write(tmp_path: Path) -> Callable[[object], str]:
    """Write a plan file."""

    def to_file(document: object) -> str:
        file = tmp_path / "plan.json"
        file.write_text(
            document if isinstance(document, str) else json.dumps(document), encoding="utf-8"
        )
        return str(file)

    return to_file


def plan(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": list(steps)} | more


CREATE = {"id": "new", "tool": "vault.createFile", "args": {"path": "N/new.md", "content": "x"}}


def text_of(tmp_path: Path, name: str) -> str:
    return (tmp_path / "vault" / name).read_text()


def test_a_run_does_what_was_previewed_and_undo_takes_it_back(
    call: Call, write: Callable[[object], str], tmp_path: Path
) -> None:
    file = write(plan(CREATE))
    code, shown = call("preview", file)
    assert (code, [change["path"] for change in shown["changes"]]) == (0, ["N", "N/new.md"])
    assert not (tmp_path / "vault/N").exists()
    code, result = call("run", file, "--yes", "--expect-hash", shown["planHash"])
    assert code == 0
    assert {
        key: result[key]
        for key in ("status", "success", "outcome", "completedSteps", "totalSteps", "undoAvailable")
    } == {
        "status": "done",
        "success": True,
        "outcome": "done",
        "completedSteps": 1,
        "totalSteps": 1,
        "undoAvailable": True,
    }
    assert set(result["timings"]) == {"previewMs", "firstScreenMs", "journalMs", "applyMs"}
    assert text_of(tmp_path, "N/new.md") == "x"
    code, history = call("history")
    assert [(run["runId"], run["undone"]) for run in history["runs"]] == [(result["runId"], False)]
    code, undone = call("undo", "--yes")
    assert (code, undone["restored"], undone["conflicts"]) == (0, ["N", "N/new.md"], [])
    assert not (tmp_path / "vault/N").exists()
    assert call("redo", "--yes")[0] == 0
    assert text_of(tmp_path, "N/new.md") == "x"


def test_without_yes_nothing_happens(
    call: Call, write: Callable[[object], str], tmp_path: Path
) -> None:
    code, result = call("run", write(plan(CREATE)))
    assert (code, result["status"], result["outcome"], result["runId"]) == (
        3,
        "refused",
        "refused",
        None,
    )
    assert not (tmp_path / "vault/N").exists()


def test_another_hash_is_a_conflict(
    call: Call, write: Callable[[object], str], tmp_path: Path
) -> None:
    code, result = call("run", write(plan(CREATE)), "--yes", "--expect-hash", "0" * 64)
    assert (code, result["status"], result["errors"][0]["code"]) == (4, "conflict", "CONFLICT")
    assert not (tmp_path / "vault/N").exists()


def test_a_note_edited_after_the_run_is_not_overwritten_by_undo(
    call: Call, write: Callable[[object], str], tmp_path: Path
) -> None:
    append = {
        "id": "add",
        "tool": "vault.updateFile",
        "args": {"path": "a.md", "mode": "append", "content": "two"},
    }
    assert call("run", write(plan(append, CREATE)), "--yes")[0] == 0
    (tmp_path / "vault/a.md").write_text("mine\n")
    code, undone = call("undo", "--yes")
    assert (code, [conflict["path"] for conflict in undone["conflicts"]]) == (4, ["a.md"])
    assert text_of(tmp_path, "a.md") == "mine\n"
    assert not (tmp_path / "vault/N/new.md").exists()


@pytest.mark.parametrize(
    ("document", "exit_code", "code"),
    [
        (plan({"id": "d", "tool": "vault.delete", "args": {"path": "a.md"}}), 3, "DELETE_DISABLED"),
        (
            plan(
                {
                    "id": "r",
                    "tool": "vault.rename",
                    "args": {"from": "a.md", "to": "Daily/d.md", "overwrite": True},
                }
            ),
            3,
            "DELETE_DISABLED",
        ),
        (
            plan({"id": "c", "tool": "commands.run", "args": {"id": "x"}}, riskLevel="commands"),
            3,
            "COMMANDS_DISABLED",
        ),
        (
            plan(
                {"id": "w", "tool": "vault.writeFile", "args": {"path": "../x.md", "content": ""}}
            ),
            2,
            "PATH_OUTSIDE_VAULT",
        ),
        (
            plan(
                {
                    "id": "w",
                    "tool": "vault.writeFile",
                    "args": {"path": ".obsidian/app.json", "content": ""},
                }
            ),
            2,
            "PATH_NOT_ALLOWED",
        ),
        (
            plan({"id": "r", "tool": "vault.readFile", "args": {"path": "gone.md"}}),
            2,
            "FILE_NOT_FOUND",
        ),
        (plan({"id": "x", "tool": "vault.nothing", "args": {}}), 2, "TOOL_NOT_FOUND"),
        ({"version": "2.0"}, 2, "SCHEMA_INVALID"),
        ('{"version": "1.0", "version": "1.0"}', 2, "SCHEMA_INVALID"),
        ("not json", 2, "SCHEMA_INVALID"),
    ],
)
def test_what_must_not_run_is_refused_with_a_code(
    call: Call, write: Callable[[object], str], document: object, exit_code: int, code: str
) -> None:
    found, result = call("run", write(document), "--yes")
    assert found == exit_code
    assert code in {error["code"] for error in result["errors"]}
    found, shown = call("preview", write(document))
    assert found == exit_code
    assert code in {error["code"] for error in shown["errors"]}


def test_missing_parameters_are_named(
    call: Call, write: Callable[[object], str], tmp_path: Path
) -> None:
    step = {
        "id": "new",
        "tool": "vault.createFile",
        "args": {"path": "${title}.md", "content": "${count}"},
    }
    document = plan(step, parameters={"title": {}, "count": {"type": "number"}})
    code, result = call("run", write(document), "--yes")
    assert (code, result["outcome"], result["missing"]) == (3, "needs-input", ["title", "count"])
    assert call("run", write(document), "--yes", "--param", "title=T", "--param", "count=3")[0] == 0
    assert text_of(tmp_path, "T.md") == "3"


def test_deletes_are_allowed_for_one_run(
    call: Call, write: Callable[[object], str], tmp_path: Path
) -> None:
    document = plan({"id": "d", "tool": "vault.delete", "args": {"path": "a.md"}})
    code, result = call("run", write(document), "--yes", "--allow-deletes")
    assert (code, result["effects"]["deleted"]) == (0, ["a.md"])
    assert (tmp_path / "vault/.trash/a.md").read_text() == "one\n"
    assert call("undo", "--yes")[0] == 0
    assert text_of(tmp_path, "a.md") == "one\n"


def test_do_plans_offline_from_a_selection_in_the_note(call: Call, tmp_path: Path) -> None:
    code, result = call(
        "do",
        "Create a note for each bullet in 'Projects'",
        "--offline",
        "--yes",
        "--active-file",
        "Daily/d.md",
        "--selection-range",
        "2:0-3:6",
    )
    assert (code, result["effects"]["created"]) == (0, ["Projects/Alpha.md", "Projects/Beta.md"])
    assert text_of(tmp_path, "Daily/d.md") == "# Day\n\n- [[Alpha]]\n- [[Beta]]\n"


def test_do_says_when_nothing_fits(call: Call) -> None:
    code, result = call("do", "sing me a song about the sea", "--offline", "--yes")
    assert (code, result["success"], result["outcome"]) == (3, False, "needs-input")
    assert [
        set(each) >= {"recipe", "title", "values", "missing", "doubt"}
        for each in result["candidates"]
    ] == [True] * 3


def test_a_doubted_plan_is_never_run_by_yes(call: Call, tmp_path: Path) -> None:
    code, result = call("do", "move all notes tagged #nobody to 'Archive'", "--offline", "--yes")
    assert (code, result["candidates"][0]["doubt"]) == (3, "No note matches: notes tagged #nobody.")
    assert not (tmp_path / "vault/Archive").exists()


def test_plan_makes_a_plan_and_runs_nothing(call: Call, tmp_path: Path) -> None:
    code, document = call("plan", "create a note 'Herbs'", "--offline")
    assert (code, document["version"]) == (0, "1.0")
    assert not (tmp_path / "vault/Herbs.md").exists()


def test_a_plan_that_stays_invalid_is_reported_with_its_causes(call: Call, tmp_path: Path) -> None:
    script = tmp_path / "answers.jsonl"
    answer = json.dumps({"text": '{"version": "1.0", "goal": 1}'})
    script.write_text(f"{answer}\n" * 3, encoding="utf-8")
    code, result = call("do", "Tidy up my notes", "--model", f"scripted/{script}")
    first, *causes = result["errors"]
    assert (code, first["code"]) == (5, "LLM_PLAN_INVALID")
    assert "'goal' must be text, not the number 1. (at /goal)" in [
        cause["message"] for cause in causes
    ]


def test_equal_causes_are_printed_once(
    tmp_path: Path, make_vault: MakeVault, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "answers.jsonl"
    answer = json.dumps({"text": '{"version": "1.0", "goal": 1}'})
    script.write_text(f"{answer}\n" * 3, encoding="utf-8")
    options = ["--vault", make_vault({}).real_path, "--state-dir", str(tmp_path / "state")]
    assert main(["do", "Tidy up", "--model", f"scripted/{script}", *options]) == 5
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "LLM failed to generate valid plan. Try rephrasing your request.",
        "The plan is not in the form that this program can run.",
    ]


def test_plan_parse_reads_a_raw_answer(call: Call, write: Callable[[object], str]) -> None:
    answer = f"Sure!\n```json\n{json.dumps(plan(CREATE))}\n```\n"
    code, document = call("plan", "--parse", write(answer))
    assert (code, document["steps"][0]["id"]) == (0, "new")
    code, document = call("plan", "--parse", write('{"version": "1.0", "steps": ['))
    assert (code, document["errors"][0]["code"]) == (2, "TRUNCATED")


def test_a_scripted_model_plans(call: Call, tmp_path: Path) -> None:
    script = tmp_path / "answers.jsonl"
    script.write_text(json.dumps({"plan": plan(CREATE)}) + "\n")
    code, result = call("do", "make a note", "--model", f"scripted/{script}", "--yes")
    assert (code, result["effects"]["created"]) == (0, ["N/new.md"])


@pytest.mark.parametrize("arguments", [("run",), ("history", "--nothing"), ("undo", "--vault")])
def test_a_bad_command_line_is_told_as_a_document(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"][0]["code"] == "USAGE"


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_vault_that_is_none_is_one_sentence_and_exit_2(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / kind
    if kind == "file":
        place.write_text("")
    assert main(["history", "--vault", str(place), "--state-dir", str(tmp_path / "s")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1


@pytest.mark.parametrize("name", ["gone.json", "."])
def test_a_plan_file_that_cannot_be_read_is_a_result_too(call: Call, name: str) -> None:
    code, result = call("run", name, "--yes")
    assert (code, result["status"], result["outcome"], result["runId"]) == (
        2,
        "refused",
        "refused",
        None,
    )


@pytest.mark.parametrize("name", ["gone.md", "Daily", "../x.md"])
def test_an_active_file_that_is_none_is_refused(
    call: Call, write: Callable[[object], str], name: str
) -> None:
    code, result = call("run", write(plan(CREATE)), "--yes", "--active-file", name)
    assert (code, result["status"]) == (2, "refused")


def test_plan_parse_says_what_was_mended_and_asks_no_permission(
    tmp_path: Path, write: Callable[[object], str], capsys: pytest.CaptureFixture[str]
) -> None:
    document = plan({"id": "d", "tool": "vault.delete", "args": {"path": "a.md"}})
    assert main(["plan", "--parse", write(f"```\n{json.dumps(document)}\n```"), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["steps"][0]["tool"] == "vault.delete"
    assert "repaired" in captured.err


def test_rename_is_a_plan_of_one_step_and_its_names_are_taken_literally(
    call: Call, tmp_path: Path
) -> None:
    (tmp_path / "vault/l.md").write_text("[[a]] [[d|day]]\n")
    code, result = call("rename", "a.md", "Notes/$b {x}.md", "--yes")
    assert (code, result["effects"]["renamed"]) == (0, [{"from": "a.md", "to": "Notes/$b {x}.md"}])
    assert text_of(tmp_path, "l.md") == "[[$b {x}]] [[d|day]]\n"


def test_an_empty_vault_name_is_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["history", "--vault", "", "--json", "--state-dir", str(tmp_path / "s")]) == 2
    assert "empty" in capsys.readouterr().out


@pytest.mark.parametrize(
    "harm", [Path.unlink, lambda note: note.write_text("Alpha")], ids=["gone", "changed"]
)
def test_a_note_that_is_no_longer_as_previewed_when_its_change_is_written_leaves_a_whole_document(
    call: Call,
    write: Callable[[object], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    harm: Callable[[Path], object],
) -> None:
    file = write(
        plan({"id": "r", "tool": "vault.replaceText", "args": {"find": "a", "replace": "b"}})
    )
    (note,) = tmp_path.rglob("Daily/d.md")
    diff = Plans.diff

    def diff_after_harm(plans: Plans, change: NetChange) -> str:
        harm(note)
        return diff(plans, change)

    whole = call("preview", file)[1]
    monkeypatch.setattr(Plans, "diff", diff_after_harm)
    assert call("preview", file) == (4, whole | {"changes": [whole["changes"][0] | {"diff": ""}]})


def test_an_error_nobody_expected_is_still_a_document(
    call: Call, write: Callable[[object], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("obsidian_agent.services.plans.dry_run", fail)
    code, result = call("run", write(plan(CREATE)), "--yes")
    assert (code, result["errors"][0]["code"]) == (1, "INTERNAL_ERROR")


def test_control_characters_of_a_note_do_not_reach_the_terminal(
    write: Callable[[object], str],
    capsys: pytest.CaptureFixture[str],
    make_vault: MakeVault,
    tmp_path: Path,
) -> None:
    document = plan({**CREATE, "args": {"path": "n.md", "content": "\u009b31m \u202e\u061c"}})
    vault = make_vault({}).real_path
    main(
        ["preview", write(document), "--json", "--vault", vault, "--state-dir", str(tmp_path / "s")]
    )
    out = capsys.readouterr().out
    assert "\u009b" not in out
    assert "\u061c" not in out
    assert "\u202e" not in out
    assert "\u009b31m \u202e\u061c" in json.loads(out)["changes"][0]["diff"]


def test_output_is_utf8_whatever_the_environment_says(
    tmp_path: Path, make_vault: MakeVault, write: Callable[[object], str]
) -> None:
    vault = make_vault({}).real_path
    file = write(plan({**CREATE, "args": {"path": "日.md", "content": "x"}}))
    command = [
        sys.executable,
        "-m",
        "obsidian_agent",
        "run",
        file,
        "--yes",
        "--json",
        "--vault",
        vault,
        "--state-dir",
        str(tmp_path / "s"),
    ]
    done = subprocess.run(
        command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "cp1252"}, check=False
    )
    assert done.returncode == 0
    assert json.loads(done.stdout.decode("utf-8"))["effects"]["created"] == ["日.md"]


COMMAND = {"id": "c", "tool": "commands.run", "args": {"id": "app:reload"}}


def test_a_command_that_nothing_can_run_is_never_approved(
    call: Call, write: Callable[[object], str], tmp_path: Path
) -> None:
    file = write(plan(COMMAND, CREATE, riskLevel="commands"))
    code, shown = call("preview", file, "--allow-commands")
    assert (code, shown["valid"], shown["planHash"]) == (2, False, None)
    assert [(error["code"], error["stepId"]) for error in shown["errors"]] == [
        ("COMMANDS_UNAVAILABLE", "c")
    ]
    code, result = call("run", file, "--allow-commands", "--yes")
    assert (code, result["status"], result["errors"][0]["code"]) == (
        2,
        "refused",
        "COMMANDS_UNAVAILABLE",
    )
    assert not (tmp_path / "vault/N").exists()
    code, shown = call("preview", file)
    assert (code, [error["code"] for error in shown["errors"]]) == (3, ["COMMANDS_DISABLED"]), (
        "what is forbidden is said first"
    )


def test_a_command_that_may_be_left_out_is_left_out_with_a_warning(
    call: Call, write: Callable[[object], str]
) -> None:
    file = write(plan(COMMAND | {"onError": "skip"}, CREATE, riskLevel="commands"))
    code, result = call("run", file, "--allow-commands", "--yes")
    assert (code, result["effects"]["created"], result["effects"]["commands"]) == (
        0,
        ["N/new.md"],
        [],
    )
    assert [warning["code"] for warning in result["warnings"]] == ["COMMANDS_UNAVAILABLE"]


def test_a_null_is_no_way_to_mean_the_whole_vault(
    call: Call, write: Callable[[object], str], tmp_path: Path
) -> None:
    replace_all = {
        "id": "r",
        "tool": "vault.replaceText",
        "args": {"find": "one", "replace": "X", "path": None},
    }
    code, result = call("run", write(plan(replace_all)), "--yes")
    assert (code, result["errors"][0]["code"]) == (2, "ARGUMENT_INVALID")
    assert text_of(tmp_path, "a.md") == "one\n"


def test_without_a_terminal_the_preview_is_shown_before_it_is_refused(
    commands: MakeCommands,
) -> None:
    here = commands({"a.md": "one\n"})
    for arguments in (["do", "Append 'two' to a", "--offline"], ["rename", "a", "b"]):
        said = here.say(*arguments)
        assert said.code == 3
        assert said.out.startswith("Goal: ")
        assert "a.md" in said.out
        assert "Add --yes to approve" in said.err
    assert "+two" in here.say("do", "Append 'two' to a", "--offline").out
    assert os.listdir(here.vault) == ["a.md"]


def test_everything_to_notice_is_in_the_preview_for_people(commands: MakeCommands) -> None:
    here = commands({"a.md": "one\n"})
    steps = [
        CREATE
        | {"id": name, "args": {"path": f"{name}.md", "content": "![](https://e.example/p.png)\n"}}
        for name in ("B", "C")
    ]
    shown = here.say("preview", here.plan(*steps)).out
    assert "Note: B.md: " in shown
    assert "Note: C.md: " in shown


def test_what_a_run_warns_of_is_told_to_people(commands: MakeCommands) -> None:
    here = commands({"a.md": "one\n"})
    said = here.say("run", here.plan(CREATE | {"args": {"path": "a.md", "content": "x"}}), "--yes")
    assert said.code == 0
    assert "FILE_EXISTS" in said.err


def test_rename_takes_names_as_links_does(commands: MakeCommands) -> None:
    here = commands({"In/a.md": "x\n", "b.md": "[[a]]\n", "v1.2.md": "x\n", "Pictures/p.png": b"p"})
    for old, new, renamed in [
        ("In/a", "Out/c", {"from": "In/a.md", "to": "Out/c.md"}),
        ("Out/c.md", "a", {"from": "Out/c.md", "to": "a.md"}),
        ("v1.2", "v1.3", {"from": "v1.2.md", "to": "v1.3.md"}),
        ("Pictures/p.png", "Pictures/q.png", {"from": "Pictures/p.png", "to": "Pictures/q.png"}),
        ("Pictures", "Photos", {"from": "Pictures", "to": "Photos"}),
    ]:
        code, result = here.json("rename", old, new, "--yes")
        assert (code, result["effects"]["renamed"]) == (0, [renamed])
    code, result = here.json("rename", "gone", "x", "--yes")
    assert (code, result["status"], result["errors"][0]["code"]) == (2, "refused", "FILE_NOT_FOUND")


def test_a_problem_is_a_sentence_and_in_a_plan_of_the_users_its_place_and_code(
    commands: MakeCommands,
) -> None:
    here = commands({"a.md": "one\n"})
    said = here.say(
        "run", here.plan({"id": "d", "tool": "vault.delete", "args": {"path": "a.md"}}), "--yes"
    )
    assert said.err == "Deleting files is off: --allow-deletes allows it. (d, DELETE_DISABLED)\n"
    said = here.say("rename", "a", "../b", "--yes")
    assert said.code == 2
    assert not re.search(r"[A-Z]{3,}|/steps|move_\d", said.err), said.err
    assert here.json("rename", "a", "../b", "--yes")[1]["errors"][0]["code"] == "PATH_OUTSIDE_VAULT"


def test_hints_speak_of_the_command_line(commands: MakeCommands) -> None:
    here = commands({"a.md": "one\n"})
    said = here.say("do", "sing me a song about the sea", "--offline")
    assert "obsidian-agent recipe list" in said.out
    code, told = here.json("config", "set", "no_such", "1")
    for text in (said.out, told["message"]):
        assert "F2" not in text
        assert "/settings" not in text
    code, told = here.json(
        "run",
        here.plan({"id": "c", "tool": "commands.run", "args": {"id": "x"}}, riskLevel="commands"),
    )
    assert (code, "--allow-commands allows it." in told["errors"][0]["message"]) == (3, True)


def test_options_that_nothing_reads_are_gone(commands: MakeCommands) -> None:
    here = commands({})
    code, told = here.json("do", "make a note", "--backend", "local")
    assert (code, told["errors"][0]["code"]) == (2, "USAGE")


def test_a_note_whose_name_has_no_room_for_a_number_goes_to_a_trash_that_has_it(
    commands: MakeCommands,
) -> None:
    name = f"{'n' * 252}.md"
    desk = commands({name: "new", f".trash/{name}": "old"})
    plan = desk.plan({"id": "d", "tool": "vault.delete", "args": {"path": name}})
    assert desk.json("run", plan, "--yes", "--allow-deletes")[0] == 0
    trashed = {file.name: file.read_text() for file in (desk.vault / ".trash").iterdir()}
    assert trashed == {name: "old", f"{'n' * 250} 2.md": "new"}
    assert desk.json("undo", "--yes")[0] == 0
    assert (desk.vault / name).read_text() == "new"


def test_the_name_of_a_note_goes_without_its_extension_wherever_a_path_is_asked(
    commands: MakeCommands,
) -> None:
    run = commands({"Notes/One.md": "one\n", "Two.md": "two\n", "Two/in.md": "", "key.md": ""})
    run.config.write_text('write_deny = ["key.md"]\n')
    code, result = run.json("do", "append 'x' to this note", "--active-file", "Notes/One", "--yes")
    assert (code, result["effects"]["modified"]) == (0, ["Notes/One.md"])
    assert run.json("policy", "explain", "key")[1]["decision"] == "deny"
    assert [
        entry["kind"] for entry in run.json("audit", "--path", "Notes/One")[1]["entries"]
    ].count("run") == 1
    assert run.json("undo", "--yes", "--skip", "Nothing")[0] == 2
    code, told = run.json("undo", "--yes", "--skip", "Notes/One")
    assert (code, told["skipped"]) == (0, ["Notes/One.md"])
    (run.vault / "Notes/One.md").write_text("mine\n")
    code, told = run.json("undo", "--yes", "--force", "Notes/One")
    assert (code, told["restored"]) == (0, ["Notes/One.md"])
    assert run.json("links", "Two")[1].keys() == {"Two.md"}
    code, result = run.json("rename", "Notes/One", "Notes/Three", "--yes")
    assert result["effects"]["renamed"] == [{"from": "Notes/One.md", "to": "Notes/Three.md"}]
    refused = run.plan({"id": "read", "tool": "vault.readFile", "args": {"path": "Notes/Three"}})
    assert "Did you mean 'Notes/Three.md'?" in json.dumps(run.json("preview", refused)[1])


def test_names_of_one_file_that_are_written_by_themselves_are_mentioned(
    commands: MakeCommands,
) -> None:
    desk = commands({"a.md": "one\n", "c.md": "x\n"})
    for name in ("b.md", "Folder/d.md"):
        (desk.vault / name).parent.mkdir(exist_ok=True)
        (desk.vault / name).hardlink_to(desk.vault / "a.md")

    def appended(*names: str) -> list[tuple[str, str]]:
        steps = [
            {
                "id": f"s{number}",
                "tool": "vault.updateFile",
                "args": {"path": name, "mode": "append", "content": name},
            }
            for number, name in enumerate(names)
        ]
        document = desk.json("preview", desk.plan(*steps))[1]
        assert document["valid"]
        return [(each["code"], each["message"]) for each in document["warnings"]]

    ((code, message),) = appended("a.md", "c.md", "Folder/d.md")
    assert code == "DUPLICATE_PATH"
    assert message.startswith("Folder/d.md, a.md are hard links to one file")
    assert appended("a.md", "c.md") == []


def test_a_run_whose_every_step_is_skipped_is_not_reported_as_done(
    commands: Callable[..., Any],
) -> None:
    here = commands({"a.md": "a"})
    read = {"id": "r", "tool": "vault.readFile", "args": {"path": "no.md"}, "onError": "skip"}
    said = here.say("run", here.plan(read), "--yes")
    assert said.code == 0
    assert said.out.splitlines()[-1] == "Nothing was done: every step was skipped."
