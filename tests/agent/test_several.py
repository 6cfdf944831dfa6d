"""Messages with several instructions, on a vault."""

from __future__ import annotations

import pytest

from obsidian_agent.agent.events import NeedsInput
from offline_desk import FILES, Desk
from support import MakeVault

MORE: dict[str, str | bytes] = {
    "People/Ada.md": "---\ntags:\n  - person\nrole: poet\nskills:\n  - verse\n---\n",
    "People/Bob.md": "---\ntags:\n  - person\nrole: baker\n---\n",
    "Templates/Person.md": "---\ntags:\n  - person\nrole:\n---\n# {{title}}\n\n## Meetings\n",
}


@pytest.fixture
def desk(make_vault: MakeVault) -> Desk:
    return Desk(make_vault(FILES | MORE))


@pytest.mark.parametrize(
    "message",
    [
        "Create a person note Cy from the Person template, with the role set to cook",
        "Please make me a new person note for Cy, using my Person template, with the role set to cook.",
        "New person note: Cy. Use the Person template and put it in People. The role is cook.",
        "I need a person note called Cy, made with the Person template; its role should be cook",
        "Make People/Cy from the Person template and set its role to cook",
    ],
)
def test_new_notes_are_as_wished(desk: Desk, message: str) -> None:
    assert desk.changes(message) == {"People/Cy.md": "---\ntags:\n  - person\nrole: cook\n---\n# Cy\n\n## Meetings\n"}


@pytest.mark.parametrize(
    "message",
    [
        "Tick off 'call the bank' in Inbox and add a task 'go there'",
        "In Inbox, tick off 'call the bank' and add a task 'go there'",
        "Tick off 'call the bank' in Inbox. Then add the task 'go there' to it.",
    ],
)
def test_what_a_later_part_is_about_may_be_left_out(desk: Desk, message: str) -> None:
    assert desk.changes(message) == {"Inbox.md": "# Inbox\n\n- [x] call the bank\n- [x] done\n- [ ] buy ${milk}\n- [ ] go there\n"}


def test_both_are_the_two_before(desk: Desk) -> None:
    found = desk.changes("Move Garden and Website to Archive and tag both with #old")
    assert found.keys() == {"Projects/Garden.md", "Projects/Website.md"}


def test_news_names_what_is_meant(desk: Desk) -> None:
    expected = "---\ntags:\n  - person\nrole: poet\nskills:\n  - verse\n  - maths\n---\n"
    assert desk.changes('Ada has learned "maths": add it to the skills in her note') == {"People/Ada.md": expected}


def test_a_part_that_may_mean_several_things_is_offered_with_the_whole(desk: Desk) -> None:
    event = desk.decide("tag Garden with #x and move Plan to Archive")
    assert isinstance(event, NeedsInput)
    assert len(event.candidates) >= 2
    for candidate in event.candidates:
        assert candidate.plan is not None
        assert not desk.dry_run(candidate.plan).errors
        assert "x" in candidate.title
        assert "Plan" in candidate.title


def test_without_a_selection_it_says_so(desk: Desk) -> None:
    event = desk.decide("Replace the selected words with 'see below'", active="Ideas.md")
    assert isinstance(event, NeedsInput)
    assert event.message.startswith("Selection is empty")
