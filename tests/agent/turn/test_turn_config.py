"""The configuration of a turn, from the settings and the vault's own agents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents import NOTES, Person, ask, yes
from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import AgentEvent, Notice
from obsidian_agent.bootstrap import Wiring, build_session, build_threads, build_vault_agents
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.providers.scripted import ScriptedProvider
from obsidian_agent.services.session import Session
from support import MakeVault

FILES = {
    "AGENTS.md": "Use plain words.",
    ".opencode/agent/poet.md": "---\ntools: [vault.readFile]\ntemperature: 0.9\n---\nAnswer in rhyme.\n",
}


@pytest.fixture
def wiring(make_vault: MakeVault, tmp_path: Path) -> Wiring:
    script = tmp_path / "answers.jsonl"
    script.write_text("\n".join(json.dumps({"text": "Water."}) for _ in range(6)), encoding="utf-8")
    settings = LiveSettings.load(tmp_path / "config.toml", {})
    settings.set("model", f"scripted/{script}")
    settings.set("system_message", "Speak German.")
    settings.set("share_deny", "Private")
    return Wiring(make_vault({**NOTES, **FILES}), tmp_path / "state", settings=settings)


def provider(session: Session) -> ScriptedProvider:
    models = session.open_models()
    assert models is not None
    assert isinstance(models.provider, ScriptedProvider)
    return models.provider


async def turn(
    session: Session, conversation: Conversation | None = None, assistant: str | None = None
) -> list[AgentEvent]:
    return [
        event
        async for event in session.answer(
            "Hi", Person(yes).approve(), conversation=conversation, assistant=assistant
        )
    ]


def trust(wiring: Wiring) -> None:
    customs = build_vault_agents(wiring)
    for file in customs.library().untrusted:
        customs.trust(file.path, file.sha256)


async def test_instructions_are_heard_once_they_are_trusted(wiring: Wiring) -> None:
    session = build_session(wiring)
    await turn(session)
    before = provider(session).requests[-1].messages[0].text
    assert "Speak German." in before
    assert "plain words" not in before
    trust(wiring)
    await turn(session)
    system = provider(session).requests[-1].messages[0].text
    assert system.index("Speak German.") < system.index("Use plain words.")
    assert "rhyme" not in system
    models = session.open_models()
    assert models is not None
    (entry,) = models.ledger.entries()
    assert [(each["path"], each["allowedBy"]) for each in entry["files"]] == [
        ("AGENTS.md", "trusted")
    ]


async def test_an_agent_of_the_vault_answers_in_a_thread(wiring: Wiring) -> None:
    trust(wiring)
    session = build_session(wiring)
    chats = build_threads(wiring, session)
    thread = chats.create().id
    chats.choose_assistant(thread, "poet")
    async for _ in ask(chats, thread, "Hi"):
        pass
    request = provider(session).requests[-1]
    assert "Answer in rhyme." in request.messages[0].text
    assert request.temperature == 0.9
    assert [offer.name for offer in request.tools] == [
        "vault__readFile",
        "describe_tools",
        "propose_plan",
    ]
    assert build_threads(wiring, session).open(thread).state.assistant == "poet"


async def test_an_agent_that_is_not_there_is_told(wiring: Wiring) -> None:
    events = await turn(build_session(wiring), assistant="poet")
    assert [event.problem.code for event in events if isinstance(event, Notice)] == [
        "AGENT_NOT_FOUND"
    ]


async def test_a_changed_setting_counts_from_the_next_message_on(wiring: Wiring) -> None:
    session = build_session(wiring)
    await turn(session)
    first = provider(session)
    wiring.settings.set("temperature", 0.7)
    wiring.settings.set("allow_deletes", True)
    session.settings_changed()
    await turn(session)
    assert first.requests[-1].temperature == 0.2
    assert provider(session).requests[-1].temperature == 0.7
    assert not session.plans.policy().allow_deletes, "options decide where the wiring says so"
    wiring.settings.set("model", None)
    session.settings_changed()
    assert not session.has_model


def test_in_the_app_the_settings_say_what_plans_may_do(wiring: Wiring) -> None:
    from msgspec.structs import replace

    app = build_session(replace(wiring, policy=None))
    assert (app.plans.policy().allow_deletes, app.plans.policy().allow_commands) == (False, False)
    wiring.settings.set("allow_deletes", True)
    wiring.settings.set("allow_commands", True)
    app.settings_changed()
    assert (app.plans.policy().allow_deletes, app.plans.policy().allow_commands) == (True, True)


async def test_whoever_only_plans_hears_the_same_instructions(wiring: Wiring) -> None:
    trust(wiring)
    session = build_session(wiring)
    async for _ in session.turn("Make a note"):
        pass
    system = provider(session).requests[-1].messages[0].text
    assert "Speak German." in system
    assert "Use plain words." in system
    models = session.open_models()
    assert models is not None
    (entry,) = models.ledger.entries()
    assert [(each["path"], each["allowedBy"]) for each in entry["files"]] == [
        ("AGENTS.md", "trusted")
    ]
