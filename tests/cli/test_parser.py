"""Help with examples that parse and with exit codes, and completion in shells."""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from obsidian_agent.cli.main import main
from obsidian_agent.cli.parser import COMMANDS, build_parser

PROGRAM = "obsidian-agent"


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


def examples() -> list[str]:
    lines = {
        line.strip()
        for each in parsers(build_parser(None))
        for line in (each.epilog or "").splitlines()
    }
    return sorted(
        line.removeprefix(f"{PROGRAM} ") for line in lines if line.startswith(f"{PROGRAM} ")
    )


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Help is wrapped at the width of the terminal that runs this."""
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.parametrize("example", examples())
def test_every_example_of_the_help_can_be_typed(example: str) -> None:
    words = shlex.split(example.partition(" > ")[0].partition(" < ")[0])
    called = words[0] if words[0] in COMMANDS else "app"
    options = build_parser(called).parse_args(words if called == words[0] else ["app", *words])
    assert callable(options.call)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_tells_its_exit_codes_and_is_parsed_by_its_own_module(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    told = capsys.readouterr().out
    assert told.startswith(f"usage: {PROGRAM} {command} ")
    assert "3 not approved or needs input" in told
    assert "examples:" in told or command == "plugins"


def completed(folder: Path, *words: str) -> set[str]:
    """Return bash's completions of the last of these words."""
    line = " ".join(map(shlex.quote, words))
    tell = f'COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _shtab_obsidian_agent {words[0]} {shlex.quote(words[-1])}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    program = f"source {shlex.quote(str(folder / 'script'))}; {tell}"
    return set(
        subprocess.run(
            ["bash", "-c", program], capture_output=True, text=True, check=True, cwd=folder
        ).stdout.split()
    )


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not here")
def test_fish_completes_commands_options_choices_and_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "fish"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "Notes").mkdir()
    (tmp_path / "plan.json").write_text("{}")

    def offered(line: str) -> set[str]:
        program = f"source script; complete -C {shlex.quote(f'{PROGRAM} {line}')}"
        answer = subprocess.run(
            ["fish", "--no-config", "-c", program],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        return {line.partition("\t")[0] for line in answer.stdout.splitlines()}

    assert offered("re") >= {"redo", "recover", "recipe", "rename"}
    assert offered("undo --fo") == {"--force"}
    assert offered("macro ex") == {"export"}
    assert offered("schema p") == {"plan"}
    assert offered("completion ") == {"bash", "zsh", "fish", "tcsh"}
    assert offered("preview pl") == {"plan.json"}
    assert offered("history --vault No") == {"Notes/"}


def test_the_script_for_fish_is_there_without_fish(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 0
    assert "complete -c obsidian-agent" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
def test_bash_completes_commands_options_choices_and_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "Notes").mkdir()
    (tmp_path / "plan.json").write_text("{}")
    assert completed(tmp_path, PROGRAM, "re") == {"redo", "recover", "recipe", "rename"}
    assert completed(tmp_path, PROGRAM, "undo", "--fo") == {"--force"}
    assert completed(tmp_path, PROGRAM, "macro", "ex") == {"export"}
    assert completed(tmp_path, PROGRAM, "schema", "p") == {"plan"}
    assert completed(tmp_path, PROGRAM, "preview", "pl") == {"plan.json"}
    assert {
        each.rstrip("/") for each in completed(tmp_path, PROGRAM, "history", "--vault", "No")
    } == {"Notes"}
