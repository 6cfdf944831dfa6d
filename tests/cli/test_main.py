"""The end of a command after an outside failure: signals, closed streams, undecodable arguments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.main import main
from support import MakeVault, options_for

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def vault(make_vault: MakeVault) -> Path:
    return Path(make_vault({"a.md": "one\n"}).real_path)


def hear_signals() -> None:
    """Reset signals as in a terminal: the parent of the tests may ignore some (`nohup`)."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def start(tmp_path: Path, vault: Path) -> Start:
    """Start a command on a vault of one note, as a process of its own."""

    def run(
        *arguments: str | bytes,
        stdout: int | IO[bytes] = subprocess.PIPE,
        shell: str = 'exec "$0" "$@"',
    ) -> subprocess.Popen[bytes]:
        place = [
            *options_for(vault, tmp_path),
        ]
        command = [sys.executable, "-m", "obsidian_agent", *arguments, *place]
        streams = {"stdin": subprocess.DEVNULL, "stdout": stdout, "stderr": subprocess.PIPE}
        return subprocess.Popen(["sh", "-c", shell, *command], preexec_fn=hear_signals, **streams)  # type: ignore[call-overload,no-any-return]

    return run


def plan_file(tmp_path: Path, count: int) -> str:
    step = {
        "id": "new",
        "tool": "vault.createFile",
        "foreach": {"from": list(range(count)), "itemName": "n"},
        "args": {"path": "N/${n}.md", "content": "x"},
    }
    file = tmp_path / "plan.json"
    file.write_text(
        json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step]})
    )
    return str(file)


def answer(process: subprocess.Popen[bytes]) -> tuple[int, Any, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, json.loads(out) if out else None, err.decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_before_anything_is_written_is_answered(
    start: Start, tmp_path: Path, vault: Path, number: signal.Signals
) -> None:
    fifo = tmp_path / "plan.json"
    os.mkfifo(fifo)
    process = start("run", str(fifo), "--yes", "--json")
    writing = os.open(fifo, os.O_WRONLY)  # returns once the command waits for its plan
    time.sleep(0.05)
    process.send_signal(number)
    code, result, _ = answer(process)
    os.close(writing)
    assert (code, result["status"], result["errors"][0]["code"]) == (130, "cancelled", "CANCELLED")
    assert os.listdir(vault) == ["a.md"]


def test_a_disk_that_takes_no_answer_is_told(start: Start, tmp_path: Path, vault: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("/dev/full is a device of Linux")
    with open("/dev/full", "wb") as full:
        code, _, told = answer(start("run", plan_file(tmp_path, 1), "--yes", "--json", stdout=full))
    assert code == 1
    assert "The output could not be written" in told
    assert "history" in told
    assert "Traceback" not in told
    assert (vault / "N/0.md").read_text() == "x"


def test_without_streams_a_run_still_ends(start: Start, tmp_path: Path, vault: Path) -> None:
    code, _, told = answer(
        start("run", plan_file(tmp_path, 1), "--yes", "--json", shell='exec "$0" "$@" >&-')
    )
    assert (code, "Traceback" in told) == (1, False)
    assert (vault / "N/0.md").exists()
    code, document, _ = answer(start("undo", "--yes", "--json", shell='exec "$0" "$@" 2>&-'))
    assert (code, document["restored"]) == (0, ["N", "N/0.md"])


def test_a_reader_that_has_seen_enough_is_no_error(start: Start) -> None:
    process = start("tools")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    told = process.stderr.read()
    assert (process.wait(60), told) == (0, b"")


def test_words_that_are_no_text_are_refused(start: Start) -> None:
    code, document, _ = answer(start("undo", b"\xff", "--yes", "--json"))
    assert code == 2
    assert "UTF-8" in document["message"]


def test_options_may_stand_before_an_action(start: Start) -> None:
    for words in (
        ["macro", "--json", "list"],
        ["macro", "list", "--json"],
        ["threads", "--json", "list"],
    ):
        code, document, told = answer(start(*words))
        assert (code, list(document.values()), told) == (0, [[]], "")
    code, document, _ = answer(start("macro", "--json", "run", "nothing"))
    assert (code, document["status"]) == (2, "refused")


def test_options_may_stand_before_a_command(
    vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            ["--json", "--vault", str(vault), "--state-dir", str(tmp_path / "state"), "search", "a"]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["items"][0]["path"] == "a.md"


def test_a_command_with_a_slip_is_told_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serach", "one"]) == 2
    assert main(["serach"]) == 2
    assert "Did you mean 'search'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["histroy"], "history"),
        (["histroy", "--limit", "5"], "history"),
        (["--json", "histroy", "--limit", "5"], "history"),
        (["--vault", "/nowhere", "serach", "orange", "cake"], "search"),
        (["--vault=/nowhere", "mcro", "list"], "macro"),
        (["completions", "fish"], "completion"),
    ],
)
def test_an_unknown_command_names_the_nearest_whatever_follows_it(
    words: list[str], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "is neither a command nor a vault" in error
    assert f"Did you mean '{near}'?" in error


def test_a_word_that_is_like_no_command_is_named_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["frobnicate", "x", "y"]) == 2
    assert "'frobnicate' is neither a command nor a vault. See obsidian-agent --help." in (
        capsys.readouterr().err
    )
    assert main(["./frobnicate"]) == 2
    assert "There is no vault './frobnicate'" in capsys.readouterr().err


def test_options_before_a_vault_do_not_name_it(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The value of an option of the app is not the vault."""
    assert main(["--model", "ollama/qwen3", str(vault), "--bogus"]) == 2
    assert "Unrecognized arguments: --bogus" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["-1", "9" * 20, "9" * 10, "9" * 5000, "1.5", "٣", "x"])
@pytest.mark.parametrize(
    "option", ["history --limit", "audit --tail", "log --tail", "search a --limit"]
)
def test_counts_are_whole_numbers_of_a_sane_size(
    vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    place = ["--vault", str(vault), "--state-dir", str(tmp_path / "state"), "--json"]
    assert main([*option.split(), value, *place]) == 2
    (problem,) = json.loads(capsys.readouterr().out)["errors"]
    assert problem["code"] == "USAGE"
    assert "is not a whole number from 0 to 1,000,000,000" in problem["message"]
    assert len(problem["message"]) < 200


def test_there_is_nothing_to_search_for_in_no_words(vault: Path, tmp_path: Path) -> None:
    assert main(["search", " ", "--vault", str(vault), "--state-dir", str(tmp_path / "state")]) == 2


IMPORT_LOCK = """
import _imp
holds = threading.Event()
def importing():
    begin.wait(); _imp.acquire_lock(); holds.set(); threading.Event().wait()
class Library:
    def __del__(self):
        import late
sys.modules["library"] = type(sys)("library")
sys.modules["library"].client = Library()
threading.Thread(target=importing, daemon=True).start()
"""
"""A thread holds the import lock, for which a destructor waits."""
EXIT_HANDLER = "import atexit; atexit.register(threading.Event().wait)"


@pytest.mark.parametrize("library", [IMPORT_LOCK, EXIT_HANDLER], ids=["lock", "handler"])
def test_nothing_that_a_library_does_at_exit_blocks_it(tmp_path: Path, library: str) -> None:
    (tmp_path / "program.py").write_text(
        "import sys, threading\n"
        "from obsidian_agent.__main__ import main\n"
        "begin = threading.Event()\n"
        f"{library}\n"
        "sys.argv = ['obsidian-agent', 'recipe', 'show', 'missing', '--json']\n"
        "code = main()\n"
        "begin.set()\n"
        "if 'holds' in globals(): holds.wait()\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")],
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.fspath(Path(__file__).parents[2])},
    )
    assert done.returncode == Exit.INVALID
    assert json.loads(done.stdout)["errors"]


@pytest.mark.parametrize(
    ("command", "is_collected"),
    [
        ("mcp serve", True),
        ("acp", True),
        ("rule watch", True),
        ("recipe list", False),
    ],
)
def test_the_garbage_of_commands_that_stay_open_is_collected(
    tmp_path: Path, vault: Path, command: str, is_collected: bool
) -> None:
    program = (
        "import gc, os, sys, threading, time\n"
        "from obsidian_agent.cli.main import main\n"
        "def end():\n"
        "    os.write(2, f'collected: {gc.isenabled()}'.encode())\n"
        "    os._exit(0)\n"
        "def watch():\n"
        "    while not gc.isenabled(): time.sleep(0.01)\n"
        "    end()\n"
        "gc.disable()\n"
        "threading.Thread(target=watch, daemon=True).start()\n"
        "main(sys.argv[1:])\n"
        "end()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *command.split(), *options_for(vault, tmp_path)],
        input=b"",
        capture_output=True,
        timeout=60,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.stderr.decode().endswith(f"collected: {is_collected}")
