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
        policy.record_input()
        assert not policy.collect_if_idle()
        policy._last_input = 0.0
        assert policy.collect_if_idle()
        assert not policy.collect_if_idle(), "nothing is due"
    finally:
        policy.stop()
        if not was_on:
            gc.disable()
    assert gc.get_threshold() == before
