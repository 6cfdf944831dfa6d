"""Messages with several instructions, and what is said once for several of them."""

from __future__ import annotations

import pytest

from obsidian_agent.providers.offline.clauses import clauses

KNOWN = frozenset(("status", "client", "due", "role"))


def divided(message: str) -> list[str]:
    return clauses(message, lambda name: name.casefold() in KNOWN)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("rename A to B and move it to C", ["rename A to B", "move it to C"]),
        ("Sam left. Tag A with #x. Then move it to C, please.", ["Tag A with #x", "move it to C."]),
        ("rename A to B and make sure that nothing breaks", ["rename A to B"]),
        ("move the notes A, open tasks and B to C", ["move the notes A, open tasks and B to C"]),
        ("create a note 'X' and link to it from Y", ["create a note 'X'", "link to it from Y"]),
    ],
)
def test_verbs_begin_clauses(message: str, expected: list[str]) -> None:
    assert divided(message) == expected


@pytest.mark.parametrize(
    "message",
    [
        "In Log, tick off 'a' and add a task 'b'",
        "in Log: tick off 'a', then add a task 'b'",
        "In Log tick off the 'a' and add a task 'b'",
    ],
)
def test_a_circumstance_is_said_once_for_all(message: str) -> None:
    first, second = divided(message)
    assert first.endswith("in Log")
    assert second == "add a task 'b' in Log"


@pytest.mark.parametrize(
    "message",
    [
        "Create a note X from the Person template, with the role set to cook and tagged friend",
        "Make a person note X with the role set to cook, tagged friend, from the Person template",
        "Create a note X tagged friend from the Person template; the role is cook",
        "I'd like to create a note X from the Person template with role cook, tagged friend",
        "Create a note X from the Person template. Its role should be cook. Tag it with friend.",
    ],
)
def test_what_a_new_note_is_to_be_like_is_told_of_it(message: str) -> None:
    first, *wishes = divided(message)
    assert "Person template" in first
    assert "cook" not in first
    assert wishes[0] == "set the property role to cook in it" or wishes[1] == "set the property role to cook in it"
    assert any("friend" in wish for wish in wishes)


@pytest.mark.parametrize(
    "message",
    [
        "Make a note X with a link to each note tagged #friend",
        "Make a note X listing every note with status done",
        "Make a note X with the text 'role: cook'",
        "Make a note X from the Client template",
    ],
)
def test_what_is_said_of_other_notes_is_no_wish(message: str) -> None:
    assert divided(message) == [message]


@pytest.mark.parametrize(
    "message",
    [
        "Make three notes in F called A one, B two and C three, all of them from the T template",
        "create the notes A one, B two and C three in F from the T template",
        "Add new notes for A one, B two and C three from the T template in F",
    ],
)
def test_a_list_of_new_notes_is_an_instruction_for_each(message: str) -> None:
    found = divided(message)
    assert len(found) == 3
    for clause, name in zip(found, ("A one", "B two", "C three"), strict=True):
        assert f"called '{name}'" in clause
        assert "in F" in clause
        assert "from the T template" in clause


def test_too_many_clauses_are_left_whole() -> None:
    message = "tag a with #x. tag b with #x. tag c with #x. tag d with #x. tag e with #x"
    assert divided(message) == [message]
