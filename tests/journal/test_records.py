from __future__ import annotations

from typing import Any

import pytest

from obsidian_agent.journal.records import Effects, effects_of
from obsidian_agent.vault.transaction.actions import action_of
from previews import create, make, modify, move, trash


@pytest.mark.parametrize(
    ("operations", "effects"),
    [
        ([], Effects()),
        (
            [make("A"), create("A/n.md", b"x"), create("b.md", b"x")],
            Effects(created=("A/n.md", "b.md"), folders=("A",)),
        ),
        ([modify("a.md", b"", b"x")], Effects(modified=("a.md",))),
        (
            [move("a.md", "b.md", b""), move("b.md", "c.md", b"")],
            Effects(renamed=(("a.md", "c.md"),)),
        ),
        ([move("a.md", "b.md", b""), move("b.md", "a.md", b"")], Effects()),
        (
            [move("a.md", "b.md", b""), modify("b.md", b"", b"x")],
            Effects(renamed=(("a.md", "b.md"),)),
        ),
        (
            [modify("A/n.md", b"", b"x"), move("A", "B")],
            Effects(renamed=(("A", "B"), ("A/n.md", "B/n.md"))),
        ),
        (
            [move("A", "B"), create("B/n.md", b"x"), move("B", "C")],
            Effects(created=("C/n.md",), renamed=(("A", "C"),)),
        ),
        ([trash("a.md", b"")], Effects(deleted=("a.md",))),
        ([move("a.md", "b.md", b""), trash("b.md", b"")], Effects(deleted=("a.md",))),
        ([move("a.md", "A/a.md", b""), trash("A")], Effects(deleted=("A", "a.md"))),
        ([trash("a.md", b""), create("a.md", b"x")], Effects(modified=("a.md",))),
        ([make("A"), make("A/B"), move("A", "C")], Effects(folders=("C", "C/B"))),
        ([create("a.md", b"x"), trash("a.md", b"x")], Effects()),
    ],
)
def test_the_net_effect(operations: list[Any], effects: Effects) -> None:
    assert effects_of(map(action_of, operations)) == effects
