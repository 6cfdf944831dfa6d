"""The agent over the real client and real sockets, which refuse what services would refuse."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from agents import Desk, check_pairs, played
from llm_server import KEY, Call, Failure, LlmServer, Reply
from obsidian_agent.agent.events import (
    Answer,
    Notice,
    PlanReady,
    TextDelta,
    TokensUsed,
    ToolCallFinished,
    ToolCallStarted,
    TurnFailed,
)
from obsidian_agent.agent.privacy.consent import ShareDecision
from obsidian_agent.plan.policy import SharingRules
from obsidian_agent.providers.base import Provider
from obsidian_agent.providers.registry import open_provider
from support import NOTE_PLAN

VENDORS = ("openai", "anthropic")


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with LlmServer([Reply("ok")]) as server:
        yield server


def connect(vendor: str, server: LlmServer) -> Provider:
    url = server.openai_url if vendor == "openai" else server.url
    return open_provider(f"{vendor}/test-model", base_url=url, find_key=lambda _: SecretStr(KEY))


def reading(path: str, identity: str = "call_1") -> Call:
    return Call("vault__readFile", json.dumps({"path": path}), identity)


def sent(server: LlmServer) -> str:
    return json.dumps([request.body for request in server.requests], ensure_ascii=False)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_question_over_two_rounds(vendor: str, server: LlmServer, desk: Desk) -> None:
    search = Call(
        "vault_search",
        json.dumps({"query": "garden", "why": "«garden» 日本語"}, ensure_ascii=False),
        "c1",
    )
    server.play(
        Reply("Let me look.", calls=(search, reading("Garden.md", "c2")), piece=3, write_size=4),
        Reply("Water them: [[Garden]].", piece=2, usage=(100, 9)),
    )
    desk.rules = SharingRules.of(deny=["Private"])
    events = [event async for event in played(desk.agent(connect(vendor, server)), desk.request())]
    assert (
        "".join(event.text for event in events if isinstance(event, TextDelta))
        == "Let me look.Water them: [[Garden]]."
    )
    assert events[-1] == Answer("Water them: [[Garden]].", ("Garden.md",), ("Projects/Plan.md",))
    used = [event for event in events if isinstance(event, TokensUsed)][-1]
    assert (used.prompt, used.completion, used.requests) == (111, 16, 2)
    second = json.dumps(server.requests[1].body["messages"], ensure_ascii=False)
    assert "Tomatoes need water" in second
    assert "secretly" not in second
    assert second.index("c1") < second.index("c2")
    check_pairs(desk.conversation.messages)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_parallel_calls_malformed_and_unknown_ones(
    vendor: str, server: LlmServer, desk: Desk
) -> None:
    made = (
        reading("Garden.md", "a"),
        Call("vault__readFile", '{"path": "Gard', "b"),
        Call("read_my_mind", "{}", "c"),
        reading("Nope.md", "d"),
        Call("vault__createFile", json.dumps({"path": "x.md", "content": "x"}), "e"),
        reading("Projects/Plan.md", "f"),
    )
    server.play(Reply(calls=made, mixed=True, piece=2), Reply("Two of six."))
    before = desk.files()
    events = await desk.turn(connect(vendor, server))
    finished = [event for event in events if isinstance(event, ToolCallFinished)]
    assert [event.call_id for event in finished] == ["a", "b", "c", "d", "e", "f"]
    assert [event.problem.code if event.problem else None for event in finished] == [
        *(None, "ARGUMENT_INVALID", "TOOL_NOT_FOUND", "FILE_NOT_FOUND", "PERMISSION_DENIED", None),
    ]
    assert desk.person.paths() == [["Garden.md"], ["Projects/Plan.md"]]
    assert events[-1] == Answer("Two of six.", ("Garden.md", "Projects/Plan.md"))
    assert len(server.requests) == 2
    assert desk.files() == before


@pytest.mark.parametrize("vendor", VENDORS)
async def test_an_instruction_whose_plan_needed_a_search_first(
    vendor: str, server: LlmServer, desk: Desk
) -> None:
    bad = Call(
        "propose_plan",
        json.dumps({"plan": {**NOTE_PLAN, "steps": [{"id": "a", "tool": "nope", "args": {}}]}}),
        "p1",
    )
    good = Call("propose_plan", json.dumps({"plan": NOTE_PLAN}), "p2")
    server.play(
        Reply("First,", calls=(Call("vault__listFiles", "{}", "l"),)),
        Reply(calls=(bad,)),
        Reply("Here:", calls=(good,), piece=1),
    )
    events = await desk.turn(connect(vendor, server), "Make a note")
    assert isinstance(events[-1], PlanReady)
    assert events[-1].plan.to_json() == NOTE_PLAN
    assert "TOOL_NOT_FOUND" in json.dumps(server.requests[2].body["messages"])
    server.play(Reply("You are welcome."))
    assert (await desk.turn(connect(vendor, server), "Thanks"))[-1] == Answer("You are welcome.")


@pytest.mark.parametrize("vendor", VENDORS)
async def test_cancel_in_the_middle_of_a_stream(vendor: str, server: LlmServer, desk: Desk) -> None:
    server.play(
        Reply("A long answer that goes on and on", calls=(reading("Garden.md"),), delay=0.2)
    )
    events = played(desk.agent(connect(vendor, server)), desk.request())
    first = await anext(events)
    assert isinstance(first, TextDelta)
    await events.aclose()
    assert await asyncio.to_thread(server.client_gone.wait, 20)
    assert desk.conversation.messages[-1].text.startswith(first.text)
    assert "stopped" in desk.conversation.messages[-1].text
    server.play(Reply("Fine."))
    assert (await desk.turn(connect(vendor, server), "Stop"))[-1] == Answer("Fine.")


@pytest.mark.parametrize("vendor", VENDORS)
async def test_cancel_while_the_person_thinks(vendor: str, server: LlmServer, desk: Desk) -> None:
    thinking = asyncio.Event()

    async def approve(request: object) -> ShareDecision:
        thinking.set()
        await asyncio.Event().wait()
        raise AssertionError

    desk.person.approve = lambda: approve  # type: ignore[method-assign]
    server.play(Reply("Look:", calls=(reading("Garden.md", "a"), reading("Finance/bank.md", "b"))))
    turn = asyncio.ensure_future(desk.turn(connect(vendor, server)))
    await asyncio.wait_for(thinking.wait(), 60)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    check_pairs(desk.conversation.messages)
    server.play(Reply("Fine."))
    assert (await desk.turn(connect(vendor, server), "Stop"))[-1] == Answer("Fine."), (
        "the service takes the conversation as it is"
    )
    assert "User cancelled tool execution" in sent(server)
    assert "XK4711Q" not in sent(server)


@pytest.mark.parametrize("ending", ["clean-cut", "reset", "error-event"])
@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_stream_that_breaks_off_in_a_call(
    vendor: str, ending: Any, server: LlmServer, desk: Desk
) -> None:
    server.play(Reply("Well", calls=(reading("Garden.md"),), ending=ending, cut_after=3))
    events = await desk.turn(connect(vendor, server))
    assert isinstance(events[-1], TurnFailed)
    assert not [event for event in events if isinstance(event, ToolCallStarted)]
    server.play(Reply("Here I am again."))
    assert (await desk.turn(connect(vendor, server), "Again"))[-1] == Answer("Here I am again.")


@pytest.mark.parametrize("vendor", [*VENDORS, "ollama"])
async def test_a_model_without_tools(vendor: str, server: LlmServer, desk: Desk) -> None:
    server.play(Failure(400, "test-model does not support tools"), Reply(json.dumps(NOTE_PLAN)))
    events = await desk.turn(connect(vendor, server), "Make a note")
    assert [event.problem.code for event in events if isinstance(event, Notice)] == [
        "API_TOOLS_UNSUPPORTED"
    ]
    assert isinstance(events[-1], PlanReady)
    assert "tools" not in server.requests[1].body


async def test_ollama_calls_tools_too(server: LlmServer, desk: Desk) -> None:
    server.play(
        Reply("Hm.", calls=(reading("Garden.md"), Call("vault__listFiles", "{}"))), Reply("Water.")
    )
    events = await desk.turn(connect("ollama", server))
    assert events[-1] == Answer("Water.", ("Garden.md",))
    check_pairs(desk.conversation.messages)
    assert "Tomatoes" in sent(server)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_the_key_and_the_vaults_place_are_in_no_request_body(
    vendor: str, server: LlmServer, desk: Desk
) -> None:
    server.play(
        Reply(
            calls=(reading("/etc/passwd", "a"), reading(f"{desk.store.real_path}/Garden.md", "b"))
        ),
        Reply("Ok."),
    )
    await desk.turn(connect(vendor, server))
    texts = json.dumps(
        [message for message in desk.conversation.messages if message.role == "tool"], default=str
    )
    assert KEY not in sent(server)
    assert desk.store.real_path not in texts


async def test_the_beginning_of_every_request_is_the_same_so_that_services_can_remember_it(
    server: LlmServer, desk: Desk
) -> None:
    server.play(Reply(calls=(Call("vault__searchText", '{"query": "zebra"}'),)), Reply("None."))
    await desk.turn(connect("anthropic", server))
    first, second = (request.body for request in server.requests)
    assert (first["system"], first["tools"]) == (second["system"], second["tools"])
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert not re.search(r"Tomatoes|Projects/Plan\.md\"", json.dumps(first["system"]))
