"""Wordings that only the vault explains."""

from __future__ import annotations

from typing import Any

import pytest

from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.vault_idioms import idioms, named_in_place

NOTES = ("Clients/Acme.md", "Clients/Beta.md", "Invoices/One.md", "Packing list.md", "Logbook/2026-03-13.md", "Templates/Standup.md")


@pytest.fixture
def index(names: Any) -> NameIndex:
    return NameIndex(
        type(names)(
            notes=NOTES,
            folders=("Clients", "Invoices", "Logbook", "Archive", "Templates"),
            properties={
                "paid": {"true": True, "false": False},
                "status": {"open": "open", "done": "done", "2019": 2019},
                "deadline": {},
                "mood": {"6": 6},
            },
            daily_set={"folder": "Logbook"},
            daily_template="Templates/Standup",
        )
    )


@pytest.mark.parametrize(
    ("said", "wording"),
    [
        ("Mark One as paid", "set the property paid to true in One"),
        ("flag One as unpaid", "set the property paid to false in One"),
        ("Mark Acme and Beta as done", "set the property status to done in Acme and Beta"),
        ("Declare all clients but Beta as done", "set the property status to done in all clients but Beta"),
        ("Change Acme's status to done", "set the property status to done in Acme"),
        ("Change the status of Acme from open to done", "set the property status to done in Acme"),
        ("Set the status of every client to done", "set the property status to done in every client"),
        ("update the mood to 6 in Acme and Beta", "set the property mood to 6 in Acme and Beta"),
        ("Give Acme a deadline of May 3", "set the property deadline to May 3 in Acme"),
        ("Every client should get the status done", "set the property status to done in Every client"),
        ("Acme's deadline has moved to May 3", "set the property deadline to May 3 in Acme"),
        ("The status of Acme is now done", "set the property status to done in Acme"),
        ("I no longer need the packing list, move it to Archive", "move [[Packing list]] to Archive"),
        ("The packing list is old: archive it", "archive [[Packing list]]"),
        ("create tomorrow's logbook entry from the Standup template", "create tomorrow's daily note from the daily template"),
        ("Move yesterday's open tasks to Acme", "Move the open tasks of yesterday's note to Acme"),
        ("Move the tasks from yesterday to today", "Move the tasks from yesterday's note to today's note"),
        ("Add 'x' to the tasks in Acme, at the end of the list", "add the task 'x' under the heading Tasks in Acme"),
        ("Add 'x' to Acme, at the end of its Log section", "Add 'x' to Acme under the heading Log"),
    ],
)
def test_the_vault_gives_words_a_meaning(index: NameIndex, said: str, wording: str) -> None:
    assert wording in list(idioms(said, index))


@pytest.mark.parametrize(
    "said",
    [
        "Mark the task 'x' in Acme as done",
        "Mark all tasks in Acme as done",
        "Mark One as urgent",
        "Give Acme a hug",
        "Change the colour of Acme to red",
        "Move Acme to Archive",
        "Unless the packing list is empty, archive it",
    ],
)
def test_what_the_vault_does_not_know_stays(index: NameIndex, said: str) -> None:
    assert list(idioms(said, index)) == []


def test_what_is_no_old_value_stays_a_condition(index: NameIndex) -> None:
    assert list(idioms("Set the status of every client from May to done", index)) == [
        "set the property status to done in every client from May"
    ]


@pytest.mark.parametrize(
    ("said", "placed"),
    [
        ("Make a note 'Sums' in Invoices with a list of links", 'Make a note "Invoices/Sums" with a list of links'),
        ("Make an index called Sums in the Invoices folder that lists all", 'Make an index called "Invoices/Sums" that lists all'),
        ("Make a note 'Sums' in Berlin", "Make a note 'Sums' in Berlin"),
        ("Make a note 'Old/Sums' in Invoices", "Make a note 'Old/Sums' in Invoices"),
        ("Make a note 'Sums' from the Bill template in Invoices", "Make a note 'Sums' from the Bill template in Invoices"),
        ("Move 'Sums' in Invoices", "Move 'Sums' in Invoices"),
    ],
)
def test_what_follows_a_new_name_is_its_folder(index: NameIndex, said: str, placed: str) -> None:
    assert named_in_place(said, index) == placed
