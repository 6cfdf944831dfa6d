"""Threads at work, over a session as the program builds it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agents
from agents import NOTES, Person, call, calls, check_pairs, no, propose, scripted
from obsidian_agent.agent.conversation import CUT_MARK
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    ExecutionResult,
    PreviewReady,
    TextDelta,
    TurnFailed,
)
from obsidian_agent.agent.privacy.consent import ShareDecision, ShareRequest
from obsidian_agent.bootstrap import Wiring, build_session, build_threads
from obsidian_agent.errors import ConfigError
from obsidian_agent.threads.manager import (
    IDLE,
    LONGEST,
    MAX_OPEN,
    ThreadEvent,
    ThreadManager,
    ThreadRetitled,
    ThreadTurnEnded,
    ThreadTurnEvent,
    title_by,
    title_from,
)
from obsidian_agent.vault.filesystem.store import VaultStore
from support import NOTE_PLAN, MakeVault, settings_with

LONG = [f"word{n} " for n in range(400)]
MakeChats = Callable[..., ThreadManager]


@pytest.fixture
def store(make_vault: MakeVault) -> VaultStore:
    return make_vault(NOTES)


@pytest.fixture
def make_chats(store: VaultStore, tmp_path: Path) -> MakeChats:
    """Open threads over scripts by name; `a` is the default model. A second call is a restart."""

    def make(auto_title: bool = False, **scripts: list[dict[str, Any]]) -> ThreadManager:
        for name, answers in scripts.items():
            (tmp_path / f"{name}.jsonl").write_text(
                "\n".join(json.dumps(each) for each in answers), encoding="utf-8"
            )
        model = f"scripted/{tmp_path}/a.jsonl" if scripts else None
        wiring = Wiring(
            store, tmp_path / "state", settings=settings_with(model=model, auto_title=auto_title)
        )
        return build_threads(wiring, build_session(wiring))

    return make


async def approve_all(thread_id: str, request: ShareRequest) -> ShareDecision:
    return ShareDecision("once")


async def ask(
    chats: ThreadManager, thread_id: str, text: str, person: Person | None = None
) -> list[AgentEvent]:
    return [event async for event in agents.ask(chats, thread_id, text, person)]


async def follow(chats: ThreadManager, *thread_ids: str) -> list[ThreadEvent]:
    """Everything until these threads have ended."""
    left, heard = set(thread_ids), []
    with chats.bus.subscribe() as happenings:
        async for happening in happenings:
            heard.append(happening)
            if isinstance(happening, ThreadTurnEnded):
                left.discard(happening.thread_id)
            if not left:
                return heard
    return heard


def said(chats: ThreadManager, thread_id: str) -> list[tuple[str, str]]:
    return [(each.role, each.text) for each in chats.open(thread_id).state.entries]


async def test_a_thread_goes_on_after_a_restart(make_chats: MakeChats) -> None:
    chats = make_chats(
        a=[calls(call("vault__readFile", path="Garden.md")), {"text": "Water. [[Garden]]"}]
    )
    thread = chats.create().id
    events = await ask(chats, thread, "What about the garden?")
    assert events[-1] == Answer("Water. [[Garden]]", ("Garden.md",))
    again = make_chats(a=[{"text": "Tomatoes."}])
    state = again.open(thread).state
    assert [each.role for each in state.entries] == ["person", "look", "model"]
    assert state.entries[-1].data["sources"] == ["Garden.md"]
    assert state.entries[1].data["paths"] == ["Garden.md"]
    await ask(again, thread, "And what grows there?")
    roles = [message.role for message in again.open(thread).conversation.messages]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert [version.number for version in again.open(thread).state.versions] == [1, 2]
    assert make_chats(a=[{"text": "x"}]).open(thread).state == again.open(thread).state


async def test_the_persons_words_are_on_disk_before_anything_is_asked_or_sent(
    make_chats: MakeChats,
) -> None:
    chats = make_chats(a=[calls(call("vault__readFile", path="Garden.md")), {"text": "Water."}])
    thread = chats.create().id
    seen: list[list[tuple[str, str]]] = []

    async def approve(request: ShareRequest) -> ShareDecision:
        seen.append(
            [(each.role, each.text) for each in make_chats(a=[]).open(thread).state.entries]
        )
        return ShareDecision("no")

    chats.start(thread, "My words", lambda _, request: approve(request))
    await follow(chats, thread)
    assert seen == [[("person", "My words")]]


async def test_two_threads_streaming_at_once_never_mix(
    make_chats: MakeChats, tmp_path: Path
) -> None:
    other = [f"other{n} " for n in range(300)]
    chats = make_chats(a=[{"chunks": LONG, "delayMs": 1}], b=[{"chunks": other, "delayMs": 1}])
    one, two = chats.create().id, chats.create(f"scripted/{tmp_path}/b.jsonl").id
    chats.start(one, "First?", approve_all)
    chats.start(two, "Second?", approve_all)
    heard = await follow(chats, one, two)
    for thread, pieces in ((one, LONG), (two, other)):
        texts = [
            each.event.text
            for each in heard
            if isinstance(each, ThreadTurnEvent)
            and each.thread_id == thread
            and isinstance(each.event, TextDelta)
        ]
        assert texts == pieces
        assert said(chats, thread)[1] == ("model", "".join(pieces))
    order = [each.thread_id for each in heard if isinstance(each, ThreadTurnEvent)]
    assert order != sorted(order) != order[::-1], "they did stream at once"


async def test_one_is_cancelled_and_the_other_is_not(make_chats: MakeChats, tmp_path: Path) -> None:
    chats = make_chats(a=[{"chunks": LONG, "delayMs": 1}], b=[{"chunks": LONG[:20], "delayMs": 1}])
    one, two = chats.create().id, chats.create(f"scripted/{tmp_path}/b.jsonl").id
    chats.start(one, "First?", approve_all)
    chats.start(two, "Second?", approve_all)
    ended: dict[str, str] = {}
    with chats.bus.subscribe() as happenings:
        async for each in happenings:
            if (
                isinstance(each, ThreadTurnEvent)
                and isinstance(each.event, TextDelta)
                and each.thread_id == one
                and len(chats.open(one).partial) > 50
            ):
                chats.cancel(one)
            if isinstance(each, ThreadTurnEnded):
                ended[each.thread_id] = each.how
            if len(ended) == 2:
                break
    assert ended == {one: "cancelled", two: "completed"}
    (_, cut), (_, whole) = said(chats, one)[1], said(chats, two)[1]
    assert cut.endswith(CUT_MARK)
    assert chats.open(one).state.title == "First?", "a cancelled one has a name as well"
    assert "".join(LONG).startswith(cut.removesuffix(CUT_MARK))
    assert whole == "".join(LONG[:20])
    assert not chats.running
    restarted = make_chats(a=[])
    assert [said(restarted, each) for each in (one, two)] == [
        said(chats, each) for each in (one, two)
    ]
    assert restarted.open(one).state.entries[1].state == "cut"


async def test_a_cancelled_look_leaves_a_thread_that_services_accept(make_chats: MakeChats) -> None:
    chats = make_chats(a=[calls(call("vault__readFile", path="Garden.md"))])
    thread = chats.create().id
    waiting = asyncio.Event()

    async def never(thread_id: str, request: ShareRequest) -> ShareDecision:
        waiting.set()
        await asyncio.sleep(60)
        return ShareDecision("no")

    chats.start(thread, "Q", never)
    await waiting.wait()
    assert chats.cancel(thread)
    await asyncio.gather(
        *(task for task in [chats.open(thread).task] if task is not None), return_exceptions=True
    )
    check_pairs(chats.open(thread).conversation.messages)
    check_pairs(make_chats(a=[]).open(thread).conversation.messages)
    assert not chats.cancel(thread)


async def test_a_thread_that_is_busy_takes_no_second_message(make_chats: MakeChats) -> None:
    chats = make_chats(a=[{"chunks": LONG, "delayMs": 1}])
    thread = chats.create().id
    chats.start(thread, "Q", approve_all)
    for act in (lambda: chats.start(thread, "Q2", approve_all), lambda: chats.delete(thread)):
        with pytest.raises(ConfigError) as caught:
            act()
        assert caught.value.code == "THREAD_BUSY"
    await chats.close()
    assert not chats.running


async def test_a_thread_may_have_its_own_model(make_chats: MakeChats, tmp_path: Path) -> None:
    chats = make_chats(a=[{"text": "A"}], b=[{"text": "B"}])
    thread = chats.create().id
    await ask(chats, thread, "q")
    chats.choose_model(thread, f"scripted/{tmp_path}/b.jsonl")
    events = await ask(chats, thread, "q")
    assert events[-1] == Answer("B")
    assert make_chats(a=[]).open(thread).state.model == f"scripted/{tmp_path}/b.jsonl"


async def test_titles_come_after_the_first_exchange(make_chats: MakeChats) -> None:
    chats = make_chats(a=[{"text": "Water."}, {"text": "x"}])
    thread = chats.create().id
    assert chats.open(thread).state.title.startswith("Conversation 2")
    chats.start(thread, "Please, what about the garden?", approve_all)
    heard = []
    with chats.bus.subscribe(thread) as happenings:
        async for each in happenings:
            heard.append(each)
            if isinstance(each, ThreadRetitled):
                break
    assert chats.open(thread).state.title == "What about the garden?"
    await ask(chats, thread, "Something else?")
    assert await chats.make_title(thread) is None
    chats.record_run(
        thread,
        "Water the garden",
        ExecutionResult(run_id="r1", status="done", success=True, outcome="done"),
    )
    chats.record_run(
        thread,
        "Sell the garden",
        ExecutionResult(run_id="r2", status="failed", success=False, outcome="error"),
    )
    assert chats.open(thread).state.title == "Water the garden"


async def test_a_title_of_the_persons_stays(make_chats: MakeChats) -> None:
    chats = make_chats(a=[{"text": "Water."}])
    thread = chats.create().id
    chats.rename(thread, "Mine")
    await ask(chats, thread, "What about the garden?")
    chats.record_run(
        thread,
        "Water the garden",
        ExecutionResult(run_id="r1", status="done", success=True, outcome="done"),
    )
    assert await chats.make_title(thread) is None
    assert chats.store.summaries()[0].title == "Mine"


async def test_a_model_makes_the_title_when_it_may(make_chats: MakeChats) -> None:
    chats = make_chats(auto_title=True, a=[{"text": "Water."}, {"text": "Garden care"}])
    thread = chats.create().id
    await ask(chats, thread, "What about the garden?")
    with chats.bus.subscribe(thread) as heard:
        assert await anext(heard) == ThreadRetitled(thread, "Garden care")


async def test_a_message_that_comes_while_the_title_is_found_is_worked_on_to_its_end(
    make_chats: MakeChats,
) -> None:
    chats = make_chats(
        auto_title=True,
        a=[
            {"text": "Water."},
            {"text": "Garden care", "delayMs": 20},
            {"chunks": LONG[:40], "delayMs": 2},
        ],
    )
    thread = chats.create().id
    await ask(chats, thread, "What about the garden?")
    chats.start(thread, "And then?", approve_all)
    heard = await follow(chats, thread)
    assert ThreadRetitled(thread, "Garden care") in heard
    assert heard[-1] == ThreadTurnEnded(thread, "completed")
    assert said(chats, thread)[-1] == ("model", "".join(LONG[:40]))


async def test_a_plan_and_its_run_are_kept_with_the_thread(make_chats: MakeChats) -> None:
    chats = make_chats(a=[propose(NOTE_PLAN)])
    thread = chats.create().id
    events = await ask(chats, thread, "Make a note")
    assert isinstance(events[-1], PreviewReady)
    chats.record_run(
        thread,
        "Create a note",
        ExecutionResult(run_id="r1", status="done", success=True, outcome="done"),
    )
    state = make_chats(a=[]).open(thread).state
    assert [(each.role, each.text) for each in state.entries][-2:] == [
        ("plan", "Create a note"),
        ("run", "Create a note"),
    ]
    assert state.entries[-2].data["plan"]["steps"][0]["id"] == "note"
    assert state.entries[-1].data["runId"] == "r1"


async def test_threads_work_without_a_model_and_show_nothing_of_it_to_one(
    make_chats: MakeChats, store: VaultStore
) -> None:
    chats = make_chats()
    thread = chats.create().id
    await ask(chats, thread, "how many notes are there?")
    state = make_chats().open(thread).state
    assert state.entries[0].text == "how many notes are there?"
    assert state.entries[0].state == "whole"
    assert len(state.entries) == 2
    assert not state.messages, (
        "an answer of the offline planner may hold notes, and the user was not asked about those"
    )


async def test_failures_are_kept_too(make_chats: MakeChats) -> None:
    chats = make_chats(
        a=[{"text": "Half an ans", "error": {"code": "API_STREAM_CUT", "message": "It broke off."}}]
    )
    thread = chats.create().id
    events = await ask(chats, thread, "q")
    assert isinstance(events[-1], TurnFailed)
    roles = [each.role for each in make_chats(a=[]).open(thread).state.entries]
    assert roles == ["person", "model", "failed"]


async def test_fifty_threads_in_memory_and_half_an_hour(make_chats: MakeChats) -> None:
    chats = make_chats(a=[{"text": "A"}])
    now = 0.0
    chats.clock = lambda: now
    threads = [chats.create().id for _ in range(MAX_OPEN + 1)]
    assert chats.in_memory == threads[1:]
    await ask(chats, threads[0], "still there?")
    assert len(chats.store.summaries()) == MAX_OPEN + 1, "nothing is ever deleted"
    assert threads[1] not in chats.in_memory
    now = IDLE - 1
    chats.open(threads[0])
    now = IDLE
    assert chats.evict_idle() == MAX_OPEN - 1
    assert chats.in_memory == [threads[0]]
    assert said(chats, threads[0])[-1] == ("model", "A")


async def test_going_back_to_an_earlier_turn(make_chats: MakeChats) -> None:
    chats = make_chats(a=[{"text": "A"}, {"text": "B"}, {"text": "C"}])
    thread = chats.create().id
    for question in ("one", "two"):
        await ask(chats, thread, question)
    chats.rewind(thread, 1)
    await ask(chats, thread, "three")
    assert said(chats, thread) == [
        ("person", "one"),
        ("model", "A"),
        ("person", "three"),
        ("model", "C"),
    ]
    assert said(make_chats(a=[]), thread) == said(chats, thread)


async def test_a_full_disk_sends_nothing(make_chats: MakeChats) -> None:
    chats = make_chats(a=[{"text": "A"}])
    thread = chats.create().id
    path = chats.store.file(thread).path
    path.unlink()
    path.mkdir()
    (event,) = [
        event
        for event in await ask(chats, thread, "q", Person(no))
        if isinstance(event, TurnFailed)
    ]
    assert event.problem.code == "THREAD_NOT_SAVED"
    assert not chats.open(thread).conversation.messages


async def test_what_another_service_was_shown_is_known_even_after_a_crash(
    make_chats: MakeChats, tmp_path: Path
) -> None:
    chats = make_chats(
        a=[calls(call("vault__readFile", path="Garden.md")), {"text": "Water."}], b=[{"text": "B"}]
    )
    thread = chats.create().id
    async for event in agents.ask(chats, thread, "What about the garden?"):
        if isinstance(event, TextDelta):
            break
    copy = chats.store.file(thread).path.read_bytes()  # as a kill would have left it
    await chats.close()
    chats.store.file(thread).path.write_bytes(copy)
    again = make_chats(a=[], b=[{"text": "B"}])
    again.choose_model(thread, f"scripted/{tmp_path}/b.jsonl")
    person = Person(no)
    await ask(again, thread, "And?", person)
    (question,) = person.asked
    assert (question.kind, [item.path.text for item in question.items]) == (
        "history",
        ["Garden.md"],
    )
    assert "Tomatoes" not in "".join(
        message.text for message in again.open(thread).conversation.messages
    )


async def test_what_another_window_added_is_there(make_chats: MakeChats) -> None:
    one = make_chats(a=[{"text": "A"}, {"text": "C"}])
    thread = one.create().id
    await ask(one, thread, "first")
    await ask(make_chats(a=[{"text": "B"}]), thread, "second")
    await ask(one, thread, "third")
    assert [text for _, text in said(one, thread)] == ["first", "A", "second", "B", "third", "C"]
    assert [version.number for version in one.open(thread).state.versions] == [1, 2, 3]
    with one.store.file(thread).locked():
        (event,) = await ask(one, thread, "fourth")
    assert isinstance(event, TurnFailed)
    assert event.problem.code == "THREAD_BUSY"
    assert not one.running


async def test_room_is_made_when_the_person_asks_for_it(
    make_chats: MakeChats, tmp_path: Path
) -> None:
    answers = [
        {"text": "Water. " * 50},
        {"text": "Soil. " * 50},
        {"text": "They talked of water."},
        {"text": "Yes."},
    ]
    chats = make_chats(a=answers)
    thread = chats.create().id
    with pytest.raises(ConfigError, match="nothing to summarize"):
        await chats.compact(thread)
    await ask(chats, thread, "First?")
    await ask(chats, thread, "Second?")
    before = said(chats, thread)
    done = await chats.compact(thread)
    assert (done.messages, done.by_model) == (2, True)
    assert done.after < done.before
    assert said(chats, thread)[: len(before)] == before, "people still see all of it"
    assert said(chats, thread)[-1] == ("notice", done.text)
    texts = [message.text for message in chats.open(thread).conversation.messages]
    assert "They talked of water." in texts[0]
    assert "Soil." in texts[-1]
    again = make_chats(a=[{"text": "Yes."}])
    assert [message.text for message in again.open(thread).conversation.messages] == texts, (
        "also after a restart"
    )
    with pytest.raises(ConfigError, match="nothing to summarize"):
        await again.compact(thread)


async def test_a_model_that_was_not_told_a_conversation_does_not_get_it_to_summarize(
    make_chats: MakeChats, tmp_path: Path
) -> None:
    chats = make_chats(a=[{"text": "One."}, {"text": "Two."}], b=[{"text": "Summary."}])
    thread = chats.create().id
    await ask(chats, thread, "First?")
    await ask(chats, thread, "Second?")
    chats.choose_model(thread, f"scripted/{tmp_path}/b.jsonl")
    with pytest.raises(ConfigError) as caught:
        await chats.compact(thread)
    assert caught.value.code == "MODEL_CHANGED"
    assert not chats.open(thread).running


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("What about the garden?", "What about the garden?"),
        ("please, could you tag every meeting note. And then more.", "Tag every meeting note"),
        ("/ask where is the plan", "Where is the plan"),
        ("Hallo! Kannst du die Einkaufsliste ordnen?", "Die Einkaufsliste ordnen?"),
        ("# Größe 📏 notieren\nmehr", "Größe 📏 notieren"),
        ("\u202eevil\x1b[31m words here", "⟦U+202E⟧evil⟦U+001B⟧[31m words here"),
    ],
)
def test_the_persons_words(question: str, title: str) -> None:
    assert title_from(question) == title


def test_long_ones_end_at_a_word() -> None:
    title = title_from("word " * 40)
    assert title is not None
    assert len(title) <= LONGEST + 1
    assert title.endswith("word…")
    assert len(title_from("x" * 500) or "") == LONGEST + 1


def test_the_answers_first_line_when_the_question_says_nothing() -> None:
    assert title_from("hi", "# Your vault\n\nIt holds…") == "Your vault"
    assert title_from("?", "") is None


async def test_a_models_title_is_cleaned() -> None:
    assert (
        await title_by(
            scripted({"text": '\n Title: "Garden plans."\nmore', "thinking": "Hm."}), "q", "a"
        )
        == "Garden plans"
    )
    assert await title_by(scripted({"error": {"message": "no"}}), "q", "a") is None
    assert await title_by(scripted({"text": "  "}), "q", "a") is None


async def test_a_model_gets_the_two_sides_and_no_more() -> None:
    model = scripted({"text": "T"})
    await title_by(model, "q" * 5000, "a" * 5000)
    (request,) = model.requests
    assert sum(len(message.text) for message in request.messages) < 2500
    assert not request.tools
