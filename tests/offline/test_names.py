from __future__ import annotations

from obsidian_agent.offline.names import Surroundings


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
