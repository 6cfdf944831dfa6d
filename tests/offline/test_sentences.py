"""Sentences as they are typed, without quotes: the action and the values, which are never certain."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.agent.events import NeedsInput, TurnFailed
from obsidian_agent.plan.policy import Policy
from offline.golden import desk
from offline_desk import Desk
from support import MakeVault

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "sentences.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["say"])
def test_a_candidate_has_every_value_and_nothing_is_certain(case: dict[str, Any]) -> None:
    event = desk().decide(case["say"])
    assert isinstance(event, NeedsInput)
    values = {candidate.recipe: candidate.values for candidate in event.candidates}
    assert values.get(case["recipe"]) == case["values"]


def test_where_deletes_are_off_the_list_says_so(make_vault: MakeVault) -> None:
    vault = make_vault({"Old/A.md": "", "B.md": ""})
    event = replace(Desk(vault).planner, policy=Policy).decide(
        Desk(vault).request("Throw away the notes in Old")
    )
    assert isinstance(event, NeedsInput)
    assert "deletes are off" in event.candidates[0].doubt


def test_a_delete_is_refused_where_deletes_are_off(make_vault: MakeVault) -> None:
    vault = make_vault({"Old/A.md": "", "B.md": ""})
    event = replace(Desk(vault).planner, policy=Policy).decide(
        Desk(vault).request("Delete the folder Old, I don't need it any more")
    )
    assert isinstance(event, TurnFailed)
    assert event.problem.code == "DELETE_DISABLED"


def test_a_phrase_is_marked_as_read_without_quotes() -> None:
    event = desk().decide("Rename Sourdough to Rye bread")
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].doubt == "Read as new name: “Rye bread”."


def test_words_of_the_action_and_function_words_are_not_unused() -> None:
    event = desk().decide("Verschiebe bitte die Notiz Herbs schnell nach Archive")
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].doubt == "Not used: “schnell”."


def test_a_delete_is_offered_with_its_count(make_vault: MakeVault) -> None:
    vault = make_vault({"Old/A.md": "", "Old/B.md": "#x", "Old/C.md": ""})
    event = Desk(vault).decide("Please delete the notes in Old without tags")
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].title == "Delete 2 notes in Old without tags"
