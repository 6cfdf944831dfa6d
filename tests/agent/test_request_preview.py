"""What would be sent, before it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agents import NOTES, Person, model_turns, yes
from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.model_turns import preview_request
from obsidian_agent.agent.session import Session
from obsidian_agent.agent.turn.prompts import exact_text
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.config.settings import Settings
from obsidian_agent.providers.scripted import ScriptedProvider
from support import MakeVault


@pytest.fixture
def session(make_vault: MakeVault, tmp_path: Path) -> Session:
    script = tmp_path / "answers.jsonl"
    script.write_text("\n".join(json.dumps({"text": "Water.", "usage": [10, 2]}) for _ in range(3)), encoding="utf-8")
    return build_session(Wiring(make_vault(NOTES), tmp_path / "state", model=f"scripted/{script}", share_allow=("Garden.md",)))


def unmarked(text: str) -> list[str]:
    """Without the marks of fences."""
    return re.split(r"(?<=DATA )[0-9a-f]{16}", re.sub(r"\d\d:\d\d", "", text))


async def test_it_is_exactly_what_is_sent_then(session: Session) -> None:
    conversation = Conversation()
    provider = session.models.provider if session.models else None
    assert isinstance(provider, ScriptedProvider)
    async for _ in session.answer("First?", Person(yes).approve(), conversation=conversation):
        pass
    before = list(conversation.messages)
    seen = await preview_request(model_turns(session), conversation, "What about @Garden?")
    assert len(provider.requests) == 1, "nothing was sent"
    assert (conversation.messages, conversation.unsent) == (before, [])
    assert not seen.questions
    async for _ in session.answer("What about @Garden?", Person(yes).approve(), conversation=conversation):
        pass
    assert unmarked(seen.text) == unmarked(exact_text(provider.requests[1]))
    assert "Tomatoes need water" in seen.text
    assert seen.use.prompt > seen.use.context > 0
    assert seen.cost == 0.0


async def test_what_would_be_asked_about_is_told_and_not_shown(session: Session) -> None:
    seen = await preview_request(model_turns(session), Conversation(), "@Plan and @Nothing")
    assert [[item.path.text for item in request.items] for request in seen.questions] == [["Projects/Plan.md"]]
    assert "Buy garden soil" not in seen.text
    assert [problem.code for problem in seen.notices] == ["MENTION_NOT_FOUND"]


@pytest.mark.parametrize("settings", [{"tool_calling": False}, {"prompt": "short"}, {"tool_calling": False, "prompt": "short"}])
async def test_it_is_exact_in_every_form(make_vault: MakeVault, tmp_path: Path, settings: dict[str, object]) -> None:
    script = tmp_path / "answers.jsonl"
    script.write_text("\n".join(json.dumps({"text": "Done."}) for _ in range(3)), encoding="utf-8")
    live = LiveSettings(None, Settings.model_validate(settings))
    session = build_session(Wiring(make_vault(NOTES), tmp_path / "state", model=f"scripted/{script}", settings=live))
    provider = session.models.provider if session.models else None
    assert isinstance(provider, ScriptedProvider)
    conversation = Conversation()
    for number, said in enumerate(("Tick all open tasks in Plan", "Rename the tag #project to #work")):
        seen = await preview_request(model_turns(session), conversation, said)
        async for _ in session.answer(said, Person(yes).approve(), conversation=conversation):
            pass
        assert unmarked(seen.text) == unmarked(exact_text(provider.requests[number]))
        assert ("# More tools" in seen.text) == ("prompt" in settings)
