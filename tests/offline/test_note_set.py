from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.note_set import (
    ACTIVE,
    STATES,
    InvalidValue,
    NoteSet,
    Term,
    without_templates,
)
from obsidian_agent.offline.values import read_set

TEXT = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=12
).filter(lambda text: text.strip() == text)
NAMES = TEXT.filter(
    lambda text: text.casefold() not in ("rating", "due", "status", "finished", "tags", "aliases")
)
PLAIN: Any = [
    st.builds(
        Term,
        st.just("tag"),
        st.from_regex(r"[a-z]([a-z/-]{0,7}[a-z])?", fullmatch=True),
        negated=st.booleans(),
    ),
    st.builds(
        Term,
        st.sampled_from(["folder", "in"]),
        st.sampled_from(["Notes", "Projects/Thesis", "日记"]),
        negated=st.booleans(),
    ),
    st.builds(
        Term,
        st.just("note"),
        st.sampled_from(["Inbox.md", "Notes/Rye bread.md", ACTIVE]),
        negated=st.booleans(),
    ),
    st.builds(Term, st.sampled_from(["name", "text"]), TEXT, negated=st.booleans()),
    st.builds(
        Term,
        st.sampled_from(["changed", "created", "dated"]),
        st.dates().map(lambda day: day.isoformat()),
        st.sampled_from([">=", "<"]),
    ),
    st.builds(Term, st.just("is"), st.sampled_from(list(STATES)), negated=st.booleans()),
    st.builds(Term, st.just("tasks"), st.sampled_from(["open", "none"])),
    st.builds(
        Term,
        st.just("property"),
        st.one_of(TEXT, st.integers(0, 99), st.booleans()),
        st.sampled_from([":", ">=", "<"]),
        NAMES,
    ),
    st.builds(Term, st.just("property"), st.none(), st.sampled_from(["has", "lacks"]), NAMES),
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(terms=st.lists(st.one_of(PLAIN), max_size=4))
def test_what_is_typed_reads_back(around: Surroundings, terms: list[Term]) -> None:
    described = NoteSet(tuple(terms))
    assert read_set(described.query(), around) == described


@pytest.mark.parametrize(
    ("text", "condition", "words"),
    [
        ("*", {}, "all notes"),
        ("#done", {"tag": "done"}, "notes tagged #done"),
        ("projects", {"folder": "Projects"}, "notes in Projects"),
        ("Sourdough", {"paths": ["Notes/Sourdough.md"]}, "Sourdough"),
        ("this note", {"paths": [ACTIVE]}, "this note"),
        (
            'note:"this note" tag:##done',
            {"paths": [ACTIVE], "tag": "done"},
            "this note tagged #done",
        ),
        (
            "Sourdough, Rye bread",
            {"paths": ["Notes/Sourdough.md", "Notes/Rye bread.md"]},
            "Sourdough and Rye bread",
        ),
        (
            "tag:done folder:Projects",
            {"tag": "done", "folder": "Projects"},
            "notes tagged #done in Projects",
        ),
        (
            "tag:done -folder:Notes",
            {"tag": "done", "not": {"folder": "Notes"}},
            "notes tagged #done not in Notes",
        ),
        ("tag:a tag:b", {"all": [{"tag": "a"}, {"tag": "b"}]}, "notes tagged #a tagged #b"),
        ("[rating:5]", {"property": {"rating": 5}}, "notes with rating 5"),
        ('[rating:"5/5"]', {"property": {"rating": "5/5"}}, "notes with rating 5/5"),
        ('[Status:"To Do"]', {"property": {"status": "to do"}}, "notes with status to do"),
        ("[rating>=4]", {"atLeast": {"rating": 4}}, "notes with rating >= 4"),
        (
            "[status] [due:]",
            {"has": ["status"], "property": {"due": None}},
            "notes with status without due",
        ),
        (
            "changed:<2026-01-01 is:unlinked",
            {"modifiedBefore": "2026-01-01", "linked": False},
            None,
        ),
        ("words:>=500", {"moreThan": {"words": 499}}, "notes with at least 500 words"),
        ("links:<3", {"fewerThan": {"links": 3}}, "notes with fewer than 3 links"),
        (
            "backlinks:2",
            {"moreThan": {"backlinks": 1}, "fewerThan": {"backlinks": 3}},
            "notes with 2 backlinks",
        ),
        (
            "dated:>=2026-05-01 dated:<2026-06-01",
            {"datedAfter": "2026-05-01", "datedBefore": "2026-06-01"},
            "notes dated from 2026-05-01 to 2026-05-31",
        ),
        (
            "dated:>=2026-05-01 dated:<2026-05-02 tag:a",
            {"datedAfter": "2026-05-01", "datedBefore": "2026-05-02", "tag": "a"},
            "notes dated 2026-05-01 tagged #a",
        ),
        ("changed:yesterday", {"modifiedAfter": "2026-03-13"}, "notes changed since 2026-03-13"),
    ],
)
def test_a_description_is_a_condition_and_words(
    around: Surroundings, text: str, condition: dict[str, Any], words: str | None
) -> None:
    described = read_set(text, around)
    assert described.condition() == condition
    assert words is None or described.text() == words


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nowhere",
        "folder:Nowhere",
        "note:Plan",
        "is:blue",
        "tasks:some",
        "changed:soon",
        "color:red",
        '[x:"',
        "tag:a ]",
    ],
)
def test_what_describes_nothing_is_refused(around: Surroundings, text: str) -> None:
    with pytest.raises(InvalidValue):
        read_set(text, around)


def test_in_a_sentence_a_bare_name_is_one_note_or_a_tag(around: Surroundings) -> None:
    assert read_set("#done", around, known=True) == NoteSet((Term("tag", "done"),))
    for text in ("Projects", "Thesis", "Plan", "*", "tag:done"):
        with pytest.raises(InvalidValue):
            read_set(text, around, known=True)


def test_templates_are_left_out_where_they_would_be_meant(around: Surroundings) -> None:
    assert (
        without_templates(read_set("#done", around), around).text()
        == "notes tagged #done not in Templates"
    )
    assert without_templates(read_set("#recipe", around), around).text() == "notes tagged #recipe"
    assert without_templates(read_set("Templates", around), around).text() == "notes in Templates"


def test_the_notes_are_those_of_now(around: Surroundings) -> None:
    assert len(read_set("#done", around).paths(around)) == 3
    assert NoteSet((Term("note", ACTIVE),)).paths(around) == ("Inbox.md",)
    with pytest.raises(ObsidianAgentError, match="does not exist"):
        NoteSet((Term("note", "Gone.md"),)).paths(around)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("[rating:>=7]", {"atLeast": {"rating": 7}}),
        ("[rating:<7]", {"below": {"rating": 7}}),
        ("[due:<2026-04-01]", {"below": {"due": "2026-04-01"}}),
        ("[due:<=today]", {"atMost": {"due": "2026-03-14"}}),
        ("[due:null]", {"property": {"due": None}}),
        ('[due:"<2026-04-01"]', {"property": {"due": "<2026-04-01"}}),
    ],
)
def test_comparisons_as_obsidian_writes_them(
    around: Surroundings, text: str, condition: dict[str, Any]
) -> None:
    assert read_set(text, around).condition() == condition


@pytest.mark.parametrize(
    "text",
    [
        "[rating:>]",
        "[rating>=]",
        "[rating:<>7]",
        "[rating:=7]",
        "[status:open OR done]",
        "[name:/x/]",
    ],
)
def test_a_comparison_with_nothing_is_refused(around: Surroundings, text: str) -> None:
    with pytest.raises(InvalidValue):
        read_set(text, around)
