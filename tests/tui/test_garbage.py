from __future__ import annotations

import gc

from obsidian_agent.tui.gc_policy import NEVER, Garbage


def test_full_passes_happen_when_nobody_types_and_only_then() -> None:
    before, was_on = gc.get_threshold(), gc.isenabled()
    garbage = Garbage()
    gc.enable()
    garbage.start()
    try:
        assert gc.get_threshold()[2] == NEVER
        gc.collect(1)
        garbage.touched()
        assert not garbage.tidy()
        garbage._touched_at = 0.0
        assert garbage.tidy()
        assert not garbage.tidy(), "nothing is due"
    finally:
        garbage.stop()
        if not was_on:
            gc.disable()
    assert gc.get_threshold() == before
