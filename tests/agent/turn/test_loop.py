"""Turns of the agent, their answers and what these rest on."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agents import (
    Desk,
    Person,
    call,
    calls,
    check_pairs,
    everything_sent,
    no,
    played,
    propose,
    results,
    scripted,
)
from obsidian_agent.agent.conversation import CANCELLED
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    Notice,
    PlanningRetry,
    PlanReady,
    RoundsUsedUp,
    ShareRequested,
    TextDelta,
    TokensUsed,
    ToolCallFinished,
    ToolCallStarted,
    TurnFailed,
)
from obsidian_agent.agent.privacy.consent import Level, ShareDecision, SharedPart, ShareRequest
from obsidian_agent.agent.turn import tool_round as rounds
from obsidian_agent.agent.turn.citations import Credit, SharedFiles
from obsidian_agent.agent.turn.loop import MAX_ROUNDS
from obsidian_agent.errors import ProviderError
from obsidian_agent.plan.policy import Policy, SharingRules
from obsidian_agent.providers.base import ChatDelta, ChatRequest, Finished, TextChunk, ToolCallChunk
from obsidian_agent.services.focus import Focus
from obsidian_agent.tools.core.tool import EditorPosition, Selection
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.disk import DiskView
from support import NOTE_PLAN


def step(tool: str, **args: Any) -> dict[str, Any]:
    return {**NOTE_PLAN, "steps": [{"id": "one", "tool": tool, "args": args}]}


def of_type(events: list[AgentEvent], *kinds: type[AgentEvent]) -> list[Any]:
    return [event for event in events if isinstance(event, kinds)]


async def test_an_answer_without_calls_is_an_answer(desk: Desk) -> None:
    provider = scripted({"text": "Hello there.", "usage": [30, 4]})
    used, answer = await desk.turn(provider, "Hi")
    assert isinstance(used, TokensUsed)
    assert (used.prompt, used.completion, used.requests, used.cost) == (30, 4, 1, 0.0)
    assert used.first is not None
    assert used.seconds >= used.first
    assert answer == Answer("Hello there.")
    (request,) = provider.requests
    assert [message.role for message in request.messages] == ["system", "user"]
    assert "propose_plan" in [offer.name for offer in request.tools]
    assert all("." not in offer.name for offer in request.tools)


async def test_text_and_thinking_are_streamed_in_every_round(desk: Desk) -> None:
    provider = scripted(
        calls(call("vault__listFiles"), text="I look."), {"text": "Done.", "thinking": "hmm"}
    )
    events = [event async for event in played(desk.agent(provider), desk.request())]
    assert (
        "".join(
            event.text for event in events if isinstance(event, TextDelta) and not event.thinking
        )
        == "I look.Done."
    )
    assert (
        "".join(event.text for event in events if isinstance(event, TextDelta) and event.thinking)
        == "hmm"
    )


async def test_results_go_back_until_there_is_an_answer(desk: Desk) -> None:
    provider = scripted(
        calls(call("vault__searchText", query="garden soil"), text="Let me look."),
        calls(call("vault__readFile", path="Projects/Plan.md", why="It mentions soil.")),
        {"text": "Buy soil, says [[Plan]].", "usage": [50, 8]},
    )
    events = await desk.turn(provider)
    assert [type(event) for event in events] == [
        *(TokensUsed, ToolCallStarted, ShareRequested, type(events[3]), ToolCallFinished),
        *(TokensUsed, ToolCallStarted, ShareRequested, type(events[3]), ToolCallFinished),
        *(TokensUsed, Answer),
    ]
    assert events[-1] == Answer("Buy soil, says [[Plan]].", ("Projects/Plan.md",))
    search, read = of_type(events, ToolCallStarted)
    assert (search.tool, search.purpose) == ("vault.searchText", "Search the text of notes")
    assert (read.tool, read.args, read.why) == (
        "vault.readFile",
        {"path": "Projects/Plan.md"},
        "It mentions soil.",
    )
    last = provider.requests[-1].messages
    check_pairs(last)
    assert last[2].text == "Let me look."
    assert "Buy garden soil." in results(last)[1]


async def test_every_answer_is_fenced_and_no_note_is_in_the_system_prompt(desk: Desk) -> None:
    provider = scripted(calls(call("vault__readFile", path="Garden.md")), {"text": "ok"})
    await desk.turn(provider)
    system, *_, result = provider.requests[-1].messages
    assert "Tomatoes" in result.text
    assert result.text.startswith("<<<DATA m4rk ")
    assert result.text.endswith("DATA m4rk>>>")
    assert "Tomatoes" not in system.text
    assert provider.requests[0].messages[0] == system


async def test_parallel_calls_are_answered_in_their_order(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later ones are ready first, four at a time, and the questions keep their order."""
    names = [
        "Garden.md",
        "Projects/Plan.md",
        "Projects/Log.md",
        "Finance/bank.md",
        "Private/diary.md",
    ]
    together, running, lock = 0, 0, threading.Lock()
    third = threading.Event()
    read = DiskView.read

    def slow_read(view: DiskView, path: VaultPath) -> bytes:
        nonlocal together, running
        with lock:
            running += 1
            together = max(together, running)
        if path.text == "Garden.md":
            assert third.wait(20)
        elif path.text == "Projects/Log.md":
            third.set()
        try:
            return read(view, path)
        finally:
            with lock:
                running -= 1

    monkeypatch.setattr(DiskView, "read", slow_read)
    provider = scripted(
        calls(*(call("vault__readFile", path=name) for name in names)), {"text": "ok"}
    )
    events = await desk.turn(provider)
    assert 2 <= together <= rounds.MAX_PARALLEL == 4
    assert desk.person.paths() == [[name] for name in names]
    assert [(request.number, request.total) for request in desk.person.asked] == [
        (number, 5) for number in range(1, 6)
    ]
    assert [event.paths for event in of_type(events, ToolCallFinished)] == [
        (name,) for name in names
    ]
    last = provider.requests[-1].messages
    check_pairs(last)
    assert [json.dumps(name) in text for name, text in zip(names, results(last), strict=True)] == [
        True
    ] * 5


@pytest.mark.parametrize(
    ("made", "code", "told"),
    [
        (
            {"name": "vault__searchText", "arguments": '{"query": "gard'},
            "ARGUMENT_INVALID",
            "not JSON",
        ),
        (
            {"name": "vault__searchText", "arguments": "[1, 2]"},
            "ARGUMENT_INVALID",
            "one JSON object",
        ),
        ({"name": "vault__searchText", "arguments": {}}, "ARGUMENT_INVALID", "'query' is missing"),
        (
            {"name": "vault__searchText", "arguments": {"query": "x", "limit": "many"}},
            "ARGUMENT_INVALID",
            "whole number",
        ),
        (
            {"name": "vault__searchText", "arguments": {"query": "x", "colour": "red"}},
            "ARGUMENT_INVALID",
            "colour",
        ),
        (
            {"name": "vault__serchText", "arguments": {"query": "x"}},
            "TOOL_NOT_FOUND",
            "Unknown tool: vault__serchText. Did you mean vault__",
        ),
        ({"name": "rm -rf", "arguments": {}}, "TOOL_NOT_FOUND", "Unknown tool: rm -rf"),
        (
            {"name": "vault__createFile", "arguments": {"path": "a.md", "content": ""}},
            "PERMISSION_DENIED",
            "propose_plan",
        ),
        ({"name": "obsidian.update_note", "arguments": {}}, "PERMISSION_DENIED", "propose_plan"),
        (
            {"name": "commands__run", "arguments": {"id": "app:quit"}},
            "PERMISSION_DENIED",
            "propose_plan",
        ),
        (
            {"name": "vault__readFile", "arguments": {"path": "Nope.md"}},
            "FILE_NOT_FOUND",
            "Nope.md",
        ),
        (
            {"name": "vault__readFile", "arguments": {"path": "../../etc/passwd"}},
            "PATH_OUTSIDE_VAULT",
            "goes up",
        ),
        (
            {"name": "vault__readFile", "arguments": {"path": ".obsidian/app.json"}},
            "PATH_NOT_ALLOWED",
            "protected",
        ),
        ({"name": "vault__readFile", "arguments": {"path": "Projects"}}, "NOT_TEXT", "folder"),
    ],
)
async def test_a_call_that_cannot_be_is_an_error_for_the_model_and_no_question(
    made: dict[str, Any], code: str, told: str, desk: Desk
) -> None:
    provider = scripted(calls(made), {"text": "Sorry."})
    events = await desk.turn(provider)
    assert desk.person.asked == []
    (finished,) = of_type(events, ToolCallFinished)
    assert finished.problem is not None
    assert finished.problem.code == code
    (result,) = results(provider.requests[-1].messages)
    error = json.loads(result)["error"]
    assert error["code"] == code
    assert told in error["message"]
    assert isinstance(events[-1], Answer)


async def test_an_unexpected_failure_is_an_error_without_details(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(view: DiskView, path: VaultPath) -> bytes:
        raise RuntimeError(f"boom in {desk.store.real_path} with sk-secretsecretsecret")

    monkeypatch.setattr(DiskView, "read", broken)
    provider = scripted(
        calls(call("vault__readFile", path="Garden.md"), call("vault__listFiles")),
        {"text": "Sorry."},
    )
    await desk.turn(provider)
    first, second = results(provider.requests[-1].messages)
    assert json.loads(first)["error"] == {
        "code": "INTERNAL_ERROR",
        "message": "The tool failed unexpectedly (RuntimeError).",
    }
    assert "Garden.md" in second


async def test_no_error_names_a_place_on_this_machine(
    make_desk: Callable[..., Desk], tmp_path: Path
) -> None:
    desk = make_desk()
    (Path(desk.store.real_path) / "out.md").symlink_to(tmp_path / "elsewhere.md")
    (Path(desk.store.real_path) / "loop.md").symlink_to("loop.md")
    (Path(desk.store.real_path) / "bad.md").write_bytes(b"\xff\xfe\x00")
    asked = [
        "out.md",
        "loop.md",
        "bad.md",
        "/etc/passwd",
        str(Path(desk.store.real_path) / "Garden.md"),
        "~/x.md",
        "file:///etc/passwd",
    ]
    provider = scripted(
        calls(*(call("vault__readFile", path=path) for path in asked)), {"text": "Sorry."}
    )
    await desk.turn(provider)
    found = results(provider.requests[-1].messages)
    assert len(found) == len(asked)
    assert all("error" in json.loads(text) for text in found)
    assert not [
        text
        for text in found
        if desk.store.real_path in text or str(tmp_path) in text or str(Path.home()) in text
    ]


async def test_ids_that_repeat_or_lack_are_made_unique(desk: Desk) -> None:
    made = [
        {"name": "vault__listFiles", "arguments": {}, "id": "same"},
        {"name": "vault__listFiles", "arguments": {}, "id": "same"},
    ]
    provider = scripted(calls(*made), calls(*made), {"text": "ok"})
    await desk.turn(provider)
    check_pairs(provider.requests[-1].messages)
    assert len(results(provider.requests[-1].messages)) == 4


async def test_a_flood_of_calls_is_answered_but_not_carried_out(desk: Desk) -> None:
    desk.rules = SharingRules.of(allow=["**"])
    provider = scripted(calls(*(call("vault__listFiles") for _ in range(100))), {"text": "ok"})
    await desk.turn(provider)
    found = results(provider.requests[-1].messages)
    check_pairs(provider.requests[-1].messages)
    assert sum("TOO_MANY_CALLS" in text for text in found) == 100 - rounds.MAX_CALLS


async def test_after_25_rounds_the_person_is_asked(desk: Desk) -> None:
    desk.rules = SharingRules.of(allow=["**"])
    provider = scripted(
        *(calls(call("vault__searchText", query=f"word {number}")) for number in range(30))
    )
    events = await desk.turn(provider)
    assert events[-1] == RoundsUsedUp(MAX_ROUNDS)
    assert len(provider.requests) == MAX_ROUNDS == 25
    check_pairs(desk.conversation.messages)
    go_on = scripted({"text": "Enough."})
    assert (await desk.turn(go_on, "Go on"))[-1] == Answer("Enough.")
    assert len(results(go_on.requests[0].messages)) == 25


async def test_a_second_turn_remembers_the_first(desk: Desk) -> None:
    await desk.turn(scripted(calls(call("vault__readFile", path="Garden.md")), {"text": "Water."}))
    provider = scripted({"text": "Tomatoes."})
    events = await desk.turn(provider, "What needs it?")
    messages = provider.requests[0].messages
    assert [message.role for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert events[-1] == Answer("Tomatoes."), "sources are those of the turn"


async def test_a_failure_of_the_service_ends_the_turn_and_keeps_the_text(desk: Desk) -> None:
    broken = {
        "text": "Half an ans",
        "error": {"code": "API_STREAM_CUT", "message": "It broke off.", "retryable": True},
    }
    events = await desk.turn(scripted(broken))
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].problem.code == "API_STREAM_CUT"
    assert desk.conversation.messages[-1].text.startswith("Half an ans")
    assert "broke off" in desk.conversation.messages[-1].text


async def test_calls_of_an_answer_that_broke_off_are_not_carried_out(desk: Desk) -> None:
    class Torn:
        name, address, local = "torn", "", False

        async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
            async for delta in scripted(calls(call("vault__readFile", path="Garden.md"))).stream(
                request
            ):
                if not isinstance(delta, Finished):
                    yield delta
            raise ProviderError("It broke off.", code="API_STREAM_CUT")

    events = [event async for event in played(desk.agent(Torn()), desk.request())]
    assert isinstance(events[-1], TurnFailed)
    assert not of_type(events, ToolCallStarted)
    check_pairs(desk.conversation.messages)


async def test_an_empty_answer_and_a_cut_one(desk: Desk) -> None:
    empty = (await desk.turn(scripted({"text": "  "})))[-1]
    assert isinstance(empty, TurnFailed)
    assert empty.problem.code == "EMPTY_ANSWER"
    *_, notice, answer = await desk.turn(scripted({"text": "Half", "finish": "length"}))
    assert isinstance(notice, Notice)
    assert notice.problem.code == "TRUNCATED"
    assert answer == Answer("Half")


# --- cancelling ---


@dataclass
class Slow:
    """Says a word, makes two calls, and tells when it is asked and closed."""

    made: tuple[tuple[str, str], ...] = ()
    name: str = "slow"
    address: str = ""
    local: bool = False
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        try:
            yield TextChunk("One moment")
            for number, (name, arguments) in enumerate(self.made):
                yield ToolCallChunk(number, arguments, f"id_{number}", name)
            if self.made:
                yield Finished("stop")
                return
            await asyncio.Event().wait()
        finally:
            self.closed.set()


READS = (
    ("vault__readFile", '{"path": "Garden.md"}'),
    ("vault__readFile", '{"path": "Finance/bank.md"}'),
    ("vault__nope", "{}"),
)


async def test_cancelling_in_mid_stream_keeps_the_text_marked(desk: Desk) -> None:
    provider = Slow()
    events = played(desk.agent(provider), desk.request())
    assert isinstance(await anext(events), TextDelta)
    await events.aclose()
    assert provider.closed.is_set()
    assert (
        desk.conversation.messages[-1].text == "One moment\n\n[The user stopped the answer here.]"
    )
    check_pairs(desk.conversation.messages)


async def test_cancelling_while_the_person_is_asked_answers_every_call_once(desk: Desk) -> None:
    asked = asyncio.Event()

    async def never(request: ShareRequest) -> ShareDecision:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    desk.person.approve = lambda: never  # type: ignore[method-assign]
    agent = desk.agent(Slow(READS))

    async def run() -> None:
        async for _ in played(agent, desk.request()):
            pass

    task = asyncio.ensure_future(run())
    await asyncio.wait_for(asked.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    check_pairs(desk.conversation.messages)
    assert [message.text for message in desk.conversation.messages if message.role == "tool"] == [
        CANCELLED
    ] * 3
    after = scripted({"text": "Never mind."})
    desk.person = Person()
    assert (await desk.turn(after, "Stop"))[-1] == Answer("Never mind.")
    check_pairs(after.requests[0].messages)
    assert "XK4711Q" not in everything_sent(after)


@pytest.mark.parametrize("after", range(1, 12))
async def test_closing_anywhere_leaves_a_conversation_that_can_go_on(
    desk: Desk, after: int
) -> None:
    provider = scripted(
        calls(call("vault__readFile", path="Garden.md"), call("vault__listFiles"), text="Hm."),
        {"text": "Yes."},
    )
    events = played(desk.agent(provider), desk.request())
    for _ in range(after):
        await anext(events, None)
    await events.aclose()
    check_pairs(desk.conversation.messages)
    again = scripted({"text": "Again."})
    assert (await desk.turn(again))[-1] == Answer("Again.")
    sent = {entry["callId"] for entry in desk.ledger.entries()}
    carried = {
        made.id
        for message in again.requests[0].messages
        for made in message.calls
        if "DATA" in _result(desk, made.id)
    }
    assert carried <= sent, (
        "what a cancelled turn left in the conversation is written down when it goes out"
    )


def _result(desk: Desk, call_id: str) -> str:
    return next(
        message.text for message in desk.conversation.messages if message.call_id == call_id
    )


# --- proposing ---


async def test_a_good_proposal_is_a_plan(desk: Desk) -> None:
    before = desk.files()
    provider = scripted(calls(call("vault__listFiles")), propose(NOTE_PLAN))
    events = await desk.turn(provider, "Make a note")
    assert isinstance(events[-1], PlanReady)
    assert events[-1].plan.to_json() == NOTE_PLAN
    check_pairs(desk.conversation.messages)
    assert "shown" in desk.conversation.messages[-1].text
    assert desk.files() == before


@pytest.mark.parametrize(
    "arguments",
    [
        NOTE_PLAN,
        json.dumps(NOTE_PLAN),
        {"plan": json.dumps(NOTE_PLAN)},
        json.dumps({"plan": NOTE_PLAN}),
    ],
)
async def test_a_plan_may_come_bare_or_as_text(desk: Desk, arguments: Any) -> None:
    events = await desk.turn(
        scripted(calls({"name": "propose_plan", "arguments": arguments})), "Make a note"
    )
    assert isinstance(events[-1], PlanReady)


async def test_an_invalid_plan_goes_back_with_all_problems(desk: Desk) -> None:
    bad = {
        **NOTE_PLAN,
        "steps": [
            {"id": "a", "tool": "vault.makeFile", "args": {}},
            {"id": "a", "tool": "vault.createFile", "args": {"p": 1}},
        ],
    }
    provider = scripted(propose(bad), propose(NOTE_PLAN))
    events = await desk.turn(provider, "Make a note")
    (result,) = results(provider.requests[1].messages)
    codes = {problem["code"] for problem in json.loads(result)["problems"]}
    assert {"TOOL_NOT_FOUND", "DUPLICATE_ID", "ARGUMENT_INVALID"} <= codes
    assert isinstance(events[-1], PlanReady)
    assert [event.problem is None for event in of_type(events, ToolCallFinished)] == [False, True]


async def test_what_the_dry_run_finds_goes_back_without_a_word_of_a_note(desk: Desk) -> None:
    """Only the user's preview shows names made from notes; the model learns which step fails."""
    leak = {
        **NOTE_PLAN,
        "steps": [
            {"id": "read", "tool": "vault.readFile", "args": {"path": "Finance/bank.md"}},
            {
                "id": "make",
                "tool": "vault.createFile",
                "args": {"path": "Out/${steps.read.content}.md", "content": ""},
            },
        ],
    }
    provider = scripted(propose(leak), propose(NOTE_PLAN))
    await desk.turn(provider, "Make a note")
    (result,) = results(provider.requests[1].messages)
    assert json.loads(result)["error"]["stepId"] == "make"
    assert "XK4711Q" not in everything_sent(provider)
    assert desk.person.asked == []


async def test_a_model_on_this_machine_may_read_the_whole_problem(desk: Desk) -> None:
    desk.rules = SharingRules.of(local=True)
    provider = scripted(
        propose(step("vault.rename", **{"from": "Garden.md", "to": "Projects/Plan.md"})),
        propose(NOTE_PLAN),
    )
    provider.local = True
    await desk.turn(provider, "Move it")
    (result,) = results(provider.requests[1].messages)
    assert json.loads(result)["error"]["code"] == "FILE_EXISTS"
    assert "Projects/Plan.md" in result


async def test_after_two_corrections_the_person_sees_the_plan(desk: Desk) -> None:
    missing = step("vault.updateFile", path="Nope.md", mode="append", content="x")
    provider = scripted(*[propose(missing)] * 5)
    events = await desk.turn(provider, "Change it")
    assert isinstance(events[-1], PlanReady)
    assert len(provider.requests) == 3
    nothing = scripted(*[propose({"version": "1.0"})] * 5)
    events = await desk.turn(nothing, "Change it")
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].problems
    assert len(nothing.requests) == 3
    check_pairs(desk.conversation.messages)


@pytest.mark.parametrize(
    "proposal",
    [
        step("vault.delete", path="Garden.md"),
        step("vault.rename", **{"from": "Garden.md", "to": "Projects/Plan.md", "overwrite": True}),
    ],
)
async def test_what_is_not_permitted_is_shown_to_the_person_at_once(
    desk: Desk, proposal: dict[str, Any]
) -> None:
    provider = scripted(propose(proposal))
    events = await desk.turn(provider, "Delete it")
    assert isinstance(events[-1], PlanReady)
    assert len(provider.requests) == 1


async def test_one_plan_of_two_is_shown(desk: Desk) -> None:
    two = calls(
        call("propose_plan", plan=NOTE_PLAN),
        call("propose_plan", plan={**NOTE_PLAN, "goal": "Another"}),
    )
    events = await desk.turn(scripted(two), "Make a note")
    (ready,) = of_type(events, PlanReady)
    assert ready.plan.goal == "Create a note"
    check_pairs(desk.conversation.messages)


async def test_a_plan_written_as_an_answer_counts_as_proposed(desk: Desk) -> None:
    provider = scripted(
        {"text": '```json\n{"version": "1.0", "steps": 7}\n```'}, {"plan": NOTE_PLAN}
    )
    events = await desk.turn(provider, "Make a note")
    assert of_type(events, PlanningRetry)
    assert isinstance(events[-1], PlanReady)
    assert "riskLevel" in provider.requests[1].messages[-1].text


async def test_who_only_answers_is_offered_no_plan(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(proposing=False)
    provider = scripted(propose(NOTE_PLAN), {"text": "I would make a note."})
    events = await desk.turn(provider, "Make a note")
    assert "propose_plan" not in [offer.name for offer in provider.requests[0].tools]
    assert "propose_plan" not in provider.requests[0].messages[0].text
    assert (
        json.loads(results(provider.requests[1].messages)[0])["error"]["code"] == "TOOL_NOT_FOUND"
    )
    assert isinstance(events[-1], Answer)


# --- models without tools ---

NO_TOOLS = {"error": {"code": "API_TOOLS_UNSUPPORTED", "message": "No tools here."}}


async def test_a_model_without_tools_plans_in_json_with_a_notice(desk: Desk) -> None:
    provider = scripted(NO_TOOLS, {"plan": NOTE_PLAN}, {"text": "Hello."})
    events = await desk.turn(provider, "Make a note")
    assert [event.problem.code for event in of_type(events, Notice)] == ["API_TOOLS_UNSUPPORTED"]
    assert isinstance(events[-1], PlanReady)
    assert provider.requests[1].tools == ()
    assert provider.requests[1].json_only
    events = await desk.turn(provider, "Hi")
    assert events[1:] == [Answer("Hello.")], (
        "it is not asked for tools again, and nothing is said twice"
    )
    assert [message.role for message in provider.requests[2].messages] == [
        "system",
        "user",
        "assistant",
        "user",
    ]


async def test_a_model_without_tools_sees_no_more_than_one_with_them(
    make_desk: Callable[..., Desk],
) -> None:
    focus = Focus(
        "Finance/bank.md",
        Selection("The secret number is XK4711Q.", EditorPosition(2, 0), EditorPosition(2, 29)),
    )
    desk = make_desk(focus=focus, person=Person(no))
    provider = scripted(NO_TOOLS, {"plan": NOTE_PLAN})
    await desk.turn(provider, "Make a note")
    assert "XK4711Q" not in everything_sent(provider)
    assert "${selection}" in provider.requests[1].messages[-1].text


async def test_who_only_answers_gets_no_plan_that_writes_from_a_model_without_tools(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(proposing=False, policy=Policy())
    reading = {**step("vault.searchText", query="garden"), "riskLevel": "read-only"}
    provider = scripted(NO_TOOLS, {"plan": NOTE_PLAN}, {"plan": reading})
    refused, ready = [(await desk.turn(provider, "The garden?"))[-1] for _ in range(2)]
    assert isinstance(refused, TurnFailed)
    assert refused.problem.code == "PERMISSION_DENIED"
    assert isinstance(ready, PlanReady)


async def test_the_model_may_look_tools_up_and_nobody_is_asked(desk: Desk) -> None:
    provider = scripted(calls(call("describe_tools", names=["vault.find"])), {"text": "I see."})
    desk.person = person = Person(no)
    events = await desk.turn(provider, "What can you do?")
    (finished,) = of_type(events, ToolCallFinished)
    assert (finished.tool, finished.problem, person.asked) == ("describe_tools", None, [])
    (result,) = results(provider.requests[1].messages)
    assert "vault.find(" in result
    check_pairs(provider.requests[1].messages)


async def test_a_wrong_proposal_comes_back_with_the_right_signature(desk: Desk) -> None:
    provider = scripted(propose(step("vault.rename", old="A.md", new="B.md")), propose(NOTE_PLAN))
    await desk.turn(provider, "Rename A")
    (result,) = results(provider.requests[1].messages)
    assert json.loads(result)["usage"][0].startswith("vault.rename*(from, to")


def shown() -> SharedFiles:
    found = SharedFiles()
    found.add(
        [
            SharedPart("Garden.md", Level.TEXT, 10),
            SharedPart("", Level.PREVIEW, 5),
            SharedPart("Open.md", Level.NAME, 7),
        ],
        requested=("Garden.md",),
    )
    found.add([SharedPart("Along.md", Level.TEXT, 10)], requested=())
    found.add([SharedPart("Projects/Log.md", Level.TEXT, 10), SharedPart("A.md", Level.PREVIEW, 3)])
    return found


def test_what_the_answer_names_is_its_source() -> None:
    assert shown().credit("See [[Projects/Log]] for it.") == Credit(
        ("Projects/Log.md",), ("Garden.md", "Along.md", "A.md")
    )
    assert shown().credit("GARDEN says so, and along too.").sources == ("Garden.md", "Along.md")


def test_a_name_inside_of_a_word_is_none() -> None:
    assert shown().credit("A gardener logs everything along-side.").sources == ("Along.md", "A.md")
    assert "Garden.md" not in shown().credit("Gardening is a pastime, see Log.").sources


def test_where_none_is_named_those_count_that_somebody_wanted() -> None:
    assert shown().credit("Water them.") == Credit(
        ("Garden.md", "Projects/Log.md"), ("Along.md", "A.md")
    )


def test_a_name_alone_is_neither_source_nor_sent() -> None:
    credit = shown().credit("Open is open.")
    assert "Open.md" not in credit.sources + credit.also_sent
    assert SharedFiles().credit("Nothing was read.") == Credit()
