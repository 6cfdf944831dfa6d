"""One table of sentences (sentences.jsonl), and what candidates say beside their values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from obsidian_agent.agent.events import Answer, NeedsInput, TurnEvent, TurnFailed
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.plan.policy import Policy
from obsidian_agent.services.offline_planner import NEEDS_MODEL, OfflinePlanner
from obsidian_agent.tools.registry import TOOLS
from offline.golden import STORES, desk
from offline_desk import Desk
from support import MakeVault

Decide = Callable[[dict[str, Any]], TurnEvent]

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "sentences.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Each sentence with its result: `recipe` and `values` of a candidate, `health` (the kinds of a
report), or `needs` "model". `vault` is the sample vault where it is not given."""


def name(case: dict[str, Any]) -> str:
    return str(case["say"])


@pytest.fixture
def decide(request: pytest.FixtureRequest) -> Decide:
    """Return the planner's decision on a row of the table."""

    def decide(case: dict[str, Any]) -> TurnEvent:
        match case.get("vault"):
            case "small":
                around = request.getfixturevalue("around")
                planner = OfflinePlanner(lambda: around.view, TOOLS)
                return planner.decide(PlanRequest(case["say"], around.context))
            case "stores":
                return Desk(request.getfixturevalue("make_vault")(STORES)).decide(case["say"])
            case _:
                return desk().decide(case["say"])

    return decide


@pytest.mark.parametrize("case", [case for case in CASES if "recipe" in case], ids=name)
def test_a_candidate_has_every_value_and_nothing_is_certain(
    decide: Decide, case: dict[str, Any]
) -> None:
    event = decide(case)
    assert isinstance(event, NeedsInput)
    # A second candidate of the same action has one condition less.
    candidates = {candidate.recipe: candidate for candidate in reversed(event.candidates)}
    assert case["recipe"] in candidates
    candidate = candidates[case["recipe"]]
    assert candidate.values == case["values"]
    if "missing" in case:
        assert list(candidate.missing) == case["missing"]


@pytest.mark.parametrize("case", [case for case in CASES if "health" in case], ids=name)
def test_a_sentence_about_the_health_of_the_vault_asks_for_its_report(
    decide: Decide, case: dict[str, Any]
) -> None:
    event = decide(case)
    assert isinstance(event, Answer), event
    assert event.health == tuple(case["health"])


@pytest.mark.parametrize("case", [case for case in CASES if "needs" in case], ids=name)
def test_what_only_a_model_can_do_is_said(decide: Decide, case: dict[str, Any]) -> None:
    event = decide(case)
    assert isinstance(event, NeedsInput)
    assert (event.message, event.candidates) == (NEEDS_MODEL, ())


def test_where_deletes_are_off_the_list_says_so(make_vault: MakeVault) -> None:
    vault = make_vault({"Old/A.md": "", "B.md": ""})
    event = replace(Desk(vault).planner, policy=Policy).decide(
        Desk(vault).request("Throw away the notes in Old")
    )
    assert isinstance(event, NeedsInput)
    assert "“Allow deletes”" in event.candidates[0].doubt


def test_a_delete_is_refused_where_deletes_are_off(make_vault: MakeVault) -> None:
    vault = make_vault({"Old/A.md": "", "B.md": ""})
    event = replace(Desk(vault).planner, policy=Policy).decide(
        Desk(vault).request("Delete the folder Old, I don't need it any more")
    )
    assert isinstance(event, TurnFailed)
    assert event.problem.code == "DELETE_DISABLED"


@pytest.mark.parametrize(
    ("sentence", "part"),
    [
        ("Rename Sourdough to Rye bread", "new name “Rye bread”"),
        ("Move Kitchen renovtion to Archive", "which notes “Kitchen renovtion”"),
    ],
)
def test_a_phrase_without_quotes_and_a_misspelled_name_are_marked(sentence: str, part: str) -> None:
    event = desk().decide(sentence)
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].doubt == f"Please check: {part}."


def test_a_recipe_whose_values_are_all_defaults_is_not_first() -> None:
    event = desk().decide("rename Sourdough")
    assert isinstance(event, NeedsInput)
    assert (event.candidates[0].recipe, event.candidates[0].missing) == ("rename", ("to",))


def test_words_of_the_action_and_function_words_are_not_unused() -> None:
    event = desk().decide("Verschiebe bitte die Notiz Herbs schnell nach Archive")
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].doubt == "Not used: “schnell”."


@pytest.mark.parametrize(
    "sentence",
    ["delete the trailing spaces of this note", "elimina il grassetto in questa nota"],
)
def test_a_delete_is_not_offered_for_words_that_it_does_not_use(
    make_vault: MakeVault, sentence: str
) -> None:
    event = Desk(make_vault({"A.md": ""})).decide(sentence, active="A.md")
    assert isinstance(event, NeedsInput)
    assert not [one for one in event.candidates if one.recipe == "delete" and not one.missing]


def test_empty_properties_are_those_of_the_note(make_vault: MakeVault) -> None:
    vault = make_vault({"A.md": "---\ncover:\nauthor: Ada\nsource: ''\n---\n"})
    event = Desk(vault).decide("get rid of the empty properties in this note", active="A.md")
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].title == "Remove cover, source from this note"


@pytest.mark.parametrize(
    ("sentence", "value"),
    [
        ("set status of the harbour review to read", "Texts/Quarterly review of a harbour.md"),
        ("поставь статус готово для ремонта кухни", "Ремонт кухни.md"),
        ("move Pond to the archive", "4 Archive"),
    ],
)
def test_a_name_by_some_of_its_words_is_marked(
    make_vault: MakeVault, sentence: str, value: str
) -> None:
    paths = ("Texts/Quarterly review of a harbour.md", "Ремонт кухни.md", "Pond.md")
    files: dict[str, str | bytes] = dict.fromkeys(paths, "---\nstatus: a\nстатус: b\n---\n")
    event = Desk(make_vault({**files, "4 Archive/Old.md": ""})).decide(sentence)
    assert isinstance(event, NeedsInput)
    assert any(value in text for text in event.candidates[0].values.values())
    assert event.candidates[0].guesses


def test_a_delete_is_offered_with_its_count(make_vault: MakeVault) -> None:
    vault = make_vault({"Old/A.md": "", "Old/B.md": "#x", "Old/C.md": ""})
    event = Desk(vault).decide("Please delete the notes in Old without tags")
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].title == "Delete 2 notes in Old without tags"


def test_without_a_matching_note_one_condition_less_is_offered_with_its_count(
    make_vault: MakeVault,
) -> None:
    vault = make_vault({"Monsters/A.md": "#big", "Monsters/B.md": "#big", "C.md": "#level3"})
    event = Desk(vault).decide("show the notes in Monsters tagged #level3")
    assert isinstance(event, NeedsInput)
    candidates = [one for one in event.candidates if one.recipe == "find-notes"]
    assert [one.values["notes"] for one in candidates] == [
        "folder:Monsters tag:#level3",
        "tag:#level3",
    ]
    expected = "No note matches: notes in Monsters tagged #level3. 1 match: notes tagged #level3."
    assert expected in candidates[1].doubt


def test_a_delete_is_never_offered_with_one_condition_less(make_vault: MakeVault) -> None:
    vault = make_vault({"Old/A.md": "#big", "C.md": "#level3"})
    event = Desk(vault).decide("please delete the notes in Old tagged #level3")
    assert isinstance(event, NeedsInput)
    notes = [one.values.get("notes") for one in event.candidates if one.recipe == "delete"]
    assert notes == ["folder:Old tag:#level3"]


def test_a_value_is_read_from_its_first_words(make_vault: MakeVault) -> None:
    vault = make_vault({"A.md": "---\nstatus: waiting for reply\n---\n", "B.md": "", "Old/": ""})
    event = Desk(vault).decide("please move the notes with status waiting to Old")
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].values == {
        "notes": '[status:"waiting for reply"]',
        "folder": "Old",
    }


@pytest.mark.parametrize(
    "sentence",
    [
        "add the tag x to all notes about cooking",
        "set status to done in every note in which cooking happens",
        "delete all notes about cooking",
    ],
)
def test_all_notes_are_not_meant_where_an_unused_word_may_be_a_condition(sentence: str) -> None:
    event = desk().decide(sentence)
    assert isinstance(event, NeedsInput)
    assert all(candidate.values.get("notes") != "*" for candidate in event.candidates)


@pytest.mark.parametrize(
    "message",
    [
        "I want my meeting notes in Talks",
        "I want all notes tagged #baking moved to Archive",
        "I want to archive all project notes",
    ],
)
def test_a_word_like_a_negation_excludes_nothing(message: str) -> None:
    event = desk().decide(message)
    assert isinstance(event, NeedsInput)
    titles = " ".join(candidate.title for candidate in event.candidates)
    assert "not tagged" not in titles
    assert "not in Archive" not in titles


def test_a_candidate_that_would_change_nothing_stays_first_and_says_so(
    make_vault: MakeVault,
) -> None:
    vault = make_vault({"A.md": "#old", "Bread.md": "# Log\n"})
    event = Desk(vault).decide("please take the tag old off Bread")
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].recipe == "remove-tags"
    assert "It would change nothing." in event.candidates[0].doubt


def test_without_an_open_note_that_note_is_missing(make_vault: MakeVault) -> None:
    event = Desk(make_vault({"A.md": "- [ ] one\n"})).decide("untick all my tasks there")
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].title == "Mark tasks of … as open"
    assert event.candidates[0].missing == ("note",)
