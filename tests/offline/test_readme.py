"""The sentences in the README are certain on the sample vault, so that nobody's first try ends in a menu."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from obsidian_agent.agent.events import NeedsInput
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.reader import readings
from offline.golden import desk

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SAID = re.findall(r'obsidian-agent (?:do|ask) "([^"]+)"', README)
CERTAIN = [sentence for sentence in SAID if not sentence.startswith("please ")]


@pytest.mark.parametrize("sentence", [*CERTAIN, "Create a note for each bullet in Projects"])
def test_it_is_certain(sentence: str) -> None:
    planner = desk()
    request = planner.request(sentence, active="Inbox.md")
    assert (
        len(
            readings(
                sentence,
                planner.planner.recipes(),
                Surroundings(planner.planner.view(), request.context),
            )
        )
        == 1
    )


def test_the_sentence_that_is_not_certain_offers_what_the_readme_says() -> None:
    (sentence,) = set(SAID) - set(CERTAIN)
    event = desk().decide(sentence)
    assert isinstance(event, NeedsInput)
    assert event.candidates[0].title == "Move notes tagged #done to Archive"
