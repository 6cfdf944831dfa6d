from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.journal.records import Effects, bits, numbers, pack_effects, unpack_effects


@given(st.frozensets(st.integers(0, 99)))
def test_a_bitmap_holds_its_numbers(chosen: frozenset[int]) -> None:
    assert numbers(bits(chosen, 100)) == chosen


def test_effects_survive_the_database() -> None:
    effects = Effects(created=("ä.md",), renamed=(("a.md", "b.md"),), commands=("app:reload",))
    assert unpack_effects(pack_effects(effects)) == effects


@pytest.mark.parametrize(
    "blob", [b"", b"x", zlib.compress(b"[1"), zlib.compress(b"[]"), zlib.compress(b"{}")]
)
def test_damaged_effects_are_empty_ones(blob: bytes) -> None:
    assert unpack_effects(blob) == Effects()
