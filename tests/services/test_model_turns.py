"""The one call that front ends make, over a session as the program builds it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agents import NOTES, Person, call, calls, model_turns, no, played, propose, yes
from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    NeedsInput,
    PlanReady,
    PreviewReady,
    TextDelta,
    TurnFailed,
    TurnStarted,
)
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.agent.turn.prompts import exact_text
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.plan.preview import dry_run
from obsidian_agent.plan.result import Preview
from obsidian_agent.providers.scripted import ScriptedProvider
from obsidian_agent.services.focus import Focus
from obsidian_agent.services.menu_planner import MenuPlanner
from obsidian_agent.services.model_turns import (
    PlainAgent,
    choose,
    may_choose,
    preview_request,
    wish_of,
)
from obsidian_agent.services.plans import PreviewOptions
from obsidian_agent.services.session import Session
from obsidian_agent.tools.core.tool import EditorPosition, Selection
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.disk import DiskView
from support import NOTE_PLAN, MakeVault, settings_with

MakeSession = Callable[..., Session]


@pytest.fixture
def make_session(make_vault: MakeVault, tmp_path: Path) -> MakeSession:
    def make(*answers: dict[str, Any], **fields: Any) -> Session:
        script = tmp_path / "answers.jsonl"
        script.write_text("\n".join(json.dumps(each) for each in answers), encoding="utf-8")
        model = f"scripted/{script}" if answers else None
        return build_session(
            Wiring(
                make_vault(NOTES), tmp_path / "state", settings=settings_with(model=model, **fields)
            )
        )

    return make


def provider(session: Session) -> ScriptedProvider:
    models = session.open_models()
    assert models is not None
    assert isinstance(models.provider, ScriptedProvider)
    return models.provider


def seen(session: Session) -> str:
    return "\n".join(
        message.text for request in provider(session).requests for message in request.messages
    )


def shared(session: Session) -> list[str]:
    models = session.open_models()
    assert models is not None
    return [each["path"] for entry in models.ledger.entries() for each in entry["files"]]


async def turn(session: Session, question: str, person: Person, **options: Any) -> list[AgentEvent]:
    events = [event async for event in session.answer(question, person.approve(), **options)]
    return [event for event in events if not isinstance(event, TextDelta)]


async def test_a_question_is_answered_with_its_sources(
    make_session: MakeSession, tmp_path: Path
) -> None:
    session = make_session(calls(call("vault__readFile", path="Garden.md")), {"text": "Water."})
    events = await turn(session, "What about the garden?", Person(yes))
    assert events[0] == TurnStarted("What about the garden?")
    assert events[-1] == Answer("Water.", ("Garden.md",))
    assert shared(session) == ["Garden.md"]
    (ledger,) = (tmp_path / "state" / "vaults").rglob("audit.jsonl")
    assert ledger.is_file()


async def test_a_proposed_plan_is_previewed_and_not_run(make_session: MakeSession) -> None:
    session = make_session(propose(NOTE_PLAN))
    events = await turn(session, "Make a note", Person(no))
    assert [type(event) for event in events[-2:]] == [PlanReady, PreviewReady]
    preview = events[-1]
    assert isinstance(preview, PreviewReady)
    assert preview.preview.valid
    assert not (Path(session.vault.store.real_path) / "Idea.md").exists()


@pytest.mark.parametrize(("deny", "times"), [((), 1), (("Private",), 2)])
async def test_a_proposed_plan_is_dry_run_once_where_the_model_may_know_of_everything(
    make_session: MakeSession, monkeypatch: pytest.MonkeyPatch, deny: tuple[str, ...], times: int
) -> None:
    session = make_session(propose(NOTE_PLAN), share_deny=deny)
    views: list[object] = []

    def counted(*args: Any, **named: Any) -> Preview:
        views.append(args[3])
        return dry_run(*args, **named)

    monkeypatch.setattr("obsidian_agent.services.plans.dry_run", counted)
    events = await turn(session, "Make a note", Person(no))
    assert len(views) == times, "else the model's dry run saw less than the user's"
    assert isinstance(views[-1], DiskView)
    preview = events[-1]
    assert isinstance(preview, PreviewReady)
    known = session.plans.dry_run(NOTE_PLAN, options=PreviewOptions(instruction="Make a note"))
    assert (preview.preview.plan_hash, preview.preview.flags) == (known.plan_hash, known.flags)


async def test_a_plan_that_needs_values_asks_for_them(make_session: MakeSession) -> None:
    wanting = {
        **NOTE_PLAN,
        "parameters": {"title": {}},
        "steps": [{**NOTE_PLAN["steps"][0], "args": {"path": "${title}.md", "content": ""}}],
    }
    events = await turn(make_session(propose(wanting)), "Make a note", Person(no))
    assert isinstance(events[-1], NeedsInput)
    assert events[-1].missing == ("title",)


async def test_a_conversation_goes_on_over_several_turns(make_session: MakeSession) -> None:
    session = make_session(
        calls(call("vault__readFile", path="Garden.md")), {"text": "Water."}, {"text": "Tomatoes."}
    )
    conversation = Conversation()
    await turn(session, "First?", Person(yes), conversation=conversation)
    await turn(session, "Second?", Person(no), conversation=conversation)
    last = provider(session).requests[-1].messages
    assert [message.role for message in last] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


async def test_without_a_model_there_is_no_answer(make_session: MakeSession) -> None:
    events = await turn(make_session(), "What?", Person(yes))
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].problem.code == "NO_MODEL"


async def test_a_model_that_cannot_be_opened_is_a_failed_turn(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    session = build_session(
        Wiring(
            make_vault(NOTES), tmp_path / "state", settings=settings_with(model="nobody/nothing")
        )
    )
    events = await turn(session, "What?", Person(yes))
    assert isinstance(events[-1], TurnFailed)
    assert "nobody" in events[-1].problem.message


async def test_the_wirings_rules_hold(make_session: MakeSession) -> None:
    reads = calls(
        *(
            call("vault__readFile", path=path)
            for path in ("Garden.md", "Finance/bank.md", "Private/diary.md")
        )
    )
    session = make_session(
        reads, {"text": "Ok."}, share_allow=("Garden.md",), share_deny=("Private",)
    )
    person = Person(no)
    await turn(session, "What?", person)
    assert person.paths() == [["Finance/bank.md"]]
    assert shared(session) == ["Garden.md"]
    assert "secretly" not in seen(session)


SELECTED = Focus(
    "Private/diary.md",
    Selection("I love my garden, secretly.", EditorPosition(2, 0), EditorPosition(2, 27)),
)


@pytest.mark.parametrize("deny", [(), ("Private",)])
async def test_without_a_question_no_selection_goes_out(
    deny: tuple[str, ...], make_session: MakeSession
) -> None:
    session = make_session({"plan": NOTE_PLAN}, share_deny=deny)
    session.vault.focus = SELECTED
    events = [event async for event in session.turn("Make a note")]
    assert isinstance(events[-1], PreviewReady)
    assert "secretly" not in seen(session)
    assert ("diary" in seen(session)) == (not deny)
    assert shared(session) == ([] if deny else ["Private/diary.md"])


async def test_the_planner_that_does_not_look_asks_who_can_be_asked(
    make_session: MakeSession,
) -> None:
    session = make_session({"plan": NOTE_PLAN})
    session.vault.focus = SELECTED
    person = Person(no)
    assert isinstance(session.planner, MenuPlanner)
    planner = session.planner.otherwise
    assert isinstance(planner, PlainAgent)
    asking = replace(planner, approve=person.approve())
    events = [
        event async for event in played(asking, PlanRequest("Make a note", session.plans.context()))
    ]
    assert isinstance(events[-1], PlanReady)
    assert [request.kind for request in person.asked] == ["selection"]
    assert "secretly" not in seen(session)
    assert "${selection}" in provider(session).requests[0].messages[-1].text


@pytest.mark.parametrize(
    ("wish", "deny", "name", "told"),
    [
        ("openai/b", (), "openai/b", ["MODEL_CHOSEN"]),
        ("anthropic/c", (), "openai/a", ["MODEL_NOT_ALLOWED"]),
        ("openai/b", ("Wish.md",), "openai/a", []),
    ],
)
def test_the_open_note_may_wish_for_the_model_that_plans(
    make_vault: MakeVault,
    tmp_path: Path,
    wish: str,
    deny: tuple[str, ...],
    name: str,
    told: list[str],
) -> None:
    store = make_vault({"Wish.md": f"---\nai-model: {wish}\n---\n"})
    session = build_session(
        Wiring(store, tmp_path / "state", settings=settings_with(model="openai/a", share_deny=deny))
    )
    session.vault.focus = Focus("Wish.md")
    assert isinstance(session.planner, MenuPlanner)
    assert isinstance(session.planner.otherwise, PlainAgent)
    assert session.planner.name == "openai/a"
    made = session.planner.otherwise.agent()
    assert made.provider.name == name
    assert [problem.code for problem in made.config.notices] == told


SETTINGS = "openai/gpt-5"


@pytest.mark.parametrize(
    ("properties", "wish"),
    [
        ("ai-model: anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("aiService: OpenRouter\nmodel: openai/gpt-5", "openrouter/openai/gpt-5"),
        ("aiService: ollama", None),
        ("model: gpt-5", None),
        ("ai-model: 5", None),
        ("ai-model: https://evil.test/v1", None),
        ("aiService: openai\nmodel: a b", None),
        ("aiService: https://evil.test\nmodel: x", None),
        ("ai-model: [a, b]", None),
        ("x: [", None),
    ],
)
def test_what_a_note_wishes_for(properties: str, wish: str | None, make_vault: MakeVault) -> None:
    store = make_vault({"A.md": f"---\n{properties}\n---\n# A\n", "b.canvas": "{}"})
    assert wish_of(DiskView(store), parse("A.md", PathUse.READ)) == wish
    assert wish_of(DiskView(store), parse("b.canvas", PathUse.READ)) is None
    assert wish_of(DiskView(store), None) is None


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ("openai/gpt-4o", True),
        ("anthropic/claude", False),
        ("ollama/qwen3", True),
        ("evil/gpt-5", False),
        ("scripted//tmp/x.jsonl", False),
    ],
)
def test_what_vaults_may_choose_is_the_persons_to_say(spec: str, allowed: bool) -> None:
    assert may_choose(spec, SETTINGS, ("ollama/*",)) == allowed


def test_the_thread_comes_first_then_the_note_then_the_agent() -> None:
    assert choose(SETTINGS, "x/y", "openai/a", "openai/b", ()).spec == "x/y"
    assert choose(SETTINGS, None, "openai/a", "openai/b", ()).spec == "openai/a"
    assert choose(SETTINGS, None, None, "openai/b", ()).spec == "openai/b"
    assert choose(SETTINGS, None, None, None, ()).spec == SETTINGS


def test_what_is_not_allowed_is_told_and_does_not_count() -> None:
    choice = choose(SETTINGS, None, "openrouter/evil", "openai/b", ())
    assert choice.spec == "openai/b"
    assert [notice.code for notice in choice.notices] == ["MODEL_NOT_ALLOWED", "MODEL_CHOSEN"]
    assert "openrouter/evil" in choice.notices[0].message


@pytest.fixture
def session(make_vault: MakeVault, tmp_path: Path) -> Session:
    script = tmp_path / "answers.jsonl"
    script.write_text(
        "\n".join(json.dumps({"text": "Water.", "usage": [10, 2]}) for _ in range(3)),
        encoding="utf-8",
    )
    return build_session(
        Wiring(
            make_vault(NOTES),
            tmp_path / "state",
            settings=settings_with(model=f"scripted/{script}", share_allow=("Garden.md",)),
        )
    )


def unmarked(text: str) -> list[str]:
    """Without the marks of fences."""
    return re.split(r"(?<=DATA )[0-9a-f]{16}", re.sub(r"\d\d:\d\d", "", text))


async def test_it_is_exactly_what_is_sent_then(session: Session) -> None:
    conversation = Conversation()
    models = session.open_models()
    provider = models.provider if models else None
    assert isinstance(provider, ScriptedProvider)
    async for _ in session.answer("First?", Person(yes).approve(), conversation=conversation):
        pass
    before = list(conversation.messages)
    seen = await preview_request(model_turns(session), conversation, "What about @Garden?")
    assert len(provider.requests) == 1, "nothing was sent"
    assert (conversation.messages, conversation.unsent) == (before, [])
    assert not seen.questions
    async for _ in session.answer(
        "What about @Garden?", Person(yes).approve(), conversation=conversation
    ):
        pass
    assert unmarked(seen.text) == unmarked(exact_text(provider.requests[1]))
    assert "Tomatoes need water" in seen.text
    assert seen.use.prompt > seen.use.context > 0
    assert seen.cost == 0.0


async def test_what_would_be_asked_about_is_told_and_not_shown(session: Session) -> None:
    seen = await preview_request(model_turns(session), Conversation(), "@Plan and @Nothing")
    assert [[item.path.text for item in request.items] for request in seen.questions] == [
        ["Projects/Plan.md"]
    ]
    assert "Buy garden soil" not in seen.text
    assert [problem.code for problem in seen.notices] == ["MENTION_NOT_FOUND"]


@pytest.mark.parametrize(
    "settings",
    [{"tool_calling": False}, {"prompt": "short"}, {"tool_calling": False, "prompt": "short"}],
)
async def test_it_is_exact_in_every_form(
    make_vault: MakeVault, tmp_path: Path, settings: dict[str, object]
) -> None:
    script = tmp_path / "answers.jsonl"
    script.write_text("\n".join(json.dumps({"text": "Done."}) for _ in range(3)), encoding="utf-8")
    session = build_session(
        Wiring(
            make_vault(NOTES),
            tmp_path / "state",
            settings=settings_with(model=f"scripted/{script}", **settings),
        )
    )
    models = session.open_models()
    provider = models.provider if models else None
    assert isinstance(provider, ScriptedProvider)
    conversation = Conversation()
    for number, said in enumerate(
        ("Tick all open tasks in Plan", "Rename the tag #project to #work")
    ):
        seen = await preview_request(model_turns(session), conversation, said)
        async for _ in session.answer(said, Person(yes).approve(), conversation=conversation):
            pass
        assert unmarked(seen.text) == unmarked(exact_text(provider.requests[number]))
        assert ("# More tools" in seen.text) == ("prompt" in settings)
