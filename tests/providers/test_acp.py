"""Other agents as planners: a scripted process, through the command line and through a session."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    Notice,
    PlanReady,
    PreviewReady,
    TextDelta,
    ToolCallStarted,
    TurnFailed,
)
from obsidian_agent.agent.privacy.consent import REFUSED, ShareDecision, ShareRequest
from obsidian_agent.bootstrap import Wiring, build_session, open_record
from obsidian_agent.cli.main import main
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import ConfigError
from obsidian_agent.providers import other_agent
from obsidian_agent.providers.other_agent import AgentState, agent_command
from obsidian_agent.services.session import Session
from obsidian_agent.vault.filesystem.store import VaultStore
from support import MakeVault

NOTES = {"Shared/Plan.md": "The launch is in May.\n", "Private/Diary.md": "CANARY-1\n"}
PLAN = {
    "version": "1.0",
    "goal": "Add a line",
    "riskLevel": "writes",
    "steps": [
        {
            "id": "e",
            "tool": "vault.updateFile",
            "args": {"path": "Shared/Plan.md", "mode": "append", "content": "Bring cake\n"},
        }
    ],
}


@dataclass
class Asked:
    """A vault with a scripted agent beside it."""

    vault: Path
    folder: Path

    @property
    def prompts(self) -> list[dict[str, Any]]:
        """Return the messages to the agent, in order."""
        return [json.loads(line) for line in (self.folder / "prompts").read_text().splitlines()]

    @property
    def places(self) -> list[str]:
        return [
            "--vault",
            str(self.vault),
            "--state-dir",
            str(self.folder / "state"),
            "--config",
            str(self.folder / "config.toml"),
        ]

    def bytes(self) -> dict[str, bytes]:
        return {
            str(file.relative_to(self.vault)): file.read_bytes()
            for file in self.vault.rglob("*")
            if file.is_file()
        }

    def processes(self) -> list[int]:
        """Return the processes of the agent, which all work in its folder."""
        found = []
        for each in Path("/proc").iterdir():
            if each.name.isdigit():
                with contextlib.suppress(OSError):
                    if str(self.folder / "state") in os.readlink(each / "cwd"):
                        found.append(int(each.name))
        return found

    def start_as(self, word: str) -> None:
        """Have the agent behave in this way when it starts."""
        config = self.folder / "config.toml"
        config.write_text(config.read_text().replace('/prompts"', f'/prompts {word}"'))

    def session(self) -> Session:
        store = VaultStore.open(self.vault)
        settings = LiveSettings.load(
            self.folder / "config.toml", {}, options={"model": "acp/script"}
        )
        return build_session(Wiring(store, self.folder / "state", settings=settings))


@pytest.fixture
def asked(make_vault: MakeVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    make_vault(NOTES)
    command = (
        f"{sys.executable} {Path(__file__).parent.parent / 'acp_agent.py'} {tmp_path / 'prompts'}"
    )
    (tmp_path / "config.toml").write_text(
        f'share_allow = ["Shared/**"]\n[agents]\nscript = "{command}"\n'
    )
    monkeypatch.setattr(other_agent, "CANCEL_TIMEOUT", 1.0)
    return Asked(tmp_path / "vault", tmp_path)


async def refuse_all(request: ShareRequest) -> ShareDecision:
    return REFUSED


async def events_of(turn: AsyncGenerator[AgentEvent, None]) -> list[AgentEvent]:
    return [event async for event in turn]


def _environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def words(events: list[AgentEvent], *, thinking: bool = False) -> str:
    return "".join(
        event.text
        for event in events
        if isinstance(event, TextDelta) and event.thinking is thinking
    )


# What an agent does, and the one sentence that is said of it; "" none.
MISDEEDS = [
    ("shell", 'script asked for “rm -rf ~” {"command": "rm -rf ~"}; that was refused.'),
    (
        "pretend",
        'script asked for “mcp__obsidian-agent__read_note” {"command": "cat /etc/passwd"}; that was refused.',
    ),
    ("etc", "script asked for fs/read_text_file /etc/passwd; that was refused."),
    ("leave", 'script asked for “external_directory” {"path": "/"}; that was refused.'),
    ("hang", "script sent nothing for 6 seconds and was stopped."),
    ("stubborn", "script sent nothing for 6 seconds and was stopped."),
    ("flood", "script wrote more than 8 MB in one turn and was ended."),
    ("line", "script wrote more than 8 MB in one turn and was ended."),
    (
        "die",
        "script ended unexpectedly (exit code 3: out of memory). The next message starts it again. "
        "Its log is /state/log/agent-script.log.",
    ),
    ("noise", ""),
]


@pytest.mark.parametrize(("misdeed", "told"), MISDEEDS, ids=[name for name, _ in MISDEEDS])
async def test_what_an_agent_does_amiss_is_told_in_a_sentence_and_changes_nothing(
    asked: Asked, misdeed: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_agent, "SILENCE", 6.0)
    before, session = asked.bytes(), asked.session()
    events = await events_of(session.answer(misdeed, refuse_all))
    said = [
        event.problem.message.replace(str(asked.folder), "")
        for event in events
        if isinstance(event, Notice | TurnFailed)
    ]
    assert said == ([told] if told else [])
    assert asked.bytes() == before
    events = await events_of(session.answer("and now", refuse_all))
    assert isinstance(events[-1], Answer), "the next message is answered all the same"


def test_no_process_is_left_when_the_program_ends(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_agent, "SILENCE", 6.0)
    for misdeed in ("stubborn", "die", "fine"):
        main(["ask", misdeed, "--backend", "acp", "--agent", "script", *asked.places])
    assert asked.processes() == []


def test_what_it_writes_into_the_vault_itself_is_told_as_an_alarm(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    main(
        [
            "ask",
            f"write {asked.vault / '.obsidian' / 'app.json'}",
            "--backend",
            "acp",
            "--agent",
            "script",
            *asked.places,
        ]
    )
    assert "no plan did it" not in capsys.readouterr().err, "the folder is not there"
    hidden = asked.vault / ".hidden.md"
    main(["ask", f"write {hidden}", "--backend", "acp", "--agent", "script", *asked.places])
    assert (
        "While script worked, this changed in the vault, and no plan did it: .hidden.md."
        in capsys.readouterr().err
    )


async def test_what_it_asked_did_was_refused_and_what_changed_behind_us_stands_in_the_record(
    asked: Asked,
) -> None:
    session = asked.session()
    for message in (
        "shell",
        "etc",
        "own",
        f"write {asked.vault / 'Behind.md'}",
        'ask read_note {"path": "Shared/Plan.md"}',
    ):
        await events_of(session.answer(message, refuse_all))
    record = open_record(Wiring(VaultStore.open(asked.vault), asked.folder / "state"))
    entries = [entry for entry in record.entries() if entry.get("agent") == "script"]
    assert [
        [entry.get(name) for name in ("kind", "tool", "decision", "rule")] for entry in entries
    ] == [
        ["call", "rm -rf ~", "deny", "AGENT_REFUSED"],
        ["call", "fs/read_text_file", "deny", "AGENT_REFUSED"],
        ["call", "ls ~", "own", None],
        ["alarm", None, None, None],
        ["call", "vault.readFile", "allow", None],
    ]
    assert "Behind.md" in entries[3]["message"]
    assert record.verify().first_bad is None


async def test_a_cancelled_turn_leaves_its_alarm_in_the_record_too(asked: Asked) -> None:
    turn = asked.session().answer("stubborn", refuse_all)
    async for event in turn:
        if isinstance(event, TextDelta):
            (asked.vault / "Shared/Plan.md").write_text("changed meanwhile\n")
            break
    await turn.aclose()
    entries = open_record(Wiring(VaultStore.open(asked.vault), asked.folder / "state")).entries()
    assert [entry["kind"] for entry in entries if entry["kind"] == "alarm"] == ["alarm"]


async def test_its_server_knows_it_by_its_name_whatever_it_calls_itself(asked: Asked) -> None:
    config = asked.folder / "config.toml"
    config.write_text(
        config.read_text().replace("[agents]", '[agent_levels]\nscript = "read-only"\n[agents]')
    )
    events = await events_of(
        asked.session().answer(f"ask preview_plan {json.dumps({'plan': PLAN})}", refuse_all)
    )
    assert "PERMISSION_DENIED" in words(events)


async def test_cancelling_a_turn_ends_an_agent_that_goes_on_and_still_tells_what_it_wrote(
    asked: Asked,
) -> None:
    session = asked.session()
    heard: list[AgentState] = []
    session.on_agent = heard.append
    turn = session.answer("stubborn", refuse_all)
    async for event in turn:
        if isinstance(event, TextDelta):
            (asked.vault / "Shared/Plan.md").write_text("changed meanwhile\n")
            break
    await turn.aclose()
    assert [state.state for state in heard] == ["connecting", "working", "gone", "gone"]
    alarm = next(state.alarm for state in heard if state.alarm is not None)
    assert "Shared/Plan.md" in alarm.message
    assert asked.processes() == []


async def test_it_works_in_an_empty_folder_and_has_neither_our_keys_nor_our_place(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OBSIDIAN_AGENT_API_KEY", "sk-CANARY")
    session = asked.session()
    await events_of(session.answer("hello", refuse_all))
    (prompt,) = asked.prompts
    assert prompt["inside"] == []
    assert str(asked.folder / "state" / "agents") in prompt["cwd"]
    (pid,) = [process for process in asked.processes() if process == prompt["pid"]]
    environment = _environment_of(pid)
    assert b"CANARY" not in environment
    assert b"OBSIDIAN_AGENT_" not in environment
    assert os.stat(prompt["cwd"]).st_mode & 0o077 == 0


async def test_it_is_not_asked_before_it_has_the_tools_of_the_vault(asked: Asked) -> None:
    asked.start_as("slow")
    session, conversation = asked.session(), Conversation()
    for message in ("one", "two"):
        await events_of(session.answer(message, refuse_all, conversation=conversation))
    events = await events_of(asked.session().answer("three", refuse_all, conversation=conversation))
    assert [prompt["listed"] for prompt in asked.prompts] == [True, True, True]
    assert asked.prompts[0]["sessionId"] == asked.prompts[2]["sessionId"], "a session taken up too"
    assert not [event for event in events if isinstance(event, Notice)]


async def test_an_agent_that_does_not_ask_for_the_tools_is_named(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_agent, "TOOLS_TIMEOUT", 1.0)
    asked.start_as("never")
    events = await events_of(asked.session().answer("hello", refuse_all))
    assert [event.problem.code for event in events if isinstance(event, Notice)] == [
        "AGENT_WITHOUT_TOOLS"
    ]
    assert isinstance(events[-1], Answer), "it may still list them with its first question"


def test_an_agent_that_cannot_start_leaves_a_log(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.start_as("broken")
    assert main(["ask", "hello", "--backend", "acp", "--agent", "script", *asked.places]) == 5
    log = asked.folder / "state" / "log" / "agent-script.log"
    assert str(log) in capsys.readouterr().err
    text = log.read_text()
    assert text.startswith(f"starting {sys.executable} ")
    assert "no key [key]\nsign in first\n" in text
    assert text.endswith("ended, exit code 4\n")
    with (asked.folder / "config.toml").open("a") as config:
        config.write('gone = "gone-for-good --now"\n')
    main(["ask", "hello", "--backend", "acp", "--agent", "gone", *asked.places])
    assert "cannot be started: No such file" in log.with_name("agent-gone.log").read_text()


async def test_plans_arrive_whatever_the_length_of_the_state_folder(asked: Asked) -> None:
    state = asked.folder / "Library" / "Application Support" / ("x" * 100) / "state"
    store, settings = VaultStore.open(asked.vault), asked.session().settings
    session = build_session(Wiring(store, state, settings=settings))
    events = await events_of(session.answer(f"propose {json.dumps(PLAN)}", refuse_all))
    assert not [event for event in events if isinstance(event, Notice)]
    assert any(isinstance(event, PreviewReady) for event in events)


async def test_plans_that_cannot_arrive_are_announced(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")  # as on Windows
    events = await events_of(asked.session().answer("hello", refuse_all))
    assert [event.problem.code for event in events if isinstance(event, Notice)] == [
        "PROPOSALS_UNREACHABLE"
    ]
    assert isinstance(events[-1], Answer)


async def test_it_reads_what_is_shared_and_nothing_else(asked: Asked) -> None:
    session = asked.session()
    shared = await events_of(session.answer('ask read_note {"path": "Shared/Plan.md"}', refuse_all))
    denied = await events_of(
        session.answer('ask read_note {"path": "Private/Diary.md"}', refuse_all)
    )
    assert "The launch is in May." in words(shared)
    assert words(shared, thinking=True) == "Let me see. "
    assert any(isinstance(event, ToolCallStarted) and event.tool == "read_note" for event in shared)
    assert "FILE_NOT_FOUND" in words(denied)
    assert "CANARY" not in repr(denied)


async def test_a_proposed_plan_is_previewed_in_the_turn(asked: Asked) -> None:
    session = asked.session()
    events = await events_of(session.answer(f"propose {json.dumps(PLAN)}", refuse_all))
    preview = next(event.preview for event in events if isinstance(event, PreviewReady))
    assert [change.path.text for change in preview.change_set.changes] == ["Shared/Plan.md"]
    assert asked.bytes() == {name: text.encode() for name, text in NOTES.items()}
    assert any(isinstance(event, PlanReady) for event in events)


async def test_an_agent_may_be_held_to_less_than_the_person(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    config = asked.folder / "config.toml"
    config.write_text(
        config.read_text().replace("[agents]", '[agent_levels]\nscript = "read-only"\n[agents]')
    )
    before = asked.bytes()
    events = await events_of(asked.session().answer(f"propose {json.dumps(PLAN)}", refuse_all))
    assert isinstance(events[-1], PreviewReady)
    assert [(each.code, each.path) for each in events[-1].preview.errors] == [
        ("PERMISSION_DENIED", "Shared/Plan.md")
    ]
    code = await asyncio.to_thread(
        main,
        [
            "do",
            f"propose {json.dumps(PLAN)}",
            "--yes",
            "--backend",
            "acp",
            "--agent",
            "script",
            *asked.places,
        ],
    )
    assert (code, asked.bytes()) == (3, before)


def test_a_proposed_plan_runs_by_the_same_approval_and_is_undone(asked: Asked) -> None:
    backend = ["--backend", "acp", "--agent", "script", *asked.places]
    assert main(["do", f"propose {json.dumps(PLAN)}", *backend]) != 0, "it was not approved"
    assert asked.bytes()["Shared/Plan.md"] == b"The launch is in May.\n"
    assert main(["do", f"propose {json.dumps(PLAN)}", "--yes", *backend]) == 0
    assert asked.bytes()["Shared/Plan.md"] == b"The launch is in May.\nBring cake\n", (
        "and no alarm kept it from running"
    )
    assert main(["undo", "--yes", *asked.places]) == 0
    assert asked.bytes()["Shared/Plan.md"] == b"The launch is in May.\n"


async def test_a_conversation_goes_on_in_its_session_also_after_a_restart(asked: Asked) -> None:
    conversation, first = Conversation(), asked.session()
    for message in ("one", "two"):
        await events_of(first.answer(message, refuse_all, conversation=conversation))
    events = await events_of(asked.session().answer("three", refuse_all, conversation=conversation))
    one, two, three = asked.prompts
    assert one["sessionId"] == two["sessionId"] == three["sessionId"]
    assert one["pid"] == two["pid"] != three["pid"]
    assert len(one["prompt"]) == 2, "what it is told of its task, and the message"
    assert len(two["prompt"]) == len(three["prompt"]) == 1
    assert "one" not in two["prompt"][0]["text"].splitlines()
    assert words(events) == "1 three", "what it repeats of the session is not shown"
    conversation.messages.pop(0)
    await events_of(asked.session().answer("four", refuse_all, conversation=conversation))
    assert asked.prompts[-1]["sessionId"] != one["sessionId"], (
        "a shortened conversation starts again"
    )
    assert "# Earlier conversation" in asked.prompts[-1]["prompt"][1]["text"]


async def test_two_conversations_do_not_ask_it_at_once(asked: Asked) -> None:
    session = asked.session()
    turn = session.answer("stubborn", refuse_all)
    async for event in turn:
        if isinstance(event, TextDelta):
            break
    events = await events_of(session.answer("hello", refuse_all))
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].problem.code == "AGENT_BUSY"
    await turn.aclose()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--backend", "acp"], "--backend acp needs --agent"),
        (["--backend", "opencode", "--model", "openai/gpt-5"], "Name one model or one agent"),
        (["--agent", "nobody"], "There is no agent 'nobody'"),
        (["--agent", "gone"], "gone-for-good cannot be started: No such file or directory"),
    ],
)
def test_an_agent_that_cannot_be_had_is_said_so(
    asked: Asked, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with (asked.folder / "config.toml").open("a") as config:
        config.write('gone = "gone-for-good --now"\n')
    assert main(["ask", "hello", *arguments, *asked.places]) != 0
    assert told in capsys.readouterr().err


def test_commands_of_agents_come_from_the_person_alone() -> None:
    assert agent_command("opencode", {}) == ("opencode", "acp")
    assert agent_command("opencode", {"opencode": "/opt/oc acp --pure"}) == (
        "/opt/oc",
        "acp",
        "--pure",
    )
    with pytest.raises(ConfigError):
        agent_command("x", {"x": "'unfinished"})
