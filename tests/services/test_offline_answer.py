"""Questions of a conversation without a model: what is answered, and what stays a choice."""

from __future__ import annotations

import asyncio

import pytest

from obsidian_agent.agent.events import AgentEvent, Answer, NeedsInput, PlanningResult
from obsidian_agent.services.offline_answer import AnsweringPlanner, is_question
from offline_desk import Desk
from support import MakeVault

FILES = {
    "Boiler.md": "---\npressure:\n---\n# Boiler\n\n## Service\n\nThe pressure is 1.5 bar.\n",
    "Inbox.md": "- [ ] call the bank\n",
}


@pytest.fixture
def desk(make_vault: MakeVault) -> Desk:
    return Desk(make_vault(FILES))


def planned(desk: Desk, message: str) -> PlanningResult:
    async def ignore(_: AgentEvent) -> None:
        pass

    return asyncio.run(AnsweringPlanner(desk.planner).plan(desk.request(message), ignore))


def test_a_question_is_answered_with_note_heading_and_line(desk: Desk) -> None:
    assert planned(desk, "What is the pressure of the boiler?") == Answer(
        "Notes with most of the words “pressure boiler”: 1\n"
        "1. Boiler.md › Service, line 8: The pressure is 1.5 bar.",
        ("Boiler.md",),
    )


@pytest.mark.parametrize("message", ["tidy up the boiler", "Could you move the boiler to Archive?"])
def test_what_may_be_an_instruction_is_not_answered(desk: Desk, message: str) -> None:
    assert not isinstance(planned(desk, message), Answer)


def test_without_any_passage_the_candidates_stay(desk: Desk) -> None:
    assert isinstance(planned(desk, "Why is the sky blue?"), NeedsInput)


@pytest.mark.parametrize(
    ("message", "expected"),
    [("which notes", True), ("京都?", True), ("wann war das", True), ("delete Inbox", False)],
)
def test_questions_are_recognized(message: str, expected: bool) -> None:
    assert is_question(message) is expected


def test_a_question_is_answered_although_a_word_has_no_part_in_it(desk: Desk) -> None:
    answer = planned(desk, "show all notes without tags, honestly?")
    assert isinstance(answer, Answer)
    assert answer.sources == ("Boiler.md", "Inbox.md")
    assert "Not used: “honestly”." in answer.text


def test_a_word_that_limits_is_not_passed_over(desk: Desk) -> None:
    assert isinstance(planned(desk, "show all notes without tags, but not honest?"), NeedsInput)
