"""OpenCode by its HTTP server: a stand-in for OpenCode 1.18 in its own process, and a session."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import (
    Answer,
    Notice,
    TextDelta,
    TokensUsed,
    ToolCallStarted,
    TurnFailed,
)
from obsidian_agent.providers import opencode_server, other_agent
from obsidian_agent.providers.other_agent import AgentState
from providers.test_acp import NOTES, Asked, events_of, refuse_all, words
from support import MakeVault

STAND_IN = Path(__file__).parent.parent / "opencode_stand_in.py"


@pytest.fixture
def asked(make_vault: MakeVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    make_vault(NOTES)
    settings(tmp_path, f"{sys.executable} {STAND_IN} {tmp_path / 'prompts'} serve")
    monkeypatch.setattr(other_agent, "SILENCE", 6.0)
    monkeypatch.setattr(other_agent, "CANCEL_TIMEOUT", 1.0)
    monkeypatch.setattr(opencode_server, "PAUSE", 0.1)
    return Asked(tmp_path / "vault", tmp_path)


def settings(folder: Path, command: str) -> None:
    (folder / "config.toml").write_text(
        f'share_allow = ["Shared/**"]\n[agents]\nscript = "{command}"\n'
    )


# What it does, what it says, and what is said of it.
TURNS = [
    ("hello there", "1 hello there", ""),
    ("ours", "once", ""),
    ("shell", "reject", 'script asked for “bash” {"command": "rm -rf ~"}; that was refused.'),
    (
        "pretend",
        "reject",
        'script asked for “read_note” {"command": "cat /etc/passwd"}; that was refused.',
    ),
    ("cut", "Before.reject, and after.", 'script asked for “bash” ["*"]; that was refused.'),
    (
        "die",
        "",
        "script ended unexpectedly (exit code 3: out of memory). The next message starts it again. "
        "Its log is /state/log/agent-script.log.",
    ),
    ("hang", "", "script sent nothing for 6 seconds and was stopped."),
    ("stubborn", "", "script sent nothing for 6 seconds and was stopped."),
    ("flood", None, "script wrote more than 8 MB in one turn and was ended."),
    ("fail", "", "script failed: no key."),
]


@pytest.mark.parametrize(
    ("message", "said", "told"), TURNS, ids=[message for message, _, _ in TURNS]
)
async def test_a_turn_tells_what_it_says_refuses_what_it_may_not_and_survives_it(
    asked: Asked, message: str, said: str | None, told: str
) -> None:
    before, session = asked.bytes(), asked.session()
    events = await events_of(session.answer(message, refuse_all))
    assert [
        event.problem.message.replace(str(asked.folder), "")
        for event in events
        if isinstance(event, Notice | TurnFailed)
    ] == ([told] if told else [])
    if said is not None:
        assert words(events) == said
        assert message == "die" or words(events, thinking=True) == "Let me see."
    assert asked.bytes() == before
    again = await events_of(session.answer("and now", refuse_all))
    assert isinstance(again[-1], Answer), "the next message is answered all the same"


async def test_its_session_has_our_tools_alone_and_goes_on_with_the_conversation(
    asked: Asked,
) -> None:
    session = asked.session()
    heard: list[AgentState] = []
    session.on_agent = heard.append
    called = await events_of(session.answer("call", refuse_all))
    assert [(event.tool, event.args) for event in called if isinstance(event, ToolCallStarted)] == [
        ("search_notes", {"query": "launch"})
    ]
    made = next(each for each in asked.prompts if each["path"] == "/session")
    assert [(rule["permission"], rule["action"]) for rule in made["body"]["permission"]] == [
        ("*", "deny"),
        ("obsidian-agent_*", "allow"),
    ]
    assert made["inside"] == []
    assert [state.state for state in heard] == ["connecting", "working", "ready"]


async def test_cancelling_a_turn_aborts_it_and_ends_one_that_goes_on(asked: Asked) -> None:
    session = asked.session()
    for message, left in (("hang", True), ("stubborn", False)):
        turn = session.answer(message, refuse_all)
        async for event in turn:
            if isinstance(event, TextDelta):
                break
        await turn.aclose()
        assert sum(each["path"].endswith("/abort") for each in asked.prompts) == (1 if left else 2)
        assert bool(asked.processes()) is left


@pytest.fixture
def running(tmp_path: Path) -> Iterator[str]:
    """Start a server with a password, as the user may have done."""
    command = [sys.executable, str(STAND_IN), str(tmp_path / "prompts"), "serve"]
    environment = {"OPENCODE_SERVER_PASSWORD": "pw", "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.kill()


async def test_a_server_that_runs_already_is_told_of_ours_and_left_running(
    asked: Asked, running: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(asked.folder, running)
    refused = await events_of(asked.session().answer("hello", refuse_all))
    assert isinstance(refused[-1], TurnFailed)
    assert "401" in refused[-1].problem.message
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "pw")
    conversation = Conversation()
    for number in (1, 2):
        events = await events_of(
            asked.session().answer("hello", refuse_all, conversation=conversation)
        )
        assert words(events) == f"{number} hello", (
            "another start goes on in its session, and repeats nothing of it"
        )
    assert [
        (event.prompt, event.completion, event.cached)
        for event in events
        if isinstance(event, TokensUsed)
    ] == [(100, 9, 10)]
    events = await events_of(asked.session().answer("theirs", refuse_all))
    assert words(events) == "reject ['per_t']", "what the user does there is ignored"
    given = next(each["body"] for each in asked.prompts if each["path"] == "/mcp")
    assert (given["name"], given["config"]["type"]) == ("obsidian-agent", "local")


@pytest.mark.parametrize(
    "address",
    [
        "http://192.0.2.1:4096",
        "http://example.org:4096",
        "http://127.0.0.1",
        "http://opencode:pw@127.0.0.1:4096",
    ],
)
async def test_an_address_elsewhere_is_refused(asked: Asked, address: str) -> None:
    settings(asked.folder, address)
    events = await events_of(asked.session().answer("hello", refuse_all))
    assert isinstance(events[-1], TurnFailed)
    assert "not the address of an OpenCode server on this machine" in events[-1].problem.message


async def test_another_version_is_not_asked(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_VERSION", "2.1.3")
    events = await events_of(asked.session().answer("hello", refuse_all))
    assert isinstance(events[-1], TurnFailed)
    assert "not OpenCode 1" in events[-1].problem.message
    assert asked.processes() == []
