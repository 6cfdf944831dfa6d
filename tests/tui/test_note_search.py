from __future__ import annotations

from obsidian_agent.tui.screens.open_note import MAX_MATCHES, NoteSearch

PATHS = [
    "Archive/Garden old.md",
    "Daily/2025-12-16.md",
    "Garden.md",
    "People/Gardner.md",
    "Projects/Kitchen garden.md",
    "Zebra.md",
]


def test_names_that_begin_with_the_letters_come_first() -> None:
    found = NoteSearch(PATHS).find("garden")
    assert found[0] == "Garden.md"
    assert set(found) == {"Garden.md", "Archive/Garden old.md", "Projects/Kitchen garden.md"}


def test_several_words_must_all_match_in_any_order() -> None:
    assert NoteSearch(PATHS).find("garden kit") == ["Projects/Kitchen garden.md"]


def test_letters_in_order_match_and_typing_errors_are_forgiven() -> None:
    assert NoteSearch(PATHS).find("zbr") == ["Zebra.md"]
    assert NoteSearch(PATHS).find("kitchne")[0] == "Projects/Kitchen garden.md"


def test_an_empty_query_shows_the_first_notes() -> None:
    assert NoteSearch([f"{number}.md" for number in range(500)]).find("") == [
        f"{number}.md" for number in range(MAX_MATCHES)
    ]


def test_a_query_that_fits_nothing() -> None:
    assert NoteSearch(PATHS).find("qqqqqq") == []
