"""Candidates in words: the sentence of what each would do, and the names that it lacks."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from obsidian_agent.agent.events import Candidate, NeedsInput
from obsidian_agent.plan.policy import Policy
from offline_desk import Desk
from support import MakeVault

FILES: dict[str, str | bytes] = {
    "Fruit/Apple.md": "#fruit\n",
    "Fruit/Pear.md": "#fruit\n",
    "Inbox.md": "See [[Apple]].\n",
    "Sourdough.md": "---\nstatus: open\n---\n",
    "Archive/Old.md": "",
    "Pantry/Flour.md": "",
}


@pytest.fixture
def desk(make_vault: MakeVault) -> Desk:
    return Desk(make_vault(FILES))


def candidates(desk: Desk, sentence: str) -> tuple[Candidate, ...]:
    event = desk.decide(sentence)
    assert isinstance(event, NeedsInput), event
    return event.candidates


@pytest.mark.parametrize(
    ("sentence", "title"),
    [
        ("please move the fruit notes to Archive", "Move 2 notes tagged #fruit to Archive"),
        ("please delete the notes in Archive", "Delete 1 note in Archive"),
        ("please rename Inbox", "Rename Inbox to …"),
        ("please rename Inbox to Start", "Rename Inbox to Start"),
        ('put "Buy flour" at the end of Inbox please', "Add “Buy flour” to Inbox"),
        ("please move the fruit notes", "Move 2 notes tagged #fruit to …"),
        ("please find the notes tagged fruit", "Find notes: 2 notes tagged #fruit"),
    ],
)
def test_a_candidate_is_the_sentence_that_it_will_do(desk: Desk, sentence: str, title: str) -> None:
    assert title in [candidate.title for candidate in candidates(desk, sentence)]


def test_a_missing_value_is_a_gap_of_its_input(desk: Desk) -> None:
    first = candidates(desk, "please rename Inbox")[0]
    assert [(phrase.text, phrase.input) for phrase in first.sentence] == [
        ("Rename ", ""),
        ("Inbox", "from"),
        (" to ", ""),
        ("", "to"),
    ]


def test_what_would_be_new_is_named(desk: Desk) -> None:
    assert candidates(desk, "please move Inbox to Cellar")[0].news == ("folder Cellar is new",)
    assert candidates(desk, "please move Inbox to Archive")[0].news == ()


@pytest.mark.parametrize(
    ("sentence", "input", "text", "nearest"),
    [
        ("please move Sordogh to Archive", "notes", "Sordogh", "Sourdough"),
        ("please move Inbox to Panntri", "folder", "Panntri", "Pantry"),
        ("please set stauz to done on Inbox", "property", "stauz", "status"),
    ],
)
def test_similar_names_are_offered_for_one_that_the_vault_does_not_have(
    desk: Desk, sentence: str, input: str, text: str, nearest: str
) -> None:
    (name,) = candidates(desk, sentence)[0].unknown
    assert (name.input, name.text, name.nearest) == (input, text, (nearest,))


@pytest.mark.parametrize(
    ("sentence", "first"),
    [
        ("which fruit should be the heading of the notes?", "Find notes: 2 notes in Fruit"),
        ("could you please move the fruit notes to Archive?", "Move 2 notes in Fruit to Archive"),
        ("new person Anna Weber", "Make the note person Anna Weber"),
        ("new note for my call with Anna Weber today", "Make the note Anna Weber"),
        ("set status to 7 or more on Inbox", "Set status to 7 or more on Inbox"),
        ("I like pears now, drop the fruit tag of Inbox", "Remove tags from Inbox: fruit"),
    ],
)
def test_the_likely_action_is_first(desk: Desk, sentence: str, first: str) -> None:
    assert candidates(desk, sentence)[0].title == first


def test_where_deletes_are_off_none_is_offered_beside_a_complete_action(desk: Desk) -> None:
    planner = replace(desk.planner, policy=Policy)
    event = planner.decide(desk.request("I've read Inbox, drop the fruit tag of Apple"))
    assert isinstance(event, NeedsInput)
    assert not any(candidate.deletes for candidate in event.candidates)


def test_an_action_that_deletes_is_first_only_if_the_message_names_it(desk: Desk) -> None:
    assert candidates(desk, "please delete the notes in Archive")[0].deletes
    assert not candidates(desk, "the notes in Archive away")[0].deletes
