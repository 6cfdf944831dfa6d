from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.providers.offline import phrases
from obsidian_agent.providers.offline.matcher import LIKELY_COST, Match, match
from obsidian_agent.providers.offline.recipe import Recipe, packaged

HERE = Path(__file__).parent
PARAPHRASES: list[dict[str, Any]] = json.loads((HERE / "paraphrases.json").read_text(encoding="utf-8"))
MORE: list[dict[str, Any]] = json.loads((HERE / "more_paraphrases.json").read_text(encoding="utf-8"))
UNRELATED = (HERE / "unrelated.txt").read_text(encoding="utf-8").splitlines()
PARTS = 16
QUICK_PARTS = [part if part < 6 else pytest.param(part, marks=pytest.mark.soak) for part in range(PARTS)]
QUICK_PHRASES = 2
"""So much is in every run; the rest is among the long tests."""
"""Into how many tests the long lists are divided, so that they can be run beside each other."""


@pytest.fixture
def read(index, around):
    return lambda instruction, **given: match(instruction, packaged(), index, around, given)


def _misread(read: Callable[[str], Sequence[Match]], cases: Sequence[Mapping[str, Any]]) -> list[str]:
    """The instructions that don't find their recipe and values; one that is sure of something else fails at once."""
    wrong = []
    for case in cases:
        instruction, found = case["instruction"], read(case["instruction"])
        best = found[0] if found else None
        right = best is not None and best.recipe.name == case["recipe"] and best.cost <= LIKELY_COST
        if best is None or not right or any(best.resolved.values.get(name) != value for name, value in case.get("values", {}).items()):
            assert best is None or not best.sure, (instruction, best.recipe.name, best.resolved.values)
            wrong.append(instruction)
    return wrong


@pytest.mark.parametrize("part", QUICK_PARTS)
def test_paraphrases_find_their_recipe_and_what_is_sure_is_right(read, part):
    cases = PARAPHRASES[part::PARTS]
    wrong = _misread(read, cases)
    assert len(wrong) <= len(cases) * 0.05, wrong


@pytest.mark.parametrize("part", range(3))
def test_sentences_that_the_phrases_were_not_written_for_find_their_recipe(read, part):
    """Written apart from the phrases and only counted."""
    wrong = _misread(read, [{**case, "values": {}} for case in MORE[part::3]])
    assert len(wrong) <= 4, wrong


def test_every_recipe_is_paraphrased_and_nothing_repeats_a_phrase():
    told = Counter(case["recipe"] for case in PARAPHRASES)
    assert {recipe.name for recipe in packaged() if told[recipe.name] < 5} == set()
    written = {phrase.casefold() for recipe in packaged() for phrase in recipe.phrases}
    assert not [case for case in PARAPHRASES if case["instruction"].casefold() in written]


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_unrelated_becomes_a_plan(read, part):
    for sentence in UNRELATED[part::PARTS]:
        assert not [each.recipe.name for each in read(sentence) if each.sure and each.recipe.refusal is None], sentence


def test_many_sentences_are_unrelated():
    assert len(set(UNRELATED)) > 240


# --- word order, slips, politeness ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "instruction",
    [
        "move Pancakes to Archive",
        "Could you please move Pancakes to Archive?",
        "Would you move the note Pancakes to the folder Archive, thanks",
        "hey, can you move Pancakes into Archive",
        "movve Pancakes to Archive",
        "MOVE PANCAKES TO ARCHIVE",
        "move [[Pancakes]] to 'Archive'. Keep all links working.",
        "move “Pancakes” to Archive without breaking any links",
    ],
)
def test_the_same_thing_in_many_ways(read, instruction):
    best = read(instruction)[0]
    assert best.sure
    assert best.recipe.name == "move"
    assert best.resolved.values == {"from": "Recipes/Pancakes.md", "to": "Archive/Pancakes.md"}


@pytest.mark.parametrize(
    "instruction",
    [
        "add 'x' under Log in Website",
        "in Website add 'x' under Log",
        "under Log in Website, add 'x'",
        "under the heading Log add 'x' to Website",
    ],
)
def test_parts_may_come_in_any_order(read, instruction):
    best = read(instruction)[0]
    assert best.recipe.name == "append-under-heading"
    assert best.resolved.values == {"text": "x", "heading": "Log", "note": "Projects/Website.md"}


# --- what makes a reading unsure ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "instruction",
    [
        "move Pancakes to Archive except the pictures",
        "move Pancakes to Archive only if it is old",
        "don't move Pancakes to Archive",
        "should I move Pancakes to Archive?",
        "why did you move Pancakes to Archive",
        "move Pancakes to Archive and translate it",
        "move Pancakes or Retro to Archive",
        "move Pancaks to Archive",
    ],
)
def test_conditions_questions_and_slips_in_names_are_never_sure(read, instruction):
    assert not any(each.sure for each in read(instruction))


def test_what_is_not_covered_is_named(read):
    best = read("move Pancakes to 'Archive' on the double")[0]
    assert not best.sure
    assert best.left_out == ("double",)


@pytest.mark.parametrize("instruction", ["move Pancakes to Archive quickly", "rename Pancakes to Waffles immediately"])
def test_an_adverb_is_no_part_of_a_name(read, instruction):
    assert not read(instruction)[0].sure


def test_an_ambiguous_name_gives_one_reading_each(read):
    found = read("append 'x' to Plan")
    assert {each.resolved.values["note"] for each in found[:2]} == {"Projects/Apollo/Plan.md", "Archive/2023/Plan.md"}
    assert not any(each.sure for each in found)


def test_a_path_settles_an_ambiguous_name(read):
    best = read("append 'x' to Apollo/Plan")[0]
    assert best.sure
    assert best.resolved.values["note"] == "Projects/Apollo/Plan.md"


def test_a_name_that_is_near_is_offered_not_taken(read):
    best = read("rename [[Websit]] to 'Home'")[0]
    assert not best.sure
    assert best.resolved.values["from"] == "Projects/Website.md"
    assert best.resolved.doubts


def test_given_values_fill_slots(read):
    best = read("rename a note", **{"from": "Groceries.md", "to": "Shopping.md"})[0]
    assert best.resolved.values == {"from": "Groceries.md", "to": "Shopping.md"}
    assert best.resolved.missing == ()


def test_at_most_three_candidates_come_back(read):
    assert len(read("add something to Groceries")) <= 3


def test_words_without_a_word_match_nothing(read):
    assert read("…!? 「」") == []
    assert read("") == []


def test_a_slip_in_the_verb_does_not_delete(read):
    assert read("delete Pancakes")[0].sure
    assert not any(each.sure for each in read("deletee Pancakes"))


# --- recipes --------------------------------------------------------------------------------------------------------------------


def _spoken(node: phrases.Node, recipe: Recipe) -> str:
    """A sentence that the phrase stands for: first choices, all that may be left out left out, slots filled."""
    match node:
        case phrases.Word(text=text):
            return text
        case phrases.Slot(name=name):
            options = recipe.parameters[name].options
            return next(iter(options.values()))[0] if options else FILLED[recipe.parameters[name].kind]
        case phrases.Sequence(parts=parts):
            return " ".join(filter(None, (_spoken(part, recipe) for part in parts)))
        case phrases.Choice(options=options):
            return _spoken(options[0], recipe)
        case phrases.Maybe():
            return ""


FILLED = {
    "note": "[[Website]]",
    "folder": "'Projects'",
    "entry": "[[Website]]",
    "path": "'Brand new'",
    "newName": "'Brand new'",
    "destination": "'Archive'",
    "text": "'some text'",
    "line": "'some text'",
    "spotted": "'some words'",
    "number": "3",
    "level": "2",
    "row": "'cheese, 3'",
    "listValue": "'Movies'",
    "date": "2026-04-01",
    "heading": "'Log'",
    "newHeading": "'Log'",
    "tag": "#tag",
    "property": "'status'",
    "value": "'done'",
    "before": "older than 90 days",
    "template": "[[Templates/Meeting]]",
    "macro": "'New project'",
    "newLabel": "'Brand new'",
    "affix": "'Old '",
    "label": "movie",
    "within": "in Projects",
    "tags": "#tag",
    "knownProperty": "'status'",
    "knownProperties": "'status'",
    "names": "'One' and 'Two'",
    "otherDay": "2026-04-01",
    "span": "yesterday",
    "due": "overdue",
    "sort": "by name",
    "group": "status",
    "status": "open",
    "notes": "all notes in Projects",
    "anyNotes": "all notes in Projects",
    "files": "everything in Projects",
}


@pytest.mark.parametrize("recipe", packaged(), ids=lambda recipe: recipe.name)
def test_phrases_lead_to_their_recipe(read, recipe):
    _lead_to(recipe, recipe.phrases[:QUICK_PHRASES], read)


@pytest.mark.soak
@pytest.mark.parametrize("recipe", packaged(), ids=lambda recipe: recipe.name)
def test_the_other_phrases_lead_to_their_recipe(read, recipe):
    _lead_to(recipe, recipe.phrases[QUICK_PHRASES:], read)


def _lead_to(recipe, texts, read):
    for text in texts:
        phrase = phrases.parse(text)
        sentence = " ".join(filter(None, (_spoken(segment, recipe) for segment in phrase.segments)))
        found = read(sentence)
        if not phrase.vague:
            assert found, sentence
            assert found[0].recipe.name == recipe.name, (sentence, found[0].recipe.name)
