"""The promise as laws: a run does what the preview showed, undo brings everything back, and nothing that others wrote is ever lost.

Each law is held for some stories in a plain run and for 2,000 under `-m soak`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from obsidian_agent.agent.verifying import verify
from obsidian_agent.vault.changes import Move
from stories import (
    CARRY_OFF,
    EDITS,
    SHORTEN,
    Edit,
    Files,
    Found,
    edits,
    extras,
    off,
    places,
    plans,
    power_cut,
    promised,
    vaults,
    visible,
    world,
)

Law = Callable[..., None]
NOTE: tuple[str, int] = ("old text", 0o644)


def held(examples: int) -> Callable[[Law], Law]:
    """For that many stories."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))


# --- preview, run, undo ---------------------------------------------------------------------------------------------------------


def a_run_is_its_preview(files: Files, more: set[str], found: Found, switched_off: frozenset[int], others: list[Edit], deletes: bool) -> None:
    """Others may do anything between the preview and the run: it happens as shown, or not at all."""
    if not deletes:
        found = [one for one in found if one[0] != "vault.delete"]
    with world(files, more, deletes=deletes) as home:
        start = home.seen()
        ready = home.preview(found, switched_off)
        assert home.seen() == start
        trashed = any(isinstance(one.operation, Move) and one.operation.trash for one in ready.change_set.operations)
        assert ready.valid == (deletes or not trashed), ready.errors
        home.do(others)
        before = home.seen()
        result = home.run(ready)
        event(result.status)
        if not ready.valid or result.status == "conflict":
            assert result.status == ("conflict" if ready.valid else "refused")
            assert others or not ready.valid, result.errors
            assert home.seen() == before
            return
        assert result.status == "done", result.errors
        after = home.seen()
        assert visible(after) == promised(before, ready)
        assert verify(ready, home.session.view()) == ()
        if not ready.change_set.operations:
            assert after == before
            return
        for _ in range(2):
            assert not home.session.runs.undo(None).conflicts
            assert home.seen() == before
            assert not home.session.runs.redo().conflicts
            assert home.seen() == after
        assert not home.session.runs.undo(None).conflicts
        assert home.seen() == before


run_stories = given(files=vaults, more=extras, found=plans, switched_off=off, others=edits(max_size=2), deletes=st.booleans())
quiet = {"more": set(), "switched_off": frozenset(), "others": [], "deletes": True}
run_examples: list[dict[str, Any]] = [
    {
        "files": {"two.md": NOTE},
        "found": [("vault.rename", {"from": "two.md", "to": "one.md"}), ("vault.createFile", {"path": "two.md", "content": "new"})],
    },
    {
        "files": {"A/B/one.md": NOTE},
        "found": [("vault.delete", {"path": "A/B", "recursive": True}), ("vault.rename", {"from": "A", "to": "A moved"})],
    },
    # A step that fails after it has trashed what is in its way.
    {
        "files": {"one.md": NOTE, "A/two.md": NOTE},
        "found": [("vault.rename", {"from": "one.md", "to": "a/two.md", "overwrite": True})],
    },
    # The file in the way is the one whose name is asked for, not its twin that was touched first.
    {
        "files": {"one.md": NOTE, "One.md": NOTE, "two.md": NOTE},
        "found": [
            ("vault.updateFile", {"path": "One.md", "mode": "append", "content": "x"}),
            ("vault.rename", {"from": "two.md", "to": "one.md", "overwrite": True}),
        ],
    },
    {
        "files": {"A/one.md": NOTE, "A/One.md": NOTE},
        "found": [
            ("vault.rename", {"from": "A", "to": "É moved"}),
            ("vault.delete", {"path": "É moved/One.md"}),
            ("vault.createFile", {"path": "É moved/one.md", "content": "new"}),
        ],
    },
    {
        "files": {"one.md": NOTE, "two.md": NOTE},
        "found": [("vault.rename", {"from": "one.md", "to": "two.md", "overwrite": True})],
        "deletes": False,
    },
    {"files": {"A/one.md": NOTE}, "found": [("vault.delete", {"path": "A", "recursive": True})], "others": [("new", 1, 0)]},
    {"files": {"A/one.md": NOTE}, "found": [("vault.rename", {"from": "A", "to": "a moved"})], "others": [("same size", 0, 0)]},
]


def with_examples(stories: list[dict[str, Any]], usual: dict[str, Any]) -> Callable[[Law], Law]:
    def decorated(law: Law) -> Law:
        for story in stories:
            law = example(**{**usual, **story})(law)
        return law

    return decorated


@held(120)
@run_stories
@with_examples(run_examples, quiet)
def test_a_run_is_its_preview_or_nothing_and_undo_is_its_inverse(**story: Any) -> None:
    a_run_is_its_preview(**story)


@pytest.mark.soak
@held(2000)
@run_stories
def test_2000_runs_are_their_previews_or_nothing_and_undo_is_their_inverse(**story: Any) -> None:
    a_run_is_its_preview(**story)
