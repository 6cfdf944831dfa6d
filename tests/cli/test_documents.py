"""Every command line in the documents is one that the program accepts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from obsidian_agent.cli.parser import COMMANDS, build_parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
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
