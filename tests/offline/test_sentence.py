from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.offline.days import FEASTS, MONTHS, WEEKDAYS, parse_day, shift
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.note_set import COUNTS, STATES
from obsidian_agent.offline.question import QUESTION_WORDS
from obsidian_agent.offline.recipe import packaged
from obsidian_agent.offline.sentence import Sentence, names_in, without_assurances
from obsidian_agent.offline.words import (
    NEAR,
    NOT,
    meanings,
    quotes,
    stem,
    tokens,
    vocabulary,
    words,
)


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("put sourdough next to rye bread", ["sourdough", "rye bread"]),
        ("alles mit #recipe nach Notes", ["#recipe", "Notes"]),
        ("set status to to do in Rye bread", ["status", "to do", "Rye bread"]),
        ("move Start here", ["Start here"]),
        ("Přesuň Überblick do Bilder", ["Überblick", "Bilder"]),
        ("把計画移到日记", ["計画", "日记"]),
        ("nothing of the vault", []),
        ("5 of them", []),
    ],
)
def test_the_longest_names_of_a_sentence_are_found_in_any_language(
    around: Surroundings, sentence: str, names: list[str]
) -> None:
    assert [found.text for found in names_in(sentence, around.names)] == names


def test_common_words_are_names_only_where_they_are_written_so(around: Surroundings) -> None:
    common = frozenset({"notes"})
    assert not list(names_in("all notes", around.names, common))
    assert [found.text for found in names_in("all in Notes", around.names, common)] == ["Notes"]


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("put recipe/bread on it", []),
        ("a well-recipe or recipe-box", []),
        ("into Notes/Garten", []),
        ("into Notes/読書", []),
        ("into Projects/Thesis", ["Projects/Thesis"]),
        ("recipe - Notes / Inbox", ["recipe", "Notes", "Inbox"]),
        ("Notesフォルダの Inboxに", ["Notes", "Inbox"]),
        ("把Sourdough移到Bilder里", ["Sourdough", "Bilder"]),
    ],
)
def test_names_end_where_tokens_and_scripts_end(
    around: Surroundings, sentence: str, names: list[str]
) -> None:
    assert [found.text for found in names_in(sentence, around.names)] == names


@pytest.mark.parametrize(
    ("sentence", "negated"),
    [
        ("all in Notes except Rye bread", ["except Rye bread"]),
        ("everything but Sourdough and Rye bread to Projects", ["but Sourdough", "Rye bread"]),
        ("notes not tagged #recipe", ["not tagged #recipe"]),
        ("those that aren't in the Notes folder", ["aren't in the Notes"]),
        ("alles außer Sourdough nach Projects", ["außer Sourdough"]),
        ("не Sourdough", ["не Sourdough"]),
        ("whose status is not to do", ["status is not to do"]),
        ("do not touch the order. Move Sourdough", []),
        ("not sure where Sourdough is", []),
    ],
)
def test_a_name_right_behind_a_negating_word_is_negated(
    around: Surroundings, sentence: str, negated: list[str]
) -> None:
    found = Sentence(sentence, around).names
    assert [each.negated for each in found if each.negated] == negated


def test_a_property_binds_the_value_behind_it(around: Surroundings) -> None:
    sentence = "with status to do, finished: true, rating 5, and to do, 5"
    found = Sentence(sentence, around).names
    assert [(each.text, each.bound) for each in found] == [
        ("status to do", True),
        ("finished: true", True),
        ("rating 5", True),
        ("to do", False),
    ]


@pytest.mark.parametrize(
    ("sentence", "texts"),
    [
        ("Bob's 'it isn't' and «x» „y“ ‘z’ \"w\"", ["it isn't", "x", "y", "z", "w"]),
        ("Füge « Ring the library » zu “Inbox ” hinzu", ["Ring the library", "Inbox "]),
        ("Inboxに「牛乳を買う」を追加", ["牛乳を買う"]),
        ("don't and it's", []),
    ],
)
def test_quotes_of_any_language_hold_a_text(sentence: str, texts: list[str]) -> None:
    assert [each.text for each in quotes(sentence)] == texts


def test_days_are_found_where_they_stand(around: Surroundings) -> None:
    found = Sentence("from 2026-01-05 to the day before yesterday, not 'today'", around).days
    assert [each.text for each in found] == [
        "2026-01-05",
        (around.context.now.date() - timedelta(2)).isoformat(),
    ]


@pytest.mark.parametrize(
    "forms",
    [
        "move moves moved moving",
        "tag tags tagged tagging",
        "note notes",
        "link links linked linking",
        "rename renames renamed renaming",
        "add adds added adding",
        "copy copies",
    ],
)
def test_forms_of_a_word_are_one(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


def test_different_words_stay_apart() -> None:
    assert stem("not") != stem("notes")
    assert words("Přesuň 日记 it’s") == ["přesuň", "日", "记", "it"]


def test_the_vocabulary_leads_to_words_of_the_menu_only() -> None:
    menu = {
        word
        for recipe in packaged()
        for text in (recipe.title, recipe.description, *recipe.examples)
        for word in words(text)
    }
    menu |= {word for state, (_, text) in STATES.items() for word in words(f"{state} {text}")}
    menu |= {word for text in COUNTS.values() for word in words(text)}
    menu |= (
        {stem(word) for word in (*MONTHS, *WEEKDAYS, *NEAR, NOT, "rewrite", "who")}
        | QUESTION_WORDS
        | FEASTS.keys()
    )
    assert {head for heads in vocabulary().values() for head in heads} <= menu


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("Verschiebe", "move"),
        ("lösche", "delet"),
        ("PŘESUŇ", "move"),
        ("štítek", "tag"),
        ("переименуй", "renam"),
        ("directories", "folder"),
        ("ponles", "set"),
        ("aggiungilo", "add"),
        ("llévatelo", "move"),
        ("tabelce", "tabl"),
        ("załóż", "creat"),
        ("資料夾", "folder"),
    ],
)
def test_other_languages_and_forms_of_a_word_mean_one_of_the_menu(word: str, meant: str) -> None:
    assert meant in meanings(word)


def test_what_is_in_no_vocabulary_means_nothing() -> None:
    assert not meanings("sourdough")
    assert not any(map(meanings, ("restaurant", "norte", "Verein", "castle", "reunión")))
    assert not meanings("")
    assert [token.text for token in tokens("把笔记移到")] == ["把", "笔记", "移到"]


# --- days and ranges ---

TODAY = date(2026, 3, 14)
"""A Saturday."""


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("today", "2026-03-14"),
        ("Today's", "2026-03-14"),
        ("yesterday", "2026-03-13"),
        ("tomorrow", "2026-03-15"),
        ("the day before yesterday", "2026-03-12"),
        ("2025-06-19", "2025-06-19"),
        ("19 June 2025", "2025-06-19"),
        ("June 19th, 2025", "2025-06-19"),
        ("19th of June", "2026-06-19"),
        ("Dec 1", "2026-12-01"),
        ("3 days ago", "2026-03-11"),
        ("two weeks ago", "2026-02-28"),
        ("a month ago", "2026-02-14"),
        ("in 2 days", "2026-03-16"),
        ("monday", "2026-03-16"),
        ("next monday", "2026-03-16"),
        ("last monday", "2026-03-09"),
        ("saturday", "2026-03-14"),
        ("next saturday", "2026-03-21"),
        ("last saturday", "2026-03-07"),
    ],
)
def test_days(text, day):
    assert parse_day(text, TODAY) == date.fromisoformat(day)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "2025-02-30",
        "32 June",
        "Projects",
        "99999 years ago",
        "9999 years ago",
        "1234",
        "may be",
        "last month",
        "2024",
        "March",
    ],
)
def test_no_dates(text):
    assert parse_day(text, TODAY) is None


def test_a_day_that_the_month_lacks_becomes_its_last():
    assert shift(date(2026, 3, 31), -1, "month") == date(2026, 2, 28)
    assert shift(date(2024, 2, 29), 1, "year") == date(2025, 2, 28)
    assert shift(date(2026, 12, 31), 2, "month") == date(2027, 2, 28)


@given(
    st.dates(date(1950, 1, 1), date(2100, 1, 1)),
    st.integers(-200, 200),
    st.sampled_from(["day", "week", "month", "year"]),
)
def test_shifting_there_and_back_loses_at_most_the_end_of_a_month(day, count, unit):
    back = shift(shift(day, count, unit), -count, unit)
    assert abs(back - day) <= timedelta(days=3)
    assert shift(day, 0, unit) == day


@given(st.dates(date(1950, 1, 1), date(2100, 1, 1)))
def test_a_written_day_reads_back(day):
    assert parse_day(day.isoformat(), TODAY) == day


@given(st.text(max_size=40))
def test_any_text_is_a_date_or_none(text):
    assert isinstance(parse_day(text, TODAY), date | None)


@pytest.mark.parametrize(
    ("sentence", "rest"),
    [
        ("Move A to B. Nothing may break.", "Move A to B."),
        ("Add x to A. Leave everything else alone.", "Add x to A."),
        ("Move A to B. The links on Home must keep working", "Move A to B."),
        ("Move A to B, leave other drafts in Inbox", ""),
        ("Move all notes to B and keep notes that link to A", ""),
        ("Delete A, all links must keep working", ""),
    ],
)
def test_a_clause_that_asks_to_change_nothing_else_is_no_condition(
    sentence: str, rest: str
) -> None:
    assert without_assurances(sentence).rstrip() == (rest or sentence)
