"""The trace: off by default, without anything private in it, and nothing that could stop a turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents import NOTES, Person, call, calls, yes
from obsidian_agent.agent.events import AgentEvent, Answer, Notice
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.services.session import Session
from support import MakeVault


@pytest.fixture
def wiring(make_vault: MakeVault, tmp_path: Path) -> Wiring:
    script = tmp_path / "answers.jsonl"
    rounds = [
        calls(call("vault__readFile", path="Finance/bank.md", why="secretly")),
        {"text": "The number is XK4711Q.", "usage": [100, 20, 30]},
    ]
    script.write_text("\n".join(json.dumps(each) for each in rounds * 3), encoding="utf-8")
    settings = LiveSettings.load(tmp_path / "config.toml", {})
    settings.set("model", f"scripted/{script}")
    return Wiring(make_vault(NOTES), tmp_path / "state", settings=settings)


async def turn(session: Session) -> list[AgentEvent]:
    return [
        event
        async for event in session.answer(
            "What is the secret number XK4711Q?", Person(yes).approve()
        )
    ]


def trace(wiring: Wiring) -> Path:
    return wiring.state / "log" / "trace.jsonl"


async def test_there_is_no_trace_unless_it_is_wanted(wiring: Wiring) -> None:
    await turn(build_session(wiring))
    assert not trace(wiring).exists()


async def test_a_trace_holds_numbers_and_no_notes(wiring: Wiring) -> None:
    wiring.settings.set("tracing", True)
    events = await turn(build_session(wiring))
    assert isinstance(events[-1], Answer)
    entries = [json.loads(line) for line in trace(wiring).read_text(encoding="utf-8").splitlines()]
    assert [entry["event"] for entry in entries] == [
        "turn",
        "usage",
        "share",
        "tool",
        "usage",
        "answer",
    ]
    usage = entries[-2]
    assert (usage["prompt"], usage["completion"], usage["cached"], usage["requests"]) == (
        100,
        20,
        30,
        2,
    )
    assert entries[3]["tool"] == "vault.readFile"
    text = trace(wiring).read_text(encoding="utf-8")
    for private in ("XK4711Q", "bank", "secret"):
        assert private not in text
    assert trace(wiring).stat().st_mode & 0o077 == 0


async def test_a_trace_that_cannot_be_written_is_told_once_and_stops_nothing(
    wiring: Wiring,
) -> None:
    wiring.settings.set("tracing", True)
    trace(wiring).mkdir(parents=True)
    session = build_session(wiring)
    for expected in (1, 0):
        events = await turn(session)
        assert isinstance(events[-1], Answer)
        assert (
            len(
                [
                    event
                    for event in events
                    if isinstance(event, Notice) and event.problem.code == "DEGRADED"
                ]
            )
            == expected
        )
