"""A model picks from the menu: its input, the result of its choice, and its failures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents import model_turns, played
from llm_server import Call, Failure, LlmServer, Raw, Reply
from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    NeedsInput,
    PlanReady,
    PreviewReady,
    TurnFailed,
)
from obsidian_agent.agent.planner import PlanRequest, revision
from obsidian_agent.agent.privacy.consent import refuse_all
from obsidian_agent.bootstrap import Wiring, build_session, open_ledger
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.config.settings import Settings
from obsidian_agent.errors import ConfigError
from obsidian_agent.providers.registry import open_provider
from obsidian_agent.services import menu_planner
from obsidian_agent.services.menu_planner import picks
from obsidian_agent.services.model_turns import preview_request
from obsidian_agent.services.session import Session
from support import MakeVault

FILES: dict[str, str | bytes] = {
    "Projects/Garden.md": "---\nstatus: open\n---\n# Garden\n\nSECRET WORDS of the note.\n\n- [ ] buy seeds\n",
    "Projects/Boat.md": "# Boat\n#idea\n",
    "Archive/": b"",
    "Archive/Old.md": "old\n",
    "Private/Diary.md": "dear diary\n",
}
Say = Callable[..., Any]


def choice(*actions: dict[str, Any]) -> Reply:
    return Reply(json.dumps({"actions": list(actions)}), usage=(900, 25))


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with LlmServer([choice({"action": "other"})], ["qwen3:4b"]) as found:
        yield found


class Desk:
    """A session whose model is the stand-in for Ollama."""

    def __init__(
        self, make_vault: MakeVault, tmp_path: Path, server: LlmServer, **settings: Any
    ) -> None:
        given = {"model": "ollama/qwen3:4b", "base_url": server.url, **settings}
        self.wiring = Wiring(
            store=make_vault(FILES),
            state=tmp_path / "state",
            settings=LiveSettings(current=Settings.model_validate(given)),
        )
        self.session: Session = build_session(self.wiring)
        self.server = server

    async def say(self, sentence: str, *, pick: int | None = None, **params: str) -> AgentEvent:
        request = PlanRequest(sentence, self.session.plans.context(), params=params, pick=pick)
        return [event async for event in played(self.session.planner, request)][-1]

    def effects(self, event: AgentEvent) -> list[tuple[str, str]]:
        assert isinstance(event, PlanReady), event
        done = self.session.plans.dry_run(event.plan.to_json())
        return [
            (change.kind, str(change.new_path or change.path)) for change in done.change_set.changes
        ]

    def sent(self) -> Sequence[str]:
        return [json.dumps(request.body, ensure_ascii=False) for request in self.server.requests]


@pytest.fixture
def desk(make_vault: MakeVault, tmp_path: Path, server: LlmServer) -> Desk:
    return Desk(make_vault, tmp_path, server)


async def test_a_choice_that_covers_the_sentence_is_a_plan(desk: Desk, server: LlmServer) -> None:
    server.play(choice({"action": "rename", "from": "Boat", "to": "Ship"}))
    event = await desk.say("Could you rename Boat to Ship")
    assert desk.effects(event) == [("rename", "Projects/Ship.md")]
    assert len(server.requests) == 1


async def test_the_model_is_not_asked_when_the_menu_reads_every_word(
    desk: Desk, server: LlmServer
) -> None:
    event = await desk.say("Could you move Garden and Boat to Archive")
    assert isinstance(event, NeedsInput)
    assert (event.candidates[0].recipe, event.candidates[0].doubt) == ("move", "")
    assert not server.requests
    picked = await desk.say("Could you move Garden and Boat to Archive", pick=1)
    assert desk.effects(picked) == [("rename", "Archive/Boat.md"), ("rename", "Archive/Garden.md")]


async def test_a_reading_without_the_model_stays_before_one_that_lacks_a_value(
    desk: Desk, server: LlmServer
) -> None:
    server.play(choice({"action": "merge-into", "source": "Nowhere"}))
    event = await desk.say("Could you rename Boat to Ship")
    assert isinstance(event, NeedsInput)
    assert (event.candidates[0].recipe, event.candidates[0].values) == (
        "rename",
        {"from": "Projects/Boat.md", "to": "Projects/Ship.md"},
    )


async def test_conditions_that_the_model_invents_are_dropped(desk: Desk, server: LlmServer) -> None:
    invented = {"folder": "Projects", "since": "2026-01-01", "tasks": "open", "is": "untagged"}
    server.play(choice({"action": "move", "notes": invented, "folder": "Archive"}))
    event = await desk.say("Move what is in Projects over to Archive, boats too")
    assert isinstance(event, NeedsInput)
    move = next(each for each in event.candidates if each.recipe == "move")
    assert move.values == {"notes": "folder:Projects", "folder": "Archive"}


async def test_a_model_that_ignores_the_format_still_leads_to_a_plan(
    desk: Desk, server: LlmServer
) -> None:
    action = json.dumps({"action": "rename", "from": "Boat", "to": "Ship"})
    server.play(Reply(f"Of course! This renames it:\n```json\n{action}\n```\nDone."))
    event = await desk.say("Could you rename Boat to Ship")
    assert desk.effects(event) == [("rename", "Projects/Ship.md")]


async def test_a_whole_plan_that_takes_too_long_leads_back_to_the_actions(
    desk: Desk, server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(menu_planner, "WHOLE_PLAN_SECONDS", 0.0)
    server.play(choice({"action": "other"}), Reply("no plan"))
    event = await desk.say("Write a poem about rain in a new note")
    assert isinstance(event, NeedsInput)
    assert "did not finish a plan" in event.message
    assert event.candidates


async def test_only_the_sentence_and_the_kinds_of_its_names_are_sent_behind_a_constant_prompt(
    desk: Desk, server: LlmServer
) -> None:
    server.play(choice({"action": "move", "notes": {"note": ["Garden"]}, "folder": "Archive"}))
    await desk.say("Could you perhaps get Garden into Archive")
    await desk.say("I would like Boat somehow in Archive")
    first, second = (request.body for request in server.requests)
    assert first["messages"][0] == second["messages"][0], "services keep it ready"
    assert first["format"] == second["format"]
    assert "\nmove(notes, folder)" in first["messages"][0]["content"]
    told = first["messages"][1]["content"].splitlines()
    assert told[-1] == "Could you perhaps get Garden into Archive"
    assert told[0].endswith('"Garden" is a note; "Archive" is a folder)')
    everything = "\n".join(desk.sent())
    assert not any(
        word in everything
        for word in ("SECRET", "seeds", "Diary", "Private", "Old.md", "Projects/")
    )


async def test_what_is_certain_needs_no_model(desk: Desk, server: LlmServer) -> None:
    assert isinstance(await desk.say("Move Garden to Archive"), PlanReady)
    assert not server.requests


async def test_what_is_sent_stands_in_the_ledger_and_denied_notes_are_not_recognised(
    make_vault: MakeVault, tmp_path: Path, server: LlmServer
) -> None:
    desk = Desk(make_vault, tmp_path, server, share_deny=["Private"])
    server.play(choice({"action": "other"}), Reply("no plan"))
    await desk.say("Somehow connect Garden, Diary and Archive")
    told = server.requests[0].body["messages"][1]["content"]
    assert '"Garden" is a note' in told
    assert '"Diary" is' not in told
    entry = open_ledger(desk.wiring).entries()[0]
    assert (entry["tool"], entry["provider"]) == ("menu", "ollama/qwen3:4b")
    assert [(file["path"], file["shared"]) for file in entry["files"]] == [
        ("Projects/Garden.md", "name"),
        ("Archive", "name"),
    ]


async def test_a_doubted_choice_is_a_question_with_the_likeliest_actions_behind_it(
    desk: Desk, server: LlmServer
) -> None:
    server.play(choice({"action": "move", "notes": {"folder": "Projects"}, "folder": "Archive"}))
    event = await desk.say("Move the notes in Projects that are about boats to Archive")
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].recipe == "move"
    assert "boats" in event.candidates[0].doubt
    assert len(event.candidates) == 3
    picked = await desk.say("Move the notes in Projects that are about boats to Archive", pick=1)
    assert desk.effects(picked)[0] == ("rename", "Archive/Boat.md")


async def test_a_value_that_cannot_be_read_is_left_to_the_person(
    desk: Desk, server: LlmServer
) -> None:
    server.play(choice({"action": "move", "notes": {"note": ["Shed"]}, "folder": "Archive"}))
    event = await desk.say("Put Shed away into Archive")
    assert isinstance(event, NeedsInput)
    assert (event.candidates[0].recipe, event.candidates[0].missing) == ("move", ("notes",))
    assert "Shed" in event.candidates[0].doubt
    picked = await desk.say("Put Shed away into Archive", pick=1, notes="Boat")
    assert desk.effects(picked) == [("rename", "Archive/Boat.md")]


async def test_several_actions_are_one_plan_and_the_second_sees_what_the_first_makes(
    desk: Desk, server: LlmServer
) -> None:
    server.play(
        choice(
            {"action": "rename", "from": "Boat", "to": "Ship"},
            {"action": "move", "notes": {"note": ["Ship"]}, "folder": "Archive"},
        )
    )
    event = await desk.say("Rename Boat to Ship and move Ship to Archive")
    if isinstance(event, NeedsInput):
        plan = event.candidates[0].plan
        assert plan is not None
        event = PlanReady(plan)
    assert desk.effects(event) == [("rename", "Archive/Ship.md")]


async def test_what_no_action_fits_is_planned_as_a_whole_and_doubted_all_the_same(
    desk: Desk, server: LlmServer
) -> None:
    step = {
        "id": "n",
        "tool": "vault.createFile",
        "args": {"path": "Archive/Winter.md", "content": "cold"},
    }
    plan = {"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step]}
    server.play(choice({"action": "other"}), Reply(json.dumps(plan)))
    event = await desk.say("Write a poem about rain in a new note")
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].plan is not None
    assert event.candidates[0].doubt
    assert "format" in server.requests[0].body
    assert "ActionPlan" in json.dumps(server.requests[1].body)


async def test_in_a_conversation_a_whole_plan_of_such_a_model_is_doubted_too_and_can_be_gone_on_with(
    desk: Desk, server: LlmServer
) -> None:
    step = {
        "id": "n",
        "tool": "vault.createFile",
        "args": {"path": "Archive/Winter.md", "content": "cold"},
    }
    plan = {"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step]}
    server.play(
        choice({"action": "other"}),
        Reply(calls=(Call("propose_plan", json.dumps({"plan": plan})),)),
    )
    events = [
        event
        async for event in desk.session.answer("Write a poem about rain in a new note", refuse_all)
    ]
    assert isinstance(events[-1], NeedsInput)
    candidate = events[-1].candidates[0]
    assert candidate.plan is not None
    assert candidate.doubt
    following = [event async for event in desk.session.fill(candidate, {})]
    assert isinstance(following[-1], PreviewReady)

    comment = revision("in the folder Attic instead", candidate.plan.to_json(), ())
    step["args"] = {"path": "Attic/Winter.md", "content": "cold"}
    server.play(Reply(calls=(Call("propose_plan", json.dumps({"plan": plan})),)))
    revised = [event async for event in desk.session.answer(comment, refuse_all)]
    assert isinstance(revised[-1], PreviewReady), "no action is chosen by the words of the plan"


async def test_a_model_that_answers_with_a_plan_is_taken_at_its_word_and_asked_for_one(
    desk: Desk, server: LlmServer
) -> None:
    step = {
        "id": "n",
        "tool": "vault.rename",
        "args": {"from": "Projects/Boat.md", "to": "Projects/Ship.md"},
    }
    server.play(
        Reply(json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step]}))
    )
    event = await desk.say("Could you rename Boat to Ship")
    assert desk.effects(event) == [("rename", "Projects/Ship.md")]
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "behaviour",
    [
        Failure(500, "out of memory"),
        Reply("I would move it."),
        Reply('{"actions": [{"action": "explode"}]}'),
        Raw(b""),
    ],
    ids=["error", "words", "not on the menu", "empty"],
)
async def test_where_the_model_fails_the_likeliest_actions_are_offered_and_it_is_said(
    behaviour: Failure | Reply | Raw, desk: Desk, server: LlmServer
) -> None:
    server.play(behaviour)
    event = await desk.say("Get Garden out of the way, into Archive")
    assert isinstance(event, NeedsInput)
    assert len(event.candidates) == 3
    assert "model" in event.message or "qwen3" in event.message


async def test_whole_plans_are_written_at_once_where_the_setting_says_so(
    make_vault: MakeVault, tmp_path: Path, server: LlmServer
) -> None:
    desk = Desk(make_vault, tmp_path, server, planning="plan")
    step = {
        "id": "n",
        "tool": "vault.createFile",
        "args": {"path": "Archive/Winter.md", "content": "cold"},
    }
    server.play(
        Reply(json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step]}))
    )
    assert isinstance(await desk.say("Write a poem about rain in a new note"), PlanReady)
    assert len(server.requests) == 1


def test_a_model_elsewhere_picks_only_where_the_setting_says_so() -> None:
    local, proxy = (
        open_provider("lm_studio/m"),
        open_provider("openai/gpt-5", base_url="http://127.0.0.1:9/v1"),
    )
    away = open_provider("custom/m", base_url="https://models.test/v1")
    assert [picks("auto", each) for each in (local, proxy, away)] == [True, False, False]
    assert all(picks("menu", each) for each in (local, proxy, away))
    assert not any(picks("plan", each) for each in (local, proxy, away))


async def test_in_the_app_the_menu_comes_first_and_the_agent_where_no_action_fits(
    desk: Desk, server: LlmServer
) -> None:
    async def turn(message: str) -> list[Any]:
        return [event async for event in desk.session.turn(message, refuse_all)]

    server.play(choice({"action": "outgoing-links", "note": "Garden"}))
    answered = (await turn("Tell me what Garden links to"))[-1]
    assert isinstance(answered, Answer)
    assert not server.requests, "every word of the question is read without a model"
    server.play(choice({"action": "other"}), Reply("The sky scatters blue light."))
    answered = (await turn("Why is the sky blue?"))[-1]
    assert isinstance(answered, Answer)
    assert answered.text == "The sky scatters blue light."


async def test_a_bad_model_name_is_told(
    make_vault: MakeVault, tmp_path: Path, server: LlmServer
) -> None:
    desk = Desk(make_vault, tmp_path, server, model="nobody/x")
    with pytest.raises(ConfigError):
        await desk.say("Move Garden away")


async def test_what_would_be_sent_can_be_read_before(desk: Desk, server: LlmServer) -> None:
    shown = await preview_request(
        model_turns(desk.session), Conversation(), "I would like Boat somehow in Archive"
    )
    server.play(choice({"action": "list-tags"}))
    await desk.say("I would like Boat somehow in Archive")
    for message in server.requests[0].body["messages"]:
        assert message["content"] in shown.text
    assert (
        "needs no model"
        in (
            await preview_request(model_turns(desk.session), Conversation(), "Move Boat to Archive")
        ).text
    )
    assert len(server.requests) == 1


async def test_a_question_gets_the_same_prompt_and_no_plan(desk: Desk, server: LlmServer) -> None:
    async def ask(question: str) -> list[Any]:
        return [event async for event in desk.session.answer(question, refuse_all, propose=False)]

    server.play(choice({"action": "backlinks", "note": "Garden"}))
    assert isinstance((await ask("Tell me which notes link to Garden"))[-1], Answer | NeedsInput)
    await desk.say("Somewhere in Archive there should be Boat")
    prompts = {request.body["messages"][0]["content"] for request in server.requests}
    assert len(prompts) == 1
    server.play(
        choice({"action": "delete", "notes": {"note": ["Garden"]}}), Reply("I cannot do that.")
    )
    assert (await ask("Please get rid of Garden"))[-1] == Answer("I cannot do that.")


async def test_an_answer_without_the_model_stays_before_a_doubtful_choice(
    desk: Desk, server: LlmServer
) -> None:
    server.play(choice({"action": "count-words", "notes": {"tag": "idea"}}))
    question = "Which open tasks are there in Garden together?"
    answered = [event async for event in desk.session.answer(question, refuse_all, propose=False)][
        -1
    ]
    assert isinstance(answered, Answer)
    assert "buy seeds" in answered.text


async def test_a_doubted_choice_is_offered_without_the_value_that_is_too_much(
    desk: Desk, server: LlmServer
) -> None:
    """Small models invent values; picking the second candidate removes one optional value."""
    server.play(
        choice(
            {"action": "rename-tag", "from": "idea", "to": "thought", "notes": {"tag": "elsewhere"}}
        )
    )
    event = await desk.say("The tag #idea ought to read #thought")
    assert isinstance(event, NeedsInput)
    assert [(each.recipe, "notes" in each.values) for each in event.candidates[:2]] == [
        ("rename-tag", True),
        ("rename-tag", False),
    ]
    assert "elsewhere" in event.candidates[1].doubt
    assert desk.effects(await desk.say("The tag #idea ought to read #thought", pick=2)) == [
        ("modify", "Projects/Boat.md")
    ]


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", ".obsidian/app.json"])
async def test_a_place_out_of_bounds_is_refused_not_asked_about(
    path: str, desk: Desk, server: LlmServer
) -> None:
    server.play(choice({"action": "copy-note", "note": "Garden", "path": path}))
    event = await desk.say(f"Keep another Garden at {path}")
    assert isinstance(event, TurnFailed)
    assert event.problem.code in ("PATH_OUTSIDE_VAULT", "PATH_NOT_ALLOWED")
