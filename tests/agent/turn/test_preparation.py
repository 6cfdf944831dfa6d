"""The files and the history that accompany a message, within the context window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from agents import (
    Desk,
    Person,
    call,
    calls,
    check_pairs,
    everything_sent,
    no,
    only,
    played,
    scripted,
    yes,
)
from obsidian_agent.agent.context import Gatherer
from obsidian_agent.agent.events import AgentEvent, Answer, Notice, TurnFailed
from obsidian_agent.agent.privacy.consent import ShareDecision
from obsidian_agent.agent.turn.preparation import TurnConfig
from obsidian_agent.plan.policy import SharingRules
from obsidian_agent.providers.prices import ModelFacts
from obsidian_agent.providers.scripted import ScriptedProvider
from obsidian_agent.services.focus import Focus


async def turn(
    desk: Desk, model: ScriptedProvider, message: str, **config: Any
) -> list[AgentEvent]:
    agent = replace(desk.agent(model), config=TurnConfig(**config))
    return [event async for event in played(agent, desk.request(message))]


def notices(events: list[AgentEvent]) -> list[str]:
    return [event.problem.code for event in events if isinstance(event, Notice)]


async def test_a_mentioned_note_is_asked_about_and_goes_along(desk: Desk) -> None:
    model = scripted({"text": "Water."})
    events = await turn(desk, model, "What about @Garden and @Projects/?")
    assert desk.person.paths() == [["Garden.md", "Projects/Log.md", "Projects/Plan.md"]]
    (question,) = desk.person.asked
    assert [item.why for item in question.items] == [
        "you mentioned it",
        "in a folder that you mentioned",
        "in a folder that you mentioned",
    ]
    assert "Tomatoes need water" in model.requests[0].messages[-1].text
    assert {each["path"] for entry in desk.ledger.entries() for each in entry["files"]} == {
        "Garden.md",
        "Projects/Log.md",
        "Projects/Plan.md",
    }
    answer = events[-1]
    assert isinstance(answer, Answer)
    assert answer.sources == ("Garden.md", "Projects/Log.md", "Projects/Plan.md")


async def test_what_is_not_allowed_does_not_go(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(person=Person(only("Garden.md")))
    model = scripted({"text": "Water."})
    await turn(desk, model, "What about @Garden and @Plan?")
    assert "Tomatoes" in everything_sent(model)
    assert "Buy garden soil" not in everything_sent(model)


async def test_what_is_denied_is_nothing(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(rules=SharingRules.of(deny=["Private"]))
    model = scripted({"text": "?"})
    events = await turn(
        desk, model, "What about @diary and @Private/?", gatherer=Gatherer(matching=5)
    )
    assert notices(events) == ["MENTION_NOT_FOUND", "MENTION_NOT_FOUND"]
    assert "secretly" not in everything_sent(model)
    assert not desk.person.asked


async def test_what_was_only_found_goes_along_without_a_question_or_not_at_all(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(person=Person(no), rules=SharingRules.of(allow=["Projects"]))
    model = scripted({"text": "A"}, {"text": "B"})
    gatherer = Gatherer(matching=5)
    await turn(desk, model, "garden soil water", gatherer=gatherer)
    assert not desk.person.asked
    sent = everything_sent(model)
    assert "Buy garden soil" in sent
    assert "Tomatoes" not in sent
    await turn(desk, model, "garden soil again", gatherer=gatherer)
    assert model.requests[-1].messages[-1].text.count("Buy garden soil") == 0, (
        "it is in the conversation already"
    )


async def test_the_open_note_goes_along_where_that_is_wanted(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(
        focus=Focus("Projects/Plan.md"), person=Person(lambda request: ShareDecision("thread"))
    )
    model = scripted({"text": "A"}, {"text": "B"})
    await turn(desk, model, "Shorten it", gatherer=Gatherer(active=True))
    assert "Buy garden soil" in everything_sent(model)
    await turn(desk, model, "More", gatherer=Gatherer(active=True))
    assert len(desk.person.asked) == 1


async def test_what_does_not_fit_is_left_out_and_told(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk({f"Big/{n}.md": f"note {n} " * 3000 for n in range(4)})
    model = scripted({"text": "A"})
    prefix = desk.agent(model).prefix(ModelFacts())
    events = await turn(desk, model, "@Big/", window=prefix.tokens + 22_000)
    assert "CONTEXT_FULL" in notices(events)
    assert sum(len(message.text) for message in model.requests[0].messages[1:]) < 4 * 22_000
    assert "TRUNCATED" in model.requests[0].messages[-1].text


async def test_a_full_window_has_older_turns_summarized(desk: Desk) -> None:
    long = "very long answer " * 1500
    model = scripted(
        {"text": long},
        {"text": long},
        {"text": long},
        {"text": "They talked about gardens.", "usage": [9, 9]},
        {"text": "Done."},
    )
    prefix = desk.agent(model).prefix(ModelFacts())
    window = prefix.tokens + 20_000
    for question in ("one", "two", "three"):
        await turn(desk, model, question, window=window)
    events = await turn(desk, model, "four", window=window)
    assert notices(events) == ["COMPACTED"]
    assert isinstance(events[-1], Answer)
    sent = model.requests[-1].messages
    assert "They talked about gardens." in sent[1].text
    assert [message.role for message in sent] == [
        "system",
        "user",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    check_pairs(desk.conversation.messages)


async def test_a_service_that_finds_it_too_long_gets_less(desk: Desk) -> None:
    reading = calls(
        call("vault__readFile", path="Garden.md"), call("vault__readFile", path="Projects/Plan.md")
    )
    model = scripted(
        reading,
        calls(call("vault__readFile", path="Projects/Log.md")),
        {"error": {"code": "CONTEXT_TOO_LONG", "message": "no"}},
        {"text": "Ok"},
    )
    events = await turn(desk, model, "Read")
    assert notices(events) == ["CONTEXT_SQUEEZED"]
    assert isinstance(events[-1], Answer)
    before, after = model.requests[2].messages, model.requests[3].messages
    check_pairs(after)
    assert sum(len(message.text) for message in after) < sum(
        len(message.text) for message in before
    )
    never = scripted(*[{"error": {"code": "CONTEXT_TOO_LONG", "message": "no"}}] * 3)
    assert isinstance((await turn(desk, never, "More"))[-1], TurnFailed)
    assert len(never.requests) == 2


async def test_instructions_stand_in_the_system_prompt(desk: Desk) -> None:
    model = scripted({"text": "Hi"})
    await turn(desk, model, "Hi", instructions="# Your standing instructions\n\nAnswer in rhyme.")
    system = model.requests[0].messages[0]
    assert system.role == "system"
    assert system.text.endswith("Answer in rhyme.")


async def test_tools_can_be_narrowed_and_switched_off(desk: Desk) -> None:
    model = scripted({"text": "Hi"}, {"text": "Ho"})
    await turn(desk, model, "Hi", only=frozenset({"vault.readFile"}))
    assert [offer.name for offer in model.requests[0].tools] == [
        "vault__readFile",
        "describe_tools",
        "propose_plan",
    ]
    await turn(desk, model, "Hi", tools=False)
    assert not model.requests[1].tools


async def test_yes_is_asked_once_for_all_of_a_folder(desk: Desk) -> None:
    desk.person.decide = yes
    await turn(desk, scripted({"text": "A"}), "@Projects/ @Garden")
    assert len(desk.person.asked) == 1
