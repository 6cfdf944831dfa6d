from __future__ import annotations

import pytest

from obsidian_agent.offline.names import Surroundings, VaultNames
from obsidian_agent.vault.views.disk import DiskView
from support import MakeVault


def test_a_name_says_all_that_it_may_be(around: Surroundings) -> None:
    assert {(name.kind, name.value) for name in around.names.find("thesis")} == {
        ("note", "Projects/Thesis.md"),
        ("folder", "Projects/Thesis"),
    }
    assert {name.value for name in around.names.find("Plan", "note")} == {
        "Twin/Plan.md",
        "Other/Plan.md",
    }
    assert around.names.find("Empty", "folder")[0].value == "Empty"


def test_values_of_properties_keep_their_type(around: Surroundings) -> None:
    assert around.names.properties["rating"] == {"5": 5, "5/5": "5/5"}
    assert around.names.properties["finished"] == {"true": True}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("Kitchen renovtion", {"Home/Kitchen renovation.md"}),
        ("cafe lut", {"Café Lüt.md"}),
        ("Week 23", set()),
        ("gras", set()),
        ("Planner", set()),
    ],
)
def test_a_name_is_misspelled_by_one_letter_or_its_accents(
    make_vault: MakeVault, words: str, names: set[str]
) -> None:
    notes = ("Home/Kitchen renovation", "Café Lüt", "Week 13", "grass", "Planners", "Planned")
    with make_vault(dict.fromkeys((f"{note}.md" for note in notes), "")) as store:
        known = VaultNames(DiskView(store).index)
        assert {name.value for name in known.near(words)} == names
