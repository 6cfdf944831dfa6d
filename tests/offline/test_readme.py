"""The README and docs/command-line.md on the sample vault: sentences are certain, commands work."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from obsidian_agent.agent.events import NeedsInput
from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.main import main
from obsidian_agent.cli.parser import build_parser
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.reader import match_examples
from obsidian_agent.state_files import CONFIG_VARIABLE, STATE_VARIABLE
from obsidian_agent.tui.bindings import KEYS
from offline.golden import desk

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND_LINE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")

SENTENCES = re.findall(r'obsidian-agent (?:do|ask) "([^"]+)"', README + COMMAND_LINE)
UNCERTAIN = "please put the #done notes away into Archive"
QUOTED = "Move all notes tagged #done to Archive"
"""The example of step 1 in the README, which is also the first action offered for `UNCERTAIN`."""

ASKING = {"do", "undo"}
"""Commands that ask before they write, so that they exit with 3 where there is no terminal."""

Run = Callable[[str], int]


def commands(page: str) -> list[str]:
    """Return the lines of the shell examples that call the program."""
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("obsidian-agent ")]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a line of a page over a copy of the sample vault."""
    shutil.copytree(ROOT / "fixtures" / "vault", tmp_path / "vault")
    (tmp_path / "config").mkdir(mode=0o700)
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "config" / "config.toml"))
    monkeypatch.chdir(tmp_path)

    def run(line: str) -> int:
        words = shlex.split(line, comments=True)[1:]
        return main([word.replace("~/Notes", str(tmp_path / "vault")) for word in words])

    return run


@pytest.mark.parametrize("line", [line for line in commands(README) if "--model" not in line])
def test_commands_of_the_readme_work(line: str, run: Run) -> None:
    asks = line.split()[1] in ASKING
    if line.split()[1] == "undo":
        assert run("""obsidian-agent do "append 'x' to Inbox" --yes --vault ~/Notes""") == Exit.DONE
    expected = Exit.NOT_APPROVED if asks else Exit.DONE
    if line.split()[1] == "health":
        expected = Exit.FAILED  # the sample vault has findings
    assert run(line) == expected
    if asks:
        assert run(f"{line.partition('  #')[0]} --yes") == Exit.DONE


@pytest.mark.parametrize("line", [line for line in commands(README) if "--model" in line])
def test_examples_with_a_model_open_the_app(line: str) -> None:
    options = build_parser("app").parse_args(["app", *shlex.split(line, comments=True)[1:]])
    assert options.model
    assert "~/Notes" in vars(options).values()


def test_commands_of_the_page_on_the_command_line_work(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = {"path": "Client.md", "content": "Example Ltd"}
    steps = [{"id": "step", "tool": "vault.createFile", "args": arguments}]
    plan = {"version": "1.0", "goal": "A client", "riskLevel": "writes", "steps": steps}
    (tmp_path / "client.json").write_text(json.dumps(plan), "utf-8")
    arguments["path"] = "Another client.md"
    (tmp_path / "plan.json").write_text(json.dumps(plan), "utf-8")
    assert run("obsidian-agent run client.json --yes --json --vault ~/Notes") == Exit.DONE
    number = json.loads(capsys.readouterr().out)["runId"]
    codes = {line: run(line.replace(" RUN ", f" {number} ")) for line in commands(COMMAND_LINE)}
    waiting = [line for line, code in codes.items() if code == Exit.NOT_APPROVED]
    assert [
        line for line, code in codes.items() if code not in (Exit.DONE, Exit.NOT_APPROVED)
    ] == []
    assert all(f'do "{UNCERTAIN}"' in line for line in waiting)
    assert len(waiting) == 2


@pytest.mark.parametrize("key", ["a", "u", "m", "f1", "f2", "f4", "f5"])
def test_keys_of_the_readme_are_bound(key: str) -> None:
    assert f"`{key}`" in README or key.upper() in README
    assert key in {name for bound in KEYS for name in bound.keys.split(",")}


def test_every_exit_code_is_explained() -> None:
    rows = re.findall(r"^\| (\d+) \|", COMMAND_LINE, re.MULTILINE)
    assert [int(code) for code in rows] == sorted(code.value for code in Exit)


@pytest.mark.parametrize("sentence", sorted({*SENTENCES, QUOTED} - {UNCERTAIN}))
def test_a_sentence_is_certain(sentence: str) -> None:
    planner = desk()
    surroundings = Surroundings(
        planner.planner.view(), planner.request(sentence, active="Inbox.md").context
    )
    assert len(match_examples(sentence, planner.planner.recipes(), surroundings)) == 1


def test_a_sentence_that_is_not_certain_offers_actions() -> None:
    assert f'"{QUOTED}"' in README
    event = desk().decide(UNCERTAIN)
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].title == "Move 4 notes tagged #done to Archive"
    assert "1. Move 4 notes tagged #done to Archive" in COMMAND_LINE
