from __future__ import annotations

import pytest

from obsidian_agent.agent.plugins import helpful, known_plugins


@pytest.mark.parametrize(
    ("instruction", "plugin"),
    [
        ("Set up a Kanban board for my thesis", "obsidian-kanban"),
        ("Make flashcards from this note", "obsidian-spaced-repetition"),
        ("export this note as a PDF", "obsidian-pandoc"),
        ("Push my vault to GitHub every evening", "obsidian-git"),
        ("draw a mind map of the project", "obsidian-mind-map"),
        ("remind me tomorrow to call Jonas", "obsidian-reminder-plugin"),
        ("encrypt my diary", "meld-encrypt"),
        ("publish Home on the web", "digitalgarden"),
        ("check the spelling of my notes", "obsidian-languagetool-plugin"),
    ],
)
def test_what_a_plugin_does_is_recognised(instruction, plugin):
    found = helpful(instruction)
    assert found is not None
    assert found.id == plugin


@pytest.mark.parametrize("instruction", ["rename a to b", "move my drafts", "what is a board game", ""])
def test_most_instructions_need_none(instruction):
    assert helpful(instruction) is None


def test_each_is_known_once():
    assert len({plugin.id for plugin in known_plugins()}) == len(known_plugins()) >= 25
