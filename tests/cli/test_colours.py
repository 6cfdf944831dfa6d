"""Colours of the command line: on a terminal that supports them, and never from a note's text."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support import MakeVault, options_for

Shown = Callable[..., str]


@pytest.fixture
def on_terminal(tmp_path: Path, make_vault: MakeVault) -> Shown:
    """Return the output of `preview` on a terminal for a change of a line with an escape."""
    vault = make_vault({"a.md": "one\nkept\n"}).real_path
    step = {
        "id": "r",
        "tool": "vault.replaceText",
        "args": {"find": "one", "replace": "two \u001b[31m", "path": "a.md"},
    }
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"version": "1.0", "goal": "+ g", "riskLevel": "writes", "steps": [step]})
    )
    place = [
        *options_for(vault, tmp_path),
    ]

    def run(*arguments: str, terminal: bool = True, **environment: str) -> str:
        ours, theirs = pty.openpty()
        known = (
            {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
            | {"TERM": "xterm"}
            | environment
        )
        command = [sys.executable, "-m", "obsidian_agent", "preview", str(plan), *place, *arguments]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=theirs if terminal else subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=known,
            check=True,
        )
        os.close(theirs)
        written = done.stdout or b""
        while terminal:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            written += part
        os.close(ours)
        return written.decode().replace("\r\n", "\n")

    return run


def test_a_diff_has_colours_on_a_terminal(on_terminal: Shown) -> None:
    shown = on_terminal()
    assert re.search(
        r"^    \x1b\[1m--- .*\n    \x1b\[1m\+\+\+ .*\n    \x1b\[36m@@ .*\x1b\[0m\n", shown, re.M
    )
    assert "    \x1b[31m-one\x1b[0m\n" in shown
    assert "    \x1b[32m+two \u241b[31m\x1b[0m\n" in shown
    assert "\n     kept\n" in shown
    assert "Goal: + g\n" in shown


@pytest.mark.parametrize(
    ("arguments", "environment", "terminal"),
    [
        (["--no-color"], {}, True),
        ([], {"NO_COLOR": "1"}, True),
        ([], {"TERM": "dumb"}, True),
        ([], {}, False),
        (["--json"], {}, True),
    ],
)
def test_and_none_where_they_are_not_wanted(
    on_terminal: Shown, arguments: list[str], environment: dict[str, str], terminal: bool
) -> None:
    shown = on_terminal(*arguments, terminal=terminal, **environment)
    assert "+two" in shown
    assert "\x1b" not in shown
