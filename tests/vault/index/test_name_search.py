from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.vault.index.name_search import NameSearch, fold_name, search_parts

PATHS = [
    "Work/Budget 2022.md",
    "Budget.md",
    "My budget.md",
    "Notes/Rebudgeting.md",
    "Budget/Plan.md",
    "People/R\u00e9sum\u00e9 na\u00efve.md",
    "Projects/VPN rollout.md",
    "pictures/logo.png",
]


def names(query, limit=None):
    return [hit.path for hit in NameSearch(PATHS).search(query, limit).hits]


def test_better_places_come_first():
    assert names("budget") == [
        "Budget.md",
        "Work/Budget 2022.md",
        "My budget.md",
        "Notes/Rebudgeting.md",
        "Budget/Plan.md",
    ]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("resume naive", "People/R\u00e9sum\u00e9 na\u00efve.md"),
        ("R\u00c9SUM\u00c9", "People/R\u00e9sum\u00e9 na\u00efve.md"),
        ("rollout vpn", "Projects/VPN rollout.md"),
        ("vr", "Projects/VPN rollout.md"),
        ("logo.png", "pictures/logo.png"),
        ("work/bud", "Work/Budget 2022.md"),
        ("  plan ", "Budget/Plan.md"),
        ("bugdet", "Budget.md"),
        ("bdget", "Budget.md"),
    ],
)
def test_what_people_type(query, first):
    assert names(query)[0] == first


def test_nothing_is_no_hit():
    assert names("   ") == names("zzz") == names("qwertyuiop") == []


def test_without_similar_names_a_hit_holds_every_word():
    search = NameSearch(PATHS).search
    assert search("bugdet", similar=False).hits == search("vr", similar=False).hits == ()
    assert search("rollout vpn", similar=False) == search("rollout vpn")


def test_scores_and_totals():
    found = NameSearch(PATHS).search("budget", 2)
    assert (len(found.hits), found.total, found.hits[0].score) == (2, 5, 100.0)
    scores = [hit.score for hit in NameSearch(PATHS).search("budget").hits]
    assert scores == sorted(scores, reverse=True)


some_paths = st.lists(
    st.text(st.sampled_from("abcAB\u00e9 /."), min_size=1, max_size=8), unique=True, max_size=12
)


@given(some_paths, st.text(st.sampled_from("ab \u00c9"), max_size=6), st.integers(0, 5))
def test_the_first_hits_are_the_first_of_all(paths, query, limit):
    names = NameSearch(paths)
    assert names.search(query, limit).hits == names.search(query).hits[:limit]


@given(some_paths, st.text(st.sampled_from("abc\u00c9"), min_size=1, max_size=3))
def test_every_path_that_holds_the_query_is_a_hit(paths, query):
    hits = {hit.path for hit in NameSearch(paths).search(query).hits}
    assert {path for path in paths if fold_name(query) in fold_name(path)} <= hits


ALIASES = [
    ("Finances / plan", "Budget.md"),
    ("Roadmap", "Projects/VPN rollout.md"),
    ("Budget of the house", "My budget.md"),
]


def test_an_alias_is_a_hit_of_its_note():
    finder = NameSearch(PATHS, ALIASES)
    assert finder.search("roadm").hits == (("Projects/VPN rollout.md", 95.0, "Roadmap"),)
    assert finder.search("finances plan").hits[0][::2] == ("Budget.md", "Finances / plan")
    hits = {hit.path: hit.alias for hit in finder.search("budget").hits}
    assert len(hits) == finder.search("budget").total == 5
    assert hits["Budget.md"] is None
    assert hits["My budget.md"] == "Budget of the house", "the better of the two"


@given(some_paths, st.text(st.sampled_from("ab \u00c9"), max_size=6), st.integers(0, 12))
def test_two_parts_are_searched_as_one(paths, query, cut):
    whole = NameSearch(paths).search(query)
    changed = paths[:cut]
    parts = [(NameSearch(paths), frozenset(changed)), (NameSearch(changed), frozenset())]
    assert search_parts(parts, query) == whole


@given(st.lists(st.text("ab/ ", min_size=1, max_size=8), max_size=30), st.text("ab ", max_size=3))
def test_the_best_are_the_first_of_all_matches(paths, query):
    search = NameSearch(sorted({f"{path}.md" for path in paths}))
    for limit in (1, 3, 8):
        assert search.best(query, limit) == search.search(query, limit).hits
