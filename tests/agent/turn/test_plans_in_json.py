from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agents import json_planner, played, scripted
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    Notice,
    PlanningRetry,
    PlanReady,
    TextDelta,
    TokensUsed,
    TurnFailed,
)
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.agent.replies import Sampling
from obsidian_agent.agent.turn.loop import MAX_REQUESTS
from obsidian_agent.agent.turn.proposals import FAILED
from obsidian_agent.errors import ProviderError
from obsidian_agent.plan.policy import Policy
from obsidian_agent.providers.base import ChatDelta, ChatRequest, Provider, TextChunk
from obsidian_agent.providers.middleware import RetryingProvider
from obsidian_agent.providers.scripted import ScriptedProvider
from obsidian_agent.tools.core.tool import RunContext, Selection
from support import NOTE_PLAN

FIXTURES = Path(__file__).parents[3] / "fixtures" / "llm"
CONTEXT = RunContext(
    "My vault",
    datetime(2026, 3, 14, 9, 30, tzinfo=UTC),
    selection=Selection("- a\n- b", from_argument=True),
)
BAD = '{"version": "1.0", "steps": 7}'


def changed(**fields: Any) -> dict[str, Any]:
    return {**NOTE_PLAN, **fields}


def step(**fields: Any) -> dict[str, Any]:
    return changed(steps=[{**NOTE_PLAN["steps"][0], **fields}])


async def play(
    provider: Provider,
    policy: Policy | None = None,
    sampling: Sampling | None = None,
    **request: Any,
) -> list[AgentEvent]:
    planner = json_planner(provider, policy, sampling)
    return [
        event async for event in played(planner, PlanRequest("Make a note", CONTEXT, **request))
    ]


async def no_sleep(seconds: float) -> None:
    """Return at once."""


def ends(events: list[AgentEvent]) -> list[AgentEvent]:
    """All but the streamed text and what was used."""
    return [event for event in events if not isinstance(event, TextDelta | TokensUsed)]


async def test_a_good_answer_is_a_plan() -> None:
    provider = scripted({"plan": NOTE_PLAN})
    events = await play(provider)
    (ready,) = ends(events)
    assert isinstance(ready, PlanReady)
    assert (ready.plan.to_json(), ready.notes) == (NOTE_PLAN, ())
    assert len(provider.requests) == 1


async def test_the_answer_is_streamed_with_its_thinking_apart() -> None:
    events = await play(scripted({"plan": NOTE_PLAN, "thinking": 'Maybe {"steps": []}? No.'}))
    thinking = "".join(
        event.text for event in events if isinstance(event, TextDelta) and event.thinking
    )
    text = "".join(
        event.text for event in events if isinstance(event, TextDelta) and not event.thinking
    )
    assert thinking == 'Maybe {"steps": []}? No.'
    assert json.loads(text) == NOTE_PLAN
    assert len(events) > 5


async def test_what_the_parser_mended_is_noted() -> None:
    (ready,) = ends(
        await play(scripted({"text": f"Sure! Here it is:\n```json\n{json.dumps(NOTE_PLAN)}\n```"}))
    )
    assert isinstance(ready, PlanReady)
    assert ready.notes


async def test_words_are_an_answer() -> None:
    assert ends(
        await play(scripted({"text": "Which folder do you mean, Projects or Archive?"}))
    ) == [Answer("Which folder do you mean, Projects or Archive?")]


async def test_a_plan_without_steps_is_an_answer() -> None:
    plan = {
        "version": "1.0",
        "goal": "Nothing to do.",
        "assumptions": ["All is tidy"],
        "riskLevel": "read-only",
        "steps": [],
    }
    assert ends(await play(scripted({"plan": plan}))) == [Answer("Nothing to do.\n- All is tidy")]


async def test_bad_answers_go_back_with_what_is_wrong() -> None:
    provider = scripted({"text": BAD}, {"plan": step(tool="vault.makeFile")}, {"plan": NOTE_PLAN})
    first, second, ready = ends(await play(provider))
    assert isinstance(first, PlanningRetry)
    assert isinstance(second, PlanningRetry)
    assert isinstance(ready, PlanReady)
    assert [(event.attempt, event.attempts) for event in (first, second)] == [(2, 3), (3, 3)]
    assert "SCHEMA_INVALID" in {problem.code for problem in first.problems}
    assert [(problem.code, problem.step_id) for problem in second.problems] == [
        ("TOOL_NOT_FOUND", "note")
    ]
    second_request, third_request = provider.requests[1], provider.requests[2]
    assert [message.role for message in second_request.messages] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert second_request.messages[2].text == BAD
    assert "steps" in second_request.messages[3].text
    assert "Output ONLY valid JSON" in second_request.messages[3].text
    assert "vault.makeFile" in third_request.messages[3].text
    assert BAD not in str(third_request.messages), "only the last answer goes back"


async def test_three_bad_answers_end_it() -> None:
    provider = scripted(*[{"text": BAD}] * 9)
    *retries, failed = ends(await play(provider))
    assert isinstance(failed, TurnFailed)
    assert failed.problem == FAILED
    assert (
        failed.problem.message == "LLM failed to generate valid plan. Try rephrasing your request."
    )
    assert failed.problems
    assert len(provider.requests) == MAX_REQUESTS == 3
    assert len(retries) == 2


async def test_an_empty_answer_is_asked_for_again() -> None:
    provider = scripted({"text": ""}, {"plan": NOTE_PLAN})
    retry, ready = ends(await play(provider))
    assert isinstance(retry, PlanningRetry)
    assert isinstance(ready, PlanReady)
    assert all(
        message.text.strip() for request in provider.requests for message in request.messages
    )


@pytest.mark.parametrize(
    ("given", "used", "room"),
    [(1000, None, 2000), (None, (4000, 900), 1800), (None, None, 8192)],
    ids=["given", "as used", "unknown"],
)
async def test_a_cut_answer_gets_twice_the_room_once(
    given: int | None, used: tuple[int, int] | None, room: int
) -> None:
    provider = scripted(
        {"text": json.dumps(NOTE_PLAN)[:60], "finish": "length", "usage": used}, {"plan": NOTE_PLAN}
    )
    retry, ready = ends(await play(provider, sampling=Sampling(max_tokens=given)))
    assert isinstance(retry, PlanningRetry)
    assert isinstance(ready, PlanReady)
    assert [request.max_tokens for request in provider.requests] == [given, room]
    assert provider.requests[0].messages == provider.requests[1].messages, (
        "the cut text is of no use to anybody"
    )


async def test_a_whole_plan_in_a_cut_answer_is_not_trusted() -> None:
    provider = scripted({"plan": NOTE_PLAN, "finish": "length"}, {"plan": NOTE_PLAN})
    assert isinstance(ends(await play(provider))[0], PlanningRetry)


async def test_a_second_cut_is_told() -> None:
    provider = scripted(*[{"text": '{"version"', "finish": "length"}] * 3)
    *_, failed = ends(await play(provider, sampling=Sampling(max_tokens=50)))
    assert isinstance(failed, TurnFailed)
    assert failed.problem.code == "TRUNCATED"
    assert "100 tokens" in failed.problem.message
    assert len(provider.requests) == 2


async def test_cuts_and_bad_answers_share_the_budget() -> None:
    provider = scripted(
        {"text": BAD}, {"text": "{", "finish": "length"}, {"text": BAD}, {"plan": NOTE_PLAN}
    )
    assert isinstance(ends(await play(provider))[-1], TurnFailed)
    assert len(provider.requests) == 3


@pytest.mark.parametrize(
    "plan",
    [
        step(tool="vault.delete", args={"path": "Old.md"}),
        step(tool="commands.run", args={"id": "app:reload"}),
        step(args={"path": "../backup/HOME.md", "content": ""}),
        step(args={"path": ".obsidian/app.json", "content": ""}),
    ],
    ids=["delete", "command", "outside", "protected"],
)
async def test_what_is_not_allowed_is_shown_and_not_asked_again(plan: dict[str, Any]) -> None:
    provider = scripted({"plan": plan}, {"plan": NOTE_PLAN})
    (ready,) = ends(await play(provider))
    assert isinstance(ready, PlanReady)
    assert ready.plan.steps[0].tool == plan["steps"][0]["tool"]
    assert len(provider.requests) == 1


async def test_a_foreign_version_is_told_and_not_asked_again() -> None:
    provider = scripted({"plan": changed(version="9.0")}, {"plan": NOTE_PLAN})
    (failed,) = ends(await play(provider))
    assert isinstance(failed, TurnFailed)
    assert "9.0" in failed.problem.message


async def test_a_web_page_is_told_and_not_asked_again() -> None:
    provider = scripted(
        {"text": "<html><body><h1>502 Bad Gateway</h1></body></html>"}, {"plan": NOTE_PLAN}
    )
    (failed,) = ends(await play(provider))
    assert isinstance(failed, TurnFailed)
    assert len(provider.requests) == 1


async def test_a_failure_of_the_service_keeps_the_text_and_ends_the_turn() -> None:
    provider = scripted(
        {
            "text": "Half an ans",
            "error": {"code": "API_STREAM_CUT", "message": "It broke off.", "retryable": True},
        }
    )
    events = await play(provider)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Half an ans"
    assert isinstance(events[-1], TurnFailed)
    assert (events[-1].problem.code, events[-1].problem.message) == (
        "API_STREAM_CUT",
        "It broke off.",
    )


async def test_waiting_for_the_service_is_shown() -> None:
    error = {"code": "API_RATE_LIMIT", "message": "Too often.", "retryable": True, "retryAfter": 7}
    provider = RetryingProvider(scripted({"error": error}, {"plan": NOTE_PLAN}), sleep=no_sleep)
    retry, ready = ends(await play(provider))
    assert isinstance(retry, Notice)
    assert retry.problem.code == "API_RATE_LIMIT"
    assert "7 s" in retry.problem.message
    assert isinstance(ready, PlanReady)


async def test_parameters_reach_the_model() -> None:
    provider = scripted({"plan": NOTE_PLAN})
    await play(provider, params={"who": "Ada"})
    (request,) = provider.requests
    assert request.json_only
    assert 'who: "Ada"' in request.messages[-1].text
    assert "- a\n- b" in request.messages[-1].text
    assert "- a\n- b" not in request.messages[0].text


async def test_the_system_prompt_does_not_depend_on_the_turn() -> None:
    provider = scripted({"plan": NOTE_PLAN}, {"plan": NOTE_PLAN})
    await play(provider)
    planner = json_planner(provider, Policy(allow_deletes=True))
    other = RunContext("Other", datetime(2027, 1, 1, tzinfo=UTC), selection=Selection("zzz"))
    assert [event async for event in played(planner, PlanRequest("Else", other))]
    assert provider.requests[0].messages[0] == provider.requests[1].messages[0]


@dataclass
class Endless:
    """Streams until it is closed."""

    name: str = "endless"
    address: str = ""
    local: bool = False
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        try:
            while True:
                yield TextChunk("x")
                await asyncio.sleep(0)
        finally:
            self.closed.set()


async def test_closing_the_turn_closes_the_request() -> None:
    provider = Endless()
    events = played(json_planner(provider), PlanRequest("Go on", CONTEXT))
    assert isinstance(await anext(events), TextDelta)
    await events.aclose()  # type: ignore[attr-defined]
    assert provider.closed.is_set()


async def test_a_provider_without_an_end_is_a_failure() -> None:
    class Torn:
        name, address, local = "torn", "", False

        async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
            yield TextChunk(json.dumps(NOTE_PLAN))

    (failed,) = ends(await play(Torn()))
    assert isinstance(failed, TurnFailed)


async def test_an_exhausted_script_says_so() -> None:
    (retry, failed) = ends(await play(scripted({"text": BAD})))
    assert isinstance(retry, PlanningRetry)
    assert isinstance(failed, TurnFailed)
    assert failed.problem.code == "SCRIPT_EXHAUSTED"


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("bullets", PlanReady),
        ("answer", Answer),
        ("repair", PlanReady),
        ("hopeless", TurnFailed),
        ("cut", PlanReady),
        ("thinking", PlanReady),
        ("failing", PlanReady),
        ("obeying", PlanReady),
    ],
)
async def test_the_scripts_play_as_their_first_line_says(name: str, last: type[AgentEvent]) -> None:
    provider = ScriptedProvider.load(FIXTURES / f"{name}.jsonl")
    events = await play(RetryingProvider(provider, sleep=no_sleep))
    assert isinstance(events[-1], last)


async def test_an_error_of_the_provider_never_escapes() -> None:
    class Broken:
        name, address, local = "broken", "", False

        async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
            for _ in request.messages:
                raise ProviderError("no", code="API_NETWORK", hint="Check the network.")
            yield TextChunk("")

    (failed,) = await play(Broken())
    assert isinstance(failed, TurnFailed)
    assert failed.problem.message == "no Check the network."
