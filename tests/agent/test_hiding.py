from __future__ import annotations

import pytest

from agents import NOTES
from obsidian_agent.agent.hiding import HidingView
from obsidian_agent.agent.path_rules import PathRules
from obsidian_agent.errors import VaultError
from obsidian_agent.vault.disk import DiskView
from obsidian_agent.vault.paths import ROOT, PathUse, VaultPath, parse
from support import MakeVault

HIDDEN = ("Private", "Finance/bank.md")


def path(text: str) -> VaultPath:
    return parse(text, PathUse.FOLDER)


@pytest.fixture
def view(make_vault: MakeVault) -> HidingView:
    store = make_vault(NOTES)
    return HidingView(DiskView(store), PathRules(HIDDEN).cover, store.resolve)


@pytest.mark.parametrize("text", ["Private", "Private/diary.md", "Finance/bank.md", "Private/nothing.md"])
def test_what_is_hidden_is_missing(view: HidingView, text: str) -> None:
    hidden = path(text)
    assert view.locate(hidden) is None
    assert view.twin(hidden) is None
    assert view.origin(hidden) is None
    assert view.current(hidden) is None
    for ask in (view.read, view.stat, view.children, lambda folder: list(view.walk(folder))):
        with pytest.raises(VaultError) as caught:
            ask(hidden)
        assert caught.value.code == "FILE_NOT_FOUND"
        assert caught.value.message == f"{text} does not exist."


def test_what_is_left_is_as_it_was(view: HidingView, make_vault: MakeVault) -> None:
    assert [entry.path.text for entry in view.walk(ROOT)] == [
        "Finance",
        "Garden.md",
        "Projects",
        "Projects/Log.md",
        "Projects/Plan.md",
    ]
    assert [entry.path.text for entry in view.children(ROOT)] == ["Finance", "Garden.md", "Projects"]
    assert view.children(path("Finance")) == []
    garden = path("Garden.md")
    assert view.read(garden).decode() == NOTES["Garden.md"]
    assert view.stat(garden).size == len(NOTES["Garden.md"])
    assert view.origin(garden) == view.current(garden) == garden
    assert view.twin(path("garden.MD")) == garden


def test_another_spelling_finds_nothing(view: HidingView) -> None:
    assert view.twin(path("private/DIARY.md")) is None
    assert view.twin(path("PRIVATE")) is None
