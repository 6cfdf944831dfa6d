"""Undo and redo at any depth: every state of the vault on the way back recurs on the way on."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stories import Files, Found, extras, steps, vaults, world


@settings(max_examples=40)
@given(
    files=vaults,
    more=extras,
    runs=st.lists(st.lists(steps, min_size=1, max_size=3), min_size=2, max_size=5),
)
def test_undo_and_redo_go_all_the_way(files: Files, more: set[str], runs: list[Found]) -> None:
    with world(files, more) as home:
        pictures = [home.seen()]
        for found in runs:
            ready = home.preview(found)
            if not ready.change_set.operations:
                continue
            assert home.run(ready).status == "done"
            pictures.append(home.seen())
        for _ in range(2):
            for earlier in reversed(pictures[:-1]):
                assert not home.again().runs.undo(None).conflicts
                assert home.seen() == earlier
            for later in pictures[1:]:
                assert not home.again().runs.redo().conflicts
                assert home.seen() == later
