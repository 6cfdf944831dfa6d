"""Other wordings of a message: what is said around an instruction goes, what limits it stays."""

from __future__ import annotations

import pytest

from obsidian_agent.providers.offline.framing import circumstance_last, plainly, spoken_of, wordings


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        ("Rename this note to 'Soup', would you?", "Rename this note to 'Soup'"),
        ("Tidy the inbox up if you can?", "Tidy the inbox up"),
        ("Delete the note Soup. Yes, really.", "Delete the note Soup."),
        ("Move [[Soup]] to Archive. I ate it.", "Move [[Soup]] to Archive."),
        ("Sam is on holiday. Move [[Soup]] to Archive.", "Move [[Soup]] to Archive."),
        ("I ate it yesterday, so tick off 'Soup' in my list", "tick off 'Soup' in my list"),
        ("Move Soup to Archive, I have eaten enough of it", "Move Soup to Archive"),
        ("Copy Soup to Cooking so that I can find it.", "Copy Soup to Cooking."),
        ("Rename the tag a to b (so #a/c becomes #b/c)", "Rename the tag a to b"),
        ("I'd like to rename Soup to Stew", "rename Soup to Stew"),
    ],
)
def test_what_is_said_around_an_instruction_goes(message: str, plain: str) -> None:
    assert plainly(message) == plain
    assert next(wordings(message)) == plain


@pytest.mark.parametrize(
    "message",
    [
        "Move all recipes to Archive. The soups should stay. Only the old ones.",
        "Set status to done. Not in Templates, though.",
        "What is in Soup? List the tasks.",
        "Sam left. The dog barks.",
        "Append 'I left. Would you?' to Soup",
        'Add the line "So it goes, because we can" to Soup',
        "Move everything but Soup, which must stay.",
        "Move all recipes to Archive. The soups stay here.",
        "Move all recipes to Archive. Drafts belong to me.",
        "The soups remain. Move all recipes to Archive.",
        "Move Soup to Archive, I don't need the others there",
    ],
)
def test_what_limits_or_is_quoted_stays(message: str) -> None:
    assert plainly(message) == message


@pytest.mark.parametrize(
    ("message", "last"),
    [
        ("In Buy wisely, rename the property a to b", "rename the property a to b in Buy wisely"),
        ("For the notes in Work only, replace #a with #b.", "replace #a with #b in Work"),
        ("Under Dough in 'Rye, dark', add a line", "add a line under Dough in 'Rye, dark'"),
        ("In short, nothing is known", "In short, nothing is known"),
        ("From today, on Mondays", "From today, on Mondays"),
    ],
)
def test_circumstances_go_behind(message: str, last: str) -> None:
    assert circumstance_last(message) == last


@pytest.mark.parametrize(
    ("message", "wording"),
    [
        ("Blue Harbor has rebranded as Harbor Blue: rename their note", 'rename the note "Blue Harbor" to "Harbor Blue"'),
        ("Acme was renamed to Apex. Please rename the note.", 'Please rename the note "Acme" to "Apex".'),
        ("Dev Patel has learned SQL: set skill to SQL in his note", 'set skill to SQL in the note "Dev Patel"'),
        ("Soup is done. Move Stew to Archive.", "Soup is done. Move Stew to Archive."),
        ("Soup is never done: move its note to Archive", "Soup is never done: move its note to Archive"),
        ("Soup is done: move its note to Archive and her note to Old", "Soup is done: move its note to Archive and her note to Old"),
    ],
)
def test_a_note_may_be_spoken_of_by_what_was_named_before(message: str, wording: str) -> None:
    assert spoken_of(message) == wording
