"""Every command line in the documents is one that the program accepts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.screenshots import PICTURES, SHOTS
from obsidian_agent.cli.parser import COMMANDS, build_parser
from obsidian_agent.tui.screens.main import MainScreen

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
KEY = re.compile(r"`(/[a-z]+)`")
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def command_lines() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for block in BLOCK.findall(page.read_text("utf-8")):
            for line in block.splitlines():
                if line.startswith("obsidian-agent "):
                    yield page.name, line


@pytest.mark.parametrize(("page", "line"), sorted(set(command_lines())))
def test_a_documented_command_is_accepted(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)
    for separator in ("|", ">", "<"):
        if separator in words:
            words = words[: words.index(separator)]
    arguments = words[1:]
    command = arguments[0] if arguments[0] in COMMANDS else "app"
    if command == "app" and arguments[0] != "app":
        arguments = ["app", *arguments]
    build_parser(command).parse_args(arguments)


def test_every_picture_of_the_documents_exists_and_is_taken_by_the_program() -> None:
    used = {
        (page.parent / name).resolve()
        for page in PAGES
        for name in PICTURE.findall(page.read_text("utf-8"))
    }
    taken = {(PICTURES / f"{name}.svg").resolve() for name in SHOTS}
    assert used == taken
    assert all(picture.is_file() for picture in used)


def test_every_command_of_the_guide_is_one_of_the_app() -> None:
    commands = {f"/{command.name}" for command in MainScreen.commands()}
    pages = (ROOT / "docs" / "guide").glob("*.md")
    named = {name for page in pages for name in KEY.findall(page.read_text("utf-8"))}
    assert named <= commands
