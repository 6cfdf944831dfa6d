"""Output for terminals: foreign text never looks like the program's, and only later keys answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import MakeVault

FORGED = "Tidy up\nRisk: read-only\n\rNothing would change.\nDo this? Type yes: "
PLAN = {
    "version": "1.0",
    "goal": FORGED + "x" * 300 + "Nothing would change.",
    "assumptions": [FORGED],
    "riskLevel": "writes",
    "steps": [
        {
            "id": "one",
            "tool": "vault.createFile",
            "args": {"path": "New.md", "content": "a\n create Other.md\n" + FORGED},
            "preview": FORGED,
        }
    ],
}
PROGRAM_LINES = (
    "Risk: read-only",
    "Nothing would change.",
    "Do this? Type yes:",
    "+ create Other.md",
    "done:",
)


def arguments(tmp_path: Path, make_vault: MakeVault, plan: object) -> tuple[list[str], Path]:
    vault = Path(make_vault({"a.md": "one\n"}).real_path)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    found = [
        sys.executable,
        "-m",
        "obsidian_agent",
        "run",
        str(file),
        "--vault",
        str(vault),
        "--state-dir",
        str(tmp_path / "state"),
    ]
    return [*found, "--config", str(tmp_path / "none.toml")], vault


def on_a_terminal(program: list[str], before: bytes, after: bytes, columns: int = 80) -> str:
    """Return the display. `before` is typed before the first output, `after` after the question."""
    pty = pytest.importorskip("pty")
    fcntl, termios, struct = (
        pytest.importorskip("fcntl"),
        pytest.importorskip("termios"),
        pytest.importorskip("struct"),
    )
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")
    }
    with subprocess.Popen(
        program,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
        start_new_session=True,
    ) as running:
        os.close(terminal)
        os.write(controller, before)
        seen, sent = b"", False
        while True:
            try:
                more = os.read(controller, 4096)
            except OSError:  # the end of a terminal is an error on Linux
                break
            if not more:
                break
            seen += more
            if not sent and seen.endswith(b"Type yes: "):
                sent = True
                time.sleep(0.2)
                os.write(controller, after)
        running.wait(30)
    os.close(controller)
    return seen.decode()


def test_what_was_typed_before_a_question_does_not_answer_it(
    tmp_path: Path, make_vault: MakeVault
) -> None:
    program, vault = arguments(
        tmp_path, make_vault, PLAN | {"goal": "Make a note", "assumptions": []}
    )
    seen = on_a_terminal(program, b"yes\nyes\n", b"no\n")
    assert "NOT_APPROVED" in seen
    assert not (vault / "New.md").exists()
    seen = on_a_terminal(program, b"", b"yes\n")
    assert "done: 1 of 1 step" in seen
    assert (vault / "New.md").exists()


def test_a_command_that_writes_json_asks_nothing_on_a_terminal_either(
    tmp_path: Path, make_vault: MakeVault
) -> None:
    program, vault = arguments(
        tmp_path, make_vault, PLAN | {"goal": "Make a note", "assumptions": []}
    )
    seen = on_a_terminal([*program, "--json"], b"", b"yes\n")
    assert "NOT_APPROVED" in seen
    assert "Type yes" not in seen
    assert not (vault / "New.md").exists()


@pytest.mark.parametrize("columns", [40, 80, 133])
def test_no_text_of_a_model_begins_a_line_like_the_program(
    tmp_path: Path, make_vault: MakeVault, columns: int
) -> None:
    edges = [
        "x" * (columns * turns + count) + "Nothing would change."
        for turns in (1, 2)
        for count in range(-12, 4)
    ]
    program, _ = arguments(tmp_path, make_vault, PLAN | {"assumptions": [FORGED, *edges]})
    seen = on_a_terminal(program, b"", b"no\n", columns).replace("\r\n", "\n")
    rows = [
        line[at : at + columns]
        for line in seen.split("\n")
        for at in range(0, max(len(line), 1), columns)
    ]
    starts = [words for row in rows for words in PROGRAM_LINES if row.startswith(words)]
    assert starts == ["Do this? Type yes:"], "only what the program itself says"


def test_what_a_plan_that_only_reads_found_is_told(
    tmp_path: Path, make_vault: MakeVault, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [
        {
            "id": "find",
            "tool": "vault.searchText",
            "args": {"query": "one"},
            "preview": "Look for one",
        }
    ]
    program, _ = arguments(
        tmp_path,
        make_vault,
        {"version": "1.0", "goal": "Look", "riskLevel": "read-only", "steps": steps},
    )
    told = subprocess.run([*program, "--yes"], capture_output=True, text=True, check=True).stdout
    assert "Look for one:" in told
    assert "a.md" in told
    shown = subprocess.run(
        [program[0], "-m", "obsidian_agent", "preview", *program[4:]],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "a.md" in shown


def test_a_long_run_shows_how_far_it_is_where_a_person_looks_and_nowhere_else(
    tmp_path: Path, make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = {
        "id": "new",
        "tool": "vault.createFile",
        "foreach": {"from": list(range(30)), "itemName": "n"},
    }
    plan = PLAN | {
        "goal": "Many",
        "assumptions": [],
        "steps": [step | {"args": {"path": "N/${n}.md", "content": "x"}}],
    }
    program, vault = arguments(tmp_path, make_vault, plan)
    patient = f"import obsidian_agent.cli.output as output; output.PATIENCE = 0\nimport sys; from obsidian_agent.cli.main import main\nsys.exit(main({program[3:]!r} + sys.argv[1:]))"
    seen = on_a_terminal([sys.executable, "-c", patient, "--yes"], b"", b"")
    assert "Applying" in seen
    assert "/30" in seen
    assert "done: 30 of 30 steps" in seen
    subprocess.run([*program[:3], "undo", "--yes", *program[5:]], check=True, capture_output=True)
    done = subprocess.run(
        [sys.executable, "-c", patient, "--yes"], capture_output=True, text=True, check=True
    )
    assert (done.stderr, (vault / "N/29.md").exists()) == ("", True)
