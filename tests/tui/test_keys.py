from __future__ import annotations

from pathlib import Path

from textual.binding import Binding

from obsidian_agent.tui.bindings import KEYS, PLACES, bindings, readable
from obsidian_agent.tui.screens.help import keys_page

DOCS = Path(__file__).parents[2] / "docs" / "keys.md"


def test_the_documentation_is_what_the_table_says() -> None:
    assert DOCS.read_text(encoding="utf-8") == keys_page(), "run: make docs"


def test_ids_are_unique() -> None:
    assert len({key.id for key in KEYS}) == len(KEYS)


def test_no_key_means_two_things_in_one_place() -> None:
    for place in PLACES:
        keys = [single for key in KEYS if key.place == place for single in key.keys.split(",")]
        assert len(keys) == len(set(keys)), place


def test_keys_that_terminals_cannot_tell_apart_are_not_used() -> None:
    used = {single for key in KEYS for single in key.keys.split(",")}
    assert not used & {"ctrl+i", "ctrl+m", "ctrl+h", "ctrl+left_square_bracket"}


def test_every_binding_can_be_rebound_and_explains_itself() -> None:
    for place in PLACES:
        for binding in bindings(place):
            assert isinstance(binding, Binding)
            assert binding.id
            assert binding.tooltip


def test_keys_read_as_people_write_them() -> None:
    assert readable("ctrl+j,shift+enter") == "Ctrl+J or Shift+Enter"
    assert readable("a") == "a"
