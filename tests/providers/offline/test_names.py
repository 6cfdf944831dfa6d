from __future__ import annotations

import pytest

from obsidian_agent.providers.offline.names import Closeness, NameIndex


@pytest.fixture
def numbered(names):
    names.notes = ["00 - Dashboard/HOME.md", "01 - Personal/Plan.md", "Work/Q1 2022.md", "Éclair.md"]
    names.folders = ["00 - Dashboard", "01 - Personal", "Work", "Meetings"]
    return NameIndex(names)


@pytest.mark.parametrize(
    ("text", "sort", "paths", "closeness"),
    [
        ("HOME", "note", ("00 - Dashboard/HOME.md",), Closeness.EXACT),
        ("home.md", "note", ("00 - Dashboard/HOME.md",), Closeness.EXACT),
        ("HOME dashboard", "note", ("00 - Dashboard/HOME.md",), Closeness.LOOSE),
        ("00 - Dashboard/HOME", "note", ("00 - Dashboard/HOME.md",), Closeness.EXACT),
        ("e\u0301clair", "note", ("Éclair.md",), Closeness.EXACT),
        ("meeting notes", "folder", ("Meetings",), Closeness.STEMS),
        ("the meeting folder", "folder", ("Meetings",), Closeness.STEMS),
        ("Personal", "folder", ("01 - Personal",), Closeness.STEMS),
        ("Work/", "folder", ("Work",), Closeness.EXACT),
        ("Q1 2022", "note", ("Work/Q1 2022.md",), Closeness.EXACT),
    ],
)
def test_names_as_people_say_them(numbered, text, sort, paths, closeness):
    found = numbered.find(text, (sort,))
    assert found is not None
    assert (found.paths, found.closeness) == (paths, closeness)


@pytest.mark.parametrize("text", ["", "/", "2022", "Dashboard HOME page two", "Nothing"])
def test_what_is_not_there_is_not_found(numbered, text):
    assert numbered.find(text, ("note",)) is None


def test_all_that_a_name_may_mean(index):
    found = index.find("plan", ("note", "folder"))
    assert found.paths == ("Projects/Apollo/Plan.md", "Archive/2023/Plan.md")
    assert index.find("Apollo/Plan", ("note",)).paths == ("Projects/Apollo/Plan.md",)
    assert index.find("2023/plan.md", ("note",)).paths == ("Archive/2023/Plan.md",)


def test_the_nearest_names_come_first(index):
    assert index.nearest("Pancaks", ("note",))[0] == "Recipes/Pancakes.md"
    assert index.nearest("zzzzqq", ("note", "folder")) == ()
