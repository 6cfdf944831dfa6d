"""The preposition before a folder says its role, and a name of several folders is a question."""

from __future__ import annotations

import pytest

from obsidian_agent.agent.events import NeedsInput, PlanReady
from offline.golden import STORES
from offline_desk import Desk
from support import MakeVault


@pytest.fixture
def desk(make_vault: MakeVault) -> Desk:
    return Desk(make_vault(STORES))


def test_a_destination_is_no_filter(desk: Desk) -> None:
    event = desk.decide("delete the notes to Attic")
    assert isinstance(event, NeedsInput)
    assert not any("Attic" in candidate.values.get("notes", "") for candidate in event.candidates)


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("Move all notes tagged #done to Store", "folder"),
        ("Move all notes in Store to Attic", "notes"),
        ("Create a note 'Kick-off' in 'Store'", "folder"),
    ],
)
def test_several_folders_of_a_name_are_a_question(desk: Desk, sentence: str, name: str) -> None:
    event = desk.decide(sentence)
    assert isinstance(event, NeedsInput)
    values = [candidate.values[name].removeprefix("folder:") for candidate in event.candidates]
    assert values == ["Home/Store", "Work/Store"]
    assert isinstance(desk.decide(sentence, pick=2), PlanReady)


def test_a_doubtful_sentence_names_the_folders_of_the_name(desk: Desk) -> None:
    event = desk.decide("put the #done notes away into Store")
    assert isinstance(event, NeedsInput)
    doubt = event.candidates[0].doubt
    assert "Several folders are called “Store”: Home/Store, Work/Store." in doubt


def test_a_path_is_no_question(desk: Desk) -> None:
    assert isinstance(desk.decide("Move all notes tagged #done to Work/Store"), PlanReady)


def test_a_folder_of_the_root_is_meant_by_its_path(make_vault: MakeVault) -> None:
    desk = Desk(make_vault(STORES | {"Store/s.md": ""}))
    event = desk.decide("Move all notes tagged #done to Store")
    assert isinstance(event, PlanReady)
    assert event.plan.parameters["folder"].default == "Store"


def test_folders_that_differ_in_case_are_a_question(make_vault: MakeVault) -> None:
    files: dict[str, str | bytes] = {"Work/archive/w.md": "", "Home/Archive/h.md": ""}
    event = Desk(make_vault(files | {"a.md": "#done\n"})).decide(
        "Move all notes tagged #done to Archive"
    )
    assert isinstance(event, NeedsInput)
    folders = {candidate.values["folder"] for candidate in event.candidates}
    assert folders == {"Work/archive", "Home/Archive"}
