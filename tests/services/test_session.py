"""A session prepares for its model, and for nothing else."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from agents import NOTES
from obsidian_agent.bootstrap import Wiring, build_session
from support import MakeVault, settings_with


@pytest.mark.parametrize("model", [None, "scripted/nothing.jsonl", "nonsense"])
def test_without_a_service_nothing_is_imported_and_nothing_fails(
    make_vault: MakeVault, tmp_path: Path, model: str | None
) -> None:
    before = set(sys.modules)
    session = build_session(
        Wiring(make_vault(NOTES), tmp_path / "state", settings=settings_with(model=model))
    )
    session.warm_up()
    for thread in threading.enumerate():
        if thread.name == "warming-up":
            thread.join()
    if "litellm" not in before and model != "nonsense":
        assert "litellm" not in sys.modules


@pytest.mark.parametrize(
    ("comment", "changed"),
    [
        ("to Home instead", {"notes": "note:Home.md"}),  # and “instead” is no text to add
        ("hm", {}),
    ],
)
def test_a_comment_changes_the_values_that_it_names(
    make_vault: MakeVault, tmp_path: Path, comment: str, changed: dict[str, str]
) -> None:
    store = make_vault({"Home.md": "Home\n", "Inbox.md": "Inbox\n"})
    session = build_session(Wiring(store, tmp_path / "state"))
    values = {"text": "Buy milk", "notes": "note:Inbox.md"}
    assert session.changed_values("add-text", values, comment) == values | changed
