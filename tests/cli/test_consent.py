from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from obsidian_agent.agent.privacy.consent import (
    UNASKED,
    Level,
    ShareDecision,
    ShareItem,
    ShareRequest,
)
from obsidian_agent.cli.consent import decision, described, share_approval
from obsidian_agent.cli.output import Output
from obsidian_agent.vault.paths.path import PathUse, parse

ITEMS = (
    ShareItem(
        path=parse("A/a.md", PathUse.READ),
        level=Level.TEXT,
        size=1234,
        tokens=309,
        why="It names\x1b[8m the price.",
    ),
    ShareItem(
        path=parse("A/b.md", PathUse.READ),
        level=Level.PREVIEW,
        size=40,
        tokens=10,
        why="",
        previews=tuple(f"{number}: line" for number in range(30)),
    ),
)
REQUEST = ShareRequest(
    call_id="id",
    kind="files",
    tool="vault.readFiles",
    purpose="Read files",
    args={"query": "price"},
    items=ITEMS,
    provider="openai/x",
    address="https://api.example",
    number=2,
    total=3,
)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("o", ShareDecision("once")),
        (" YES ", ShareDecision("once")),
        ("t", ShareDecision("thread")),
        ("folder", ShareDecision("folder")),
        ("1", ShareDecision("once", frozenset({"A/a.md"}))),
        ("2, 1", ShareDecision("once", frozenset({"A/a.md", "A/b.md"}))),
        ("3", ShareDecision("no")),
        ("0", ShareDecision("no")),
        ("", ShareDecision("no")),
        ("n", ShareDecision("no")),
        ("of course", ShareDecision("no")),
    ],
)
def test_what_an_answer_means(said: str, wanted: ShareDecision) -> None:
    assert decision(said, REQUEST) == wanted


def test_the_question_names_who_what_why_and_how_much() -> None:
    text = "\n".join(described(REQUEST))
    for part in (
        "openai/x",
        "https://api.example",
        "(2 of 3)",
        "Read files",
        "vault.readFiles",
        "query: price",
        "1. A/a.md",
        "whole text",
    ):
        assert part in text
    assert "1,234 bytes" in text
    assert "2. A/b.md: some lines" in text
    assert "19: line" in text
    assert "20: line" not in text
    assert "and 10 more lines" in text
    assert "\x1b" not in text
    assert "It names" in text


async def test_without_a_terminal_nothing_is_shared_and_the_way_out_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await share_approval(Output(as_json=True))(REQUEST) == UNASKED
    told = capsys.readouterr()
    assert told.out == ""
    assert "A/a.md, A/b.md" in told.err
    assert "--share" in told.err


PROGRAM = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from test_consent import REQUEST
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.consent import share_approval
print("ANSWER", asyncio.run(share_approval(Output(False))(REQUEST)))
"""


def on_a_terminal(typed: bytes) -> str:
    """Return the question and the answer as displayed in a terminal of its own."""
    pty = pytest.importorskip("pty")
    controller, terminal = pty.openpty()
    program = [sys.executable, "-c", PROGRAM.format(tests=str(Path(__file__).parent))]
    with subprocess.Popen(
        program, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    ) as running:
        os.close(terminal)
        seen = b""
        while b"n = no: " not in seen:
            seen += os.read(controller, 4096)
        if typed == b"\x03":
            running.send_signal(signal.SIGINT)
        else:
            os.write(controller, typed)
        running.wait(30)
        with contextlib.suppress(OSError):  # the end of a terminal is an error on Linux
            while more := os.read(controller, 4096):
                seen += more
    os.close(controller)
    return seen.decode()


def test_on_a_terminal_the_person_is_asked() -> None:
    seen = on_a_terminal(b"1\n")
    assert "f = everything in A" in seen
    assert (
        "ANSWER ShareDecision(scope='once', paths=frozenset({'A/a.md'}), args=None, by_user=True)"
        in seen
    )


def test_the_end_of_input_is_a_no() -> None:
    assert "ANSWER ShareDecision(scope='no', paths=None, args=None, by_user=True)" in on_a_terminal(
        b"\x04"
    )


def test_an_interrupt_ends_the_question() -> None:
    seen = on_a_terminal(b"\x03")
    assert "ANSWER ShareDecision" not in seen  # a traceback shows the source from Python 3.13 on
    assert "KeyboardInterrupt" in seen


async def test_a_tool_of_a_server_is_asked_about_with_all_of_its_arguments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "\n".join(f'"{number}": "\x1b[8m"' for number in range(200))
    request = ShareRequest(
        call_id="id",
        kind="call",
        tool="mcp__desk__look",
        purpose="Call look",
        args={},
        items=(),
        provider="the MCP server desk",
        address="npx desk",
        text=text,
    )
    told = described(request)
    assert told[1] == "May this go to a tool of the MCP server desk, at npx desk"
    assert len(told) == 203
    assert "\x1b" not in "\n".join(told)
    assert await share_approval(Output(as_json=False))(request) == UNASKED
    assert "tools_allow" in capsys.readouterr().err
