"""history and undo from the command line: which run is meant, and which files of it."""

from __future__ import annotations

import io
import json
import shlex
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import CommandsOn
from faults import power_cut
from obsidian_agent.cli.main import main
from support import MakeVault, options_for

Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def vault(make_vault: MakeVault) -> Path:
    return Path(make_vault({"a.md": "one\n", "b.md": "two\n"}).real_path)


@pytest.fixture
def call(commands_on: CommandsOn, vault: Path) -> Call:
    """Run a command with `--json`; the exit code and the document."""
    return commands_on(vault).json


@pytest.fixture
def append(call: Call, tmp_path: Path) -> Callable[[str], str]:
    """Append a line to a note by a run; its id."""

    def run(path: str) -> str:
        step = {
            "id": "s",
            "tool": "vault.updateFile",
            "args": {"path": path, "mode": "append", "content": "more"},
        }
        file = tmp_path / "plan.json"
        file.write_text(
            json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step]})
        )
        return str(call("run", str(file), "--yes")[1]["runId"])

    return run


def test_a_file_left_alone_can_be_forced_afterwards(
    call: Call, append: Callable[[str], str], vault: Path
) -> None:
    first = append("a.md")
    (vault / "a.md").write_text("mine\n")
    code, told = call("undo", "--yes")
    assert (code, [each["path"] for each in told["conflicts"]]) == (4, ["a.md"])
    assert (vault / "a.md").read_text() == "mine\n"
    code, told = call("undo", "--yes", "--force", "a.md")
    assert (code, told["runId"], told["restored"]) == (0, first, ["a.md"])
    assert (vault / "a.md").read_text() == "one\n"


@pytest.mark.parametrize("command", ["undo", "redo"])
def test_a_yes_that_nobody_typed_takes_nothing_back(
    call: Call,
    append: Callable[[str], str],
    vault: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    append("a.md")
    if command == "redo":
        call("undo", "--yes")
    before = (vault / "a.md").read_text()
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    code, told = call(command)
    assert (code, told["outcome"], told["restored"]) == (3, "refused", [])
    assert (vault / "a.md").read_text() == before


def test_paths_that_the_run_did_not_change_are_refused(
    call: Call, append: Callable[[str], str], vault: Path
) -> None:
    append("a.md")
    newest = append("b.md")
    for word in ("--force", "--skip"):
        code, told = call("undo", "--yes", word, "a.md")
        assert code == 2
        assert newest in told["message"]
    assert call("undo", "none", "--yes", "--force", "a.md")[0] == 1
    assert (vault / "b.md").read_text() == "two\nmore\n"


def test_history_tells_all_runs_to_programs_and_the_newest_to_people(
    call: Call,
    append: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    vault: Path,
) -> None:
    runs = [append("a.md") for _ in range(3)]
    assert [run["runId"] for run in call("history")[1]["runs"]] == runs[::-1]
    assert [run["runId"] for run in call("history", "--limit", "2")[1]["runs"]] == runs[:0:-1]
    main(["history", "--vault", str(vault), "--state-dir", str(tmp_path / "state"), "--limit", "1"])
    assert runs[2] in capsys.readouterr().out


def test_the_doctor_tells_of_a_damaged_journal_and_goes_on(
    call: Call, append: Callable[[str], str], tmp_path: Path
) -> None:
    append("a.md")
    (file,) = (tmp_path / "state").glob("vaults/*/journal.db")
    with open(file, "r+b") as journal:
        journal.truncate(100)
    code, told = call("doctor")
    checks = {check["name"]: check for check in told["checks"]}
    assert (code, told["ok"], checks["vault"]["ok"], checks["journal"]["ok"]) == (
        1,
        False,
        True,
        False,
    )
    assert "damaged" in checks["journal"]["detail"]
    assert call("undo", "--yes")[1]["errors"][0]["code"] == "JOURNAL_DAMAGED"


def test_a_run_can_be_taken_back_to_the_end_of_a_step(
    call: Call, vault: Path, tmp_path: Path
) -> None:
    steps = [
        {"id": name, "tool": "vault.createFile", "args": {"path": f"{name}.md", "content": name}}
        for name in ("x", "y", "z")
    ]
    file = tmp_path / "plan.json"
    file.write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": steps})
    )
    run = call("run", str(file), "--yes")[1]["runId"]
    code, told = call("undo", run, "--to-step", "nothing", "--yes")
    assert (code, told["errors"][0]["code"]) == (1, "STEP_NOT_FOUND")
    code, told = call("undo", run, "--to-step", "x", "--yes")
    assert (code, told["restored"]) == (0, ["y.md", "z.md"])
    assert sorted(path.name for path in vault.glob("?.md")) == ["a.md", "b.md", "x.md"]
    assert call("redo", "--yes")[0] == 0
    assert (vault / "z.md").exists()


def test_a_run_that_the_journal_lost_is_named_in_words_and_to_programs(
    call: Call,
    append: Callable[[str], str],
    tmp_path: Path,
    vault: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept, lost = append("a.md"), append("b.md")
    (file,) = (tmp_path / "state").glob("vaults/*/journal.db")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM record WHERE run_id = ?", (lost,))
    code, told = call("history")
    assert (code, [run["runId"] for run in told["runs"]]) == (1, [kept])
    assert [(error["code"], lost in error["message"]) for error in told["errors"]] == [
        ("RUN_MISSING", True)
    ]
    assert main(["history", "--vault", str(vault), "--state-dir", str(tmp_path / "state")]) == 1
    assert f"Run {lost} is missing from the journal" in capsys.readouterr().err
    code, told = call("doctor")
    assert code == 1
    assert lost in next(check["detail"] for check in told["checks"] if check["name"] == "journal")
    for arguments in (["undo", "--yes"], ["undo", lost, "--yes"]):
        code, told = call(*arguments)
        assert (code, told["errors"][0]["code"], lost in told["message"]) == (
            1,
            "JOURNAL_DAMAGED",
            True,
        )
    assert (vault / "a.md").read_text() == "one\nmore\n"
    assert call("undo", kept, "--yes")[1]["restored"] == ["a.md"]


def test_a_folder_that_was_moved_to_another_disk_is_left_alone_and_told(
    call: Call, append: Callable[[str], str], vault: Path, tmp_path: Path
) -> None:
    (vault / "Far").mkdir()
    for name in ("one", "two"):
        (vault / f"Far/{name}.md").write_text("far\n")
    edits = [{"id": f"s{n}", "tool": "vault.updateFile", "args": {"path": path, "mode": "append", "content": "more"}} for n, path in
             enumerate(("Far/one.md", "Far/two.md", "a.md"))]  # fmt: skip
    file = tmp_path / "plan.json"
    file.write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": edits})
    )
    run = call("run", str(file), "--yes")[1]["runId"]
    (vault / "Far").rename(tmp_path / "other disk")
    (vault / "Far").symlink_to(tmp_path / "other disk")
    code, told = call("undo", "--yes", "--skip", "Far/one.md")
    assert (code, told["restored"], told["skipped"]) == (4, ["a.md"], ["Far/one.md"])
    assert [each["path"] for each in told["conflicts"]] == ["Far/two.md"]
    assert "link" in told["conflicts"][0]["reason"]
    code, told = call("undo", "--yes")
    assert (code, told["runId"], [each["path"] for each in told["conflicts"]]) == (
        4,
        run,
        ["Far/one.md", "Far/two.md"],
    )
    assert not call("history")[1]["runs"][0]["undone"]
    assert call("recover")[0] == 0
    assert append("b.md")
    assert (vault / "Far/one.md").read_text() == "far\nmore\n"


def test_undo_goes_on_with_a_run_that_was_taken_back_to_a_step(
    call: Call, vault: Path, tmp_path: Path, append: Callable[[str], str]
) -> None:
    older = append("a.md")
    steps = [
        {"id": name, "tool": "vault.createFile", "args": {"path": f"{name}.md", "content": name}}
        for name in ("x", "y")
    ]
    file = tmp_path / "plan.json"
    file.write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": steps})
    )
    run = call("run", str(file), "--yes")[1]["runId"]
    assert call("undo", run, "--to-step", "x", "--yes")[0] == 0
    code, told = call("undo", "--yes")
    assert (code, told["runId"], told["restored"]) == (0, run, ["x.md"])
    assert [(entry["runId"], entry["undone"]) for entry in call("history")[1]["runs"]] == [
        (run, True),
        (older, False),
    ]


def test_of_a_run_that_changed_nothing_nothing_is_left_to_undo(
    call: Call, tmp_path: Path, append: Callable[[str], str]
) -> None:
    older = append("a.md")
    file = tmp_path / "plan.json"
    steps = [{"id": "s", "tool": "vault.createFile", "args": {"path": "a.md", "content": "x"}}]
    file.write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": steps})
    )
    assert call("run", str(file), "--yes")[1]["status"] == "done"
    left = [entry["runId"] for entry in call("history")[1]["runs"] if not entry["undone"]]
    assert left == [older]
    assert call("undo", "--yes")[1]["runId"] == older


@pytest.fixture
def trashed(call: Call, tmp_path: Path) -> str:
    """Run a plan that moves a.md to the trash. Return its id."""
    step = {"id": "s", "tool": "vault.delete", "args": {"path": "a.md"}}
    file = tmp_path / "delete.json"
    file.write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step]})
    )
    return str(call("run", str(file), "--yes", "--allow-deletes")[1]["runId"])


def offered(told: str) -> list[str]:
    """Return the commands that a message recommends, without the program's name."""
    return [
        line.split("obsidian-agent ", 1)[1]
        for line in told.splitlines()
        if "Overwrite it with" in line
    ]


def test_the_command_that_is_offered_for_a_note_in_the_trash_works(
    call: Call, trashed: str, vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (vault / "a.md").write_text("mine\n")
    assert (
        main(
            [
                "undo",
                "--yes",
                *options_for(vault, tmp_path),
            ]
        )
        == 4
    )
    (command,) = offered(capsys.readouterr().err)
    assert call(*shlex.split(command), "--yes")[0] == 0
    assert (vault / "a.md").read_text() == "one\n"
    assert call("redo", "--yes")[0] == 0
    assert (vault / "a.md").read_text() == "mine\n"


@pytest.mark.parametrize("looked", [(), ("--skip", "a.md")], ids=["tried", "looked at"])
def test_nothing_is_offered_that_cannot_be_done(
    call: Call,
    vault: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    looked: tuple[str, ...],
) -> None:
    steps = [
        {"id": "s", "tool": "vault.delete", "args": {"path": "b.md"}},
        {"id": "t", "tool": "vault.writeFile", "args": {"path": "a.md", "content": "new\n"}},
    ]
    (tmp_path / "both.json").write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": steps})
    )
    assert call("run", str(tmp_path / "both.json"), "--yes", "--allow-deletes")[0] == 0
    (vault / ".trash/b.md").unlink()
    where = options_for(vault, tmp_path)
    assert main(["undo", "--yes", *looked, *where]) == 4
    told = capsys.readouterr().err
    assert "Skipped: .trash/b.md: it is gone." in told
    assert offered(told) == []


def test_a_recovery_that_skips_something_is_a_conflict(
    call: Call, vault: Path, tmp_path: Path
) -> None:
    steps = [
        {
            "id": name,
            "tool": "vault.updateFile",
            "args": {"path": f"{name}.md", "mode": "append", "content": "more"},
        }
        for name in ("a", "b")
    ]
    document = {"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": steps}
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with power_cut(1):
        call("run", str(tmp_path / "plan.json"), "--yes")
    (vault / "a.md").write_text("mine\n")
    code, told = call("recover", "--roll-back")
    assert (code, told["runs"][0]["errors"][0]["path"]) == (4, "a.md")
    assert (vault / "a.md").read_text() == "mine\n"


@pytest.fixture
def read_only(vault: Path) -> Iterator[Path]:
    """Mount the vault read-only over itself."""
    mounted = subprocess.run(["mount", "--bind", vault, vault], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", vault], check=True)
        yield vault
    finally:
        subprocess.run(["umount", "-l", vault], check=True)


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("vault.updateFile", {"path": "a.md", "mode": "append", "content": "more"}),
        ("vault.createFile", {"path": "New/c.md", "content": "more"}),
        ("vault.rename", {"from": "a.md", "to": "c.md"}),
    ],
)
def test_a_disk_that_is_mounted_read_only_leaves_no_interrupted_run(
    read_only: Path, call: Call, tmp_path: Path, tool: str, args: dict[str, str]
) -> None:
    step = {"id": "s", "tool": tool, "args": args}
    plan = {"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    code, result = call("run", str(tmp_path / "plan.json"), "--yes")
    assert code == 1
    assert ["mounted read-only" in error["message"] for error in result["errors"]] == [True]
    assert result["undoAvailable"] is False
    assert call("recover") == (0, {"runs": []})
