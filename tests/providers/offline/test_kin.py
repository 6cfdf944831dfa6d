"""Words for the same sort of note, and what a checkbox says of notes that lack it."""

from __future__ import annotations

from typing import Any

import pytest

from obsidian_agent.providers.offline.kin import kin
from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.type_nouns import kinds, negated


@pytest.mark.parametrize(
    ("said", "called"),
    [("recipes", "rezepte"), ("papers", "literature"), ("person", "people"), ("invoices", "rechnung"), ("trips", "urlaub")],
)
def test_a_vault_may_call_it_otherwise(said: str, called: str) -> None:
    assert called in kin(said)


def test_most_words_have_no_kin() -> None:
    assert kin("octopus") == frozenset()


def test_a_kind_by_another_name_is_a_folder_or_a_tag_but_no_value(names: Any) -> None:
    index = NameIndex(type(names)(folders=["Rezepte"], tags=["recipe/soup"], properties={"status": {"reading": "reading"}}))
    assert list(kinds("recipes", index)) == [{"tag": "recipe"}]
    assert list(kinds("dishes", index)) in ([{"folder": "Rezepte"}, {"tag": "recipe"}], [{"tag": "recipe"}, {"folder": "Rezepte"}])
    assert list(kinds("papers", index)) == []


def test_where_a_checkbox_is_missing_it_is_open_whether_it_is_not_ticked(names: Any) -> None:
    index = NameIndex(type(names)(properties={"submitted": {"true": True, "false": False}}))
    assert list(negated("submitted", index)) == [{"property": {"submitted": False}}, {"not": {"property": {"submitted": True}}}]
