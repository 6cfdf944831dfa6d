from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from obsidian_agent.tui.gc_policy import NEVER, GcPolicy
from obsidian_agent.vault.index.gc_pause import MANY_OBJECTS, gc_paused


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """Collect garbage as a program that stays open does."""
    was_on = gc.isenabled()
    gc.enable()
    yield
    if not was_on:
        gc.disable()


def test_full_passes_happen_when_nobody_types_and_only_then() -> None:
    before = gc.get_threshold()
    policy = GcPolicy()
    policy.start()
    try:
        assert gc.get_threshold()[2] == NEVER
        gc.collect(1)
        policy.record_input()
        assert not policy.collect_if_idle()
        policy._last_input = 0.0
        assert policy.collect_if_idle()
        assert not policy.collect_if_idle(), "nothing is due"
    finally:
        policy.stop()
    assert gc.get_threshold() == before


def test_no_pass_visits_the_many_objects_of_a_block_at_its_end() -> None:
    with gc_paused():
        made = [[number] for number in range(MANY_OBJECTS + 1)]
    assert any(each is made[0] for each in gc.get_objects(generation=2))
