from __future__ import annotations

import gc

from obsidian_agent.tui.gc_policy import NEVER, GcPolicy


def test_full_passes_happen_when_nobody_types_and_only_then() -> None:
    before, was_on = gc.get_threshold(), gc.isenabled()
    policy = GcPolicy()
    gc.enable()
    policy.start()
    try:
        assert gc.get_threshold()[2] == NEVER
        gc.collect(1)
        policy.touched()
        assert not policy.tidy()
        policy._touched_at = 0.0
        assert policy.tidy()
        assert not policy.tidy(), "nothing is due"
    finally:
        policy.stop()
        if not was_on:
            gc.disable()
    assert gc.get_threshold() == before
